"""Best of: who is called, what the judge may see, and what is made of its answer."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.engine.events import HumanSpoke, Idle, ResumeMode, Stuck, TurnEnded
from teamchat.core.engine.processes.best import BEST, BestReport, answers
from teamchat.core.engine.processes.replies import letters
from teamchat.core.engine.state import Rules
from teamchat.core.engine.workflow import Done, Fault, Finding, Kind, Pick, Process, Step, Work
from tests.core.engine.driver import Talk

MEMBERS = ("max", "sarah", "carol")
NAMES = st.lists(st.sampled_from(["max", "sarah", "carol", "eva", "anna"]), min_size=2, max_size=5, unique=True)


def best(*members: str, judge: str = "kim", request: str = "msg-1") -> Process:
    return Process(Kind.BEST, members or MEMBERS, "kim", judge=judge, request=request, speaker="kailai")


def ended(process: Process, replies: dict[str, str | None]) -> Process:
    """The process after its members have these messages; None for one that was skipped."""
    step = next_step(process)
    done = tuple(Done(call.part, call.target, replies[call.target]) for call in step.calls)
    return replace(process, done=(*process.done, *done))


def judged(process: Process, finding: Finding | None, message: str | None = "msg-9") -> Process:
    [call] = next_step(process).calls
    return replace(process, done=(*process.done, Done(call.part, call.target, message, finding)))


def next_step(process: Process) -> Step:
    step = BEST.step(process)
    assert step is not None
    return step


def told(process: Process) -> BestReport:
    report = BEST.report(process)
    assert isinstance(report, BestReport)
    return report


def all_ended(*members: str, request: str = "msg-1") -> Process:
    process = best(*members, request=request)
    return ended(process, {name: f"msg-{number}" for number, name in enumerate(process.members, 2)})


def test_every_member_is_called_at_once_blind_and_apart() -> None:
    step = next_step(best())
    assert [call.target for call in step.calls] == list(MEMBERS)
    assert step.together
    for call in step.calls:
        assert (call.as_of, call.part.history, call.part.apart) == ("msg-1", True, True)
        assert (call.part.shows, call.part.compares, call.part.handover, call.part.continues) == ((), (), False, False)


def test_the_judge_sees_every_answer_and_difference_by_a_letter() -> None:
    process = all_ended()
    [call] = next_step(process).calls
    assert call.target == "kim"
    assert call.part.options == ("A", "B", "C")
    assert call.part.labels == ("answer A", "answer B", "answer C")
    assert sorted(call.part.compares) == sorted(MEMBERS)
    messages = dict(zip(MEMBERS, ("msg-2", "msg-3", "msg-4"), strict=True))
    assert call.part.shows == tuple(messages[name] for name in call.part.compares)


def test_without_a_judge_the_lead_picks() -> None:
    process = replace(all_ended(), judge="", lead="carol")
    assert [call.target for call in next_step(process).calls] == ["carol"]


@given(NAMES)
def test_the_order_of_the_letters_is_that_of_the_request_and_not_of_the_team(names: list[str]) -> None:
    first, again = all_ended(*names), all_ended(*names)
    assert list(answers(first).values()) == list(answers(again).values())
    orders = {
        tuple(done.member for done in answers(all_ended(*names, request=f"msg-{number}")).values())
        for number in range(40)
    }
    assert len(orders) > 1


@given(NAMES, st.data())
def test_nothing_but_letters_is_told_of_whose_an_answer_is(names: list[str], data: st.DataObject) -> None:
    there = data.draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
    replies = {
        name: f"msg-{number}" if said else None for number, (name, said) in enumerate(zip(names, there, strict=True), 2)
    }
    step = BEST.step(ended(best(*names), replies))
    if step is None:
        assert sum(there) < 2
        return
    [call] = step.calls
    assert not [name for name in names for label in (*call.part.labels, *call.part.options) if name in label]
    assert len(call.part.labels) == len(call.part.shows) == len(call.part.compares) == sum(there)


def test_letters_go_on_after_the_last_one() -> None:
    assert [letters(index) for index in (0, 25, 26, 27, 51, 52, 701, 702)] == [
        "A", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA",
    ]  # fmt: skip
    assert len({letters(index) for index in range(2000)}) == 2000


def read(process: Process, written: str) -> Finding | None:
    return BEST.read(process, next_step(process).calls[0].part, written, ())


@pytest.mark.parametrize(
    "winner", ["B", "b", " B ", "answer B", "Answer b", "**B**", "\u300cB\u300d\u3002", "a good one: B"]
)
def test_a_letter_is_read_as_the_member_behind_it(winner: str) -> None:
    process = all_ended()
    written = json.dumps({"winner": winner, "reasons": "It is tested.\n"})
    assert read(process, written) == Pick(answers(process)["B"].member, "It is tested.")
    assert read(process, f"I compared them.\n```json\n{written}\n```\n") == Pick(
        answers(process)["B"].member, "It is tested."
    )


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("B is best.", "there is no JSON object in it"),
        ('{"winner": "B", "reasons"', "its JSON is cut off at line 1, column 26"),
        ('{"winner": "A, not B", "reasons": "It is tested."}', '"winner" is not one of A, B, C'),
        ('{"winner": "neither A nor B", "reasons": "It is tested."}', '"winner" is not one of A, B, C'),
        ('{"winner": "A or B", "reasons": "It is tested."}', '"winner" is not one of A, B, C'),
        ('{"winner": "A/B", "reasons": "It is tested."}', '"winner" is not one of A, B, C'),
        ('{"winner": "B?", "reasons": "It is tested."}', '"winner" is not one of A, B, C'),
        ('{"winner": "D", "reasons": "It is tested."}', '"winner" is not one of A, B, C'),
        ('{"winner": "max", "reasons": "It is tested."}', '"winner" is not one of A, B, C'),
        ('{"winner": 1, "reasons": "It is tested."}', '"winner" is not one of A, B, C'),
        ('{"winner": ["A"], "reasons": "It is tested."}', '"winner" is not one of A, B, C'),
        ('{"winner": null, "reasons": "All are bad."}', '"winner" is not one of A, B, C'),
        ('{"reasons": "It is tested."}', '"winner" is not one of A, B, C'),
        ('{"winner": "B"}', '"reasons" is not a text'),
        ('{"winner": "B", "reasons": " "}', '"reasons" is not a text'),
        ('{"winner": "B", "reasons": ["It is tested."]}', '"reasons" is not a text'),
        ("", "there is no JSON object in it"),
    ],
)
def test_anything_else_is_no_pick(written: str, why: str) -> None:
    assert read(all_ended(), written) == Fault(why)


@given(st.text())
def test_a_reply_is_read_without_an_error(written: str) -> None:
    assert isinstance(read(all_ended(), written), Fault | Pick)


def test_nothing_is_read_in_the_answers_of_members() -> None:
    process = best()
    part = next_step(process).calls[0].part
    assert BEST.read(process, part, '{"winner": "A", "reasons": "It is mine."}', ()) is None


def test_a_reply_without_a_pick_is_asked_for_once_more_with_the_reply_and_what_is_wrong() -> None:
    process = judged(all_ended(), Fault("there is no JSON object in it"), "msg-5")
    step = next_step(process)
    [call] = step.calls
    assert step.fault is None
    assert call.part.fault == "there is no JSON object in it"
    assert (call.part.shows[-1], call.part.labels[-1]) == ("msg-5", "your last reply")
    assert call.part.options == ("A", "B", "C")
    assert len(call.part.compares) == 3
    winner = call.part.compares[0]
    process = judged(process, Pick(winner, "It is short."), "msg-6")
    assert BEST.step(process) is None
    assert (told(process).winner, told(process).reasons) == (winner, "It is short.")


def test_a_second_reply_without_a_pick_stops_it_and_a_resume_asks_again() -> None:
    process = judged(judged(all_ended(), Fault("no JSON")), Fault('"winner" is not one of A, B, C'))
    step = next_step(process)
    assert step.fault == 'kim picks no answer: "winner" is not one of A, B, C'
    assert [call.target for call in step.calls] == ["kim"]
    assert next_step(judged(process, Fault("no JSON"))).fault == "kim picks no answer: no JSON"
    assert told(judged(process, Pick("max", "It is short."))).winner == "max"


def test_without_the_judge_nobody_is_picked() -> None:
    process = judged(all_ended(), None, message=None)
    assert BEST.step(process) is None
    assert (told(process).winner, told(process).reasons) == (None, None)
    assert BEST.text(process, "Done") == "Done"


def test_the_only_answer_needs_no_judge() -> None:
    process = ended(best(), {"max": None, "sarah": "msg-2", "carol": None})
    assert BEST.step(process) is None
    assert told(process).winner == "sarah"
    assert [candidate.label for candidate in told(process).candidates] == [None, None, None]
    assert BEST.text(process, "Done") == "sarah: There is no other answer."


def test_without_any_answer_it_is_over_and_nobody_is_picked() -> None:
    process = ended(best(), dict.fromkeys(MEMBERS))
    assert BEST.step(process) is None
    assert told(process).winner is None
    assert [candidate.message for candidate in told(process).candidates] == [None, None, None]


def test_the_result_names_every_member_with_its_letter_message_and_files() -> None:
    process = all_ended()
    process = replace(
        process, done=tuple(replace(done, finding=Work((f"{done.member}.py",), 2)) for done in process.done)
    )
    process = judged(process, Pick("sarah", "It is tested."))
    result = told(process)
    assert [candidate.member for candidate in result.candidates] == list(MEMBERS)
    assert [candidate.message for candidate in result.candidates] == ["msg-2", "msg-3", "msg-4"]
    assert sorted(candidate.label or "" for candidate in result.candidates) == ["A", "B", "C"]
    assert [(candidate.files, candidate.more) for candidate in result.candidates] == [
        ((f"{name}.py",), 2) for name in MEMBERS
    ]
    assert BEST.text(process, "{}") == "sarah: It is tested."


def test_the_letters_are_told_when_all_have_answered() -> None:
    process = best()
    calls = next_step(process).calls
    process = replace(process, done=(Done(calls[0].part, "max", "msg-2"), Done(calls[1].part, "sarah", "msg-3")))
    assert [candidate.label for candidate in told(process).candidates] == [None, None, None]
    assert told(process).winner is None


@pytest.mark.parametrize(
    ("members", "problem"),
    [((), "it needs at least 2 members"), (("max",), "it needs at least 2 members"), (("max", "sarah", "max"), None)],
)
def test_what_cannot_be_compared_is_refused(members: tuple[str, ...], problem: str | None) -> None:
    assert BEST.check(replace(best(), members=members)) == problem


def test_two_members_are_enough_and_one_may_judge() -> None:
    assert BEST.check(best("max", "sarah", judge="max")) is None


@given(NAMES, st.data())
def test_whatever_fails_and_is_skipped_each_member_is_done_once_and_the_run_ends(
    names: list[str], data: st.DataObject
) -> None:
    """Through the engine: turns fail and are tried again or skipped, and the judge writes what it likes."""
    talk = Talk(Rules((*names, "kim"), ("kailai",)))
    numbers = count(1)
    talk.take(HumanSpoke(0.0, "msg-0", "kailai", process=best(*names)))
    for _ in range(60):
        process = talk.state.process
        assert process is not None
        if isinstance(talk.ending, Idle):
            break
        if running := talk.running_all:
            what = data.draw(st.sampled_from(["works", "works", "fails"]))
            if running[0].part and running[0].part.role == "judge":
                number = talk.begins()
                picked = Pick(running[0].part.compares[0], "It is short.")
                finding: Finding = data.draw(st.sampled_from([picked]) | st.just(Fault("no JSON")))
                reply = f"judged-{next(numbers)}" if what == "works" else None
                talk.take(TurnEnded(0.0, number, reply, speaker="kim", finding=finding if reply else None))
            elif len(talk.state.mates(running[0])) > 1:
                failing = data.draw(st.sets(st.sampled_from([route.target for route in running])))
                talk.group_runs(fails=failing)
            elif what == "works":
                talk.replies()
            else:
                talk.fails()
        elif talk.delivering:
            talk.delivers()
        else:
            assert talk.state.held
            talk.resume(data.draw(st.sampled_from([ResumeMode.RETRY, ResumeMode.SKIP])))
    process = talk.state.process
    assert process is not None
    parts = Counter(done.part.number for done in process.of("member"))
    assert all(times == 1 for times in parts.values())
    if process.over:
        assert sorted(parts) == list(range(1, len(names) + 1))
        candidates = told(process).candidates
        assert [candidate.member for candidate in candidates] == names
        winner = told(process).winner
        assert winner is None or winner in [candidate.member for candidate in candidates if candidate.message]


def test_the_engine_stops_at_a_second_reply_without_a_pick() -> None:
    talk = Talk(Rules((*MEMBERS, "kim"), ("kailai",)))
    talk.take(HumanSpoke(0.0, "msg-0", "kailai", process=best()))
    talk.group_runs().delivers()
    for number in (1, 2):
        assert talk.speaking == "kim"
        talk.take(TurnEnded(0.0, talk.begins(), f"msg-{10 + number}", speaker="kim", finding=Fault("no JSON")))
    assert isinstance(talk.ending, Stuck)
    assert talk.ending.reason == "kim picks no answer: no JSON"
    talk.resume(ResumeMode.SKIP)
    assert isinstance(talk.ending, Idle)
    assert talk.state.process is not None
    assert talk.state.process.over
