"""How two accounts of a run differ, in lines for a person: the present one and the recorded one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from teamchat.core.text.clean import visible
from teamchat.core.text.line_diff import unified_diff

CONTEXT_LINES = 2
LONGEST = 200  # characters shown of a value


def differences(then: Any, now: Any, where: str = "") -> Iterator[str]:
    """Each difference with its place, a unified diff for texts; empty if they are equal."""
    if then == now:
        return
    match then, now:
        case dict(), dict():
            for key, value in then.items():  # a newer version may have more keys
                yield from differences(value, now.get(key), f"{where} {key}".strip())
        case list(), list() if _texts(then) and _texts(now):
            yield from text_difference(then, now, where)
        case list(), list():
            yield from _items(then, now, where)
        case str(), str() if "\n" in then + now:
            yield from text_difference(then.split("\n"), now.split("\n"), where)
        case _:
            yield f"{where}: {_short(now)} instead of {_short(then)}"


def _texts(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _items(then: list[Any], now: list[Any], where: str) -> Iterator[str]:
    where = where.removesuffix("s")
    for number, (one, other) in enumerate(zip(then, now, strict=False), 1):
        yield from differences(one, other, f"{where} {number}")
    both = min(len(then), len(now))
    yield from (f"{where} {number}: only recorded: {_short(one)}" for number, one in enumerate(then[both:], both + 1))
    yield from (f"{where} {number}: only now: {_short(one)}" for number, one in enumerate(now[both:], both + 1))


def text_difference(then: list[str], now: list[str], where: str) -> Iterator[str]:
    """A unified diff: the recorded lines (-) and the present ones (+)."""
    lines = unified_diff(then, now, f"{where} recorded", f"{where} now", CONTEXT_LINES)
    yield from (visible(line).replace("\n", " ") for line in lines)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return visible(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")
