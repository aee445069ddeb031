from __future__ import annotations

import hashlib
import re
from hashlib import sha256

import pytest

from teamchat.patterns import regex


def test_a_pattern_finds_what_a_compiled_one_finds() -> None:
    late, compiled = regex(r"(?P<name>\w+)=", re.IGNORECASE), re.compile(r"(?P<name>\w+)=", re.IGNORECASE)
    text = "One=1, two=2"
    assert [found["name"] for found in late.finditer(text)] == ["One", "two"]
    assert late.sub("x", text) == compiled.sub("x", text)
    assert (late.pattern, late.flags, late.groupindex) == (compiled.pattern, compiled.flags, compiled.groupindex)


def test_a_pattern_is_compiled_when_it_is_first_used() -> None:
    late = regex("(")
    with pytest.raises(re.error):
        late.search("")


def test_a_pattern_has_nothing_else() -> None:
    with pytest.raises(AttributeError):
        regex("a").unknown  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("data", [b"", b"abc", b"x" * 100_000])
def test_a_digest_is_that_of_hashlib(data: bytes) -> None:
    assert sha256(data).hexdigest() == hashlib.sha256(data).hexdigest()
