from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Annotated

import typer

from teamchat.cli.output.lines import note
from teamchat.cli.running.converse import converse
from teamchat.cli.startup.complete import checks
from teamchat.cli.startup.options import NoWaitOption, PlaceOptions, ShownOptions, TrustOption
from teamchat.cli.startup.workspace import choose_session, find_team, need_trust, open_store
from teamchat.core.check import Check
from teamchat.core.conversation.permission import check_runs_commands
from teamchat.core.errors import UsageError
from teamchat.core.store.sessions import begun
from teamchat.core.team.checks import named_check, with_needs
from teamchat.core.team.team import Team


def check(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="CHECK",
            autocompletion=checks,
            help="A check of the team file, or a shell command (default: all checks of the team file).",
        ),
    ] = None,
    *,
    place: PlaceOptions,
    shown: ShownOptions,
    trust: TrustOption = False,
    no_wait: NoWaitOption = False,
) -> int:
    """Run a check of the team file, all of them, or a shell command.

    Those that a check needs run before it. No member has a turn. The conversation keeps the result: log and show have
    it. Exit code 16 says that one is red.
    """
    team = find_team(place.team)
    wanted = checks_to_run(team, name)
    check_runs_commands()
    need_trust(team, give=trust)
    with open_store(team.root) as db:
        session, begins = choose_session(db, team, place.session, new=False)
        if begins and shown.talks:
            note(f"session {session.name} begins")
        with begun(db, session) if begins else nullcontext():
            return converse(team, db, session, shown, lambda one: one.check(wanted), wait=not no_wait)


def checks_to_run(team: Team, name: str | None) -> Sequence[Check]:
    """Find the check of that name or command; without one, all of the team file, in the order of their needs."""
    if name is not None:
        return with_needs(team.checks, (named_check(team.checks, name),))
    if not team.checks:
        raise UsageError("the team file has no [checks]: name a shell command", "teamchat check 'make test'")
    return with_needs(team.checks, tuple(team.checks.values()))
