"""The result of a process in words, made by its own strategy."""

from __future__ import annotations

import pytest
from msgspec import Struct

from teamchat.cli.output.process_report import report_lines
from teamchat.cli.output.terminal.look import Look
from teamchat.cli.output.terminal.result import drawn
from teamchat.cli.output.terminal.voice import Voice
from teamchat.cli.output.terminal.wrap import cells
from teamchat.core.engine.processes.best import BestReport, Candidate
from teamchat.core.engine.processes.debate import ChangeOfMind, DebateAnswer, DebateReport
from teamchat.core.engine.processes.mapreduce import MapReduceReport, Subtask, SubtaskStatus
from teamchat.core.engine.processes.sequential import SequentialReport
from teamchat.core.engine.processes.vote import Vote, VoteReport
from teamchat.core.engine.processes.words import LONGEST_REASON, in_words, result_of
from teamchat.core.engine.workflow import Part
from teamchat.runners.agent_events import TextDelta

PLAIN = Look(styles=False, colours=False)
VOTES = (Vote("max", "msg-2", "yes", "It works."), Vote("sarah", "msg-3", "no", ""))
ANSWERS = tuple(DebateAnswer(name, 0, f"msg-{number}") for number, name in enumerate(("max", "sarah", "carol"), 2))


def voted(*votes: Vote, winner: str | None = None, tied: tuple[str, ...] = (), missing: tuple[str, ...] = ()) -> Struct:
    options = ("yes", "no")
    tally = {option: sum(vote.option == option for vote in votes) for option in options}
    abstained = tuple(vote.member for vote in votes if vote.option is None)
    return VoteReport("vote", options, votes, tally, winner, bool(tied), tied, abstained, missing)


def debated(
    agree: tuple[str, ...] | None,
    dissent: dict[str, str] | None = None,
    changes: tuple[ChangeOfMind, ...] = (),
    synthesis: str | None = "msg-9",
    missing: tuple[str, ...] = (),
) -> DebateReport:
    share = None if agree is None else len(agree) / 3
    return DebateReport("debate", 1, ANSWERS, changes, synthesis, agree, share, dissent, missing)


def test_a_vote_tells_its_winner_and_every_vote() -> None:
    assert report_lines(voted(*VOTES, winner="yes")) == [
        "vote: yes wins (yes 1, no 1)",
        "  max votes yes: It works.",
        "  sarah votes no",
    ]


def test_a_tie_names_the_options() -> None:
    assert report_lines(voted(*VOTES, tied=("yes", "no")))[0] == "vote: a tie of yes and no (yes 1, no 1)"


def test_abstentions_and_missing_votes_are_told() -> None:
    abstains = Vote("max", "msg-2", None, "no valid vote: it has no JSON")
    stands_in = Vote("sarah", "msg-3", "no", "", by="kai")
    assert report_lines(voted(abstains, stands_in, missing=("carol",))) == [
        "vote: no winner yet (yes 0, no 1)",
        "  max abstains: no valid vote: it has no JSON",
        "  kai for sarah votes no",
        "  carol has not voted",
    ]


def test_a_vote_in_which_all_abstain_has_no_winner() -> None:
    assert report_lines(voted(Vote("max", "msg-2", None, "")))[0] == "vote: no winner (yes 0, no 0)"


def test_a_debate_tells_how_many_agree_who_does_not_and_who_changed_its_mind() -> None:
    changes = (ChangeOfMind("max", 1, "Yes", "No"), ChangeOfMind("sarah", 1, None, "No"))
    assert report_lines(debated(("max", "sarah"), {"carol": "too slow"}, changes)) == [
        "debate: 2 of 3 agree with the synthesis",
        "  carol dissents: too slow",
        "  max changed its mind in round 1: Yes → No",
        "  sarah changed its mind in round 1: No",
    ]


def test_a_reason_is_one_line_however_long_it_is() -> None:
    told = "First.\n· vote: no wins \x1b[2J" + "word " * 10**6
    *_, dissents = report_lines(debated(("max", "sarah"), {"carol": told}))
    assert dissents.startswith("  carol dissents: First. · vote: no wins word word")
    assert dissents.endswith("…")
    assert len(dissents) < 2 * LONGEST_REASON
    *_, votes = report_lines(voted(Vote("max", "msg-2", "yes", told), winner="yes"))
    assert votes == dissents.replace("carol dissents", "max votes yes")


def test_what_a_debate_does_not_say_is_not_guessed() -> None:
    assert report_lines(debated(None)) == ["debate: the synthesis does not say who agrees with it"]
    assert report_lines(debated(None, synthesis=None, missing=("carol",))) == [
        "debate: there is no synthesis yet",
        "  carol gave no answer",
    ]


def test_a_map_reduce_tells_who_did_each_subtask() -> None:
    subtasks = (
        Subtask(1, "Port\nthe lexer", SubtaskStatus.DONE, "max", "msg-3"),
        Subtask(2, "x" * 200, SubtaskStatus.SKIPPED, "sarah"),
        Subtask(3, "Port the tests", SubtaskStatus.OPEN),
    )
    assert report_lines(MapReduceReport("mapreduce", "carol", "carol", None, subtasks, None)) == [
        "map-reduce: 1 of 3 subtasks is done",
        "  1. done by max: Port the lexer",
        f"  2. skipped: {'x' * 79}…",
        "  3. open: Port the tests",
    ]


def test_a_map_reduce_that_was_stopped_tells_whose_replies_are_kept() -> None:
    statuses = (SubtaskStatus.ANSWERED, SubtaskStatus.OPEN, SubtaskStatus.ANSWERED)
    subtasks = tuple(Subtask(number, "Port it", status) for number, status in enumerate(statuses, 1))
    assert report_lines(MapReduceReport("mapreduce", "carol", "carol", None, subtasks, None)) == [
        "map-reduce: 0 of 3 subtasks are done, 2 are answered",
        "  1. answered: Port it",
        "  2. open: Port it",
        "  3. answered: Port it",
    ]


def test_a_map_reduce_without_a_plan_says_why() -> None:
    assert report_lines(MapReduceReport("mapreduce", "carol", "max", "it has no list", (), None)) == [
        "map-reduce: carol has made no plan: it has no list"
    ]


def test_a_sequence_is_told_by_its_replies() -> None:
    assert report_lines(SequentialReport("sequential", 1, ())) == []


def picked(*candidates: Candidate, winner: str | None = None, reasons: str | None = None) -> list[str]:
    return report_lines(BestReport("best", "kim", candidates, winner, reasons))


def test_best_tells_who_is_picked_why_and_what_the_letters_stand_for() -> None:
    max_, sarah = Candidate("max", "B", "msg-2", ("app.py",)), Candidate("sarah", "A", "msg-3", ("app.py", "x.py"), 3)
    assert picked(max_, sarah, winner="max", reasons="B is short.\nA is not.") == [
        "best: kim picks max: B is short. A is not.",
        "  max is B, and changed 1 file",
        "  sarah is A, and changed 5 files",
    ]


def test_best_without_a_judge_or_a_pick_is_told() -> None:
    max_, gone = Candidate("max", None, "msg-2"), Candidate("sarah", None, None)
    assert picked(max_, gone, winner="max", reasons="There is no other answer.") == [
        "best: max, without a judge: There is no other answer.",
        "  max changed no file",
        "  sarah gave no answer",
    ]
    assert picked(gone)[0] == "best: nobody is picked"


def test_votes_are_bars_in_proportion_and_dissent_is_told() -> None:
    votes = (*VOTES, Vote("carol", "msg-4", "yes", "Ship it."))
    result = result_of(voted(*votes, winner="yes"))
    assert result is not None
    assert list(drawn(result, 80, PLAIN)) == [
        "vote: yes wins",
        "",
        f"  yes  {'█' * 24}  2  max, carol",
        f"  no   {'█' * 12}{' ' * 12}  1  sarah",
        "",
        "  max votes yes: It works.",
        "  carol votes yes: Ship it.",
        "  sarah dissents with no",
    ]


def test_no_line_of_a_result_is_wider_than_the_terminal() -> None:
    names = tuple(f"member{number}" for number in range(30))
    long = VoteReport(
        "vote",
        ("o" * 200, "漢字" * 60),
        tuple(Vote(name, "msg-2", "o" * 200, "word " * 90) for name in names),
        {"o" * 200: 30, "漢字" * 60: 0},
        "o" * 200,
        False,
        (),
        (),
        (),
    )
    result = result_of(long)
    assert result is not None
    for width in (30, 80, 120):
        assert max(map(cells, drawn(result, width, PLAIN))) <= width


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_json_that_streams_is_shown_in_words_once_it_is_whole(size: int) -> None:
    part = Part("vote", "member", options=("yes", "no"))
    reply = 'Use `x` here.\n\n```json\n{"option": "yes", "reason": "It works."}\n```'
    lines: list[str] = []
    voice = Voice("max", 0, "", PLAIN, lines.extend, lambda: 80, lambda text: in_words(part, "max", text))
    for start in range(0, len(reply), size):
        voice.hear(TextDelta(reply[start : start + size]))
        assert "option" not in "".join((*lines, *voice.tail(9)))
    voice.whole(reply)
    voice.end()
    assert [line.removeprefix("▌").strip() for line in lines] == ["Use `x` here.", "", "max votes yes: It works."]
