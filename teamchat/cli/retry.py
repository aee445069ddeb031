from __future__ import annotations

from typing import Annotated

import typer

from teamchat.cli.output.lines import note
from teamchat.cli.output.undoing import kept_lines, undo_lines, undone
from teamchat.cli.running.converse import held_run
from teamchat.cli.running.request import run_input
from teamchat.cli.running.undo_asked import confirmed_and_done
from teamchat.cli.startup.complete import members
from teamchat.cli.startup.options import Confirm, LimitOptions, PlaceOptions, RunOutput, ShownOptions
from teamchat.cli.startup.typed import placed_here
from teamchat.cli.startup.workspace import need_trust, open_store, session_to_continue, team_with_session
from teamchat.core.conversation.inputs import Resume
from teamchat.core.conversation.undo.messages import give_call
from teamchat.core.conversation.undo.proposal import carry_out_undo, propose_retry
from teamchat.core.engine.events import ResumeMode
from teamchat.core.errors import ExitCode, UsageError
from teamchat.core.store.sessions import touch_session


def retry(
    with_: Annotated[
        str | None,
        typer.Option(
            "--with", metavar="MEMBER", autocompletion=members, help="The member to run it (default: the same)."
        ),
    ] = None,
    *,
    confirm: Confirm,
    place: PlaceOptions,
    shown: ShownOptions,
    limits: LimitOptions,
) -> int:
    """Undo the last turn and run it again, with another member if you name one."""
    team = team_with_session(place.team, place.session, limits.timeout)
    need_trust(team, give=limits.trust)
    if with_ is not None:
        member = team.member(with_)
        if member.type == "human":
            raise UsageError(f"{member.name} is a person; a turn is run by an agent", "teamchat team")
        with_ = member.name  # as the team file has it
    with open_store(team.root) as db:
        chosen = session_to_continue(db, place.session)
        with held_run(team, db, chosen) as run:
            proposal, kept_files = confirmed_and_done(
                lambda: propose_retry(run, chosen, with_),
                lambda proposal: undo_lines(proposal, placed_here, force=confirm.force, again=with_ or ""),
                "Undo it and run it again?",
                lambda proposal: carry_out_undo(run, proposal, force=confirm.force),
                yes=confirm.yes,
                force=confirm.force,
                as_json=shown.as_json or shown.quiet,
            )
            if kept_files is None:
                return ExitCode.DONE
            if shown.talks:
                note(undone(proposal, force=confirm.force))
            for line in kept_lines(kept_files):
                note(line)
            again = tuple(route.number for route in proposal.plan.again)
            if with_ is not None:
                give_call(run, again[0], with_)
        touch_session(db, chosen.id)
        output, given = RunOutput(shown.as_json, shown.stream, shown.quiet), Resume(ResumeMode.RETRY, again)
        return run_input(team, db, chosen, given, output, wait=not limits.no_wait)
