from __future__ import annotations

import tomllib
from contextlib import suppress

import pytest

from teamchat.runners.untrusted.toml import TooDeep, in_toml, loads
from tests.core.routing.marker_texts import grows_linearly


@pytest.mark.parametrize(
    "text",
    [
        "a.b.c = 1",
        "x = 'a.b.c.d'",
        'x = "a.\\"b.c.d"',
        'x = """\na.b.c.d = 1\n"""',
        "x = '''\na.b.c.d = 1\n'''",
        "x = 1.5  # a.b.c.d",
        '"a.b.c.d" = 1',
    ],
)
def test_what_tomllib_reads_is_read(text: str) -> None:
    assert loads(text, 3) == tomllib.loads(text)


@pytest.mark.parametrize("text", ["a.b.c.d = 1", "[a.'b'.c.d]", 'x = { a . b.\t"c".d = 1 }', "y = ''\na.b.c.d = 1"])
def test_a_deep_key_is_refused(text: str) -> None:
    with pytest.raises(TooDeep, match=r"^a key of more than 3 parts$"):
        loads(text, 3)


def test_tables_deep_in_one_another_are_refused() -> None:
    with pytest.raises(TooDeep, match=r"^lists or tables too deep in one another$"):
        loads("x = " + "[" * 100_000, 3)


@pytest.mark.parametrize("piece", ["a.", "'a'.", '"', "'", '\\"""', '"\\', "#", " . ", "a", "'\n", "[["])
def test_looking_for_deep_keys_takes_time_in_proportion_to_the_text(piece: str) -> None:
    def read(text: str) -> None:
        with suppress(ValueError):
            loads(text, 16)

    assert grows_linearly(read, piece)


@pytest.mark.parametrize("value", ["".join(map(chr, range(0x2100))), ["a\x7fb", '"\\\n', "Ü\U0001f600"], ""])
def test_what_is_written_reads_as_it_was(value: str | list[str]) -> None:
    assert tomllib.loads(f"x = {in_toml(value)}") == {"x": value}
