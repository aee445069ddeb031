"""Files and images at the prompt of `teamchat chat`, as hands know them from other programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import select
from tests.cli.test_chat import CTRL_U, ENTER, TAB, begun, chat, kept, leave, line, prompt_of, said, slow, stands, types
from tests.core.checkpoint.worktree import WorkTree
from tests.images import png
from tests.scripted_team import Crew, crew

BACKSPACE = "\x7f"
IMAGES = "SELECT message, name, kind FROM images ORDER BY message, number"
COLUMNS = pytest.mark.parametrize("columns", [80, 120])


def pasted(text: str) -> str:
    return f"\x1b[200~{text}\x1b[201~"


@pytest.fixture
def trio(world: Path) -> Crew:
    WorkTree.committed(
        Path.cwd(), world / "unused", {"src/app.py": b"a = 1\n", "src/b.py": b"", ".gitignore": b"scripts/\n"}
    )
    Path("src/new.py").write_text("")
    Path("red.png").write_bytes(png())
    said_by = {"max": ["One.", "Two.", "Three."], "sarah": ["Four.", "Five."], "bob": ["Six."]}
    return crew(world, said_by, like={"max": "claude", "sarah": "codex"})


@COLUMNS
def test_files_are_completed_and_the_echo_says_who_reads_them(trio: Crew, columns: int) -> None:
    with chat(columns=columns) as shown:
        types(shown, "@")
        shown.until(lambda text: "max" in text and "sarah" in text and "bob" in text)
        types(shown, f"src/a{TAB}")
        shown.until(lambda text: "› @src/app.py" in text)
        types(shown, CTRL_U + f"See @src/{TAB}")
        shown.until(lambda text: "› See @src/app.py" in text and "src/b.py" in text)
        types(shown, TAB)
        shown.until(lambda text: "› See @src/b.py" in text)
        types(shown, CTRL_U + f"[NEXT: s{TAB}")
        shown.until(lambda text: "› [NEXT: sarah" in text)
        types(shown, CTRL_U)
        line(shown, "@max+sarah Read @src/app.py, not @src/gone.py")
        told = "· @src/app.py: max's claude reads the file; text to sarah's codex, which can open it"
        text = shown.until(lambda text: told in " ".join(text.split()) and "One." in text and "Four." in text)
        assert " ".join(text.split()).count("reads the file") == 1
        line(shown, "@bob Read @src/app.py")
        shown.until(lambda text: "· @src/app.py: text to bob's program" in text and stands("Six.", text))
        assert leave(shown) == 0
    assert "@src/app.py" in trio.prompts("max")[0]


@COLUMNS
def test_an_image_is_shown_and_attached_and_one_backspace_takes_it_off(trio: Crew, world: Path, columns: int) -> None:
    away = world / "a way" / "shot one.png"
    away.parent.mkdir()
    away.write_bytes(png(1))
    (world / "no.png").write_text("text")
    removes = "image: shot one.png   Backspace removes it"
    with chat(columns=columns) as shown:
        escaped = str(away).replace(" ", "\\ ")
        url = f"file://{away}".replace(" ", "%20")
        for typed in (f"'{away}' ", f'"{away}"', f"{escaped} ", str(away), url):
            types(shown, pasted(typed))
            shown.until(lambda text: removes in text and "› [image: shot one.png]" in text)
            types(shown, BACKSPACE)
            shown.until(lambda text: removes not in text and prompt_of(text) == "›")
        for typed in (f"'{away}'", f"{escaped} "):
            types(shown, typed)
            shown.until(lambda text: removes in text and "› [image: shot one.png]" in text)
            types(shown, BACKSPACE)
            shown.until(lambda text: removes not in text and prompt_of(text) == "›")
        types(shown, pasted(f"{world}/gone.png"))
        shown.until(
            lambda text: "✗ gone.png is not there: it is not attached" in text and f"› {world}/gone.png"[:60] in text
        )
        types(shown, CTRL_U + pasted(f"{world}/no.png"))
        shown.until(lambda text: "✗ no.png is no png, jpg, gif or webp image" in text)
        types(shown, CTRL_U + f"look at '{away}'")
        shown.until(lambda text: "› look at '" in text)
        types(shown, CTRL_U + "@red.png")
        text = shown.until(lambda text: "image: red.png" in text)
        assert "Backspace removes" not in text
        types(shown, " @max what?" + CTRL_U)
        line(shown, "@max What is @red.png?")
        shown.until(lambda text: "What is [image: red.png]?" in text and stands("One.", text))
        types(shown, "@sarah " + pasted(f"'{away}'") + "red?")
        shown.until(lambda text: "› @sarah [image: shot one.png] red?" in text)
        types(shown, ENTER)
        shown.until(lambda text: stands("Four.", text))
        assert leave(shown) == 0
    assert said()[::2] == ["kailai: What is [image: red.png]?", "kailai: [image: shot one.png] red?"]
    assert select(IMAGES) == [("msg-1", "red.png", "png"), ("msg-3", "shot one.png", "png")]
    assert "/images/1.png" in trio.prompts("max")[0]
    assert "@red.png" not in trio.prompts("max")[0]


def test_an_image_of_a_queued_message_is_attached_when_it_is_sent(trio: Crew, world: Path) -> None:
    (away := world / "shot one.png").write_bytes(png(1))
    slow(world, trio, "max", "One.", "Two.")
    with chat() as shown:
        line(shown, "@max Begin")
        begun(world, shown)
        line(shown, "@max " + pasted(str(away)) + "and @lost.png?")
        shown.until(lambda text: "queued: " in text and "shot one.png" in text)
        assert kept() == [f'@"{away}" and @lost.png?']
        (world / "go").touch()
        shown.until(lambda text: stands("Two.", text) and "lost.png is not there: it is not attached" in text)
        assert leave(shown) == 0
    assert select(IMAGES) == [("msg-3", "shot one.png", "png")]


@pytest.mark.usefixtures("trio")
def test_a_member_without_images_is_not_sent_one_and_a_command_keeps_its_path() -> None:
    with chat() as shown:
        line(shown, "@bob What is @red.png?")
        shown.until(lambda text: "✗ bob's CLI takes no images (red.png)" in text)
        types(shown, CTRL_U)
        line(shown, "@max /review @red.png")
        shown.until(lambda text: stands("One.", text))
        assert leave(shown) == 0
    assert said()[0] == "kailai: /review @red.png"
    assert select(IMAGES) == []
