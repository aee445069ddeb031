from __future__ import annotations

from teamchat.cli.shared.options import DryRunOption, ForceOption, JsonOption, SessionOption, TeamOption, YesOption


def redo(
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    force: ForceOption = False,
    team: TeamOption = None,
    session: SessionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Redo what the newest undo has undone, unless something was said or run since."""
    from functools import partial

    from teamchat.cli.output.jsonl import write_line
    from teamchat.cli.output.lines import note
    from teamchat.cli.output.undoing import file_fields, redo_lines, redone
    from teamchat.cli.shared.conversation import held_run
    from teamchat.cli.shared.typed import typed_with
    from teamchat.cli.shared.undoing import may_do
    from teamchat.cli.shared.workspace import find_team, open_store
    from teamchat.core.conversation.taking_back import carry_out_redo, propose_redo
    from teamchat.core.errors import UsageError
    from teamchat.core.store.sessions import need_session

    found = find_team(team)
    with open_store(found.root) as db:
        chosen = need_session(db, session)
        with held_run(found, db, chosen) as run:
            proposal = propose_redo(run, chosen)
            ask = partial(
                may_do, redo_lines(proposal), proposal.files, "Redo it?", typed_with("--yes"), as_json=as_json
            )
            if done := ask(yes=yes, dry_run=dry_run, force=force):
                if not yes and propose_redo(run, chosen).files.now != proposal.files.now:
                    raise UsageError("files changed while you were asked; nothing was done", "teamchat redo")
                carry_out_redo(run, proposal, force=force)
        if as_json:
            write_line(
                "redo", turn=proposal.undo.turn, scope=proposal.undo.scope, **file_fields(proposal.files), done=done
            )
        elif done:
            note(redone(proposal, force=force))
