"""Settings of a CLI as people write them: JSON with comments."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.runners.commented_json import broken, table_in
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
