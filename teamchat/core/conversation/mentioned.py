"""The files that a person's message mentions: `@red.png` attaches an image, and another `@path` is up to a CLI."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from teamchat.core.errors import UsageError
from teamchat.core.messages import ConversationMessage, Span
from teamchat.core.routing.markers import strip_markers, touches
from teamchat.core.store.images import LARGEST_IMAGE, MOST_IMAGES, Image, image_type
from teamchat.core.team.team import Member, Team
from teamchat.core.text.clean import printable
from teamchat.patterns import regex
from teamchat.runners.slash_commands import command_name
from teamchat.runners.untrusted.json import listed
from teamchat.runners.untrusted.regular_files import open_regular, read_regular

_MENTION = regex(r'(?<!\S)@(?:"(?P<quoted>[^"\n]{1,4096})"|(?P<word>[^\s"]\S{0,4095}))')
_OUTSIDE = ("/", "~", "../")
_ENDING = ".,;:!?)"  # punctuation that may end a sentence
_IMAGE = regex(r"\.(?:png|jpe?g|gif|webp)\Z", re.IGNORECASE)
_HEAD = 16  # bytes that identify an image


class Illustrated(Struct, frozen=True):
    """A text whose `@paths` of images are labels, the spans that move with it, and the images.

    `missing` names paths that look like images and do not exist.
    """

    text: str
    typed: int
    pasted: tuple[Span, ...]
    images: tuple[Image, ...]
    missing: tuple[str, ...]


class Mentioned(Struct, frozen=True):
    """An `@path` of a file that exists: the path as written, where it stands, and the file."""

    path: str
    start: int
    end: int
    file: Path


def mentioned(text: str, typed: int, pasted: Sequence[Span], root: Path) -> Iterator[Mentioned]:
    """Find files that a person mentions in the `typed` characters, outside of `pasted` spans, relative to `root`."""
    for match, written in _mentions(text, typed, pasted):
        paths = (written,) if match["quoted"] else dict.fromkeys((written, written.rstrip(_ENDING)))
        for path in filter(None, paths):
            file = file_at(path, root)
            if _is_file(file):
                yield Mentioned(path, match.start(), match.end() - len(written) + len(path), file)
                break


def _mentions(text: str, typed: int, pasted: Sequence[Span]) -> Iterator[tuple[re.Match[str], str]]:
    return (
        (match, match["quoted"] or match["word"])
        for match in _MENTION.finditer(text, 0, typed)
        if not touches(*match.span(), pasted)
    )


def illustrated(text: str, typed: int, pasted: Sequence[Span], root: Path) -> Illustrated:
    """Replace mentions of images in the text with labels, and attach the images. Raises `UsageError`.

    Without their `@` no CLI looks for the files again. A custom command of a CLI keeps its arguments as typed.
    """
    pieces, moved, images, done = list[str](), list(pasted), list[Image](), 0
    grown = 0
    for mention in () if command_name(strip_markers(text).lstrip()) else mentioned(text, typed, pasted, root):
        if image_kind(mention.file) is None:
            continue
        images.append(image_at(mention.file, mention.path))
        label = image_label(images[-1].name)
        pieces += [text[done : mention.start], label]
        more = len(label) - (mention.end - mention.start)
        moved = [(a + more, b + more) if a >= mention.end + grown else (a, b) for a, b in moved]
        done, grown = mention.end, grown + more
    if len(images) > MOST_IMAGES:
        raise UsageError(f"a message takes at most {MOST_IMAGES} images, and there are {len(images)}")
    whole = "".join((*pieces, text[done:]))
    left = (written.rstrip(_ENDING) for _, written in _mentions(whole, typed + grown, moved))
    missing = tuple(image_name(path) for path in left if _IMAGE.search(path) and not _is_file(file_at(path, root)))
    return Illustrated(whole, typed + grown, tuple(moved), tuple(images), missing)


def mentioned_images(text: str, pasted: Sequence[Span], root: Path) -> tuple[str, ...]:
    """List the names of the images that a typed text mentions."""
    mentions = mentioned(text, len(text), pasted, root) if "@" in text else ()
    return tuple(image_name(mention.path) for mention in mentions if image_kind(mention.file))


def what_becomes(message: ConversationMessage, team: Team) -> str | None:
    """Say what the addressees' CLIs make of the repository's files that a person's message mentions.

    CLIs also read files that pasted text mentions.

    As `@src/app.py: max's claude reads the file; text to sarah's codex, which can open it`.
    """
    mentions = mentioned(message.content, message.typed, (), team.root)
    paths = dict.fromkeys(
        mention.path for mention in mentions if not mention.path.startswith(_OUTSIDE) and "/../" not in mention.path
    )
    members = [team.member(name) for name in message.routing.resolved_addressees]
    clis = [(f"{member.name}'s {_cli(team, member)}", member) for member in members if member.type == "ai"]
    if not (paths and clis):
        return None
    the_file = "the file" if len(paths) == 1 else "the files"
    reading = [
        cli for cli, member in clis if team.agent_of(member).type.runner.reads_mentions and _all_there(member, paths)
    ]
    others = [cli for cli, _ in clis if cli not in reading]
    clauses = [f"{listed(*reading)} {'reads' if len(reading) == 1 else 'read'} {the_file}"] if reading else []
    able = [member for cli, member in clis if cli not in reading and team.agent_of(member).type.runner.vendor]
    can = f", which can open {'it' if len(paths) == 1 else 'them'}" if len(able) == len(others) else ""
    clauses += [f"text to {listed(*others)}{can}"] if others else []
    return f"{', '.join(f'@{printable(path)}' for path in paths)}: {'; '.join(clauses)}"


def _cli(team: Team, member: Member) -> str:
    kind = team.agent_of(member).type
    return kind.name if kind.runner.vendor else "program"


def _all_there(member: Member, paths: Iterable[str]) -> bool:
    return all(_is_file(file_at(path, member.cwd)) for path in paths)


def file_at(path: str, root: Path) -> Path:
    """Return the file of a path as written, relative to `root`."""
    return Path(os.path.join(root, os.path.expanduser(path)))  # noqa: PTH111, PTH118 (it raises nothing)


def image_label(name: str) -> str:
    """Return the label that stands for an image in a message."""
    return f"[image: {name}]"


def with_labels(text: str) -> str:
    """Replace each `@path` of an image outside the repository, which is long, with a label."""

    def label(found: re.Match[str]) -> str:
        path = found["quoted"] or found["word"]
        return image_label(image_name(path)) if _IMAGE.search(path) and path.startswith(_OUTSIDE) else found[0]

    return _MENTION.sub(label, text) if "@" in text else text


def image_name(path: str) -> str:
    """Name an image: its path in the repository, or the last part of a path outside."""
    name = Path(path).name if path.startswith(("/", "~", "..")) else path
    return printable(name).translate({ord("`"): "'", ord("["): "(", ord("]"): ")"})


def image_kind(file: Path) -> str | None:
    """Detect the kind of image in a file that exists; None for everything else."""
    try:
        with open_regular(file) as opened:
            return image_type(opened.read(_HEAD))
    except OSError:
        return None


def image_at(file: Path, path: str) -> Image:
    """Read the image in that file, which is written `path`. Raises `UsageError`: why it cannot be attached."""
    name = image_name(path)
    if not _is_file(file):
        raise UsageError(f"{name} is not there: it is not attached")
    try:
        size = file.stat().st_size
        if size > LARGEST_IMAGE:
            raise UsageError(f"{name} has {size:,} bytes, and an image may have {LARGEST_IMAGE:,}")
        data = read_regular(file, LARGEST_IMAGE)
    except (OSError, ValueError) as error:
        raise UsageError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    kind = image_type(data)
    if kind is None:
        raise UsageError(f"{name} is no png, jpg, gif or webp image: it is not attached")
    return Image(name, kind, data)


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False
