from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from teamchat.core.conversation import addressing
from teamchat.core.conversation.addressing import Addressed, address_reply
from teamchat.core.engine.state import Route, RouteStatus, Rules, State
from teamchat.core.errors import ExitCode, TeamchatError, UnknownName, UnknownPerson, UsageError
from teamchat.core.routing.requests import RouteRequest
from teamchat.core.team.team import Member, Team

HERE = Path("/work")
TEAM = Team(
    "crew",
    (
        Member("kailai", "human", HERE),
        Member("bob", "human", HERE, "Boss"),
        Member("max", "ai", HERE, "Architect", "claude"),
        Member("sarah", "ai", HERE, "Tester", "codex"),
        Member("carol", "ai", HERE, "Tester", "gemini"),
    ),
    HERE,
)
MAX = TEAM.member("max")
STATE = State(Rules(("max", "sarah", "carol"), ("kailai", "bob"), lead="sarah"))


def address(text: str, team: Team, state: State, **options: Any) -> Addressed:
    """As kailai says it, unless the text or an option says who speaks."""
    return addressing.address(text, team, state, **({} if "[FROM:" in text else {"speaker": "kailai"}) | options)


NOBODIES = " ".join(f"[NEXT: nobody{number}]" for number in range(1_000))


def targets(text: str, **options: Any) -> list[str]:
    return [request.target for request in address(text, TEAM, STATE, **options).requests]


def error(text: str, **options: Any) -> TeamchatError:
    with pytest.raises(TeamchatError) as caught:
        address(text, TEAM, STATE, **options)
    return caught.value


# --- who is addressed


def test_a_message_without_names_goes_to_whom_the_engine_says() -> None:
    assert targets("Hi") == ["sarah"]
    asked = replace(STATE, queue=(Route("msg-2", "carol", "msg-1", 1, "kailai", status=RouteStatus.ASKED),))
    assert [request.target for request in address("Hi", TEAM, asked).requests] == ["carol"]


@pytest.mark.parametrize(
    ("text", "to", "expected"),
    [
        ("[NEXT: max] Hi", None, ["max"]),
        ("Hi", "max, carol", ["max", "carol"]),
        ("[NEXT: max] Hi", "carol", ["carol", "max"]),
        ("Hi", "Architect", ["max"]),
        ("[NEXT: max, bob] Hi", None, ["max", "bob"]),
        ("`[NEXT: max]` Hi", None, ["sarah"]),
        ("[NEXT:] Hi", None, ["sarah"]),
        ("[DROP: max] Hi", None, ["sarah"]),
    ],
)
def test_who_speaks_next(text: str, to: str | None, expected: list[str]) -> None:
    options = {} if to is None else {"to": to}
    assert targets(text, **options) == expected


@pytest.mark.parametrize("text", ["[TEAM_TASK: Do it]", "[DROP: ALL]", "[FROM: bob]", "[DROP: max]\n[TEAM_TASK: x]"])
def test_markers_alone_ask_nobody(text: str) -> None:
    assert targets(text) == []


@pytest.mark.parametrize(
    ("text", "options"), [("[NEXT: kailai] Hi", {}), ("Hi", {"to": "kailai"}), ("Hi", {"to": "KaiLai"})]
)
def test_a_person_who_names_only_themself_is_refused(text: str, options: dict[str, Any]) -> None:
    found = error(text, **options)
    assert (str(found), found.code) == ("you cannot call yourself; nobody was called", ExitCode.USAGE)


def test_priorities_and_groups_are_kept() -> None:
    requests = address("Hi", TEAM, STATE, to="max + sarah !P1, carol").requests
    assert requests == (RouteRequest("max", 1, 0), RouteRequest("sarah", 1, 0), RouteRequest("carol", 2))


# --- what is stored


def test_the_text_is_kept_as_it_is_but_for_what_utf8_can_not_hold() -> None:
    assert address(" [NEXT: max]  two  spaces \n\ud800", TEAM, STATE).text == " [NEXT: max]  two  spaces \n\ufffd"


def test_the_next_markers_that_count_are_kept_raw() -> None:
    addressed = address("[NEXT: max] [DROP: bob] `[NEXT: bob]` [next:carol]", TEAM, STATE)
    assert addressed.markers == ("[NEXT: max]", "[next:carol]")
    assert addressed.names == ("max", "carol")
    assert addressed.drops == ("bob",)


def test_a_task_is_taken_from_a_person() -> None:
    assert address("[TEAM_TASK: one] [TEAM_TASK: two] Hi", TEAM, STATE).task == "two"
    assert address("Hi", TEAM, STATE).task is None


@pytest.mark.parametrize(
    ("text", "wordless"),
    [
        ("[NEXT: max]", True),
        (" [DROP: bob]\n[TEAM_TASK: x]\n", True),
        ("[NEXT: max] ?", False),
        ("`[NEXT: max]`", False),
    ],
)
def test_a_message_of_markers_only_has_no_words(text: str, wordless: bool) -> None:
    assert address(text, TEAM, STATE).wordless is wordless


@pytest.mark.parametrize(
    ("text", "options"), [("[NEXT: max]", {}), ("[DROP: bob]", {"to": "max"}), ("[TEAM_TASK: x] [NEXT: max]", {})]
)
def test_the_first_message_of_all_must_say_something_to_those_it_calls(text: str, options: dict[str, Any]) -> None:
    assert address(text, TEAM, STATE, **options).names == ("max",)
    found = error(text, opens=True, **options)
    assert type(found) is UsageError
    assert str(found) == "nothing was said yet that max could answer, and the message has only markers"
    assert found.hint == "teamchat send --to max -"


def test_a_task_may_be_set_before_anything_is_said() -> None:
    assert address("[TEAM_TASK: x]", TEAM, STATE, opens=True).task == "x"


# --- who speaks


@pytest.mark.parametrize(
    ("text", "options", "speaker"),
    [
        ("Hi", {}, "kailai"),
        ("Hi", {"speaker": "bob"}, "bob"),
        ("Hi", {"speaker": "BOB"}, "bob"),
        ("[FROM: bob] Hi", {}, "bob"),
        ("[FROM: Boss] Hi", {"speaker": "bob"}, "bob"),
    ],
)
def test_who_speaks(text: str, options: dict[str, Any], speaker: str) -> None:
    assert address(text, TEAM, STATE, **options).speaker.role_name == speaker


# --- what cannot be sent


@pytest.mark.parametrize(
    ("text", "options", "message", "kind"),
    [
        ("", {}, "there is nothing to send", UsageError),
        (" \n\t", {}, "there is nothing to send", UsageError),
        ("Hi", {"to": " , "}, "--to names nobody", UsageError),
        ("Hi", {"to": "maxx"}, "nobody is called 'maxx': did you mean max?", UnknownName),
        ("[NEXT: zzz, yyy] Hi", {}, "nobody is called 'zzz'; nobody is called 'yyy'", UnknownName),
        ("[NEXT: Tester] Hi", {}, "'Tester' is the title of several members: sarah or carol?", UnknownName),
        ("[NEXT: max, Tester] Hi", {}, "'Tester' is the title of several members: sarah or carol?", UnknownName),
        ("Hi", {"speaker": "max"}, "max is an agent; only people send messages: --as kailai or bob", UnknownPerson),
        ("[FROM: max] Hi", {}, "max is an agent; only people send messages: --as kailai or bob", UnknownPerson),
        ("Hi", {"speaker": "zed"}, "no person 'zed' in team 'crew' (there are: kailai, bob)", UnknownPerson),
        ("[FROM: bob] Hi", {"speaker": "kailai"}, "--as says kailai, and the message says it is from bob", UsageError),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    text: str, options: dict[str, Any], message: str, kind: type[TeamchatError]
) -> None:
    found = error(text, **options)
    assert str(found) == message
    assert type(found) is kind
    assert found.code in (ExitCode.USAGE, ExitCode.UNKNOWN_NAME)


def test_one_unknown_name_among_known_ones_is_only_a_problem() -> None:
    addressed = address("[NEXT: zed, max] [DROP: zed2] Hi", TEAM, STATE)
    assert addressed.names == ("max",)
    assert addressed.problems == ("nobody is called 'zed'", "nobody is called 'zed2'")


# --- replies of agents


def test_a_reply_may_ask_for_anybody_but_itself() -> None:
    reply = address_reply("[NEXT: max, carol, kailai] [DROP: sarah]", TEAM, TEAM.member("max"))
    assert reply.names == ("carol", "kailai")
    assert reply.drops == ("sarah",)
    assert reply.markers == ("[NEXT: max, carol, kailai]",)
    assert reply.problems == ("max: max named itself: ignored",)


def test_a_reply_can_neither_speak_for_others_nor_set_the_task() -> None:
    reply = address_reply("[FROM: kailai] [TEAM_TASK: mine] Hi", TEAM, TEAM.member("max"))
    assert (reply.requests, reply.problems) == ((), ())


def test_no_mistake_in_a_reply_is_an_error() -> None:
    reply = address_reply("[NEXT: Tester] [NEXT: zed]", TEAM, TEAM.member("max"))
    assert reply.requests == ()
    assert reply.problems == (
        "max: 'Tester' is the title of several members: sarah or carol?",
        "max: nobody is called 'zed'",
    )


@pytest.mark.parametrize(
    ("last", "why"),
    [
        ("`[NEXT: max]`", "in inline code"),
        ("**`[NEXT: max]`**", "in inline code"),
        ("1. `[NEXT: max]`\n", "in inline code"),
        ("| `[NEXT: max]` |\r\n", "in inline code"),
        ("`[NEXT：max]`。", "in inline code"),
        ("👉 `[NEXT: max]` 🙂", "in inline code"),
        ("> **[NEXT: max]**", "in a quote"),
        ("```text\n[NEXT: max]\n```\n---\n", "in a code fence"),
    ],
)
def test_a_last_line_of_a_call_that_does_not_count_is_told(last: str, why: str) -> None:
    reply = address_reply(f"Done.\n\n{last}", TEAM, TEAM.member("sarah"))
    raw = re.findall(r"\[[^]]*\]", last)[0]
    assert reply.requests == ()
    assert reply.problems == (f"sarah: '{raw}' in the last line calls nobody: it is {why}",)


@pytest.mark.parametrize(
    "last",
    ["Write `[NEXT: max]`", "`[NEXT: max]`\nBye", "`[NEXT: zed]`", "`[NEXT: sarah]`", "\\[NEXT: max]", "`[DONE: 1]`"],
)
def test_words_beside_such_a_call_are_not_told(last: str) -> None:
    assert address_reply(f"Done.\n\n{last}", TEAM, TEAM.member("sarah")).problems == ()


def test_many_names_that_nobody_has_are_told_in_a_few_lines() -> None:
    assert address(f"[NEXT: max] {NOBODIES} Hi", TEAM, STATE).problems == (
        *(f"nobody is called 'nobody{number}'" for number in range(5)),
        "995 more like these",
    )
    assert address_reply(NOBODIES, TEAM, TEAM.member("max")).problems[-1] == "max: 995 more like these"
    assert str(error(f"{NOBODIES} Hi")).endswith("nobody is called 'nobody4'; 995 more like these")


# --- who speaks


def asking(*names: str) -> State:
    routes = [Route("msg-1", "max", "msg-1", target=name, status=RouteStatus.ASKED) for name in names]
    return replace(STATE, queue=tuple(replace(route, number=number) for number, route in enumerate(routes, 1)))


def test_a_message_that_only_an_unknown_person_signs_is_refused_as_as_is() -> None:
    with pytest.raises(UnknownPerson) as signed:
        addressing.address("[FROM: zed] Hi", TEAM, STATE)
    with pytest.raises(UnknownPerson) as named:
        addressing.address("Hi", TEAM, STATE, speaker="zed")
    assert (str(signed.value), signed.value.code) == (str(named.value), 4)
    assert addressing.address("[FROM: zed] Hi", TEAM, STATE, speaker="bob").speaker.role_name == "bob"
    assert addressing.address("[FROM: bob] [FROM: zed] Hi", TEAM, STATE).speaker.role_name == "bob"


def test_two_people_and_no_name_are_refused_with_both_names() -> None:
    with pytest.raises(UnknownPerson, match=re.escape("who speaks: kailai or bob? Say it with --as")):
        addressing.address("Hi", TEAM, STATE)
    with pytest.raises(UnknownPerson, match="kailai or bob"):
        addressing.address("Hi", TEAM, asking("kailai", "bob"))


@pytest.mark.parametrize("name", ["kailai", "bob"])
def test_of_two_people_the_one_who_was_asked_speaks(name: str) -> None:
    assert addressing.address("Yes", TEAM, asking(name)).speaker.role_name == name


def test_a_team_without_people_has_nobody_who_speaks() -> None:
    nobody = replace(TEAM, members=TEAM.ai_members)
    with pytest.raises(UsageError, match="has no person, and only people send messages"):
        addressing.address("Hi", nobody, STATE)
    with pytest.raises(UsageError, match="has no person"):
        addressing.address("[NEXT: max] Hi", nobody, STATE, speaker="kailai")


FENCED = "```\nDone.\n[NEXT: sarah]\n```"


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("Done.\n[**NEXT**: sarah]", "'NEXT**: sarah' is not a marker and does nothing: did you mean [NEXT: sarah]?"),
        ("Done.\n[**NEXT: sarah**]", "'NEXT: sarah' is not a marker and does nothing: did you mean [NEXT: sarah]?"),
        ("Done.\n[NEXT: sarah.]", "nobody is called 'sarah.': did you mean sarah?"),
        ("Done.\n[NEXT: **sarah**]", "nobody is called '**sarah**': did you mean sarah?"),
        (FENCED, "'[NEXT: sarah]' in the last line calls nobody: it is in a code fence"),
        (f"{FENCED}\n\n", "'[NEXT: sarah]' in the last line calls nobody: it is in a code fence"),
        ("Done.\n`[NEXT: sarah]`", "'[NEXT: sarah]' in the last line calls nobody: it is in inline code"),
        ("Done.\n\n> [NEXT: sarah]", "'[NEXT: sarah]' in the last line calls nobody: it is in a quote"),
        ("- **`[NEXT: Sarah]`**.", "'[NEXT: Sarah]' in the last line calls nobody: it is in inline code"),
        (
            "<think>[NEXT: sarah] [NEXT: max]</think>4",
            "'[NEXT: sarah]' and 1 more is text, no marker: it is in a block of thinking",
        ),
        ("<!-- [NEXT: sarah] -->4", "'[NEXT: sarah]' is text, no marker: it is in an HTML comment"),
    ],
)
def test_a_hand_over_that_calls_nobody_is_told_with_the_reason(reply: str, problem: str) -> None:
    said = address_reply(reply, TEAM, MAX)
    assert (said.requests, said.problems) == ((), (f"max: {problem}",))


def test_a_reply_that_never_ends_to_think_is_told() -> None:
    said = address_reply("<think>\n[NEXT: sarah]", TEAM, MAX)
    assert said.requests == ()
    assert said.problems[-1] == "max: the reply is one <think> that is never closed, so no marker in it counts"


@pytest.mark.parametrize(
    "reply",
    [
        "Write `[NEXT: sarah]` to call her.",
        "```\n[NEXT: sarah]\n```\nThat is how to call.",
        "> [NEXT: sarah]\n\nI quote.",
        "Done.\n`[NEXT: nobody]`",
        "Done.\n`[TODO: sarah]`",
        "The line is: `[NEXT: sarah]`",
    ],
)
def test_a_marker_that_is_only_shown_is_not_worth_a_note(reply: str) -> None:
    assert address_reply(reply, TEAM, MAX).problems == ()


def test_one_who_hands_over_beside_it_is_told_nothing_of_code() -> None:
    said = address_reply("[NEXT: sarah]\n`[NEXT: sarah]`", TEAM, MAX)
    assert ([one.target for one in said.requests], said.problems) == (["sarah"], ())


def test_what_a_reply_repeats_from_its_prompt_is_no_call_and_told() -> None:
    prompt = "You are max.\nEnd with [NEXT: sarah], please.\n"
    said = address_reply(f"{prompt}\n4", TEAM, MAX, lambda: [prompt])
    assert (said.requests, said.markers, said.repeated) == ((), (), ((13, 44),))
    assert said.problems == (
        "max: '[NEXT: sarah]' is text, no marker: it is in what the reply repeats from its prompt",
    )
    assert address_reply(f"{prompt}\n4", TEAM, MAX).requests != ()
