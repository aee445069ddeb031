from __future__ import annotations

from typing import Annotated

import typer

from teamchat.cli.output.jsonl import write_line
from teamchat.cli.output.lines import note
from teamchat.cli.output.undoing import kept_fields, kept_lines, merged_lines, on_hold, undo_fields, undo_lines, undone
from teamchat.cli.running.converse import held_run
from teamchat.cli.running.undo_asked import agreed, check_dry_run, confirmed_and_done
from teamchat.cli.startup.options import ConfirmOrShow, JsonOption, PlaceOptions
from teamchat.cli.startup.turn_called import check_name, turn_here
from teamchat.cli.startup.typed import placed_here
from teamchat.cli.startup.workspace import need_person, open_store, team_or_nobody
from teamchat.core.conversation.undo.messages import clear_to_undo, take_back_clear
from teamchat.core.conversation.undo.proposal import carry_out_undo, propose_undo
from teamchat.core.errors import UsageError
from teamchat.core.store.sessions import need_session
from teamchat.core.store.summaries import Clear
from teamchat.core.store.undos import Scope
from teamchat.core.turn.run import Run
from teamchat.runners.untrusted.json import one_line


def undo(
    turn: Annotated[
        str | None,
        typer.Argument(metavar="TURN", help="The first turn to undo, or its reply such as msg-2 (default: the last)."),
    ] = None,
    files: Annotated[bool, typer.Option("--files", help="Undo the changes of files only.")] = False,
    conversation: Annotated[bool, typer.Option("--conversation", help="Undo the conversation only.")] = False,
    *,
    confirm: ConfirmOrShow,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Undo the last turn, or all from TURN on: words, queue and files."""
    if files and conversation:
        raise UsageError("--files and --conversation exclude each other")
    check_name(turn)
    if not confirm.dry_run:
        need_person("turns are undone")
    scope: Scope | None = "files" if files else "conversation" if conversation else None
    team = team_or_nobody(place.team, place.session)
    with open_store(team.root) as db:
        chosen = need_session(db, place.session)
        number = None if turn is None else turn_here(db, chosen, turn).number
        with held_run(team, db, chosen) as run:
            if turn is None and scope != "files" and (clear := clear_to_undo(run)):
                undo_the_clear(run, clear, yes=confirm.yes, dry_run=confirm.dry_run, as_json=as_json)
                return
            proposal, kept_files = confirmed_and_done(
                lambda: propose_undo(run, chosen, number, scope),
                lambda proposal: undo_lines(proposal, placed_here, force=confirm.force),
                "Undo it?",
                lambda proposal: carry_out_undo(run, proposal, force=confirm.force),
                yes=confirm.yes,
                dry_run=confirm.dry_run,
                force=confirm.force,
                as_json=as_json,
            )
        if as_json:
            write_line("undo", **undo_fields(proposal), done=kept_files is not None, kept=kept_fields(kept_files or ()))
        if confirm.dry_run:
            check_dry_run(proposal, force=confirm.force)
        elif kept_files is not None and not as_json:
            restored = "the rest" if kept_files else "it"
            note(f"{undone(proposal, force=confirm.force)}; {placed_here('teamchat redo')} restores {restored}")
            for line in (*kept_lines(kept_files), *merged_lines(proposal, placed_here)):
                note(line)
            if proposal.scope != "files" and (held := [route.target for route in on_hold(proposal.plan)]):
                resume, drop = placed_here("teamchat resume"), placed_here("teamchat resume --drop")
                note(f"on hold: {', '.join(held)}; {resume} runs what is on hold, {drop} drops it")


def undo_the_clear(run: Run, clear: Clear, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Bring back what `teamchat clear` has left out, since which nothing was said or run."""
    lines = [f"prompts include {clear.through} and earlier messages again"]
    if clear.task is not None:
        lines.append(f"restores the task: {one_line(clear.task, 60)}")
    done = agreed(lines, "Undo the clear?", yes=yes, dry_run=dry_run, as_json=as_json)
    if done:
        take_back_clear(run, clear)
    if as_json:
        write_line("undo", cleared=clear.through, task=clear.task, done=done)
    elif done:
        note(f"the clear is undone; {placed_here('teamchat clear')} clears it again")
