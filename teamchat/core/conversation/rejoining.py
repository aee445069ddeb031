"""Turns on hosts that went on when teamchat was killed: each is followed to its end, unless a person lets go of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from teamchat.core.conversation.recovery import output_folder, was_stopped
from teamchat.core.dispatch.dispatch import Away
from teamchat.core.dispatch.hosted import ORDERED, HostedTurn
from teamchat.core.errors import HostUnavailable, TeamchatError
from teamchat.core.receipt import RUNS_ON
from teamchat.core.store.sessions import name_of
from teamchat.core.store.turns import Turn, running_turns
from teamchat.core.store.vendor_sessions import VendorTurns
from teamchat.core.turn.carried import carried
from teamchat.core.turn.execution import Collector, Ending, FinishedTurn, followed
from teamchat.core.turn.hosting import ran_on
from teamchat.core.turn.plan import HOST_CLOCKS
from teamchat.core.turn.run import SKIP, Run, why_failed
from teamchat.core.turn.run_events import TurnStarted, Warned
from teamchat.core.worktrees import FOLDER, any_made
from teamchat.runners.agent_events import FailureKind

EndTurn = Callable[[Turn, FinishedTurn], None]


async def rejoin(run: Run, end: EndTurn) -> str | None:
    """Follow each turn that went on at a host, and `end` it. A turn that was never ordered never began, and stays open.

    Returns why a turn has no end, whose host went away: it runs again only when a person says so. A run that `lets_go`
    stops them. Raises `HostUnavailable` where it cannot be asked, unless the run lets go.
    """
    open_turns = [turn for turn in running_turns(run.db, run.session) if turn.setup.host]
    for turn in open_turns:
        if turn.route is None:  # a side turn is asked anew
            run.hosting.forget(turn.folder.name)
    open_turns = [turn for turn in open_turns if turn.route is not None]
    if not open_turns:
        return None
    try:
        dispatch = await asyncio.to_thread(run.hosting.connected)
        known = [
            turn
            for turn in open_turns
            if (turn.folder / ORDERED).exists() or await dispatch.state(turn.folder.name) is not None
        ]
    except (HostUnavailable, Away) as error:
        if run.lets_go:
            for turn in open_turns:
                run.emit(Warned(f"turn {turn.number} ({turn.member}) may still run on {turn.setup.host}: {error}"))
            return None
        first = open_turns[0]
        hint = "\n".join(filter(None, (getattr(error, "hint", None), SKIP)))
        where = RUNS_ON.format(first.setup.host)
        raise HostUnavailable(
            f"turn {first.number} ({first.member}) {where}, which cannot be asked: {error}", hint
        ) from None
    reasons = await asyncio.gather(*(_followed(run, turn, end) for turn in known))
    return next(filter(None, reasons), None)


async def _followed(run: Run, turn: Turn, end: EndTurn) -> str | None:
    folder, host = output_folder(run.db, turn), turn.setup.host or ""
    route = next((route for route in run.state.queue if route.number == turn.route), None)
    if folder is None or route is None:
        return None
    run.emit(Warned(f"turn {turn.number} ({turn.member}) went on at {host} when teamchat was killed"))
    run.emit(TurnStarted(turn, route))
    hosted = HostedTurn(run.hosting.connected(), folder.name, host, partial(_say, run, turn))
    _return_files(run, turn, hosted)
    resumes = turn.setup.resumes
    before = VendorTurns(run.db, run.session, turn.member, resumes).usage if resumes else None
    ending = Ending(turn.type.runner, folder, run.team.root, resumes, before, longest=run.team.limits.reply)
    if run.lets_go:
        hosted.stop()
    hosted.follow_in(folder)
    collector = Collector(partial(run.speaks, turn.member, turn.number))
    finished = await followed(hosted, ending, HOST_CLOCKS, run.stopper, collector, partial(ran_on, hosted))
    why = None
    if failure := finished.outcome.failure:  # the rest of the command may not mention it
        run.emit(Warned(f"turn {turn.number} ({turn.member}) {failure.reason}"))
        why = why_failed(turn, finished.outcome, failure)
    stopped = was_stopped(folder)
    end(turn, finished.with_questions())
    if failure is None or stopped or not (failure.kind is FailureKind.INTERRUPTED or hosted.refused):
        return None
    ran = finished.outcome.ran
    gone = ran is not None and ran.gone != ""
    reruns = gone and any(member.rerun for member in run.team.members if member.name == turn.member)
    return None if reruns else why


def _return_files(run: Run, turn: Turn, hosted: HostedTurn) -> None:
    """Have the files of the turn come back to its worktree, if it has one, as they would have."""
    if not any_made(run.trees.folder):
        return
    try:
        name = name_of(run.db, run.session)
        worktree = carried(run.trees.folder, run.session, name, turn.who, hosted.host)
    except TeamchatError as error:
        if Path(turn.setup.cwd).is_relative_to(run.trees.folder.resolve() / FOLDER):
            run.emit(Warned(f"what {turn.who} has changed does not come back: {error}", turn.route))
        return  # else it works in a folder of its host
    cwd = Path(turn.setup.cwd)
    if cwd.is_relative_to(worktree.there.tree.folder):
        hosted.returns = worktree
        hosted.changes = partial(run.trees.interrupted, str(turn.number), cwd)


def _say(run: Run, turn: Turn, text: str) -> None:
    run.emit(Warned(f"{turn.member}: {text}", turn.route))
