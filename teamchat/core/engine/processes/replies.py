"""The reading of replies by processes: the JSON that a member was asked for, and the answers of blind members."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from string import ascii_uppercase
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from teamchat.assemblers.parts import FRAMEWORK, KNOWLEDGE, LESSONS, SUMMARY
from teamchat.core.engine.workflow import Done, Fault, Process
from teamchat.core.messages import well_formed
from teamchat.core.routing.names import fold
from teamchat.core.text.clean import sequences, without_sequences
from teamchat.patterns import regex
from teamchat.runners.untrusted.json import not_too_deep
from teamchat.runners.untrusted.settings_json import LARGEST_JSON5

BLIND_LAYERS = (FRAMEWORK, LESSONS, KNOWLEDGE, SUMMARY)
"""All layers but the todo list: an answer that others may not see yet can add to it."""


def seats(done: Iterable[Done]) -> dict[str, Done]:
    """Map the member of each finished part to it. The last part of a member counts."""
    return {ended.part.seat: ended for ended in done}


def stand_in(done: Done, member: str) -> str | None:
    """Return who answered in the member's place; None if it did itself, perhaps under another spelling."""
    return None if fold(done.member) == fold(member) else done.member


def wrong_members(process: Process, least: int) -> str | None:
    """Say what is wrong with the members; there must be `least` different ones."""
    twice = next((name for name in process.members if process.members.count(name) > 1), None)
    if twice is not None:
        return f"{twice} is named twice"
    if len(process.members) >= least:
        return None
    return "it needs a member" if least == 1 else f"it needs at least {least} members"


def too_large(quorum: int | None, voices: int, noun: str) -> str | None:
    """Say what is wrong with the quorum if there are only `voices`."""
    if quorum is None or quorum <= voices:
        return None
    return f"--quorum: expected at most the {voices} {noun}s, got {quorum}" if voices else f"--quorum: no {noun}"


def letters(index: int) -> str:
    """Return the letters of an index: A to Z, then AA, AB and so on."""
    before, last = divmod(index, len(ascii_uppercase))
    return (letters(before - 1) if before else "") + ascii_uppercase[last]


_NAMES: dict[type, str] = {list: "list", dict: "object"}
_OPENERS: dict[type, str] = {list: "[", dict: "{"}
_FENCE = regex(r"^[ \t]*+(`{3,}+)[ \t]*+([^`\n]*+)$", re.MULTILINE)
_BEGIN = regex(r'\[\s*+(?:["\[{\]]|-?\d|true\b|false\b|null\b|/[/*]|\Z)|\{\s*+(?:["}]|/[/*]|\Z)')
# or a string or a comment: their brackets are text
_BRACKET = regex(r'"(?:[^"\\]|\\.)*+"?|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|[\[{]|[\]}]', re.DOTALL)


class WrittenValue(Struct, frozen=True):
    """A value, and where in the text it is, with its fence if it has one."""

    value: Any
    start: int
    end: int


class _Span(Struct, frozen=True):
    start: int
    end: int


class _Fence(Struct, frozen=True):
    whole: _Span
    inside: _Span
    is_json: bool


def written_list(reply: str) -> WrittenValue | Fault:
    """Read the list that was asked for, or say why there is none."""
    return _beside_asides(reply, lambda text: _in_fence(text, list) or _between_prose(text, list))


def written_object(reply: str) -> WrittenValue | Fault:
    """Read the object that the reply was to be, or to end with, or say why there is none."""
    return _beside_asides(reply, _object)


def _beside_asides(reply: str, find: Callable[[str], WrittenValue | Fault]) -> WrittenValue | Fault:
    """Find a value in a reply outside of its asides and escape sequences. Tags in the JSON's strings are text."""
    escapes = list(sequences(reply))
    if "<" not in reply and not escapes:
        return find(reply)
    from teamchat.core.routing.asides import blanked  # most runs need no Markdown
    from teamchat.core.routing.markdown import asides_of, without_asides

    seen = blanked(reply, escapes)
    text = without_asides(seen)
    written = find(text)
    if isinstance(written, Fault):
        ends = [span.end for span in asides_of(seen).spans]
        whole = find(seen) if ends else written
        around_tag = isinstance(whole, WrittenValue) and any(whole.start < end < whole.end for end in ends)
        return whole if around_tag else written
    if text[written.start : written.end] != reply[written.start : written.end]:
        whole = find(without_sequences(reply[written.start : written.end]))
        return replace(written, value=whole.value) if isinstance(whole, WrittenValue) else written
    return written


def _object(text: str) -> WrittenValue | Fault:
    line = _stripped(text, _Span(text.rstrip().rfind("\n") + 1, len(text)))
    if text.startswith("{", line.start):
        last = _read(text, line, dict)
        if isinstance(last, WrittenValue):
            return last
    return _in_fence(text, dict) or _between_prose(text, dict)


def _in_fence(text: str, kind: type) -> WrittenValue | Fault | None:
    fences = [fence for fence in _fences(text) if fence.is_json or _BEGIN.match(text, fence.inside.start)]
    if not fences:
        return None
    written = _read(text, fences[-1].inside, kind)
    return (
        WrittenValue(written.value, fences[-1].whole.start, fences[-1].whole.end)
        if isinstance(written, WrittenValue)
        else written
    )


def _fences(text: str) -> Iterator[_Fence]:
    """Find the fenced blocks of the text. An unclosed one ends with the text."""
    opened: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        if opened is None:
            opened = line
        elif not line[2].strip() and len(line[1]) >= len(opened[1]):
            yield _fence(text, opened, line.start(), line.end())
            opened = None
    if opened is not None:
        yield _fence(text, opened, len(text), len(text))


def _fence(text: str, opened: re.Match[str], close: int, end: int) -> _Fence:
    is_json = opened[2].strip().lower().startswith("json")
    return _Fence(_Span(opened.start(), end), _stripped(text, _Span(opened.end(), close)), is_json)


def _between_prose(text: str, kind: type) -> WrittenValue | Fault:
    spans = list(_values(text))
    asked = [span for span in spans if text[span.start] == _OPENERS[kind]]
    on_lines = [span for span in asked if _begins_line(text, span.start)]
    counting = (on_lines or asked or spans)[-1:]
    return _read(text, counting[0], kind) if counting else Fault(f"there is no JSON {_NAMES[kind]} in it")


def _values(text: str) -> Iterator[_Span]:
    """Find each beginning of a JSON value, up to the bracket that closes it or to the end of the text."""
    position = 0
    while begin := _BEGIN.search(text, position):
        position = _closed(text, begin.start())
        yield _Span(begin.start(), position)


def _closed(text: str, start: int) -> int:
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(bracket[0], 0)
        if depth == 0:
            return bracket.end()
    return len(text)


def _begins_line(text: str, start: int) -> bool:
    while start and text[start - 1] in " \t":
        start -= 1
    return start == 0 or text[start - 1] == "\n"


def _read(text: str, span: _Span, kind: type) -> WrittenValue | Fault:
    try:
        value = not_too_deep(_parsed(text[span.start : span.end]))
        if "\\ud" in text[span.start : span.end].lower():  # may be half a character, which nothing can store
            value = json.loads(well_formed(json.dumps(value, ensure_ascii=False)))
    except json.JSONDecodeError as error:
        return Fault(_broken(text, span, error))
    except RecursionError:
        return Fault(f"its JSON {_NAMES[kind]} is nested too deeply")
    except ValueError as error:
        return Fault(str(error))
    if not isinstance(value, kind):
        return Fault(f"its JSON is not {'an' if kind is dict else 'a'} {_NAMES[kind]}")
    return WrittenValue(value, span.start, span.end)


def _parsed(text: str) -> Any:
    """Parse JSON as models write it: with control characters in strings, comments and trailing commas."""
    try:
        return json.loads(text, strict=False, parse_int=float, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        if len(text) > LARGEST_JSON5:
            raise
        import json5

        try:
            return json5.loads(text, parse_int=float, parse_constant=_no_number)
        except ValueError:
            raise error from None


def _no_number(name: str) -> float:
    raise ValueError(f"its JSON has {name}, which is no number in JSON")


def _broken(text: str, span: _Span, error: json.JSONDecodeError) -> str:
    """Say what is wrong, and where in the reply."""
    if text[span.start : span.start + 1] not in ("[", "{"):
        return "its fence has no JSON"
    at = span.start + error.pos
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    if error.msg.startswith("Unterminated string"):
        return f"its JSON is cut off in a string that begins at line {line}, column {column}"
    if not text[at : span.end].strip():
        return f"its JSON is cut off at line {line}, column {column}"
    return f"its JSON is broken at line {line}, column {column}: {error.msg[0].lower()}{error.msg[1:]}"


def _stripped(text: str, span: _Span) -> _Span:
    inside = text[span.start : span.end]
    start = span.start + len(inside) - len(inside.lstrip())
    return _Span(start, max(start, span.start + len(inside.rstrip())))
