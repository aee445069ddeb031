"""Debate as a pure strategy: who answers when, what each is shown, and what the report says."""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teamchat.core.engine.processes.debate import (
    BLIND,
    OWN,
    ROUND,
    SYNTHESIS,
    ChangeOfMind,
    DebateAnswer,
    DebateReport,
    report,
)
from teamchat.core.engine.processes.table import STRATEGIES
from teamchat.core.engine.workflow import Call, Fault, Kind, Position, Process, Synthesis
from teamchat.core.routing.names import fold
from tests.core.engine.processes_played import Played, play
from tests.program import ROOT
from tests.trials import trials

DEBATE = STRATEGIES[Kind.DEBATE]
NAMES = ("max", "sarah", "carol", "kai", "a", "B", "c", "zoë")
members = st.lists(st.sampled_from(NAMES), min_size=2, unique=True).map(tuple)
replies = st.sampled_from(("keeps", "changes", "says nothing of it", "prose", "skipped"))


def process_of(*names: str, rounds: int = 1, lead: str = "max") -> Process:
    return Process(Kind.DEBATE, names, lead, rounds=rounds)


def answer(position: str, changed: bool | None = None) -> str:
    fields = {"position": position} | ({} if changed is None else {"changed": changed})
    return f"I think {position} is better.\n{json.dumps(fields)}"


def synthesis(agree: Iterable[str], dissent: dict[str, str] | None = None) -> str:
    return f"SQLite it is.\n\n## Dissent\n\nSome.\n\n{json.dumps({'agree': list(agree), 'dissent': dissent or {}})}"


def debated(rounds: int = 1) -> Played:
    """max keeps SQLite, sarah changes her mind, carol does not say whether she did."""
    held = {"max": [("SQLite", None), ("SQLite", False)], "sarah": [("files", None), ("SQLite", True)]}

    def says(call: Call) -> str:
        if call.part.role == SYNTHESIS:
            return synthesis(["max", "sarah"], {"carol": "Files are simpler."})
        if call.target == "carol":
            return answer("files")
        return answer(*held[call.target][min(call.part.number, 1)])

    return play(process_of("max", "sarah", "carol", rounds=rounds), says)


def test_all_answer_blind_then_each_sees_the_others_and_then_the_lead_writes() -> None:
    blind, later, last = debated().steps
    assert [(call.target, call.part.role, call.part.shows) for call in blind.calls] == [
        ("max", BLIND, ()),
        ("sarah", BLIND, ()),
        ("carol", BLIND, ()),
    ]
    assert [(call.target, call.part.role, call.part.labels, call.part.shows) for call in later.calls] == [
        ("max", ROUND, ("your answer", "answer A", "answer B"), ("msg-2", "msg-3", "msg-4")),
        ("sarah", ROUND, ("your answer", "answer A", "answer B"), ("msg-3", "msg-2", "msg-4")),
        ("carol", ROUND, ("your answer", "answer A", "answer B"), ("msg-4", "msg-2", "msg-3")),
    ]
    assert [(call.target, call.part.role, call.part.labels, call.part.shows) for call in last.calls] == [
        ("max", SYNTHESIS, ("max", "sarah", "carol"), ("msg-5", "msg-6", "msg-7"))
    ]
    assert blind.together
    assert later.together


def test_a_later_round_shows_the_newest_answers() -> None:
    _, _, second, _ = debated(rounds=2).steps
    assert second.calls[0].part.shows == ("msg-5", "msg-6", "msg-7")
    assert [(call.part.number, call.part.total) for call in second.calls] == [(2, 2)] * 3


def test_the_report_has_answers_changes_of_mind_agreement_and_dissent() -> None:
    found = msgspec.json.decode(msgspec.json.encode(report(debated().process)))
    answers = [{"by": None, **fields} for fields in found.pop("answers")]
    assert answers == [
        {"member": "max", "round": 0, "message": "msg-2", "position": "SQLite", "changed": None, "by": None},
        {"member": "sarah", "round": 0, "message": "msg-3", "position": "files", "changed": None, "by": None},
        {"member": "carol", "round": 0, "message": "msg-4", "position": "files", "changed": None, "by": None},
        {"member": "max", "round": 1, "message": "msg-5", "position": "SQLite", "changed": False, "by": None},
        {"member": "sarah", "round": 1, "message": "msg-6", "position": "SQLite", "changed": True, "by": None},
        {"member": "carol", "round": 1, "message": "msg-7", "position": "files", "changed": None, "by": None},
    ]
    assert found == {
        "kind": "debate",
        "rounds": 1,
        "changes": [{"member": "sarah", "round": 1, "before": "files", "after": "SQLite"}],
        "synthesis": "msg-8",
        "agree": ["max", "sarah"],
        "agreement": pytest.approx(2 / 3),
        "dissent": {"carol": "Files are simpler."},
        "missing": [],
    }


def test_the_text_is_the_synthesis_without_its_json() -> None:
    assert debated().text == "SQLite it is.\n\n## Dissent\n\nSome."


def test_json_that_is_no_part_of_the_form_stays_in_the_text() -> None:
    reply = 'Use this:\n\n{"journal_mode": "wal"}'
    played = play(process_of("max", "sarah"), lambda call: reply if call.part.role == SYNTHESIS else answer("x"))
    assert played.text == reply
    result = report(played.process)
    assert (result.synthesis, result.agree, result.agreement, result.dissent) == ("msg-6", None, None, None)


def test_text_behind_the_json_stays() -> None:
    reply = 'Done.\n\n```json\n{"agree": ["max"], "dissent": {}}\n```\n\nBye.\n'
    played = play(process_of("max", "sarah"), lambda call: reply if call.part.role == SYNTHESIS else answer("x"))
    assert played.text == "Done.\n\nBye."
    assert report(played.process).agreement == 0.5


def test_there_is_no_text_before_the_synthesis() -> None:
    process = debated().process
    assert DEBATE.text(msgspec.structs.replace(process, done=process.done[:-1]), answer("SQLite")) == ""
    assert DEBATE.text(process_of("max", "sarah"), "") == ""


def test_a_synthesis_that_was_skipped_leaves_the_positions() -> None:
    played = play(process_of("max", "sarah"), lambda call: None if call.part.role == SYNTHESIS else answer("files"))
    result = report(played.process)
    assert (played.text, result.synthesis, result.agreement, result.missing) == ("", None, None, ())
    assert [found.position for found in result.answers] == ["files"] * 4


def test_a_member_that_was_skipped_in_every_round_is_missing_and_shown_to_nobody() -> None:
    played = play(process_of("max", "sarah", "carol"), lambda call: None if call.target == "sarah" else answer("x"))
    result = report(played.process)
    assert result.missing == ("sarah",)
    assert [found.message for found in result.answers if found.member == "sarah"] == [None, None]
    later = {call.target: call.part.labels for call in played.calls if call.part.role == ROUND}
    assert later == {
        "max": ("your answer", "answer B"),
        "sarah": ("answer A", "answer B"),
        "carol": ("your answer", "answer A"),
    }
    assert played.calls[-1].part.labels == ("max", "carol")


def test_a_member_that_was_skipped_in_the_last_round_is_held_to_its_answer_before() -> None:
    def says(call: Call) -> str | None:
        return None if (call.target, call.part.role) == ("sarah", ROUND) else answer("x")

    played = play(process_of("max", "sarah"), says)
    assert played.calls[-1].part.shows == ("msg-4", "msg-3")
    assert report(played.process).missing == ()


def test_without_any_answer_there_is_no_synthesis() -> None:
    played = play(process_of("max", "sarah", rounds=2), lambda _: None)
    assert len(played.calls) == 6
    assert report(played.process).missing == ("max", "sarah")
    assert played.text == ""


def test_a_lead_that_is_no_member_writes_the_synthesis_and_does_not_count() -> None:
    def says(call: Call) -> str:
        return synthesis(["max", "kai"], {"sarah": "no"}) if call.part.role == SYNTHESIS else answer("x")

    played = play(process_of("max", "sarah", lead="kai"), says)
    assert [call.target for call in played.calls if call.target == "kai"] == ["kai"]
    result = report(played.process)
    assert (result.agree, result.agreement) == (("max",), 0.5)


def test_an_answer_in_anothers_place_is_not_shown_to_its_writer_as_anothers() -> None:
    def by(call: Call) -> str:
        return "sarah" if (call.target, call.part.role) == ("max", BLIND) else call.target

    played = play(process_of("max", "sarah", "carol"), lambda _: answer("x"), by)
    later = {call.target: dict(zip(call.part.labels, call.part.shows, strict=True)) for call in played.steps[1].calls}
    assert later["sarah"] == {"your answer": "msg-3", "answer B": "msg-4"}
    assert later["max"] == {"your answer": "msg-2", "answer A": "msg-3", "answer B": "msg-4"}
    assert [found.by for found in report(played.process).answers] == ["sarah", None, None, None, None, None]


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ('Text.\n{"position": "SQLite", "changed": true}', Position("SQLite", True)),
        ('{"position": "SQLite", "changed": "yes"}', Position("SQLite", None)),
        ('{"position": "SQLite"}', Position("SQLite", None)),
        ('{"position": "  ", "changed": true}', Fault('its JSON has no text as "position"')),
        ('{"changed": true}', Fault('its JSON has no text as "position"')),
        (answer("x" * 10_000), Position("x" * 10_000, None)),
        (answer("x" * 10_001), Fault("its position has 10,001 characters, and at most 10,000 are possible")),
        ("I changed my mind: SQLite.", Fault("there is no JSON object in it")),
    ],
)
def test_a_position_is_what_the_json_says_and_nothing_is_guessed(reply: str, found: Position | Fault) -> None:
    process = process_of("max", "sarah")
    later = [call.part for call in play(process, lambda _: reply).calls if call.part.role == ROUND]
    assert DEBATE.read(process, later[0], reply, ()) == found


def test_a_blind_answer_changes_nothing_whatever_it_says() -> None:
    played = play(process_of("max", "sarah"), lambda _: answer("x", changed=True))
    assert [found.changed for found in report(played.process).answers] == [None, None, True, True]


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ('{"agree": ["MAX", "max"], "dissent": {"Sarah": "no"}}', Synthesis(("max",), {"sarah": "no"})),
        ('{"agree": [], "dissent": []}', Synthesis((), {})),
        ('{"agree": ["max"]}', Fault('its JSON has no names with reasons as "dissent"')),
        ('{"agree": "max", "dissent": {}}', Fault('its JSON has no list of names as "agree"')),
        ('{"agree": ["max"], "dissent": {"sarah": null}}', Fault('its JSON has no names with reasons as "dissent"')),
        ('{"agree": ["bob"], "dissent": {}}', Fault("its JSON names 'bob', who is no member of the debate")),
        (
            '{"agree": ["max"], "dissent": {"max": "in part"}}',
            Fault("its JSON says that max agrees and that max dissents"),
        ),
        ("Everybody agrees.", Fault("there is no JSON object in it")),
    ],
)
def test_a_synthesis_says_who_agrees_or_it_is_unknown(reply: str, found: Synthesis | Fault) -> None:
    process = process_of("max", "sarah")
    last = play(process, lambda _: answer("x")).calls[-1].part
    assert DEBATE.read(process, last, reply, ()) == found


@pytest.mark.parametrize(
    ("process", "wrong"),
    [
        (process_of("max"), "it needs at least 2 members"),
        (process_of("max", "sarah", "max"), "max is named twice"),
        (process_of("max", "sarah", lead=""), "it needs a lead for the synthesis"),
        (process_of("max", "sarah"), None),
    ],
)
def test_what_is_wrong_with_a_debate_is_said_before_it_begins(process: Process, wrong: str | None) -> None:
    assert DEBATE.check(process) == wrong


def test_every_field_of_the_report_is_described() -> None:
    page = (ROOT / "docs" / "processes.md").read_text().partition("## Debate")[2].partition("\n## ")[0]
    fields = (*DebateReport.__struct_fields__, *DebateAnswer.__struct_fields__, *ChangeOfMind.__struct_fields__)
    assert {name for name in fields if f"`{name}`" not in page} == set()


def test_more_than_26_others_have_labels_of_two_letters() -> None:
    names = tuple(f"m{number}" for number in range(30))
    labels = play(process_of(*names, lead="m0"), lambda _: answer("x")).steps[1].calls[0].part.labels
    assert labels[1] == "answer A"
    assert labels[26:] == ("answer Z", "answer AA", "answer AB", "answer AC")


@settings(max_examples=trials(150), deadline=None)
@given(members, st.integers(0, 3), st.data())
def test_every_member_answers_once_in_each_round_and_sees_only_answers_of_earlier_rounds(
    names: tuple[str, ...], rounds: int, data: st.DataObject
) -> None:
    said: dict[str, tuple[str, int]] = {}  # by message: who, in which round

    def says(call: Call) -> str | None:
        reply = data.draw(replies)
        if reply == "skipped":
            return None
        said[f"msg-{len(said) + 2}"] = call.target, call.part.number
        return {"keeps": answer("x", False), "changes": answer("y", True), "prose": "No."}.get(reply, answer("x"))

    played = play(process_of(*names, rounds=rounds, lead=names[0]), says)
    of_members = [call for call in played.calls if call.part.role != SYNTHESIS]
    asked = [(call.target, call.part.number) for call in of_members]
    assert sorted(asked) == sorted((name, number) for name in names for number in range(rounds + 1))
    answered = any(done.message for done in played.process.done if done.part.role != SYNTHESIS)
    assert len(played.calls) == len(names) * (rounds + 1) + answered
    for call in of_members:
        assert len(call.part.shows) == len(call.part.labels) == len(set(call.part.labels))
        for label, message in zip(call.part.labels, call.part.shows, strict=True):
            who, number = said[message]
            assert number < call.part.number  # in round 0, the blind one, nothing is shown
            assert (label == OWN) is (who == call.target)
            assert not {fold(word) for word in label.split()} & {fold(name) for name in names}


@settings(max_examples=trials(100), deadline=None)
@given(members, st.integers(1, 3))
def test_the_label_of_another_member_is_the_same_in_every_round(names: tuple[str, ...], rounds: int) -> None:
    who: dict[str, str] = {}

    def says(call: Call) -> str:
        who[f"msg-{len(who) + 2}"] = call.target
        return answer("x")

    played = play(process_of(*names, rounds=rounds, lead=names[0]), says)
    for name in names:
        own = [call.part for call in played.calls if call.target == name and call.part.role == ROUND]
        labelled = [
            {label: who[message] for label, message in zip(part.labels, part.shows, strict=True)} for part in own
        ]
        assert labelled == labelled[:1] * rounds
        assert sorted(labelled[0].values()) == sorted(names)


@settings(max_examples=trials(200), deadline=None)
@given(st.text(max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    played = play(process_of("max", "sarah"), lambda _: text)
    assert isinstance(played.text, str)
    assert report(played.process).missing == ()
