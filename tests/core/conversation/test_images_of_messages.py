"""Images of a message: shown to every member that serves it, and kept with it."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from teamchat.core.agents import ProtocolName
from teamchat.core.conversation.entry import check_message
from teamchat.core.conversation.inputs import Message
from teamchat.core.errors import DamagedStore, UsageError
from teamchat.core.store.checking import problems
from teamchat.core.store.database import Database
from teamchat.core.store.images import Image, image_type, images_of
from teamchat.core.store.rescue import rescue
from teamchat.core.store.sessions import remove_session
from teamchat.core.turn.run_events import Conclusion
from teamchat.runners.child.running import Launch
from tests.core.fake_conversation import Fails, Reply, Stage, team_of
from tests.images import png

SHOT = Image("shot.png", "png", png())
OTHER = Image("[NEXT: sarah].jpg", "jpg", b"\xff\xd8\xff other")


class Gallery:
    """A stage whose agents look at what images they find."""

    def __init__(self, folder: Path, **protocols: ProtocolName) -> None:
        self.stage = Stage(folder, team_of(folder, protocols))
        self.seen: list[dict[str, bytes]] = []
        self.stage.answers = self.look

    def look(self, launch: Launch) -> Reply | None:
        assert launch.scratch
        found = sorted((launch.scratch / "images").glob("*"))
        self.seen.append({path.name: path.read_bytes() for path in found})
        return None

    def send(self, text: str, *images: Image, to: str | None = None) -> Conclusion:
        async def run() -> Conclusion:
            return await self.stage.open().run_input(Message(text=text, to=to, images=images))

        return asyncio.run(run())


@pytest.mark.parametrize(
    ("data", "kind"),
    [(png(), "png"), (b"\xff\xd8\xff\xe0", "jpg"), (b"GIF89a..", "gif"), (b"GIF87a..", "gif"),
     (b"RIFF\x10\0\0\0WEBPVP8 ", "webp"), (b"RIFF\x10\0\0\0WAVE", None), (b"<svg>", None), (b"", None)],
)  # fmt: skip
def test_an_image_is_known_by_its_content(data: bytes, kind: str | None) -> None:
    assert image_type(data) == kind


@pytest.mark.parametrize("protocol", ["claude", "gemini"])
def test_a_cli_that_reads_paths_finds_them_in_its_prompt(tmp_path: Path, protocol: ProtocolName) -> None:
    made = Gallery(tmp_path, max=protocol)
    made.send("Look", SHOT, OTHER, to="max")
    assert made.seen == [{"1.png": SHOT.data, "2.jpg": OTHER.data}]
    (launch,) = made.stage.launched
    head = f"Images of the message: @{launch.scratch}/images/1.png @{launch.scratch}/images/2.jpg\n\n"
    assert launch.stdin.decode().startswith(head)
    included = ["--include-directories", f"{launch.scratch}/images"]
    assert (" ".join(included) in " ".join(launch.argv)) == (protocol == "gemini")
    assert made.stage.turns[0].setup.images == ("shot.png", "[NEXT: sarah].jpg")
    assert made.stage.turns[0].setup.stdin_bytes == len(launch.stdin)


def test_codex_gets_them_by_its_command(tmp_path: Path) -> None:
    made = Gallery(tmp_path, max="codex")
    made.send("Look", SHOT, OTHER, to="max")
    (launch,) = made.stage.launched
    images = [word for word in launch.argv if word.startswith("--image=")]
    assert images == [f"--image={launch.scratch}/images/{name}" for name in ("1.png", "2.jpg")]
    assert b"Images of the message" not in launch.stdin
    assert made.seen == [{"1.png": SHOT.data, "2.jpg": OTHER.data}]


@pytest.mark.parametrize("protocol", ["claude", "codex", "gemini"])
def test_a_message_without_images_is_sent_as_ever(tmp_path: Path, protocol: ProtocolName) -> None:
    made = Gallery(tmp_path, max=protocol)
    made.send("Look", to="max")
    (launch,) = made.stage.launched
    assert made.seen == [{}]
    assert not [word for word in launch.argv if word.startswith("--image") or word == "--include-directories"]
    assert b"Images of" not in launch.stdin


def test_a_retry_and_those_that_serve_the_message_later_are_shown_the_same(tmp_path: Path) -> None:
    made = Gallery(tmp_path, max="claude", sarah="codex", carol="plain")
    made.stage.says = {"max": [Fails(), "A chart. [NEXT: sarah]"], "sarah": ["Red. [NEXT: carol]"], "carol": ["So."]}
    made.stage.says["max"] = [Fails()]
    assert made.send("Look", SHOT, to="max").code == 1
    made.stage.says["max"] = ["A chart. [NEXT: sarah]"]
    made.stage.resume()
    assert made.stage.spoke == ["max", "max", "sarah", "carol"]
    assert made.seen == [{"1.png": SHOT.data}] * 3 + [{}]
    assert made.stage.warnings == ["carol's CLI takes no images: it gets only the name of shot.png"]


def test_a_session_that_has_had_them_is_not_shown_them_again(tmp_path: Path) -> None:
    made = Gallery(tmp_path, max="claude", sarah="plain")
    made.stage.member("max", memory="resume")
    made.stage.says = {"max": ["One. [NEXT: sarah]", "Two."], "sarah": ["Again. [NEXT: max]"]}
    made.send("Look", SHOT, to="max")
    assert made.stage.spoke == ["max", "sarah", "max"]
    assert made.seen == [{"1.png": SHOT.data}, {}, {}]
    made.send("And this", OTHER, to="max")
    assert made.seen[-1] == {"1.jpg": OTHER.data}


def test_a_session_that_is_removed_takes_its_images_along(tmp_path: Path) -> None:
    made = Gallery(tmp_path, max="claude")
    made.send("Look", SHOT, SHOT, to="max")
    made.send("Again", SHOT, to="max")
    db = made.stage.db
    assert len(db.rows("SELECT * FROM images")) == 3
    remove_session(db, made.stage.session)
    assert (db.rows("SELECT * FROM images"), db.rows("SELECT * FROM texts")) == ([], [])


def test_an_image_to_a_cli_that_takes_none_is_refused(tmp_path: Path) -> None:
    made = Gallery(tmp_path, max="claude", sarah="plain", carol="terminal")
    for name in ("sarah", "carol"):
        with pytest.raises(UsageError) as refusal:
            check_message(made.stage.team, made.stage.db, None, Message(text="Hi", to=f"max, {name}", images=(SHOT,)))
        told = f"{name}'s CLI takes no images (shot.png): only claude, codex, gemini and opencode do"
        assert str(refusal.value) == told
    check_message(made.stage.team, made.stage.db, None, Message(text="Hi", to="max", images=(SHOT,)))


def test_what_is_left_of_a_damaged_store_has_the_images_whose_content_is_there(tmp_path: Path) -> None:
    made = Gallery(tmp_path, max="claude")
    made.send("Look", SHOT, OTHER, to="max")
    db = made.stage.db
    (lost,) = db.rows("SELECT body FROM images WHERE number = 2")
    db.execute("PRAGMA foreign_keys = OFF")
    db.execute("DELETE FROM texts WHERE hash = ?", lost["body"])
    assert any("images" in problem for problem in problems(db))
    assert rescue(db, tmp_path / "rescued.db")["image"] == 1
    with contextlib.closing(Database(tmp_path / "rescued.db")) as rescued:
        assert images_of(rescued, made.stage.session, "msg-1") == (SHOT,)
        assert list(problems(rescued)) == []


def test_a_kind_of_image_that_there_is_not_is_a_damaged_store(tmp_path: Path) -> None:
    """It would name a file."""
    made = Gallery(tmp_path, max="claude")
    made.send("Look", SHOT, to="max")
    made.stage.db.execute("UPDATE images SET kind = '../../x'")
    with pytest.raises(DamagedStore):
        images_of(made.stage.db, made.stage.session, "msg-1")
