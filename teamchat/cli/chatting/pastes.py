"""Tracks which parts of the prompt's text were pasted in several lines. They hold no commands and no markers.

A change that adds more than one line at once counts as a paste, for example text from the history. A long paste is
shown as the label `[pasted: 200 lines]`, and the message has all of it. The path of an image that was dragged or
pasted into the terminal is shown as the label `[image: red.png]`, and the message has its `@path`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise, takewhile

from msgspec import Struct
from msgspec.structs import replace
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from teamchat.cli.chatting.dragged import at_path, dragged_images, ends_image
from teamchat.cli.output.lines import FOLDED_LINES, fold_label
from teamchat.core.conversation.mentioned import image_label, image_name
from teamchat.core.errors import UsageError
from teamchat.core.messages import Span
from teamchat.core.routing.markers import touches
from teamchat.core.text.clean import printable


class PastedPart(Struct, frozen=True):
    """A pasted part of the prompt's text, from `start` to `end`. A label has the pasted text as its `content`."""

    start: int
    end: int
    content: str | None = None

    @property
    def is_image(self) -> bool:
        """Whether it is the label of an image: that of a long paste has many lines."""
        return self.content is not None and "\n" not in self.content


class Pastes:
    """Follows the pasted parts of a buffer's text."""

    def __init__(self, buffer: Buffer, tell: Callable[[str], None] = lambda _line: None) -> None:
        self._buffer, self._before, self._parts = buffer, buffer.text, list[PastedPart]()
        self._tell = tell
        self._all_typed = False
        self._contents: dict[str, str] = {}  # by label: a label that was cut may be put back by Ctrl-Y or an undo
        buffer.on_text_changed += lambda _: self._changed()

    def insert(self, data: str) -> None:
        """Insert text that a terminal reports as pasted. A single line counts as typed."""
        text = data.replace("\r\n", "\n").replace("\r", "\n")
        if labels := self._image_labels(text):
            for label in labels:
                self._buffer.insert_text(f"{label} ")
            return
        self._buffer.insert_text(text.rstrip("\n") if _lines(text) == 1 else self._label_of(text))

    def _label_of(self, content: str) -> str:
        """Return the label of a long paste, which no other content has. A short one is shown as it is."""
        lines = _lines(content)
        if lines <= FOLDED_LINES:
            return content
        return self._only_label(fold_label(lines), content)

    def _only_label(self, first: str, content: str) -> str:
        label, number = first, 1
        while self._contents.setdefault(label, content) != content:
            number += 1
            label = f"{first[:-1]}, {number}]"
        return label

    def _image_labels(self, text: str) -> list[str]:
        """Return the labels of the images if the text is nothing but their paths. Tells why one cannot be attached."""
        try:
            return [self._only_label(image_label(image_name(path)), at_path(path)) for path in dragged_images(text)]
        except UsageError as error:
            self._tell(f"✗ {printable(str(error))}")
            return []

    @property
    def has_images(self) -> bool:
        return any(part.is_image for part in self._parts)

    def _spans_of_images(self, text: str) -> Iterator[Span]:
        """Find where the images stand that have labels already."""
        for content in filter(lambda content: "\n" not in content, self._contents.values()):
            if match := re.search(rf"(?<!\S){re.escape(content)}(?!\S)", text):
                yield match.span()

    def put(self, text: str, pasted: tuple[Span, ...] = ()) -> None:
        """Put a text into the prompt; only the parts `pasted` were pasted."""
        shown, parts, done = "", list[PastedPart](), 0
        images = (span for span in self._spans_of_images(text) if not touches(*span, pasted))
        for start, end in sorted([*pasted, *images]):
            shown += text[done:start]
            content = text[start:end]
            known = (label for label, labelled in self._contents.items() if labelled == content)
            label = next(known, None) or self._label_of(content)
            parts.append(PastedPart(len(shown), len(shown) + len(label), None if label == content else content))
            shown, done = shown + label, end
        shown += text[done:]
        self._parts, self._all_typed = [], True
        self._buffer.document = Document(shown, len(shown))
        self._parts, self._all_typed = parts, False
        if parts:
            self._buffer.on_text_changed.fire()

    def whole(self) -> tuple[str, tuple[Span, ...]]:
        """Return the text with all that labels stand for, and its pasted parts."""
        shown = self._buffer.text
        pieces, spans, done, size = list[str](), list[Span](), 0, 0
        for part in self._parts:
            content = shown[part.start : part.end] if part.content is None else part.content
            if part.is_image:  # its `@path` is a word of its own
                content = f"{' ' * _joined(shown[: part.start][-1:])}{content}{' ' * _joined(shown[part.end :][:1])}"
            pieces += [shown[done : part.start], content]
            size += part.start - done
            if not part.is_image:
                spans.append((size, size + len(content)))
            size += len(content)
            done = part.end
        return "".join((*pieces, shown[done:])), tuple(spans)

    def _changed(self) -> None:
        before, now = self._before, self._buffer.text
        self._before = now
        inserted_at = self._buffer.cursor_position - max(0, len(now) - len(before))  # the cursor stands behind it
        begin = min(_alike(before, now), max(0, inserted_at))
        behind = min(_alike(before[::-1], now[::-1]), min(len(before), len(now)) - begin)
        removed_to, added_to = len(before) - behind, len(now) - behind
        broken = [
            part for part in self._parts if part.content is not None and begin < part.end and removed_to > part.start
        ]
        if before == f"{now} " and self._parts and self._parts[-1].is_image and self._parts[-1].end == len(now):
            broken = self._parts[-1:]  # with the space that a drag leaves behind it
        moved = (_moved(part, begin, removed_to, added_to) for part in self._parts if part not in broken)
        self._parts = [part for part in moved if part]
        added = "" if self._all_typed else now[begin:added_to]
        new = [PastedPart(begin, added_to)] if len(added) > 1 and "\n" in added else list(self._labels_in(added, begin))
        self._parts = sorted([*self._parts, *new], key=lambda part: part.start)
        if broken:  # a label goes as a whole
            start, end = min(broken[0].start, begin), max(broken[-1].end + added_to - removed_to, added_to)
            left = now[:start] + now[begin:added_to] + now[end:]
            self._buffer.document = Document(left, start + added_to - begin)
        elif len(added) == 1:
            self._take_dragged()

    def _take_dragged(self) -> None:
        """Put a label in place of a path that a terminal has typed behind nothing but images."""
        shown = self._buffer.text
        images = [PastedPart(0, 0), *(part for part in self._parts if part.is_image)]
        begin = images[-1].end
        typed, before = (
            shown[begin:],
            "".join(shown[image.end : following.start] for image, following in pairwise(images)),
        )
        if before.strip() or self._buffer.cursor_position < len(shown) or not ends_image(typed):
            return
        if labels := self._image_labels(typed):
            gap = typed[: len(typed) - len(typed.lstrip())]
            text = f"{shown[:begin]}{gap}{' '.join(dict.fromkeys(labels))}"
            self._buffer.document = Document(text, len(text))

    def _labels_in(self, added: str, begin: int) -> Iterator[PastedPart]:
        for label, content in self._contents.items():
            if (at := added.find(label)) >= 0:
                yield PastedPart(begin + at, begin + at + len(label), content)


def _joined(letter: str) -> bool:
    """Whether this letter beside a word is part of it."""
    return bool(letter.strip())


def _lines(text: str) -> int:
    return text.rstrip("\n").count("\n") + 1


def _alike(one: str, other: str) -> int:
    """Count the characters with which both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _moved(part: PastedPart, begin: int, removed_to: int, added_to: int) -> PastedPart | None:
    """Move the part after the characters from `begin` to `removed_to` were replaced by those to `added_to`."""
    if part.end <= begin:
        return part
    more = added_to - removed_to
    if part.start >= removed_to:
        return replace(part, start=part.start + more, end=part.end + more)
    start = part.start if part.start < begin else added_to
    end = part.end + more if part.end > removed_to else begin
    return replace(part, start=start, end=end) if start < end else None
