"""The index: what is found, how it follows the files, and that it is only a cache."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from teamchat.core.errors import StoreError
from teamchat.core.knowledge import index as indexing
from teamchat.core.knowledge.files import KnowledgeFile, find_files, read_source
from teamchat.core.knowledge.index import KnowledgeIndex
from teamchat.core.text.words import match_query

OLD = 1_000_000_000  # long ago: a file that has just changed is read once more


@pytest.fixture
def index(tmp_path: Path) -> KnowledgeIndex:
    return KnowledgeIndex(tmp_path / "knowledge.db")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were read."""
    done: list[str] = []

    def noted(found: KnowledgeFile) -> bytes | None:
        done.append(found.path.name)
        return read_source(found)

    monkeypatch.setattr(indexing, "read_source", noted)
    monkeypatch.setattr(indexing, "JUST_CHANGED_NS", -(10**18))
    return done


def search(index: KnowledgeIndex, folder: Path, text: str) -> list[tuple[str, str]]:
    """Names and texts of what is found."""
    with index.open() as opened:
        indexed = opened.bring_up_to_date(find_files({"docs": folder}).files, [folder])
        return [(hit.file.name, hit.text) for hit in opened.search(indexed.files, match_query(text) or "")]


def test_the_piece_that_fits_best_comes_first(index: KnowledgeIndex, docs: Path) -> None:
    (docs / "a.md").write_text("# Weather\n\nRain, and a word on tokens.\n\n# Tokens\n\nTokens expire.\n")
    (docs / "b.md").write_text("# Other\n\nNothing of it.\n")
    assert search(index, docs, "tokens that expire") == [
        ("docs/a.md", "# Tokens\n\nTokens expire.\n"),
        ("docs/a.md", "# Weather\n\nRain, and a word on tokens.\n\n"),
    ]


def test_a_files_name_is_searched_as_a_heading_is(index: KnowledgeIndex, docs: Path) -> None:
    (docs / "deployment.txt").write_text("Push the button.")
    assert search(index, docs, "How is the deployment done?") == [("docs/deployment.txt", "Push the button.")]


def test_what_has_not_changed_is_not_read_again(index: KnowledgeIndex, docs: Path, reads: list[str]) -> None:
    for name in ("a.md", "b.md"):
        (docs / name).write_text("token")
    search(index, docs, "token")
    assert reads == ["a.md", "b.md"]
    (docs / "b.md").write_text("a token more")
    assert ("docs/b.md", "a token more") in search(index, docs, "token")
    assert reads == ["a.md", "b.md", "b.md"]
    search(index, docs, "token")
    assert reads == ["a.md", "b.md", "b.md"]


def test_others_may_write_between_two_files_and_what_they_indexed_is_not_indexed_twice(
    index: KnowledgeIndex, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.md", "b.md", "c.md"):
        (docs / name).write_text(f"Tokens in {name}\n")
        os.utime(docs / name, (OLD, OLD))

    def meanwhile(found: KnowledgeFile) -> bytes | None:
        with monkeypatch.context() as patch:
            patch.setattr(indexing, "BUSY_S", 0)
            patch.setattr(indexing, "read_source", read_source)
            search(index, docs, "tokens")
        return read_source(found)

    monkeypatch.setattr(indexing, "read_source", meanwhile)
    assert len(search(index, docs, "tokens")) == 3
    with index.open() as opened:
        indexed = opened.bring_up_to_date(find_files({"docs": docs}).files, [docs])
        assert len(opened.whole(indexed.files)) == 3


def test_a_file_that_was_only_touched_keeps_its_pieces(index: KnowledgeIndex, docs: Path, reads: list[str]) -> None:
    (docs / "a.md").write_text("token")
    search(index, docs, "token")
    before = rows(index, "SELECT id FROM pieces")
    os.utime(docs / "a.md", (OLD, OLD))
    search(index, docs, "token")
    search(index, docs, "token")
    assert reads == ["a.md", "a.md"]
    assert rows(index, "SELECT id FROM pieces") == before


def test_a_change_that_times_and_size_do_not_tell_of_is_seen(index: KnowledgeIndex, docs: Path) -> None:
    """Right after a file was written its times may be those of the next change, too."""
    (docs / "a.md").write_text("token one")
    search(index, docs, "token")
    stamps = rows(index, "SELECT stamp FROM files")
    assert stamps == [("",)]


@pytest.mark.parametrize("change", [lambda path: path.unlink(), lambda path: path.rename(path.with_name(".a.md"))])
def test_a_file_that_is_gone_is_forgotten(index: KnowledgeIndex, docs: Path, change: Callable[[Path], object]) -> None:
    (docs / "a.md").write_text("token old")
    (docs / "b.md").write_text("token new")
    search(index, docs, "token")
    change(docs / "a.md")
    (docs / "b.md").write_text("token newer")
    assert search(index, docs, "token") == [("docs/b.md", "token newer")]
    assert rows(index, "SELECT count(*) FROM words") == [(1,)]


def test_only_the_files_that_are_asked_for_are_found(index: KnowledgeIndex, docs: Path) -> None:
    other = docs.parent / "other"
    other.mkdir()
    (docs / "a.md").write_text("token")
    (other / "b.md").write_text("token")
    assert search(index, docs, "token") == [("docs/a.md", "token")]
    assert search(index, other, "token") == [("docs/b.md", "token")]
    assert search(index, docs, "token") == [("docs/a.md", "token")]


def test_files_without_text_are_told_and_looked_at_once(index: KnowledgeIndex, docs: Path, reads: list[str]) -> None:
    (docs / "a.png").write_bytes(b"\x89PNG\0")
    (docs / "b.md").write_text("token")
    for _ in range(2):
        with index.open() as opened:
            indexed = opened.bring_up_to_date(find_files({"docs": docs}).files, [docs])
        assert indexed.problems == ("not text",)
        assert [found.name for found in indexed.files.values()] == ["docs/b.md"]
    assert reads == ["a.png", "b.md"]


def test_a_name_that_is_no_utf_8_is_no_trouble(index: KnowledgeIndex, docs: Path) -> None:
    Path(os.fsdecode(os.fsencode(docs) + b"/\xff.md")).write_text("token")
    assert search(index, docs, "token") == [("docs/\udcff.md", "token")]


@pytest.mark.parametrize("content", [b"no database at all" * 100, b""])
def test_a_damaged_index_is_made_anew(index: KnowledgeIndex, docs: Path, content: bytes) -> None:
    (docs / "a.md").write_text("token")
    search(index, docs, "token")
    index.path.write_bytes(content)
    assert search(index, docs, "token") == [("docs/a.md", "token")]


def test_an_index_of_another_version_is_made_anew(
    index: KnowledgeIndex, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (docs / "a.md").write_text("token")
    search(index, docs, "token")
    monkeypatch.setattr(indexing, "VERSION", indexing.VERSION + 1)
    with index.open():
        pass
    assert rows(index, "SELECT count(*) FROM files") == [(0,)]


def test_an_index_is_for_its_owner_alone(index: KnowledgeIndex) -> None:
    with index.open():
        assert index.path.stat().st_mode & 0o777 == 0o600


def test_an_index_that_can_not_be_made_is_an_error_of_the_store(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match=r"the index of the team's knowledge, .*cannot be used"),
        KnowledgeIndex(tmp_path / "nothing" / "knowledge.db").open(),
    ):
        pass


def rows(index: KnowledgeIndex, sql: str) -> list[tuple[object, ...]]:
    db = sqlite3.connect(index.path)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()
