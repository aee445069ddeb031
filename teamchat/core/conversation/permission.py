"""Whether turns of a team may be run here: what a person trusts, and where only a person may go on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from teamchat.core.errors import NotTrusted
from teamchat.core.files.folders import STORE_NAME, TRUST_NAME, state_dir, workspace_path
from teamchat.core.store.database import Database
from teamchat.core.team.team import Team
from teamchat.core.team.trust import Standing, TrustStore, not_trusted
from teamchat.core.turn import caller as turns

IN_HOOK = "TEAMCHAT_HOOK"  # the variable with the name of the hook in which a process runs


def trust_store() -> TrustStore:
    """Open the store of what the person trusts; an agent's TEAMCHAT_HOME cannot replace it."""
    caller = turns.find_caller()
    return TrustStore((caller.trusted if caller else state_dir()) / TRUST_NAME)


def check_no_hook(what: str) -> None:
    """Raise `NotTrusted` in a hook, which only reads."""
    if hook := os.environ.get(IN_HOOK):
        raise NotTrusted(f"{what} outside of hooks, and this runs in the hook {hook}")


def check_runs_commands() -> None:
    """Raise `NotTrusted` in the turn of an agent without the access 'full': a check runs any command."""
    if caller := turns.find_caller():
        caller.check_runs_commands()


def check_not_hidden(root: Path) -> None:
    """Raise `NotTrusted` where this may run in a turn of the workspace that cannot be found from here."""
    state = workspace_path(root)
    if state.is_dir():
        with closing(Database(state / STORE_NAME)) as db:
            turns.check_not_hidden(db)


def check_gives_trust(root: Path) -> None:
    """Raise `NotTrusted` where this may run in a turn of any workspace, before something new is trusted."""
    check_not_hidden(root)
    turns.check_hidden_nowhere(workspace_path(root))


def need_trust(team: Team, *, give: bool, ask: Callable[[Standing], bool] | None = None) -> None:
    """Raise `NotTrusted` unless the team is trusted already, `give` says so, or the person that `ask` asks does.

    Raises `GuardReached` in an agent's turn that may begin no other turn.
    """
    check_no_hook("turns are run")
    if caller := turns.find_caller():
        caller.check(time.time())
    check_not_hidden(team.root)
    store = trust_store()
    standing = store.standing(team)
    if standing.trusted and (caller or not give):
        return
    if caller or not (give or ask):
        raise not_trusted(team, standing)
    if not standing.trusted:
        check_gives_trust(team.root)
    if not (give or (ask and ask(standing))):
        raise not_trusted(team, standing)
    store.grant(team)
