from __future__ import annotations

from teamchat.cli.output.jsonl import write_line
from teamchat.cli.output.lines import note
from teamchat.cli.output.undoing import file_fields, kept_fields, kept_lines, redo_lines, redone
from teamchat.cli.running.converse import held_run
from teamchat.cli.running.undo_asked import check_dry_run, confirmed_and_done
from teamchat.cli.startup.options import ConfirmOrShow, JsonOption, PlaceOptions
from teamchat.cli.startup.workspace import need_person, open_store, team_or_nobody
from teamchat.core.conversation.undo.proposal import carry_out_redo, propose_redo
from teamchat.core.store.sessions import need_session


def redo(confirm: ConfirmOrShow, place: PlaceOptions, as_json: JsonOption = False) -> None:
    """Redo the last undo, unless the conversation moved on."""
    if not confirm.dry_run:
        need_person("turns are redone")
    team = team_or_nobody(place.team, place.session)
    with open_store(team.root) as db:
        chosen = need_session(db, place.session)
        with held_run(team, db, chosen) as run:
            proposal, kept_files = confirmed_and_done(
                lambda: propose_redo(run, chosen),
                lambda proposal: redo_lines(proposal, force=confirm.force),
                "Redo it?",
                lambda proposal: carry_out_redo(run, proposal, force=confirm.force),
                yes=confirm.yes,
                dry_run=confirm.dry_run,
                force=confirm.force,
                as_json=as_json,
            )
        if as_json:
            write_line(
                "redo",
                turn=proposal.undo.turn,
                scope=proposal.undo.scope,
                **file_fields(proposal.files),
                done=kept_files is not None,
                kept=kept_fields(kept_files or ()),
            )
        if confirm.dry_run:
            check_dry_run(proposal, force=confirm.force)
        elif kept_files is not None and not as_json:
            note(redone(proposal, force=confirm.force))
            for line in kept_lines(kept_files):
                note(line)
