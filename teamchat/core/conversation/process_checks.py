"""Checks of a process before it begins."""

from __future__ import annotations

from collections.abc import Sequence

from teamchat.core.conversation.addressing import address_task
from teamchat.core.conversation.entry import as_stored, check_images, check_room
from teamchat.core.conversation.work_apart import need_worktrees
from teamchat.core.engine.process import Process
from teamchat.core.engine.processes.table import STRATEGIES, kind_in_words
from teamchat.core.engine.state import State
from teamchat.core.engine.team_changes import fitted
from teamchat.core.errors import UsageError
from teamchat.core.messages import Speaker
from teamchat.core.store.database import Database
from teamchat.core.store.images import Image
from teamchat.core.store.routes import load_state
from teamchat.core.store.sessions import Session
from teamchat.core.team.team import Team
from teamchat.core.turn.run import rules_of


def check_task(
    team: Team,
    db: Database,
    session: Session | None,
    text: str,
    process: Process,
    *,
    speaker: str | None,
    cut: bool = False,
    images: Sequence[Image] = (),
    caller: Speaker | None = None,
) -> None:
    """Raise the reason to refuse the task of a process in that session, or in a new one (None).

    See `check_process`, `address_task` and `need_worktrees`, and for the members that begin `check_images` and
    `check_room`.
    """
    rules = rules_of(team)
    check_process(fitted(load_state(db, session.id, rules)) if session else State(rules), process)
    addressed = address_task(text, team, speaker=speaker, caller=caller)
    message, task = as_stored(addressed, db, session), addressed.task or (session.task if session else team.task)
    step = STRATEGIES[process.kind].step(process)
    for call in step.calls if step else ():
        member = team.member(call.target)
        check_images(team, member, images)
        check_room(team, member, message, task, cut=cut, part=call.part)
    need_worktrees(team, db.path.parent, session.id if session else None, process)


def check_process(state: State, process: Process) -> None:
    """Raise `UsageError` for a process that cannot begin: by its own rules, or because another one is not over."""
    if problem := STRATEGIES[process.kind].check(process):
        raise UsageError(f"{process.name or process.kind}: {problem}")
    there = state.process
    if there and not there.over and any(route.part for route in state.queue):
        how, command = (
            ("answer it", "teamchat send 'Your answer'") if state.asked else ("continue it", "teamchat resume")
        )
        raise UsageError(
            f"the {there.name or kind_in_words(there.kind)} of {there.request} is not over; {how}, or drop it",
            f"{command}\nteamchat resume --drop",
        )
