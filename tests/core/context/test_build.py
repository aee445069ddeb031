"""From a route to the exact bytes of its prompt."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.agents import AGENT_TYPES, ProtocolName
from teamchat.core.context.build import BuiltPrompt, Exists, build_prompt, check_limit, exists
from teamchat.core.context.conversation_view import ContextManager, manager_of
from teamchat.core.engine.state import Route
from teamchat.core.errors import ExitCode, PromptTooLarge, UsageError
from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Speaker
from teamchat.core.store.messages import SqliteLog
from teamchat.core.team.team import BUILTIN_AGENTS, Member, Team
from teamchat.runners.base import Limit
from tests.core.fake_conversation import Stage, team_of

PROTOCOLS: tuple[ProtocolName, ...] = ("plain", "claude", "codex", "gemini", "terminal")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, team_of(tmp_path, {"max": "codex", "sarah": "plain"}))


def say(stage: Stage, by: str, text: str, typed: int | None = None) -> str:
    kind = "human" if by == "kailai" else "ai"
    speaker = Speaker(by, by, type=kind)  # type: ignore[arg-type]
    said = NewMessage(text, speaker, Routing(), typed=len(text) if typed is None else typed)
    return manager_of(stage.team, stage.db, stage.session).add_message(said).id


def prompt_of(
    stage: Stage, *, as_of: str | None = None, request: str = "msg-1", there: Exists = lambda *_: lambda _name: False
) -> BuiltPrompt:
    manager = manager_of(stage.team, stage.db, stage.session)
    route = Route("msg-1", "kailai", request, 1, "max", as_of=as_of)
    return build_prompt(stage.team, stage.team.member("max"), route, manager, there)


def text_of(stage: Stage, **options: str) -> str:
    return prompt_of(stage, **options).prepared.stdin.decode()  # type: ignore[arg-type]


def window(stage: Stage, size: int) -> None:
    stage.team = replace(stage.team, context_window=size)


def test_the_newest_message_with_text_is_the_one_to_answer(stage: Stage) -> None:
    for by, text in (("kailai", "Hi"), ("sarah", "Hello"), ("kailai", "[NEXT: max]")):
        say(stage, by, text)
    built = prompt_of(stage)
    assert built.answers.id == "msg-2"
    assert built.prepared.stdin.decode().endswith("[MESSAGE]\nHello")


def test_a_message_that_is_not_the_newest_has_the_later_ones_in_its_history(stage: Stage) -> None:
    for by, text in (("kailai", "Hi"), ("sarah", "Hello"), ("kailai", "Later"), ("sarah", "Latest")):
        say(stage, by, text)
    built = prompt_of(stage, as_of="msg-2")
    text = built.prepared.stdin.decode()
    assert (built.answers.id, built.shown_from, built.shown_through) == ("msg-2", "msg-1", "msg-4")
    assert text.endswith("[MESSAGE]\nHello")
    assert text.index("Hi") < text.index("Later") < text.index("Latest") < text.index("Hello")
    assert text.count("Hello") == 1
    assert "You are answering msg-2, from sarah, below. It is part of the work on msg-1, from kailai. " in text
    assert "It is not the newest message: the history goes on after it." in text
    assert "not the newest" not in text_of(stage)


def test_a_message_that_is_older_than_the_window_is_shown_beside_it(stage: Stage) -> None:
    window(stage, 2)
    for number in range(6):
        say(stage, "kailai", f"number {number}")
    built = prompt_of(stage, as_of="msg-1")
    assert (built.answers.id, built.shown_from, built.shown_through, built.beside) == (
        "msg-1", "msg-5", "msg-6", ("msg-1",),
    )  # fmt: skip
    assert re.findall(r"number \d", built.prepared.stdin.decode()) == ["number 4", "number 5", "number 0"]


def test_a_window_of_no_messages_shows_what_is_answered_alone(stage: Stage) -> None:
    window(stage, 0)
    for text in ("Hi", "Later"):
        say(stage, "kailai", text)
    built = prompt_of(stage, as_of="msg-1")
    assert (built.shown_from, built.shown_through) == ("msg-1", "msg-1")
    assert "Later" not in built.prepared.stdin.decode()


def test_the_note_names_the_later_request_that_a_correction_was_written_for(stage: Stage) -> None:
    for by, text in (("kailai", "With tabs"), ("sarah", "A draft"), ("kailai", "No: spaces")):
        say(stage, by, text)
    manager = manager_of(stage.team, stage.db, stage.session)
    sarah = Speaker("sarah", "sarah", type="ai")
    stage.db.execute("PRAGMA foreign_keys = OFF")  # there is no turn of that number
    manager.add_message(NewMessage("The draft with spaces", sarah, Routing(), turn_id=7))
    route = Route("msg-1", "kailai", "msg-1", 1, "max", as_of="msg-4")
    member, requests = stage.team.member("max"), {7: "msg-3"}
    built = build_prompt(
        stage.team, member, route, manager, lambda *_: lambda _name: False, request_of=lambda turn: requests[turn]
    )
    text = built.prepared.stdin.decode()
    assert built.asked_in == "msg-3"
    assert "below. It is part of the work on msg-1, from kailai. " in text
    assert "sarah wrote it for msg-3, from kailai, and it counts for this work, too." in text


@pytest.mark.parametrize("long", ["a line of a log\n" * 1500, "水" * 8000, "x" * 1_000_000])
@pytest.mark.parametrize(("max_bytes", "max_prompt_tokens"), [(786_432, 3000), (12_000, 50_000)])
def test_one_long_message_does_not_cost_all_the_others(
    stage: Stage, long: str, max_bytes: int, max_prompt_tokens: int
) -> None:
    stage.team = replace(stage.team, max_bytes=max_bytes, max_prompt_tokens=max_prompt_tokens)
    for by, text in (("kailai", "Never push."), ("sarah", f"BEGIN {long} END"), ("kailai", "So what?")):
        say(stage, by, text)
    prompt = text_of(stage)
    assert len(prompt.encode()) <= 12_000
    assert "Never push." in prompt
    assert prompt.index("BEGIN") < prompt.index(" tokens truncated…") < prompt.index("END")


class CountedLog(SqliteLog):
    """Counts the messages that are read."""

    read = 0

    def latest(self, up_to: str | None = None) -> ConversationMessage | None:
        self.read += 1
        return super().latest(up_to)

    def window(self, before_id: str, size: int) -> list[ConversationMessage]:
        found = super().window(before_id, size)
        self.read += len(found)
        return found


@pytest.mark.parametrize("size", [10, 40])
def test_a_prompt_reads_each_message_of_its_window_once(stage: Stage, size: int) -> None:
    for number in range(100):
        say(stage, "kailai" if number % 2 else "sarah", f"message {number}")
    log = CountedLog(stage.db, stage.session)
    manager = ContextManager(log, context_window_size=size)
    route = Route("msg-100", "kailai", "msg-100", 1, "max")
    built = build_prompt(stage.team, stage.team.member("max"), route, manager, lambda *_: lambda _name: False)
    assert built.prepared.stdin.count(b": message ") == size
    assert log.read == 1 + 1 + size  # the current one, which the turn and its history begin with


def test_looking_whether_anything_was_said_reads_one_message(stage: Stage) -> None:
    for number in range(100):
        say(stage, "kailai", f"message {number}")
    log = CountedLog(stage.db, stage.session)
    assert ContextManager(log, context_window_size=50).get_current_message() is not None
    assert log.read == 1


def test_a_request_in_the_window_is_not_told_twice(stage: Stage) -> None:
    say(stage, "kailai", "the request")
    say(stage, "sarah", "an answer")
    text = text_of(stage)
    assert text.count(": the request\n") == 1
    assert "[REQUEST]" not in text


def test_a_request_that_has_left_the_window_is_quoted_whole(stage: Stage) -> None:
    window(stage, 2)
    say(stage, "kailai", "[NEXT: max] the request\nin two lines")
    for number in range(3):
        say(stage, "sarah", f"answer {number}")
    assert text_of(stage).split("\n\n", 1)[1] == (
        "[CONTEXT]\n- sarah -> all: answer 0\n- sarah -> all: answer 1\n\n"
        "[REQUEST]\nthe request\nin two lines\n\n"
        "[TURN]\nYou are answering msg-4, from sarah, below. It is part of the work on msg-1, from kailai.\n\n"
        "[MESSAGE]\nanswer 2"
    )


def test_a_request_that_the_budget_dropped_from_the_history_is_quoted(stage: Stage) -> None:
    say(stage, "kailai", "the request")
    for number in range(5):
        say(stage, "sarah", f"{number} " + "x" * 200)
    whole = len(text_of(stage))
    stage.team = replace(stage.team, max_bytes=whole - 10)
    built = prompt_of(stage)
    text = built.prepared.stdin.decode()
    assert "[REQUEST]\nthe request\n" in text
    assert text.endswith("[MESSAGE]\n4 " + "x" * 200)
    assert built.assembled.trimmed.history_messages > 0
    assert len(built.prepared.stdin) <= whole - 10


def test_a_request_that_is_left_in_a_cut_history_is_not_told_twice(stage: Stage) -> None:
    for by, text in (("sarah", "old " * 50), ("kailai", "the request"), ("sarah", "an answer")):
        say(stage, by, text)
    stage.team = replace(stage.team, max_bytes=len(text_of(stage, request="msg-2")) - 10)
    built = prompt_of(stage, request="msg-2")
    assert built.assembled.trimmed.history_messages == 1
    assert built.prepared.stdin.decode().count("the request\n") == 1


def test_a_request_that_is_the_message_itself_is_not_quoted(stage: Stage) -> None:
    window(stage, 0)
    say(stage, "kailai", "the request")
    assert "[REQUEST]" not in text_of(stage)


def test_a_request_of_markers_only_is_not_quoted(stage: Stage) -> None:
    window(stage, 1)
    for by, text in (("kailai", "[NEXT: max]"), ("sarah", "a"), ("sarah", "b"), ("sarah", "c")):
        say(stage, by, text)
    assert "[REQUEST]" not in text_of(stage)


def test_without_any_text_there_is_nothing_to_answer(stage: Stage) -> None:
    say(stage, "kailai", "[NEXT: max]")
    with pytest.raises(UsageError, match=r"^no message has text that a member could answer$"):
        prompt_of(stage)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_was_said_is_told_without_markers_and_escape_sequences(stage: Stage, protocol: ProtocolName) -> None:
    stage.team = team_of(stage.folder, {"max": protocol})
    for by, text in (("kailai", "[NEXT: max] first"), ("sarah", "\x1b[31mred\x1b[0m\r\n[NEXT: max]"), ("kailai", "go")):
        say(stage, by, text)
    text = text_of(stage)
    assert "\x1b" not in text
    assert "NEXT" not in text.split("Write only your own part.")[-1]
    assert "red" in text


@pytest.mark.parametrize(("protocol", "inert"), [("claude", 1), ("gemini", 1), ("codex", 0), ("plain", 1)])
def test_paths_in_what_others_said_are_made_inert_for_those_that_would_read_them(
    stage: Stage, protocol: ProtocolName, inert: int
) -> None:
    stage.team = team_of(stage.folder, {"max": protocol})
    for by, text in (("sarah", "look at @secret"), ("kailai", "look at @secret yourself")):
        say(stage, by, text)
    built = prompt_of(stage, request="msg-2", there=lambda *_: "secret".__eq__)
    text = built.prepared.stdin.decode()
    assert built.prepared.inert_mentions == inert
    assert ("\\@secret" in text) == bool(inert)
    assert text.endswith("look at @secret yourself")


@pytest.mark.parametrize(
    ("text", "typed", "told"),
    [
        ("look at @secret\n\n```\n+@secret\n@secret\n```", 15, "look at @secret\n\n```\n+\\@secret\n\\@secret\n```"),
        ("[NEXT: max] look at @secret\n\n@secret", 27, "look at @secret\n\n\\@secret"),
        ("@secret [NEXT: max]\n\n@secret", 19, "@secret\n\n\\@secret"),
        ("@secret", 0, "\\@secret"),
        ("[TEAM_TASK]\n@secret\n[NEXT: max] @secret", 0, "\\@secret"),
    ],
)
def test_only_what_a_person_typed_of_the_message_expands(stage: Stage, text: str, typed: int, told: str) -> None:
    stage.team = team_of(stage.folder, {"max": "gemini"})
    say(stage, "kailai", text, typed)
    assert prompt_of(stage).prepared.stdin.decode().endswith(f"\n{told}")


def test_what_a_person_typed_does_not_expand_where_the_budget_has_cut_it(stage: Stage) -> None:
    stage.team = replace(team_of(stage.folder, {"max": "gemini"}), max_bytes=2_000)
    say(stage, "kailai", "@secret " + "x" * 4_000 + " @secret")
    built = prompt_of(stage)
    assert built.assembled.trimmed.message_bytes
    assert built.prepared.inert_mentions == 2


def test_a_message_that_a_person_typed_does_not_expand_when_it_is_history(stage: Stage) -> None:
    stage.team = team_of(stage.folder, {"max": "gemini"})
    for by, text in (("kailai", "see @secret"), ("sarah", "Yes.")):
        say(stage, by, text)
    assert prompt_of(stage).prepared.inert_mentions == 1


def test_the_message_of_an_agent_is_not_the_humans_own(stage: Stage) -> None:
    stage.team = team_of(stage.folder, {"max": "claude"})
    for by, text in (("kailai", "Hi"), ("sarah", "look at @secret")):
        say(stage, by, text)
    built = prompt_of(stage, there=lambda *_: lambda _name: True)
    assert built.prepared.stdin.decode().endswith("look at \\@secret")


def test_what_may_not_be_cut_and_is_too_large_is_an_error(stage: Stage) -> None:
    say(stage, "kailai", "Hi")
    stage.team = replace(stage.team, max_bytes=300)
    with pytest.raises(PromptTooLarge) as e:
        prompt_of(stage)
    assert e.value.code is ExitCode.TOO_LARGE
    found = re.fullmatch(
        r"max: system text, task and turn note take (\d+) bytes, (\d+) with the least of the message; max_bytes is 300;"
        " shorten the task or the instructions, or raise it in the team file",
        str(e.value),
    )
    assert found
    stage.team = replace(stage.team, max_bytes=int(found[2]))
    built = prompt_of(stage)
    assert len(built.prepared.stdin) == int(found[2])
    assert len(built.prepared.stdin) - len("\n\n[MESSAGE]\nHi") == int(found[1])


@pytest.mark.parametrize(
    ("limit", "stdin", "fits"),
    [
        (None, b"x" * 100, True),
        (Limit(6), "水水".encode(), True),
        (Limit(5), "水水".encode(), False),
        (Limit(2, "characters"), "水水".encode(), True),
        (Limit(1, "characters"), "水水".encode(), False),
    ],
)
def test_the_limit_of_a_cli_is_in_its_own_unit(limit: Limit | None, stdin: bytes, *, fits: bool) -> None:
    member = Member("max", "ai", Path("/work"))
    if fits:
        check_limit(member, limit, stdin)
        return
    told = (
        r"^max: the prompt has \d (bytes|characters), its CLI takes \d: send less, or lower max_bytes in the team file$"
    )
    with pytest.raises(PromptTooLarge, match=told):
        check_limit(member, limit, stdin)


def test_the_limit_is_held_against_what_is_really_sent(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    say(stage, "kailai", "Hi")
    size = len(text_of(stage))
    for limit, fits in ((size, True), (size - 1, False)):
        monkeypatch.setattr(AGENT_TYPES["codex"].runner, "limit", Limit(limit, "characters"))
        if fits:
            prompt_of(stage)
        else:
            with pytest.raises(PromptTooLarge):
                prompt_of(stage)


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("file", True),
        ("nothing", False),
        ("nothing/../file", True),  # Claude 2.1.330 takes the way out of a folder without looking for it
        ("link/../file", True),
        ("link/../only-there", True),
        ("~nobody-here/x", False),
        ("a\0b", False),
        ("x" * 5000, False),
        ("", True),
        ("$zebra", True),
        ("$HOME", False),
    ],
)
def test_any_text_can_be_asked_whether_it_names_something(tmp_path: Path, path: str, *, there: bool) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "elsewhere" / "inner").mkdir(parents=True)
    (tmp_path / "elsewhere" / "only-there").touch()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "inner")
    skill = tmp_path / ".agents" / "skills" / "a" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: zebra\n---\n")
    assert exists(Member("max", "ai", tmp_path), AGENT_TYPES["codex"].runner)(path) is there


def test_only_a_cli_that_has_skills_is_asked_for_them(tmp_path: Path) -> None:
    skill = tmp_path / ".agents" / "skills" / "zebra" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.touch()
    member = Member("max", "ai", tmp_path)
    knowing = [name for name, row in AGENT_TYPES.items() if exists(member, row.runner)("$zebra")]
    assert knowing == ["codex"]


def test_the_built_in_agents_have_the_prompts_of_their_kind(tmp_path: Path) -> None:
    members = (Member("kailai", "human", tmp_path), Member("max", "ai", tmp_path, agent="claude"))
    stage = Stage(tmp_path, Team("crew", members, tmp_path, agents=BUILTIN_AGENTS))
    say(stage, "kailai", "Hi")
    built = prompt_of(stage)
    assert built.system_text is not None
    assert built.prepared.stdin.decode().endswith("\n\n[MESSAGE]\nHi")


@pytest.mark.parametrize("budget", [786_432, 150_000])
def test_the_request_that_a_turn_serves_keeps_its_middle_in_the_history(stage: Stage, budget: int) -> None:
    """It is told whole, whatever `max_message_tokens` says of other messages."""
    request = "".join(f"rule {number}\n" for number in range(12_000)).strip()
    stage.team = replace(stage.team, max_bytes=budget)
    for by, text in (("kailai", request), ("sarah", "long " * 20_000), ("sarah", "Done.")):
        say(stage, by, text)
    built = prompt_of(stage)
    assert built.prepared.stdin.decode().count(request) == 1
    assert built.assembled.trimmed.request_bytes == 0


def test_what_a_prompt_leaves_out_is_counted(stage: Stage) -> None:
    for number in range(9):
        say(stage, "sarah", f"{number} " + "x" * 998)
    stage.team = replace(stage.team, max_prompt_tokens=1000)
    trimmed = prompt_of(stage, request="msg-9").assembled.trimmed
    assert trimmed.history_messages > 2
    assert trimmed.bytes == trimmed.history_messages * len("- sarah -> all: ") + trimmed.history_messages * 1000
    assert trimmed.limit == "max_prompt_tokens"
