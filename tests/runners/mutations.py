"""Recorded streams of the real CLIs (`tests/captures`), damaged at random: what turns are fuzzed with.

A mutation changes a list of lines in place. `others` are lines of another stream, of any vendor; `at` and `what` are
any numbers, and say where and with what.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st

from teamchat.runners.child.running import Chunk
from tests.runners.captures import Capture, Cli, captures

T = TypeVar("T")
Lines = list[bytes]
Mutation = Callable[[Lines, Lines, int, int], None]

CLIS: tuple[Cli, ...] = ("claude", "codex", "gemini", "opencode")
LONGEST = 20_000  # bytes: the few longer recordings have more of the same lines
JUNK = (
    *(b"", b" ", b"null", b"{}", b'{"type":null}', b'"success"', b"[1,", b"}{", b"\r", b"\\ud83d", b"\\u0000"),
    *(b"\xff\xfe\x00", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\x1b]0;x\x07", b"Warning: something happened"),
    *(b"[" * 3000, b"9" * 5000, b"x" * 5000),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 401, 2**64, 10**4000, 0.5, -0.0, 1e308, float("nan"), float("inf")),
    *("", " \n", "success", "error", "completed", "\ud83d", "\x00", "\x1b[2J", "é\u2028🎉", "x" * 3000),
    *([], {}, [None], [[]], ["a", 1], {"type": "text", "text": "another"}, {"message": "another"}, {"": {}}),
)
GIVEN = ("input", "parameters", "arguments", "tool_input")
NEW_TYPES = ("final", "turn.done", "rate_limit_event", "system_notice", "outcome", "item.updated", "control_response")
KEYS = ("type", "text", "result", "subtype", "is_error", "status", "error", "content", "id", "item", "")


def _line(lines: Lines, at: int) -> int:
    """Any line; often the last one, where the CLIs say how it ended."""
    return len(lines) - 1 if at % 4 == 0 else at // 4 % len(lines)


def change_byte(lines: Lines, _: Lines, at: int, what: int) -> None:
    if line := bytearray(lines[n := _line(lines, at)]):
        line[what // 256 % len(line)] = what % 256
        lines[n : n + 1] = bytes(line).split(b"\n")


def insert_bytes(lines: Lines, _: Lines, at: int, what: int) -> None:
    line = lines[n := _line(lines, at)]
    place = what // len(JUNK) % (len(line) + 1)
    lines[n] = line[:place] + JUNK[what % len(JUNK)] + line[place:]


def insert_line(lines: Lines, _: Lines, at: int, what: int) -> None:
    lines.insert(at % (len(lines) + 1), JUNK[what % len(JUNK)])


def drop_lines(lines: Lines, _: Lines, at: int, what: int) -> None:
    n = _line(lines, at)
    del lines[n : n + 1 + what % 4]


def repeat_line(lines: Lines, _: Lines, at: int, what: int) -> None:
    lines.insert(what % (len(lines) + 1), lines[_line(lines, at)])


def move_line(lines: Lines, _: Lines, at: int, what: int) -> None:
    line = lines.pop(_line(lines, at))
    lines.insert(what % (len(lines) + 1), line)


def cut_line(lines: Lines, _: Lines, at: int, what: int) -> None:
    n = _line(lines, at)
    lines[n] = lines[n][: what % (len(lines[n]) + 1)]


def break_line(lines: Lines, _: Lines, at: int, what: int) -> None:
    n = _line(lines, at)
    place = what % (len(lines[n]) + 1)
    lines[n : n + 1] = [lines[n][:place], lines[n][place:]]


def join_lines(lines: Lines, _: Lines, at: int, what: int) -> None:
    n = at % len(lines)
    lines[n : n + 2] = [(b"" if what % 2 else b" ").join(lines[n : n + 2])]


def cut_stream(lines: Lines, _: Lines, at: int, what: int) -> None:
    place = at % len(lines)
    del lines[slice(place) if what % 4 == 0 else slice(place, None)]


def splice(lines: Lines, others: Lines, at: int, what: int) -> None:
    place, begin = at % (len(lines) + 1), what % (len(others) or 1)
    lines[place:place] = others[begin : begin + 1 + what // 256 % 16]


def go_on_as_another(lines: Lines, others: Lines, at: int, what: int) -> None:
    lines[at % len(lines) :] = others[what % (len(others) or 1) :]


def change_value(lines: Lines, _: Lines, at: int, what: int) -> None:
    _change(lines, at, what // len(VALUES), VALUES[what % len(VALUES)])


def graft_value(lines: Lines, others: Lines, at: int, what: int) -> None:
    if others and (places := _places(_decoded(others[what % len(others)]))):
        table, key = places[what // 16 % len(places)]
        _change(lines, at, what // 256, table[key])


def rename_key(lines: Lines, _: Lines, at: int, what: int) -> None:
    n = _line(lines, at)
    event = _decoded(lines[n])
    if tables := [table for table, _ in _places(event) if isinstance(table, dict)]:
        table = tables[what % len(tables)]
        value = table.pop(list(table)[what // 16 % len(table)])
        if what % 3:
            table[KEYS[what // 3 % len(KEYS)]] = value
        lines[n] = json.dumps(event).encode()


def die(lines: Lines, _: Lines, at: int, what: int) -> None:
    """It writes nothing more after any byte."""
    n = at % len(lines)
    lines[n] = lines[n][: what % (len(lines[n]) + 1)]
    del lines[n + 1 :]


def rename_everywhere(lines: Lines, _: Lines, at: int, what: int) -> None:
    """Another version calls an event or a field otherwise, or leaves the field out, from beginning to end."""
    event = _decoded(lines[_line(lines, at)])
    names = [(table, key) for table, key in _places(event) if isinstance(table, dict)]
    if not names:
        return
    table, key = names[what % len(names)]
    value = table[key] if what % 2 and isinstance(table[key], str) else None
    for n, line in enumerate(lines):
        other = _decoded(line)
        for within, name in _places(other):
            if isinstance(within, dict) and name == key and value in (None, within.get(name)):
                if value is not None:
                    within[name] = f"new_{value}"
                elif what % 4 == 0:
                    del within[name]
                else:
                    within[f"new_{key}"] = within.pop(name)
        if isinstance(other, dict):
            lines[n] = json.dumps(other).encode()


def write_otherwise(lines: Lines, _: Lines, at: int, what: int) -> None:
    """The same events with their keys in another order, other spaces, and fields that nobody knows."""
    order = Random(at << 16 | what)  # noqa: S311 (no secret)
    for n, line in enumerate(lines):
        if isinstance(event := _decoded(line), dict):
            spaces = order.choice(((",", ":"), (", ", ": "), (" , ", " : ")))
            with suppress(UnicodeEncodeError):  # half a surrogate pair
                lines[n] = json.dumps(_shuffled(event, order), ensure_ascii=what % 2 == 0, separators=spaces).encode()


def add_events(lines: Lines, _: Lines, at: int, what: int) -> None:
    """Events between the others that nobody knows."""
    order = Random(at << 16 | what)  # noqa: S311 (no secret)
    for _number in range(1 + what % 8):
        event = {"type": order.choice(NEW_TYPES), "text": "no answer", "result": "no answer", "subtype": "success"}
        lines.insert(order.randint(0, max(len(lines) - 1, 0)), json.dumps(event).encode())


HARMLESS: tuple[Mutation, ...] = (write_otherwise, add_events)
MUTATIONS: tuple[Mutation, ...] = (
    *(change_byte, insert_bytes, insert_line, drop_lines, repeat_line, move_line, cut_line, break_line, join_lines),
    *(cut_stream, splice, go_on_as_another, change_value, graft_value, rename_key, die, rename_everywhere),
    *HARMLESS,
)


def _shuffled(value: Any, order: Random) -> Any:
    """With all keys in another order, but for those of what a tool is given, which are told in theirs."""
    if isinstance(value, list):
        return [_shuffled(item, order) for item in value]
    if not isinstance(value, dict):
        return value
    keys = [*value, f"new_{order.randint(0, 9)}"]
    order.shuffle(keys)
    return {key: value[key] if key in GIVEN else _shuffled(value.get(key), order) for key in keys}


def _change(lines: Lines, at: int, what: int, value: object) -> None:
    n = _line(lines, at)
    event = _decoded(lines[n])
    if places := _places(event):
        table, key = places[what % len(places)]
        table[key] = value
        lines[n] = json.dumps(event, ensure_ascii=what % 2 == 0).encode(errors="replace")


def _decoded(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _places(value: object) -> list[tuple[Any, Any]]:
    """Where in a JSON value a value stands: its table or list, and its key or index there."""
    found: list[tuple[Any, Any]] = []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        found += [(value, key), *_places(item)]
    return found


@dataclass(frozen=True, slots=True)
class Damaged:
    """What a CLI is said to have printed, whole and in chunks, and the code with which it ended."""

    cli: Cli
    stdout: bytes
    stderr: bytes
    chunks: tuple[Chunk, ...]
    code: int

    def lines(self) -> Lines:
        return self.stdout.split(b"\n")


def harmless(found: Capture, seed: int) -> Lines:
    """The recording as another version of its CLI would print it that tells the same."""
    lines = found.stdout.split(b"\n")
    for mutation in HARMLESS:
        mutation(lines, [], seed, seed)
    return lines


@cache
def _recorded(cli: Cli) -> list[Capture]:
    return [found for found in captures(cli).values() if len(found.stdout) <= LONGEST]


# One draw of bytes for each stream, as twenty of numbers take ten times as long: two bytes a number.
_HEAD, _STEP, _MOST = 8, 3, 5
PLANS = st.binary(min_size=2 * (_HEAD + _STEP), max_size=2 * (_HEAD + _STEP * _MOST))


def damaged(cli: Cli, plan: bytes) -> Damaged:
    """A recording of this CLI with one to five mutations, cut into chunks; `plan` chooses everything."""
    which, vendor, another, end, err, *numbers = (
        number for (number,) in struct.iter_unpack("<H", plan[: len(plan) & ~1])
    )
    found = _choose(_recorded(cli), which)
    other = _choose(_recorded(_choose(CLIS, vendor)), another)
    lines, others = found.stdout.split(b"\n"), other.stdout.split(b"\n")
    cuts, steps = numbers[:3], numbers[3:]
    for kind, at, what in zip(steps[::3], steps[1::3], steps[2::3], strict=False):
        if lines:
            _choose(MUTATIONS, kind)(lines, others, at, what)
    stdout = b"\n".join(lines)
    stderr = _choose((b"", found.stderr, other.stderr), err)
    code = _choose((0, 0, 0, found.exit_code, other.exit_code, 1, 2, 130, 143, 173, -2, -9, -15), end)
    return Damaged(cli, stdout, stderr, tuple(_chunks(stdout, stderr, cuts)), code)


def _choose(among: Sequence[T], number: int) -> T:
    return among[number % len(among)]


def _chunks(stdout: bytes, stderr: bytes, cuts: list[int]) -> list[Chunk]:
    places = sorted(cut % (len(stdout) + 1) for cut in cuts)
    pieces = [stdout[begin:end] for begin, end in zip([0, *places], [*places, len(stdout)], strict=True)]
    return [
        Chunk("out", pieces[0], 0.0),
        Chunk("err", stderr, 0.0),
        *(Chunk("out", piece, 0.0) for piece in pieces[1:]),
    ]
