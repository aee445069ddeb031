"""A turn's changes in the files, as a patch to read: without files of secrets, binary files by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from teamchat.core.checkpoint.private import has_secret_name
from teamchat.core.conversation.differences import differences
from teamchat.core.errors import CheckpointFailed
from teamchat.core.store.turns import Turn

LONGEST = 1 << 20  # bytes of a turn's patch
CUT = f"[the rest is left out: the first {LONGEST:,} bytes are kept]"
MOST_READ = 8 * LONGEST  # files of secrets, which are left out, may come first
_HEAD = b"diff --git "


def patch_of(state: Path, turn: Turn, redact: Callable[[str], str]) -> str:
    """Build the patch of a turn without its secrets; say why it is no longer known, if so."""
    try:
        patch = _beginning(
            piece for difference in differences(state, (turn,)) for piece in difference.patch(binary=False)
        )
    except CheckpointFailed as failed:
        return str(failed)
    shown, size = list[str](), 0
    for path, section in _sections(patch):
        if path is None or has_secret_name(path):
            shown.append(f"{path or 'a file'}: left out, as its name is one of secrets\n")
            continue
        if (size := size + len(section)) > LONGEST:
            shown.append(CUT)
            break
        shown.append(_without_secrets(section.decode(errors="replace"), redact))
    return "".join(shown).rstrip("\n")


def _beginning(pieces: Iterable[bytes]) -> bytes:
    """Read a patch up to `MOST_READ`. A file that is cut there is beyond the part that is kept."""
    read = bytearray()
    for piece in pieces:
        read += piece
        if len(read) > MOST_READ:
            break
    return bytes(read)


def _sections(patch: bytes) -> Iterator[tuple[str | None, bytes]]:
    """Split a patch into each file's part, by its path; None for a path that cannot be told."""
    lines: list[bytes] = []
    for line in patch.splitlines(keepends=True):
        if line.startswith(_HEAD) and lines:
            yield _path(lines[0]), b"".join(lines)
            lines = []
        lines.append(line)
    if lines:
        yield _path(lines[0]), b"".join(lines)


def _path(head: bytes) -> str | None:
    """Read the path in `diff --git a/PATH b/PATH`, which git quotes if it has special characters."""
    names = head.removeprefix(_HEAD).rstrip(b"\n")
    old, new = names[: len(names) // 2], names[len(names) // 2 + 1 :]
    if old.startswith(b'"'):
        old, new = (name[1:-1].decode("unicode_escape").encode("latin-1") for name in (old, new))
    if old[:2] != b"a/" or new[:2] != b"b/" or old[2:] != new[2:]:
        return None
    return old[2:].decode(errors="replace")


def _without_secrets(section: str, redact: Callable[[str], str]) -> str:
    """Redact the section, also secrets over several lines, between which the marks of a patch stand."""
    lines = section.split("\n")
    redacted = redact("\n".join(line[1:] for line in lines))
    return redact("\n".join(_joined(lines, redacted)))


def _joined(lines: Iterable[str], texts: str) -> Iterator[str]:
    """Join each line's mark with its text: equally many characters of `texts`."""
    at = 0
    for line in lines:
        end = at + len(line[1:])
        yield line[:1] + texts[at:end]
        at = end + 1
