"""Settings of a CLI as people write them: JSON with comments."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from teamchat.runners.untrusted.settings_json import LARGEST_JSON5, broken, json5_in, table_in
from tests.core.routing.marker_texts import grows_linearly


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ('{"a": 1} // b', {"a": 1}),
        ('{/* b\n */"a": 1}', {"a": 1}),
        ('{"a": "// no /* comment */"}', {"a": "// no /* comment */"}),
        (r'{"a": "\"// b"}', {"a": '"// b'}),
        ('{"a": 1} /* open', {"a": 1}),
        ('{"a": "open // b\n}', {}),
    ],
)
def test_comments_are_no_content(tmp_path: Path, text: str, content: dict[str, object]) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    assert table_in(file) == content


@pytest.mark.parametrize("piece", ['\\"', '"', "/*", "//", "/", '"\\'])
def test_time_grows_with_the_file_and_no_faster(tmp_path: Path, piece: str) -> None:
    file = tmp_path / "settings.json"

    def read(text: str) -> None:
        file.write_text(f'"{text}')
        broken(file)

    assert grows_linearly(read, piece)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": {"b": "deny",},}', {"a": {"b": "deny"}}),
        ('// mine\n{/* b */ "a": "// no",}', {"a": "// no"}),
        ("{a: 'b', \"c\": [1,],}", {"a": "b", "c": [1]}),
        ("", {}),
        ("\ufeff{}", {}),
        (f'{{"a": "{"x" * LARGEST_JSON5}"}}', {"a": "x" * LARGEST_JSON5}),
    ],
)
def test_json5_is_read_whole(tmp_path: Path, text: str, content: dict[str, object]) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    assert json5_in(file) == content
    assert json5_in(tmp_path / "missing") == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (" ", "line 1 Unexpected end of input"),
        ('{"a": 1', "Unexpected end of input"),
        ('{"a": 1} {', "Unexpected"),
        ("[1,]", "it holds no JSON object"),
        ("[" * 5_000, "too deep"),
        ('{"a":' * 201 + "1" + "}" * 201, "too deep"),
        ("{a:" * 5_000, "too deep"),
        ("{" + "a:1," * LARGEST_JSON5 + "}", "it is no JSON, and for JSON5 larger than 32,768 bytes"),
        ('{"a": ' + "1" * 5_000 + ",}", "digits"),
    ],
)
def test_what_is_no_json5_is_an_error_and_takes_no_time(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=why):
        json5_in(file)


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(OSError, match=r"."):
            json5_in(tmp_path / name)
