"""Vote as a pure strategy: who votes, what counts as a vote, and how votes are counted."""

from __future__ import annotations

import json
from unicodedata import normalize

import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.engine.processes.table import STRATEGIES
from teamchat.core.engine.processes.vote import LONGEST_OPTION, Vote, VoteReport, fold_option, report
from teamchat.core.engine.workflow import Ballot, Call, Fault, Kind, Process
from tests.core.engine.processes_played import Played, play
from tests.program import ROOT
from tests.trials import trials

VOTE = STRATEGIES[Kind.VOTE]
OPTIONS = ("SQLite", "PostgreSQL", "flat files")
NAMES = ("max", "sarah", "carol", "kai", "anna")
members = st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(tuple)
choices = st.sampled_from((*OPTIONS, "nothing", "prose", "skipped", "stranger"))


def process_of(*names: str, options: tuple[str, ...] = OPTIONS) -> Process:
    return Process(Kind.VOTE, names, "max", options=options)


def ballot(option: str | None, reason: str = "It fits.") -> str:
    return json.dumps({"option": option, "reason": reason})


def read(text: str, options: tuple[str, ...] = OPTIONS) -> Ballot:
    """What counts of a reply, or of the same one when it is asked for once more."""
    process = process_of("max", options=options)
    step = VOTE.step(process)
    assert step is not None
    part = step.calls[0].part
    first, found = (VOTE.read(process, replace(part, fault=fault), text, ()) for fault in ("", "none"))
    assert isinstance(found, Ballot)
    assert first == (found if not found.reason.startswith("no valid vote: ") else Fault(found.reason[15:]))
    return found


def said(choice: str) -> str | None:
    match choice:
        case "nothing":
            return ballot(None)
        case "prose":
            return "I like all of them."
        case "skipped":
            return None
        case "stranger":
            return ballot("MySQL")
    return ballot(choice)


def voted(**choices: str) -> Played:
    return play(process_of(*choices), lambda call: said(choices[call.target]))


def test_all_members_vote_at_the_same_time_and_are_shown_no_answer() -> None:
    played = voted(max="SQLite", sarah="SQLite", carol="flat files")
    [step] = played.steps
    assert step.together
    assert [call.target for call in step.calls] == ["max", "sarah", "carol"]
    assert {call.as_of for call in step.calls} == {"msg-1"}
    assert all((call.part.shows, call.part.labels, call.part.instead) == ((), (), "") for call in step.calls)
    assert all(call.part.options == OPTIONS for call in step.calls)
    assert all("todo__context" not in (call.part.layers or ()) for call in step.calls)


def test_the_report_has_votes_reasons_tally_and_winner() -> None:
    played = voted(max="SQLite", sarah="nothing", carol="SQLite")
    assert msgspec.json.decode(msgspec.json.encode(report(played.process))) == {
        "kind": "vote",
        "options": ["SQLite", "PostgreSQL", "flat files"],
        "votes": [
            {"member": "max", "message": "msg-2", "option": "SQLite", "reason": "It fits.", "by": None},
            {"member": "sarah", "message": "msg-3", "option": None, "reason": "It fits.", "by": None},
            {"member": "carol", "message": "msg-4", "option": "SQLite", "reason": "It fits.", "by": None},
        ],
        "tally": {"SQLite": 2, "PostgreSQL": 0, "flat files": 0},
        "winner": "SQLite",
        "tie": False,
        "tied": [],
        "abstained": ["sarah"],
        "missing": [],
        "quorum": None,
    }
    assert played.text == "SQLite"


def test_a_tie_has_no_winner_and_names_the_tied_options_in_their_order() -> None:
    played = voted(max="flat files", sarah="SQLite", carol="nothing")
    result = report(played.process)
    assert (result.winner, result.tie, result.tied) == (None, True, ("SQLite", "flat files"))
    assert played.text == "SQLite\nflat files"


def test_without_votes_there_is_neither_a_winner_nor_a_tie() -> None:
    played = voted(max="nothing", sarah="skipped", carol="prose")
    result = report(played.process)
    assert (result.winner, result.tie, result.tied, played.text) == (None, False, (), "")
    assert (result.abstained, result.missing) == (("max", "carol"), ("sarah",))


def test_nobody_has_won_before_every_member_has_voted_or_was_skipped() -> None:
    played = voted(max="SQLite", sarah="SQLite", carol="SQLite")
    unfinished = msgspec.structs.replace(played.process, done=played.process.done[:2])
    result = report(unfinished)
    assert (result.winner, result.tally["SQLite"], result.missing) == (None, 2, ("carol",))
    assert VOTE.text(unfinished, ballot("SQLite")) == ""
    step = VOTE.step(unfinished)
    assert step is not None
    assert [call.target for call in step.calls] == ["carol"]


@pytest.mark.parametrize(
    "reply",
    [
        '{"option": "PostgreSQL", "reason": "r"}',
        'I compared them.\n\n{"option": "postgresql", "reason": "r"}',
        '```json\n{"reason": "r", "option": " POSTGRESQL "}\n```\n',
        '{"option": "Postgre\\u200bSQL", "reason": "r"}',
        '{"option": "\\uff30ostgreSQL", "reason": "r"}',
        '{"option": "PostgreSQL", "reason": "r", "confidence": 0.9}',
        '{"option": "PostgreSQL.", "reason": "r"}',
        '{"option": "「PostgreSQL」。", "reason": "r"}',
        '{"option": "PostgreSQL", "reason": "r",}',
        '{"option": "PostgreSQL", // the best\n"reason": "r"}',
        '{\n  // my vote: "SQLite"?\n  "option": "PostgreSQL", /* a } b */ "reason": "r"}',
        '<think>{"option": "SQLite"}</think>\n{"option": "PostgreSQL", "reason": "r"}',
        '{"option": "PostgreSQL", "reason": "r"}\n<!-- {"option": "SQLite"} -->',
    ],
)
def test_an_option_counts_in_any_case_spacing_and_form_of_its_letters(reply: str) -> None:
    assert read(reply) == Ballot("PostgreSQL", "r")


def test_spaces_within_an_option_may_be_repeated_but_not_left_out() -> None:
    assert read(ballot("Flat \t\n files", "r")) == Ballot("flat files", "r")
    assert read(ballot("flatfiles")).option is None


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("PostgreSQL", "no valid vote: there is no JSON object in it"),
        ("", "no valid vote: there is no JSON object in it"),
        ('{"reason": "r"}', 'no valid vote: its JSON has no text as "option"'),
        ('{"option": ["SQLite", "PostgreSQL"]}', 'no valid vote: its JSON has no text as "option"'),
        ('{"option": true}', 'no valid vote: its JSON has no text as "option"'),
        ('{"option": "Postgres"}', "no valid vote: 'Postgres' is none of the options"),
        ('{"option": "PostgreSQL or SQLite"}', "no valid vote: 'PostgreSQL or SQLite' is none of the options"),
        ('{"option": ""}', "no valid vote: '' is none of the options"),
        ('{"option": "PostgreSQL"', "no valid vote: its JSON is cut off at line 1, column 24"),
    ],
)
def test_a_reply_without_a_valid_vote_is_an_abstention_that_says_why(reply: str, why: str) -> None:
    assert read(reply) == Ballot(None, why)


def test_null_is_an_abstention_with_the_reason_of_the_member() -> None:
    assert read('{"option": null, "reason": "I know neither."}') == Ballot(None, "I know neither.")
    assert read('{"option": null}') == Ballot(None, "")


def test_a_reason_that_is_no_text_is_left_out() -> None:
    assert read('{"option": "SQLite", "reason": {"a": 1}}') == Ballot("SQLite", "")


def test_numbers_that_are_options_count_only_as_they_are_written() -> None:
    versions = ("3.1", "3.10")
    assert read('{"option": "3.10"}', versions).option == "3.10"
    assert read('{"option": 3.10}', versions).option is None  # JSON cannot tell it from 3.1


@pytest.mark.parametrize(
    ("written", "options", "option"),
    [
        ("3", ("3", "4"), "3"),
        ("3.0", ("3", "4"), "3"),
        ("-1", ("-1", "1"), "-1"),
        ("1200", ("800", "1200"), "1200"),
        ("true", ("true", "false"), "true"),
        ("false", ("True", "False"), "False"),
        ("1", ("true", "false"), None),
        ("true", ("1", "0"), None),
        ("3", ("3", "3.0"), None),
        ("3", ("v3", "v4"), None),
        ("1e400", ("1", "2"), None),
        ('"3."', ("3", "4"), "3"),
        ('"C++"', ("C", "C++"), "C++"),
        ('"C++."', ("C", "D"), None),
        ('"`C++`."', ("C", "C++"), "C++"),
        ('"**C#**"', ("C", "C#"), "C#"),
        ('"`-1`"', ("1", "2"), None),
        ('"-1."', ("-1", "1"), "-1"),
        ('"50%."', ("50", "50%"), "50%"),
        ('"!yes"', ("yes", "no"), None),
        ('"yes!"', ("yes", "no"), "yes"),
        ('"(yes)"', ("yes", "no"), "yes"),
        ('"\u2705\ufe0f yes"', ("yes", "no"), "yes"),
        ('"yes?"', ("yes", "no"), None),
        ('"`U.S.`"', ("U.S.", "EU"), "U.S."),
        ('"。"', ("yes", "no"), None),
    ],
)
def test_a_number_or_a_truth_value_counts_as_the_only_option_that_it_equals(
    written: str, options: tuple[str, ...], option: str | None
) -> None:
    assert read(f'{{"option": {written}}}', options).option == option


def test_control_characters_and_tags_in_a_string_stay() -> None:
    assert read('{"option": "SQLite", "reason": "a\tb\x01 <think>c</think> <!-- d -->"}').reason == (
        "a\tb\x01 <think>c</think> <!-- d -->"
    )


def test_a_member_without_a_valid_vote_is_asked_once_more_when_all_have_answered() -> None:
    replies = {"max": ["I like it.", ballot("SQLite")], "sarah": [ballot("SQLite")], "carol": ["What?", "No."]}
    played = play(process_of(*replies), lambda call: replies[call.target].pop(0))
    first, again = played.steps
    assert [call.target for call in first.calls] == ["max", "sarah", "carol"]
    assert [(call.target, call.part.shows, call.part.labels, call.part.fault) for call in again.calls] == [
        ("max", ("msg-2",), ("your last reply",), "there is no JSON object in it"),
        ("carol", ("msg-4",), ("your last reply",), "there is no JSON object in it"),
    ]
    result = report(played.process)
    assert (result.winner, result.tally["SQLite"], result.abstained) == ("SQLite", 2, ("carol",))
    assert result.votes[2].reason == "no valid vote: there is no JSON object in it"
    before = msgspec.structs.replace(played.process, done=played.process.done[:3])
    assert (report(before).winner, report(before).votes[0].reason) == (None, result.votes[2].reason)


def test_a_fallback_votes_for_the_member_in_whose_place_it_answers() -> None:
    played = play(
        process_of("max", "sarah"), lambda _: ballot("SQLite"), lambda call: call.target.replace("max", "kai")
    )
    [first, _] = report(played.process).votes
    assert (first.member, first.by, first.option) == ("max", "kai", "SQLite")


def test_a_member_whose_name_is_spelled_otherwise_now_votes_for_itself() -> None:
    played = play(process_of("max", "Sarah-Lee"), lambda _: ballot("SQLite"), by=lambda call: call.target.lower())
    assert [(vote.member, vote.option, vote.by) for vote in report(played.process).votes] == [
        ("max", "SQLite", None),
        ("Sarah-Lee", "SQLite", None),
    ]


@pytest.mark.parametrize("by", ["sarah", "Sarah"])
def test_no_member_votes_twice_even_as_the_fallback_of_another_one(by: str) -> None:
    played = play(
        process_of("max", "sarah"), lambda _: ballot("SQLite"), lambda call: by if call.target == "max" else "sarah"
    )
    result = report(played.process)
    assert result.tally["SQLite"] == 1
    assert result.abstained == ("max",)
    assert result.votes[0].reason == f"no valid vote: {by} answered, who votes itself"


@pytest.mark.parametrize(
    ("names", "options", "wrong"),
    [
        ((), OPTIONS, "it needs a member"),
        (("max", "max"), OPTIONS, "max is named twice"),
        (("max",), (), "it needs at least two options"),
        (("max",), ("A",), "it needs at least two options"),
        (("max",), ("A", " a "), "the options 'A' and ' a ' are the same"),
        (("max",), ("é", "e\u0301"), "the options 'é' and 'e\u0301' are the same"),
        (("max",), ("A", "  "), "an option is blank"),
        (("max",), ("A", "\u200b"), "an option is blank"),
        (("max",), ("A", "B\nC"), "the option 'B\\nC' is not one line of at most 200 characters"),
    ],
)
def test_what_is_wrong_with_a_vote_is_said_before_it_begins(
    names: tuple[str, ...], options: tuple[str, ...], wrong: str
) -> None:
    assert VOTE.check(process_of(*names, options=options)) == wrong


def test_an_option_is_not_longer_than_a_line_of_a_report() -> None:
    fits, long = "A" * LONGEST_OPTION, "A" * (LONGEST_OPTION + 1)
    assert VOTE.check(process_of("max", options=(fits, "B"))) is None
    assert "is not one line of at most 200 characters" in (VOTE.check(process_of("max", options=(long, "B"))) or "")


@settings(max_examples=trials(150), deadline=None)
@given(members, st.data())
def test_every_member_votes_exactly_once_or_is_reported_and_the_sums_agree(
    names: tuple[str, ...], data: st.DataObject
) -> None:
    chosen = {name: data.draw(choices, name) for name in names}
    played = play(process_of(*names), lambda call: said(chosen[call.target]))
    result = report(played.process)
    again = [name for name in names if chosen[name] in ("prose", "stranger")]
    assert sorted(call.target for call in played.calls) == sorted((*names, *again))
    counted = [vote.member for vote in result.votes if vote.option is not None]
    assert sorted((*counted, *result.abstained, *result.missing)) == sorted(names)
    assert sum(result.tally.values()) == len(counted)
    assert list(result.tally) == list(OPTIONS)
    most = max(result.tally.values())
    first = [option for option, votes in result.tally.items() if votes == most and most]
    assert result.tie is (len(first) > 1)
    assert (result.winner is not None) is (len(first) == 1)
    assert played.text.splitlines() == first


@settings(max_examples=trials(150), deadline=None)
@given(members, st.permutations(range(5)), st.data())
def test_the_result_does_not_depend_on_the_order_in_which_members_answer(
    names: tuple[str, ...], order: list[int], data: st.DataObject
) -> None:
    answers = st.sampled_from((*OPTIONS, "nothing", "skipped"))  # nobody is asked twice
    chosen = {name: data.draw(answers, name) for name in names}
    process = play(process_of(*names), lambda call: said(chosen[call.target])).process
    mixed = tuple(process.done[place] for place in order if place < len(process.done))
    assert report(msgspec.structs.replace(process, done=mixed)) == report(process)


@settings(max_examples=trials(300), deadline=None)
@given(st.text(max_size=12), st.text(max_size=12))
@example("ﬁ", "FI")
@example("ß", "SS")
def test_no_text_votes_for_an_option_with_other_letters(option: str, written: str) -> None:
    assume(VOTE.check(process_of("max", options=(option, "another"))) is None)
    counted = read(json.dumps({"option": written}), (option, "another")).option
    letters = [normalize("NFKC", text).casefold() for text in (option, written)]
    if counted == option and all(text.isalnum() for text in letters):
        assert normalize("NFKC", letters[0]) == normalize("NFKC", letters[1])
    if written == option:
        assert counted == option


@settings(max_examples=trials(200), deadline=None)
@given(st.text(max_size=40))
def test_any_text_can_be_read_and_votes_for_no_option_unless_it_has_one(text: str) -> None:
    found = read(text)
    assert found.option is None or fold_option(found.option) in fold_option(text)


def test_a_very_long_option_is_no_vote_at_once() -> None:
    assert read(json.dumps({"option": f"SQLite{' ' * 3000}or not"})).option is None
    found = read(json.dumps({"option": "e\u0301\u0323" * 1_000_000}))
    assert found.option is None
    assert len(found.reason) < 200
    assert isinstance(found, Ballot)


def test_every_field_of_the_report_is_described() -> None:
    page = (ROOT / "docs" / "processes.md").read_text().partition("## Vote")[2].partition("\n## ")[0]
    fields = (*VoteReport.__struct_fields__, *Vote.__struct_fields__)
    assert {name for name in fields if f"`{name}`" not in page} == set()


def test_a_call_says_for_whom_it_is() -> None:
    step = VOTE.step(process_of("max", "sarah"))
    assert step is not None
    calls: tuple[Call, ...] = step.calls
    assert [(call.part.seat, call.part.number, call.part.total) for call in calls] == [("max", 1, 2), ("sarah", 2, 2)]
