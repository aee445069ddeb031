"""Which files are knowledge: what is named, and of folders what is text, visible and of a size to be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from teamchat.core.knowledge import files
from teamchat.core.knowledge.files import find_files, harmless_text, read_source


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "api").mkdir(parents=True)
    (folder / "b.md").write_text("b")
    (folder / "a.md").write_text("a")
    (folder / "api" / "errors.md").write_text("errors")
    return folder


def names(*paths: Path) -> list[str]:
    return [found.name for found in find_files({path.name: path for path in paths}).files]


def test_a_folder_stands_for_its_files_by_breadth_and_name(docs: Path) -> None:
    assert names(docs) == ["docs/a.md", "docs/b.md", "docs/api/errors.md"]


@pytest.mark.parametrize(("written", "name"), [("docs/", "docs/a.md"), ("./docs", "docs/a.md"), (".", "a.md")])
def test_a_file_is_called_as_the_team_file_has_it(docs: Path, written: str, name: str) -> None:
    assert find_files({written: docs}).files[0].name == name


def test_a_file_that_is_named_twice_is_told_once(docs: Path) -> None:
    assert names(docs / "a.md", docs, docs / "api") == ["a.md", "docs/b.md", "docs/api/errors.md"]


def test_hidden_and_generated_folders_links_and_pipes_are_left_out_and_counted(docs: Path) -> None:
    for name in (".git", "node_modules", "__pycache__"):
        (docs / name).mkdir()
        (docs / name / "x.md").write_text("x")
    (docs / ".env").write_text("SECRET=1")
    (docs / "link.md").symlink_to(docs / "a.md")
    (docs / "loop").symlink_to(docs)
    os.mkfifo(docs / "pipe")
    found = find_files({"docs": docs})
    assert [found.name for found in found.files] == ["docs/a.md", "docs/b.md", "docs/api/errors.md"]
    assert found.left_out == {"hidden or generated": 4, "links": 2, "no files": 1}


def test_what_is_named_itself_is_taken_even_if_hidden(docs: Path) -> None:
    (docs / ".notes").mkdir()
    (docs / ".notes" / "n.md").write_text("n")
    assert names(docs / ".notes") == [".notes/n.md"]


def test_a_link_that_has_taken_a_folders_place_is_not_followed(docs: Path) -> None:
    """Trust was given to the place that the team file named when it was read."""
    docs.rename(docs.parent / "elsewhere")
    docs.symlink_to(docs.parent / "elsewhere")
    found = find_files({"docs": docs, "api": docs / "api"})
    assert (found.files, found.left_out) == ((), {"links": 2})


def test_what_is_too_large_or_too_much_is_left_out(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (docs / "large.txt").write_bytes(b"x" * (files.MAX_FILE + 1))
    assert find_files({"docs": docs}).left_out == {"larger than 1 MiB": 1}
    monkeypatch.setattr(files, "MAX_FILES", 2)
    found = find_files({"docs": docs})
    assert [found.name for found in found.files] == ["docs/a.md", "docs/b.md"]
    assert found.left_out == {"larger than 1 MiB": 1, "more than 2,000 files or 16 MiB": 1}
    monkeypatch.setattr(files, "MAX_ENTRIES", 1)
    assert find_files({"docs": docs}).left_out == {"more than 50,000 entries of folders": 1}


def test_what_is_gone_is_counted(docs: Path) -> None:
    assert find_files({"docs": docs / "nothing"}).left_out == {"missing": 1}


def test_a_link_that_has_taken_a_files_place_is_not_read(docs: Path) -> None:
    (found, *_) = find_files({"docs": docs}).files
    assert read_source(found) == b"a"
    found.path.unlink()
    assert read_source(found) is None
    found.path.symlink_to(docs / "b.md")
    assert read_source(found) is None
    found.path.unlink()
    os.mkfifo(found.path)
    assert read_source(found) is None


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\xef\xbb\xbfa", "a"),
        ("水".encode(), "水"),
        (b"a\0b", None),
        (b"\xff\xfea", None),
        (b"a\r\nb\rc\n\td", "a\nb\nc\n\td"),
        (b"\x1b[31mred\x1b[0m \x07\xc2\x9b2Kgone", "red gone"),
    ],
)
def test_text_is_utf_8_without_nul_and_escape_sequences(content: bytes, text: str | None) -> None:
    assert harmless_text(content) == text
