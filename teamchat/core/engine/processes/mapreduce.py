"""Map-reduce: a planner splits the task into subtasks, workers do them at the same time, a reducer merges the results.

The planner answers with a JSON list of subtasks, and has one more try if that lacks the form. Each subtask has its own
worker, the first one the first, the next one the next. If that one fails, the other workers are asked. Nobody sees
the conversation before the task, and a worker sees nothing but its subtask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from teamchat.assemblers.parts import FRAMEWORK, KNOWLEDGE, LESSONS
from teamchat.core.engine.processes.replies import written_list
from teamchat.core.engine.workflow import (
    Call,
    Done,
    Fault,
    Finding,
    Kind,
    Part,
    Plan,
    Process,
    ProcessSettings,
    Step,
    Strategy,
)
from teamchat.core.routing.markers import read_markers
from teamchat.core.routing.requests import RouteRequest

PLANNER, WORKER, REDUCER = "planner", "worker", "reducer"
MOST_SUBTASKS = 500
OTHER_TURNS = 3  # The turns of the planner, which may have a second one, and of the reducer.
MOST_CHARACTERS = 1_000_000  # of all subtasks: the store has them with the process, and with every turn for an undo
_LEADING = (FRAMEWORK, LESSONS, KNOWLEDGE)
_WORKING = (FRAMEWORK, KNOWLEDGE)


class SubtaskStatus(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    DONE = "done"
    SKIPPED = "skipped"


class Subtask(Struct, frozen=True):
    """A subtask, who did it or was to do it at last, and its result, if it is done.

    The reply of one that is `answered` becomes a message when nobody works on the others any more.
    """

    number: int
    task: str
    status: SubtaskStatus
    member: str | None = None
    message: str | None = None


class MapReduceReport(Struct, frozen=True):
    """The plan and its progress. `fault` names the defect of the last plan, `message` is the result of the reducer."""

    kind: str
    planner: str
    reducer: str
    fault: str | None
    subtasks: tuple[Subtask, ...]
    message: str | None


def check(process: Process) -> str | None:
    if not process.members:
        return "it needs a worker"
    if twice := next((name for name in process.members if process.members.count(name) > 1), None):
        return f"{twice} is named twice as a worker"
    if process.most < 1:
        return f"it needs at least {OTHER_TURNS + 1} turns (limits.turns)"
    return None


def step(process: Process) -> Step | None:
    plans = process.of(PLANNER)
    if not plans:
        return Step((_planning(process),))
    plan = plans[-1]
    if plan.message is None:
        return None
    if not isinstance(plan.finding, Plan):
        why = plan.finding.why if isinstance(plan.finding, Fault) else "it has no list"  # a person may have spoken
        stuck = f"{plan.member}'s reply is no list of subtasks: {why}" if len(plans) > 1 else None
        return Step((_planning(process, plan.message, why),), fault=stuck)
    if calls := tuple(_working(process, plan, plan.finding.subtasks)):
        return Step(calls)
    results = sorted((done for done in process.of(WORKER) if done.message), key=_number)
    if not results or process.of(REDUCER):
        return None
    return Step((_reducing(process, plan, results),))


def _planning(process: Process, answer: str | None = None, fault: str = "") -> Call:
    """Call the planner for its first turn, or again after an `answer` that lacks the form."""
    part = Part(
        process.kind,
        PLANNER,
        total=process.most,
        layers=_LEADING,
        shows=(answer,) if answer else (),
        labels=("your last answer",) if answer else (),
        fault=fault,
        prompt=process.prompt,
    )
    return Call(process.planner or process.lead, part, as_of=process.request)


def _working(process: Process, plan: Done, subtasks: Sequence[str]) -> Iterator[Call]:
    """Call a worker for each subtask that is neither done nor skipped."""
    over = {done.part.number for done in process.of(WORKER)}
    workers = process.members
    for number, subtask in enumerate(subtasks, 1):
        if number in over:
            continue
        rounds, first = divmod(number - 1, len(workers))
        others = (*workers[first + 1 :], *workers[:first])
        begin = rounds % max(len(others), 1)  # the others share the subtasks that one worker failed at
        part = Part(
            process.kind,
            WORKER,
            number,
            len(subtasks),
            layers=_WORKING,
            task=False,
            instead=subtask,
            others=(*others[begin:], *others[:begin]),
            place=(process.jobs or 1) > 1,
            prompt=process.prompt,
        )
        yield Call(workers[first], part, plan.message, plan.message or "", plan.member)


def _reducing(process: Process, plan: Done, results: Sequence[Done]) -> Call:
    """Call the reducer. It sees the plan and every result, and is told of the subtasks without one."""
    missing = [str(done.part.number) for done in sorted(process.of(WORKER), key=_number) if not done.message]
    part = Part(
        process.kind,
        REDUCER,
        total=len(results) + len(missing),
        layers=_LEADING,
        shows=tuple(done.message for done in (plan, *results) if done.message),
        labels=("the plan", *(f"subtask {done.part.number} ({done.member})" for done in results)),
        fault=", ".join(missing),
        prompt=process.prompt,
    )
    return Call(process.reducer or process.lead, part, as_of=process.request)


def _number(done: Done) -> int:
    return done.part.number


def read(_process: Process, part: Part, text: str, _requests: Sequence[RouteRequest]) -> Finding | None:
    return _plan(text, part.total) if part.role == PLANNER else None


def _plan(text: str, most: int) -> Plan | Fault:
    """Read the subtasks, without their markers, which call nobody."""
    written = written_list(text)
    if isinstance(written, Fault):
        return written
    items: list[object] = written.value
    if not items:
        return Fault("its list has no subtask")
    if len(items) > most:
        return Fault(f"its list has {len(items):,} subtasks, and at most {most} are possible")
    texts = [_text(item) for item in items]
    for number, (item, subtask) in enumerate(zip(items, texts, strict=True), 1):
        if not subtask:
            return Fault(f"item {number} of its list {_fault(item)}")
    if (long := sum(map(len, texts))) > MOST_CHARACTERS:
        return Fault(f"its subtasks have {long:,} characters, and at most {MOST_CHARACTERS:,} are possible")
    return Plan(tuple(texts))


def _text(item: object) -> str:
    text = read_markers(item, "ai").quoted.strip() if isinstance(item, str) else ""
    return text if any(map(str.isalnum, text)) else ""  # "..." is the example of the prompt


def _fault(item: object) -> str:
    if not isinstance(item, str):
        return "is not a string"
    if not item.strip():
        return "is empty"
    return "has nothing but markers" if read_markers(item, "ai").markers else "has no letter or digit"


def report(process: Process) -> MapReduceReport:
    plan, result = _last(process.of(PLANNER)), _last(process.of(REDUCER))
    finding = plan.finding if plan else None
    done = {each.part.number: each for each in process.of(WORKER)}
    tasks = finding.subtasks if isinstance(finding, Plan) else ()
    return MapReduceReport(
        process.kind,
        process.planner or process.lead,
        process.reducer or process.lead,
        finding.why if isinstance(finding, Fault) else None,
        tuple(_subtask(number, task, done.get(number)) for number, task in enumerate(tasks, 1)),
        result.message if result else None,
    )


def answered(report: MapReduceReport, parts: Sequence[Part]) -> MapReduceReport:
    numbers = {part.number for part in parts if part.role == WORKER}
    subtasks = (
        replace(task, status=SubtaskStatus.ANSWERED) if task.number in numbers else task for task in report.subtasks
    )
    return replace(report, subtasks=tuple(subtasks))


def _subtask(number: int, task: str, done: Done | None) -> Subtask:
    if done is None:
        return Subtask(number, task, SubtaskStatus.OPEN)
    status = SubtaskStatus.DONE if done.message else SubtaskStatus.SKIPPED
    return Subtask(number, task, status, done.member, done.message)


def _last(done: Sequence[Done]) -> Done | None:
    return done[-1] if done else None


def text(process: Process, last: str) -> str:
    """Return the reducer's reply. No other reply is the result."""
    return last if any(done.message for done in process.of(REDUCER)) else ""


def begin(process: Process, asked: ProcessSettings, most_turns: int) -> Process:
    planner = asked.planner or process.lead
    workers = asked.workers or tuple(name for name in process.members if name != planner)
    return replace(
        process,
        members=workers or process.members,
        planner=planner,
        reducer=asked.reducer or process.lead,
        most=max(1, min(MOST_SUBTASKS, most_turns - OTHER_TURNS)),
    )


NOTES: Mapping[str, str] = {
    "planner": (
        "You plan: split the request into subtasks, which others do at the same time. Each of them sees "
        "nothing but the text of its subtask, so write into it all that it needs to know, and let none need "
        "the result of another one. Do no subtask yourself. Reply with nothing but a JSON list of 1 to {total} "
        'strings, each a subtask: ["...", "..."]'
    ),
    "planner.repair": (
        "Your last reply cannot be used: {fault}. Reply again, with nothing but the JSON list of strings."
    ),
    "worker": (
        "It is subtask {number} of {total} of a larger task; the others are done at the same time by others. "
        "Do only this one. Reply with its whole result: whoever merges the results sees nothing but your "
        "reply."
    ),
    "reducer": (
        "The request was split into {total} subtasks. The plan and the result of each are quoted above. Merge "
        "the results into the answer to the request."
    ),
    "reducer.repair": "These subtasks have no result: {fault}. Say in your answer what is missing.",
}
MAPREDUCE = Strategy(
    kind=Kind.MAPREDUCE,
    settings=("planner", "workers", "reducer", "jobs"),
    called="map-reduce",
    counted={WORKER: "subtask"},
    repeated=(PLANNER,),
    several=(WORKER,),
    begin=begin,
    notes=NOTES,
    check=check,
    step=step,
    read=read,
    report=report,
    text=text,
    answered=answered,
)
