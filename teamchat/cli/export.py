from __future__ import annotations

import errno
import os
import stat
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import mkstemp
from typing import Annotated

import typer
from msgspec.structs import replace

from teamchat.cli.exporting.formats import ExportOptions, format_for, writer
from teamchat.cli.output.lines import note, plural, size
from teamchat.cli.output.long import as_stored, write_text
from teamchat.cli.startup.options import FormatName, PatchesName, PlaceOptions, finite
from teamchat.cli.startup.workspace import find_root, find_team, open_store
from teamchat.core.errors import DiskFull, TeamchatError, UsageError
from teamchat.core.files.folders import FULL, NO_ROOM
from teamchat.core.store.sessions import need_session
from teamchat.core.team.team import Team
from teamchat.core.text.clean import printable
from teamchat.core.transcripts.collect import collect, redactor, without_secrets
from teamchat.core.transcripts.reading import LARGEST
from teamchat.core.transcripts.transcript import Entry, LazyEntries, SaidEntry

PATCHES = 50  # newest turns with changes


def export(
    format_: Annotated[
        FormatName | None, typer.Option("--format", help="The format (default: that of the file's ending, else md).")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The file to write (default: standard output)."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Include messages and turns that were undone, marked as such.")
    ] = False,
    patches: Annotated[
        PatchesName | None,
        typer.Option("--patches", help="html: the patches of which turns (default: of the last 50 with changes)."),
    ] = None,
    max_pause: Annotated[
        float, typer.Option("--max-pause", metavar="SECONDS", callback=finite, help="The longest pause of a cast.")
    ] = 1.5,
    *,
    place: PlaceOptions,
) -> None:
    """Write the conversation as Markdown, a web page, data or a recording.

    Secrets are replaced by `*`. `teamchat import` reads json, jsonl and snapshot.
    """
    file = None if output is None or str(output) == "-" else output
    name = format_for(format_, file)
    if patches and name != "html":
        raise UsageError("--patches is for html, and other formats have none", "teamchat export --format html")
    most = {None: PATCHES, "all": -1, "none": 0}[patches] if name == "html" else 0
    write = writer(name)
    with open_store(find_root(place.team)) as db:
        redact = redactor(os.environ, team_for_secrets(place.team))
        whole = collect(db, need_session(db, place.session), redact, most)
        said = Counter[bool]()  # counts messages, undone or not

        def shown() -> Iterator[Entry]:
            said.clear()
            for entry in whole.entries:
                said[entry.undone] += isinstance(entry, SaidEntry)
                if everything or not entry.undone:
                    yield entry

        transcript, secrets = without_secrets(replace(whole, entries=LazyEntries(shown)), redact)
    written = write_to(file, write(transcript, ExportOptions(max_pause)))
    messages, undone = said[False] + said[True] * everything, said[True] * (not everything)
    counts = f"{plural(messages, 'message')}, {plural(secrets, 'secret')} redacted"
    what = f"session {whole.session}" if file is None else f"wrote {printable(str(file))} ({size(written)})"
    note(f"{what}: {counts}")
    if written > LARGEST:
        note(f"teamchat import takes at most {size(LARGEST)}")
    if undone:
        note(f"{plural(undone, 'undone message')} left out: --all includes them")


def team_for_secrets(option: str | None) -> Team | None:
    """Load the team, whose members' variables are secrets too. A broken team file does not hide the conversation."""
    try:
        return find_team(option)
    except TeamchatError:
        return None


def write_to(file: Path | None, pieces: Iterable[str]) -> int:
    """Write the pieces; how many bytes a file then has.

    A file is replaced as a whole, so that after an error there is what was there before. Raises `UsageError` and
    `DiskFull`.
    """
    if file is None:
        if sys.stdout.isatty():
            write_text(as_stored("".join(pieces)))
        else:
            sys.stdout.writelines(pieces)
        return 0
    try:
        if file.exists() and not file.is_file():  # such as /dev/stdout, which leads to a pipe without a name
            with file.open("wb") as opened:
                return sum(map(opened.write, _encoded(pieces)))
        return _replace(Path(os.path.realpath(file)), pieces)  # a link stays a link
    except OSError as error:
        if error.errno in (*FULL, errno.EFBIG):
            raise DiskFull(f"{printable(str(file))} {NO_ROOM}") from error
        raise UsageError(f"{printable(str(file))} cannot be written: {error.strerror}") from error


def _replace(path: Path, pieces: Iterable[str]) -> int:
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~_umask()
    number, name = mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    new = Path(name)
    try:
        with os.fdopen(number, "wb") as opened:
            written = sum(map(opened.write, _encoded(pieces)))
        new.chmod(mode)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return written


def _encoded(pieces: Iterable[str]) -> Iterator[bytes]:
    return (piece.encode(errors="replace") for piece in pieces)


def _umask() -> int:
    """Read the process's umask; the only way is to set it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
