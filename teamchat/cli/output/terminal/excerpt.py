"""The first lines of a turn's changes in the files, shown under its reply."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from itertools import islice

from msgspec import Struct

from teamchat.cli.output.lines import plural
from teamchat.cli.output.terminal.look import Look
from teamchat.cli.output.terminal.wrap import TAB, cells, folded
from teamchat.core.errors import CheckpointFailed
from teamchat.core.text.clean import visible
from teamchat.runners.untrusted.file_changes import FileChanges

MOST = 12  # lines
GREEN = 64  # as in `look.COLOURS`, readable on black and on white


class Excerpts(Struct, frozen=True):
    """`patch` gives a turn's patch of at most that many files, and `command` the command that shows it whole."""

    patch: Callable[[FileChanges, int], Iterator[bytes]]
    command: Callable[[int], str]

    def lines(self, found: FileChanges, turn: int, width: int, look: Look) -> list[str]:
        """Draw at most `MOST` lines or one more, then the number of changed lines left; nothing if git fails."""
        changed = sum((file.added or 0) + (file.removed or 0) for file in found.files)
        several = len(found.files) > 1
        first = list[tuple[str, str]]()
        with suppress(CheckpointFailed), closing(_rows(self.patch(found, MOST), several=several)) as rows:
            first = list(islice(rows, MOST + 2))
        first = first if len(first) < MOST + 2 else first[:MOST]  # a last line takes as much room as how many are left
        shown = [_painted(sign, _fitting(visible(text).expandtabs(TAB).rstrip(), width), look) for sign, text in first]
        if shown and (left := changed - sum(sign in ("+", "-") for sign, _ in first)) > 0:
            shown.append(look.dim(_more(left, self.command(turn), width)))
        return shown


def _more(left: int, command: str, width: int) -> str:
    whole = f"… {plural(left, 'more changed line')}: {command}"
    return whole if cells(whole) <= width else whole.partition(":")[0]


def _rows(patch: Iterable[bytes], *, several: bool) -> Generator[tuple[str, str], None, None]:
    """Read the lines of a patch that matter to a person, each with its sign; for `several` files with their names."""
    whole, old, new = False, "", ""  # the file is new or gone: its one hunk is all of it
    in_head = True
    for line in _lines(patch):
        if line.startswith("diff --git "):
            in_head = True
        elif in_head and line.startswith("--- "):
            old = line.removeprefix("--- a/").rstrip("\t")
        elif in_head and line.startswith("+++ "):
            new = line.removeprefix("+++ b/").rstrip("\t")
            whole = "/dev/null" in (old.removeprefix("--- "), new.removeprefix("+++ "))
            if several:
                yield "", old if new == "+++ /dev/null" else new
        elif line.startswith("@@ "):
            in_head = False
            if not whole:
                yield "@", line
        elif not in_head and line[:1] in ("+", "-", " "):
            yield line[0], line


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    held = b""
    for piece in pieces:
        *whole, held = (held + piece).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)
    if held:
        yield held.decode(errors="replace")


def _fitting(line: str, width: int) -> str:
    """Return the line with its spaces; a longer one ends in `…`."""
    return line if cells(line) <= width else folded(line, width - 1)[0] + "…"


def _painted(sign: str, text: str, look: Look) -> str:
    if sign == "+":
        return look.coloured(text, GREEN)
    if sign == "-":
        return look.bad(text)
    return look.dim(text)
