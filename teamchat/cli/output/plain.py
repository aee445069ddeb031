"""Piped output: one `name:` block per finished message on stdout, everything else on stderr."""

from __future__ import annotations

from collections.abc import Callable

from teamchat.cli.output.lines import (
    begins,
    closing_lines,
    compacted,
    compared_lines,
    found_lessons,
    gone,
    learned,
    left_out,
    note,
    refusal,
    todo_line,
    turn_line,
)
from teamchat.cli.output.long import write_block, write_text
from teamchat.cli.output.unreported import Unreported
from teamchat.core.engine.events import Dropped, Refused
from teamchat.core.engine.state import Route
from teamchat.core.engine.strategies import part_in_short
from teamchat.core.messages import name_of
from teamchat.core.routing.markers import read_markers
from teamchat.core.store.turns import Turn
from teamchat.core.text.clean import printable, visible
from teamchat.core.turn.run_events import (
    AgentSpoke,
    CheckFinished,
    CheckStarted,
    Conclusion,
    ConversationEvent,
    GroupCompared,
    LessonsFound,
    Replied,
    SummaryStored,
    TodoChanged,
    TurnFinished,
    TurnStarted,
    Warned,
)
from teamchat.runners.agent_events import AgentEvent, Denied, Note, Retry


class PlainOutput:
    """Piped output. `unreported` lists unknown values at the end; with None the line of each turn does.

    `receipt` makes the command for a turn's receipt, and `of_check` the one for a check, if there is one.
    """

    def __init__(
        self,
        unreported: Unreported | None = None,
        receipt: Callable[[int], str] = "teamchat show {}".format,
        of_check: Callable[[str], str] | None = None,
    ) -> None:
        self._unreported, self._receipt, self._of_check = unreported, receipt, of_check

    def __call__(self, event: ConversationEvent) -> None:
        match event:
            case AgentSpoke(member=member, event=agent_event):  # the most frequent one
                self._agent(member, agent_event)
            case Replied(message=message):
                write_block(name_of(message), message.content)
            case TurnStarted() | SummaryStored() | LessonsFound() | TurnFinished():
                self._turn(event)
            case CheckStarted() | CheckFinished():
                self._check(event)
            case Dropped(route=route):
                note(gone(route))
            case Refused(route=route, limit=limit):
                note(refusal(route, limit))
            case TodoChanged(change=change):
                note(todo_line(change))
            case GroupCompared():
                for line in compared_lines(event):
                    note(printable(line))
            case Warned(text=text):
                note(visible(text))
            case _:
                pass

    def _check(self, event: CheckStarted | CheckFinished) -> None:
        from teamchat.cli.output.checks import begins as check_begins
        from teamchat.cli.output.checks import check_line, check_notes  # only `run until` and `check` have any

        if isinstance(event, CheckStarted):
            note(check_begins(event.check))
            return
        check = event.check
        receipt = self._of_check(check.label) if self._of_check else ""
        for line in (check_line(check, receipt), *check_notes(check)):
            note(line)

    def _turn(self, event: TurnStarted | SummaryStored | LessonsFound | TurnFinished) -> None:
        match event:
            case TurnStarted(turn=turn, route=route):
                note(f"{turn.who} {begins(turn.setup)} ({_turn_and_part(turn, route)})")
                if line := left_out(turn.who, turn.setup):
                    note(line)
            case SummaryStored(turn=turn, summary=summary):
                note(compacted(turn, summary))
            case LessonsFound(found=lessons, kept=kept):
                note(found_lessons(event))
                for text in lessons:
                    print(printable(text), flush=True)
                for lesson in kept:
                    note(learned(lesson))
            case TurnFinished(turn=turn, outcome=outcome, partial=partial):
                note(turn_line(turn.who, turn.setup, outcome, unknown=self._unreported is None))
                if self._unreported:
                    self._unreported.learn(turn.member, turn.number, outcome)
                if partial.strip():
                    note(f"what {turn.who} had said is in: {self._receipt(turn.number)}")

    def _agent(self, member: str, event: AgentEvent) -> None:
        match event:
            case Denied(tool=tool, detail=detail):
                note(visible(f"{member} was denied {tool}: {detail}"))
            case Retry(reason=reason):
                note(visible(f"{member} tries again: {reason}"))
            case Note(text=text):
                note(visible(f"{member}: {text}"))
            case _:
                pass

    def finish(self, conclusion: Conclusion) -> None:
        for line in self._unreported.lines() if self._unreported else ():
            note(printable(line))
        if conclusion.process:
            from teamchat.cli.output.process_report import report_lines

            for line in report_lines(conclusion.process):
                note(printable(line))
        for line in closing_lines(conclusion):
            note(visible(line))

    def close(self) -> None: ...


def _turn_and_part(turn: Turn, route: Route | None) -> str:
    """Name the turn, `turn 4`, and its part in a process: `turn 4, subtask 3 of 12`."""
    part = part_in_short(route.part) if route and route.part else None
    return ", ".join(filter(None, (f"turn {turn.number}", part)))


class QuietOutput:
    """Prints only the last reply, without its markers. stderr says why the run stopped and which calls were dropped."""

    def __call__(self, event: ConversationEvent) -> None:
        match event:
            case Warned(text=text):
                note(visible(text))
            case Dropped(route=route):
                note(gone(route))
            case GroupCompared():
                for line in compared_lines(event):
                    note(printable(line))
            case _:
                pass

    def finish(self, conclusion: Conclusion) -> None:
        if conclusion.text:
            said = read_markers(conclusion.text, "ai", conclusion.repeated).stripped
            write_text(f"{visible(said)}\n")
        for line in closing_lines(conclusion):
            note(visible(line))

    def close(self) -> None: ...
