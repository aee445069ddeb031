"""Files that are written whole or not at all: nothing is left of a write that failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teamchat.core.cassette.account import standing_of
from teamchat.core.cassette.writer import CassetteWriter
from teamchat.core.errors import StoreError, UsageError
from teamchat.core.files.whole_files import locked_beside, put_in_place, write_private
from teamchat.core.team.team import Member, Team
from teamchat.core.team.trust import TrustStore
from tests.core.full_disk import files_of_at_most


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def team(folder: Path, name: str) -> Team:
    members = Member("max", "ai", folder, agent="claude", access="full"), Member("kailai", "human", folder)
    return Team(name, members, folder, folder / name)


def test_the_new_content_is_for_its_owner_alone_and_takes_the_place_of_the_old(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    with locked_beside(file) as new:
        write_private(new, b"new")
        assert file.read_text() == "old"
        put_in_place(new, file)
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o600)
    assert names(tmp_path) == ["file", "file.lock"]


def test_what_was_prepared_and_not_put_in_place_goes(tmp_path: Path) -> None:
    (tmp_path / "file.new").write_text("of a process that was killed")
    with locked_beside(tmp_path / "file") as new:
        assert not new.exists()
        new.write_text("half")
    assert names(tmp_path) == ["file.lock"]


def test_nothing_is_left_of_a_file_that_could_not_be_written_whole(tmp_path: Path) -> None:
    with files_of_at_most(100), pytest.raises(OSError, match="File too large"):
        write_private(tmp_path / "file", b"x" * 1000)
    assert names(tmp_path) == []


def test_trust_that_could_not_be_written_leaves_the_old_as_it_was(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trust.json")
    store.grant(team(tmp_path, "a"))
    before = store.file.read_bytes()
    with files_of_at_most(100), pytest.raises(StoreError, match=r"trust\.json cannot be written: File too large"):
        store.grant(team(tmp_path, "b"))
    assert store.file.read_bytes() == before
    assert names(tmp_path) == ["trust.json", "trust.json.lock"]
    store.grant(team(tmp_path, "b"))
    assert len(json.loads(store.file.read_text())) == 2


def test_of_a_cassette_that_could_not_be_begun_there_is_no_file(tmp_path: Path) -> None:
    writer = CassetteWriter(tmp_path / "a.cassette", team(tmp_path, "a"), {}, fence_key="k")
    with files_of_at_most(100), pytest.raises(UsageError, match="File too large"):
        writer.begin(standing_of(()))
    assert names(tmp_path) == []
