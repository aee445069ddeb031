"""How a run of a conversation ends: the reason in words, the exit code, and the command that continues it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from teamchat.core.engine.events import (
    Action,
    CheckNotRun,
    GroupFailed,
    HumanAsked,
    Paused,
    PauseKind,
    Stuck,
    TurnFailed,
)
from teamchat.core.engine.state import Route, State
from teamchat.core.engine.strategies import can_be_skipped, strategy_of
from teamchat.core.engine.workflow import Kind, Part
from teamchat.core.errors import CODES, ExitCode, StoreGone, TeamchatError
from teamchat.core.store.checks import CheckRecord
from teamchat.core.store.database import Database
from teamchat.core.team.team import Team
from teamchat.core.turn.run import RESUME, SKIP, Tally, TurnFailure, hint_for
from teamchat.core.turn.run_events import Conclusion
from teamchat.runners.untrusted.json import one_line

LONGEST_NAME = 60  # characters of a check's name in a reason


class Concluded(Protocol):
    """A run, or what another process can tell of one."""

    @property
    def team(self) -> Team: ...
    @property
    def tally(self) -> Tally: ...
    @property
    def state(self) -> State: ...
    @property
    def db(self) -> Database: ...
    @property
    def session_id(self) -> int: ...


def conclude(run: Concluded, action: Action) -> Conclusion:
    """Conclude a run after the engine's last action."""
    match action:
        case TurnFailed(route=route):
            return _failures(run, (route,), alone=True)
        case GroupFailed(routes=routes, all_of_it=all_of_it):
            return _failures(run, routes, alone=False, all_of_it=all_of_it)
        case Stuck(reason=reason, why=why) | CheckNotRun(reason=reason, why=why):
            advice = f"{RESUME}\nteamchat send 'Your advice'" if why == "no_progress" else RESUME
            return conclusion(run, CODES[why], reason, advice)
        case HumanAsked(route=route):
            speaker = f" --as {route.target}" if len(run.team.humans) > 1 else ""
            reason, hint = f"{route.by} asks {route.target}", f"teamchat send{speaker} 'Your answer'"
            return conclusion(run, ExitCode.HUMAN_ASKED, reason, hint, waiting_for=route.target)
        case Paused(kind=kind, reason=reason):
            return _pause(run, kind, reason)
        case _:
            return _done(run)


def conclude_error(run: Concluded, error: TeamchatError) -> Conclusion:
    """Conclude a run after an error. Everything that ran or waited is held."""
    hint = error.hint if isinstance(error, StoreGone) else _advice(*filter(None, (hint_for(error),)))
    return conclusion(run, error.code, str(error), hint)


def conclude_side_turn(run: Concluded, failure: TurnFailure) -> Conclusion:
    """Conclude a run after a side turn that failed."""
    return conclusion(run, failure.code, failure.reason, failure.hint)


def conclude_checks(run: Concluded, checks: Sequence[CheckRecord], *, stopped: bool = False) -> Conclusion:
    """Conclude checks that a person ran by hand. A red one matters more than one that was not run."""
    results = [(check, check.result) for check in checks if check.result]
    if stopped or any(result.not_run == "interrupted" for _, result in results):
        return conclusion(run, ExitCode.INTERRUPTED, "interrupted")
    if red := [(check, result) for check, result in results if result.status == "red"]:
        reason = "; ".join(f"check {_short(check.name)} is red: {result.reason}" for check, result in red)
        return conclusion(run, CODES["check_red"], reason, f"teamchat show {red[-1][0].label}")
    for check, result in results:
        if result.not_run:
            reason = f"check {_short(check.name)} was not run: {result.reason}"
            return conclusion(run, CODES[result.not_run], reason, f"teamchat show {check.label}")
    return conclusion(run, ExitCode.DONE)


def _short(name: str) -> str:
    """Shorten the name of a check; a typed check has its command as its name."""
    return one_line(name, LONGEST_NAME)


def conclusion(
    run: Concluded,
    code: ExitCode,
    reason: str | None = None,
    hint: str | None = None,
    *,
    waiting_for: str | None = None,
    paused: PauseKind | None = None,
) -> Conclusion:
    """Build the conclusion with this code, and with the sums of the run so far."""
    tally, text, report = run.tally, run.tally.text, None
    if tally.process:
        text, report = _result(run, text)
    return Conclusion(
        code=code,
        text=text,
        repeated=tally.repeated if text == tally.text else (),
        reason=reason,
        hint=hint,
        waiting_for=waiting_for,
        paused=paused,
        held=run.state.held,
        turns=tally.turns,
        denied=tally.denied,
        usage=tally.usage,
        process=report,
    )


def _result(run: Concluded, reply: str) -> tuple[str, Struct | None]:
    """Return the result of the session's process so far, as a text (empty if it was dropped) and as a value."""
    state, process = run.state, run.state.process
    if process is None:
        return "", None
    # only `teamchat run` needs the processes
    from teamchat.core.conversation.process_totals import whole_report

    strategy = strategy_of(process.kind)
    parts = [route.part for route in state.queue if route.part and route.answer is not None]
    return strategy.text(process, reply), strategy.answered(whole_report(run.db, run.session_id, process), parts)


def _done(run: Concluded) -> Conclusion:
    """Conclude a run in which nobody is left to speak. The process that it ended may have decided nothing."""
    process = run.state.process if run.tally.process else None
    if process is None or not process.over:
        return conclusion(run, ExitCode.DONE)
    strategy = strategy_of(process.kind)
    left = strategy.undecided(process)
    code, reason = (CODES[left.kind], left.reason) if left else (ExitCode.DONE, None)
    return conclusion(run, code, reason, strategy.next_command(process))


def _pause(run: Concluded, kind: PauseKind, reason: str) -> Conclusion:
    return conclusion(run, CODES[kind], reason, RESUME if run.state.held else None, paused=kind)


def _failures(run: Concluded, routes: tuple[Route, ...], *, alone: bool, all_of_it: bool = True) -> Conclusion:
    """Conclude a run whose members failed. They and the routes behind them are held. `all_of_it`: none has replied."""
    failures = [run.tally.failures[route.number] for route in routes if route.number in run.tally.failures]
    reason = "; ".join(dict.fromkeys(failure.reason for failure in failures))
    if any(failure.code is ExitCode.INTERRUPTED for failure in failures):
        return _pause(run, PauseKind.INTERRUPTED, reason)
    untrusted = any(failure.code is ExitCode.NOT_TRUSTED for failure in failures)
    of_group = ExitCode.MEMBER_FAILED if all_of_it else ExitCode.GROUP_PARTLY_FAILED
    code = failures[0].code if alone else of_group
    if any(route.part and _is_review(route.part) for route in routes):
        code = CODES["no_answer"]
    code = ExitCode.NOT_TRUSTED if untrusted else code
    hints = dict.fromkeys(failure.hint for failure in failures if failure.hint)
    repeats = bool(failures) and all(failure.repeats for failure in failures)
    advice = [] if repeats else _advice(*hints).splitlines()
    if not untrusted and any(route.part and can_be_skipped(route.part) for route in routes):
        advice.append(SKIP)
    return conclusion(run, code, reason, "\n".join(dict.fromkeys(advice)) or None)


def _is_review(part: Part) -> bool:
    """Whether the part is a review of `until`, without which the process cannot go on."""
    return part.kind == Kind.UNTIL and part.seat != ""


def _advice(*hints: str) -> str:
    """Join hints into one line that repairs the failures and then resumes; a hint that resumes itself stands alone."""
    if resuming := [hint for hint in hints if hint.startswith(RESUME)]:
        return "\n".join(resuming)
    return " && ".join([*(hint.splitlines()[0] for hint in hints), RESUME])
