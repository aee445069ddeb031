from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from teamchat.cli.shared.options import FormatName, SessionOption, TeamOption, finite

if TYPE_CHECKING:
    from teamchat.core.team.team import Team


def export(
    format_: Annotated[
        FormatName | None,
        typer.Option("--format", help="The format (default: that of the file's ending, else md)."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The file to write (default: standard output)."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Include messages and turns that were undone, marked as such.")
    ] = False,
    max_pause: Annotated[
        float,
        typer.Option("--max-pause", metavar="SECONDS", min=0, callback=finite, help="The longest pause of a cast."),
    ] = 1.5,
    team: TeamOption = None,
    session: SessionOption = None,
) -> None:
    """Write the conversation as a document, a web page, data or a recording of a terminal.

    Secrets are replaced by `*`. `teamchat import` reads json, jsonl and snapshot.
    """
    import os

    from teamchat.cli.exporting.formats import Options, format_for, writer
    from teamchat.cli.exporting.output import write_to
    from teamchat.cli.output.lines import note, plural, size
    from teamchat.cli.shared.workspace import find_root, open_store
    from teamchat.core.store.sessions import need_session
    from teamchat.core.text.clean import printable
    from teamchat.core.transcripts.collect import collect
    from teamchat.core.transcripts.redacting import without_secrets

    file = None if output is None or str(output) == "-" else output
    write = writer(format_for(format_, file))
    with open_store(find_root(team)) as db:
        whole = collect(db, need_session(db, session))
    shown = whole if everything else whole.without_undone
    transcript, secrets = without_secrets(shown, os.environ, team_for_secrets(team))
    written = write_to(file, write(transcript, Options(max_pause)))
    messages, undone = len(list(shown.said)), len(list(whole.said)) - len(list(shown.said))
    counts = f"{plural(messages, 'message')}, {plural(secrets, 'secret')} redacted"
    what = f"session {whole.session}" if file is None else f"wrote {printable(str(file))} ({size(written)})"
    note(f"{what}: {counts}")
    if undone:
        note(f"{plural(undone, 'undone message')} left out: --all includes them")


def team_for_secrets(option: str | None) -> Team | None:
    """The team, whose members' variables are secrets too. A broken team file does not hide what was said."""
    from teamchat.cli.shared.workspace import find_team
    from teamchat.core.errors import TeamchatError

    try:
        return find_team(option)
    except TeamchatError:
        return None
