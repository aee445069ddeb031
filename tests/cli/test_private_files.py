"""What teamchat keeps of a conversation is for its user alone, however the user's other files are made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from tests.hostile_git import git
from tests.program import cli, run_here
from tests.scripted_team import crew


@pytest.fixture(autouse=True)
def _open_to_all() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_every_file_and_folder_of_the_state_is_private(world: Path) -> None:
    git(Path.cwd(), "init", "-q")  # so that checkpoints are taken
    Path("notes.md").write_text("How we test: by hand.\n" * 2000)
    made = crew(world, {"max": ["Hi", "Hi again"]}, team={"fence": True}, members={"max": {"knowledge": ["notes.md"]}})
    trust_store().grant(load(made.file))
    for command in (["send", "Go"], ["doctor", "--store"], ["send", "Go on"], ["learn", "Test it by hand."]):
        assert cli(*command).code == 0
    modes = {path: path.stat().st_mode & 0o777 for path in (world / "state").rglob("*")}
    assert len(modes) > 5
    assert any(path.name == "objects" for path in modes)
    assert {str(path): oct(mode) for path, mode in modes.items() if mode & 0o077} == {}


def test_a_new_cassette_is_private_and_one_that_was_shared_stays_so(world: Path) -> None:
    crew(world, {"max": ["Hi", "Hi again"]})
    cassette = Path("a.cassette")
    assert run_here("send", "--record", "a.cassette", "Go").code == 0
    assert cassette.stat().st_mode & 0o777 == 0o600
    cassette.chmod(0o644)
    assert run_here("send", "--record", "a.cassette", "Go on").code == 0
    assert cassette.stat().st_mode & 0o777 == 0o644
    assert run_here("test", "a.cassette", "--update").code == 0
    assert cassette.stat().st_mode & 0o777 == 0o644
