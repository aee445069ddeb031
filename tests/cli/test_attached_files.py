"""`send --file`: text files as blocks under their names, images for CLIs that take them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from teamchat.core.store.images import LARGEST_IMAGE
from tests.cli.helpers import objects, said
from tests.images import png
from tests.program import Result, run_here
from tests.scripted_team import Crew, crew


@pytest.fixture
def made(world: Path) -> Crew:
    return crew(world, {"max": ["One.", "Two."], "ann": ["Me."]}, like={"ann": "claude"}, team={"lead": "max"})


def test_text_files_are_blocks_under_their_names_and_their_markers_are_text(made: Crew) -> None:
    Path("a.md").write_text("[NEXT: ann]\n```\n@ann hi\n```\n")
    Path("b `[NEXT: ann]`.txt").write_text("b\n")
    assert run_here("send", "--quiet", "--file", "a.md", "Look", "--file", "b `[NEXT: ann]`.txt").out == "One.\n"
    blocks = "````a.md\n[NEXT: ann]\n```\n@ann hi\n```\n````\n\n```b '[NEXT: ann]'.txt\nb\n```"
    assert said()[0] == ("kailai", f"Look\n\n{blocks}")
    assert made.prompts("max")[0].endswith(f"Look\n\n{blocks}")


@pytest.mark.usefixtures("made")
def test_files_may_be_all_of_a_message_and_come_behind_the_pipe() -> None:
    Path("a.md").write_text("text")
    assert run_here("send", "--quiet", "--file", "a.md").out == "One.\n"
    assert run_here("send", "--quiet", "--file", "a.md", "Look", stdin="piped").out == "Two.\n"
    assert [text for who, text in said() if who == "kailai"] == [
        "```a.md\ntext\n```",
        "Look\n\n```\npiped\n```\n\n```a.md\ntext\n```",
    ]


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("name", "content", "code", "told"),
    [
        ("gone", None, 2, "gone cannot be read: No such file or directory"),
        (".", None, 2, ". cannot be read: Is a directory"),
        ("a\0b", None, 2, "a\\x00b cannot be read: embedded null byte"),
        ("data", b"\x7fELF\0\0", 2, "data is not text: byte 5 is NUL"),
        ("latin", b"caf\xe9", 2, "latin is not UTF-8 text: byte 4 is 0xe9 (iconv -t UTF-8 converts text)"),
        ("big", b"x" * 800_000, 12,
         "big has 800,000 bytes, and a prompt holds 786,432 (max_bytes in the team file; --cut sends a part)"),
        ("big.png", png() + bytes(LARGEST_IMAGE), 12,
         f"big.png has {len(png()) + LARGEST_IMAGE:,} bytes, and an image may have {LARGEST_IMAGE:,}"),
        ("shot.png", png(), 2, "max's CLI takes no images (shot.png): only claude, codex, gemini and opencode do"),
    ],
)  # fmt: skip
def test_what_can_not_be_sent_is_one_line_and_nothing_begins(
    name: str, content: bytes | None, code: int, told: str
) -> None:
    if content is not None:
        Path(name).write_bytes(content)
    assert run_here("send", "Look", "--file", name) == Result(code, "", f"teamchat: {told}\n")
    assert run_here("sessions", "--json").out == ""


@pytest.mark.usefixtures("made")
def test_more_images_than_a_message_takes_are_refused() -> None:
    Path("a.png").write_bytes(png())
    ran = run_here("send", "Look", "--to", "ann", *["--file", "a.png"] * 11)
    assert ran == Result(2, "", "teamchat: a message takes at most 10 images, and there are 11\n")


@pytest.mark.usefixtures("made")
def test_a_pipe_may_stand_for_a_file() -> None:
    read, write = os.pipe()
    os.write(write, b"from a pipe")
    os.close(write)
    assert run_here("send", "--quiet", "Look", "--file", f"/dev/fd/{read}").out == "One.\n"
    os.close(read)
    assert said()[0] == ("kailai", f"Look\n\n```/dev/fd/{read}\nfrom a pipe\n```")


def test_an_image_is_named_in_the_log_and_shown_to_its_member(made: Crew) -> None:
    Path("shot").write_bytes(png())
    assert run_here("send", "--quiet", "--to", "ann", "Look", "--file", "shot").out == "Me.\n"
    assert said()[0] == ("kailai", f"Look\n\n```shot\n(image, png, {len(png())} bytes)\n```")
    (prompt,) = made.prompts("ann")
    assert prompt.startswith("Images of the message: @")
    assert prompt.splitlines()[0].endswith("/images/1.png")
    (receipt,) = objects(run_here("show", "--json"))
    setup = receipt["setup"]
    assert isinstance(setup, dict)
    assert setup["images"] == ["shot"]
    assert "  images    shot\n" in run_here("show").out


def test_a_dry_run_shows_it_and_stores_nothing(made: Crew) -> None:
    Path("shot.png").write_bytes(png())
    ran = run_here("send", "--dry-run", "--to", "ann", "Look", "--file", "shot.png")
    assert ran.code == 0
    assert "\nshows the image shot.png\n" in ran.out
    assert "\nImages of the message: @$TMPDIR/images/1.png\n" in ran.out
    assert made.prompts("ann") == []
    assert run_here("send", "--dry-run", "Look", "--file", "shot.png").code == 2


def test_a_recording_has_the_name_and_plays_the_same_prompt(made: Crew) -> None:
    Path("shot.png").write_bytes(png())
    sent = run_here("send", "--quiet", "--to", "ann", "Look", "--file", "shot.png", "--record", "one.cassette")
    assert sent.out == "Me.\n"
    recorded = Path("one.cassette").read_text()
    assert '"images": [{"name": "shot.png", "kind": "png"}]' in recorded
    assert "Images of the message: @$TMPDIR/images/1.png" in recorded
    assert run_here("replay", "one.cassette", "--verify", "--quiet").code == 0
    assert made.prompts("ann")
