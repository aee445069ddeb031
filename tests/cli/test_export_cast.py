"""The recording and the picture of `export`: what a terminal showed, at a pace that can be followed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyte
import pytest

from teamchat.cli.exporting.formats import ExportOptions, writer
from teamchat.core.transcripts.transcript import Transcript
from tests.core.transcripts.examples import EXAMPLE, SHOWN, conversation, keep
from tests.core.transcripts.hostile import hostile
from tests.program import run_here

Event = tuple[float, str, str]
OURS = re.compile(r"\x1b\[[0-9;]*m|\r\x1b\[J|\r\x1b\[[0-9]+A|\r\n")
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
SVG = "{http://www.w3.org/2000/svg}"


def cast(transcript: Transcript, max_pause: float = 1.5) -> tuple[dict[str, Any], list[Event]]:
    head, *events = "".join(writer("cast")(transcript, ExportOptions(max_pause))).removesuffix("\n").split("\n")
    return json.loads(head), [tuple(json.loads(line)) for line in events]


def svg(transcript: Transcript) -> ET.Element:
    return ET.fromstring("".join(writer("svg")(transcript, ExportOptions())))  # noqa: S314 (our own)


def frames(events: list[Event], columns: int, rows: int) -> Iterator[tuple[float, str]]:
    """What stands on the screen after each event."""
    screen = pyte.Screen(columns, rows)
    stream = pyte.Stream(screen)
    for at, kind, text in events:
        if kind == "o":
            stream.feed(text)
            yield at, "\n".join(line.rstrip() for line in screen.display).rstrip()


LAST_SCREEN = """\
kai → max   Add `--version`

▌ sarah   codex · read only
▌ I was about to
  time unknown
· sarah failed: the login was refused

▌ max   claude · may edit
▌ I'll read how the options are built.
▌   read    notes/cli.py
▌   ran     git push                                                    ✗ denied
▌   ran     pytest -q                                                   ✗ exit 1
▌ Added --version:
▌
▌   print(1)
▌   2 files  notes/cli.py +6 −1  logo.png added
▌ → sarah
  0:58 · 24k tokens · $0.11 · 1 command denied (git push)"""


def test_it_is_an_asciicast_that_ends_with_what_the_terminal_showed() -> None:
    head, events = cast(SHOWN)

    assert head == {
        "version": 2,
        "width": 80,
        "height": 24,
        "timestamp": EXAMPLE.began_ms // 1000,
        "title": "s1",
        "env": {"TERM": "xterm-256color"},
    }
    *_, (_, screen) = frames(events, 80, 24)
    assert screen == LAST_SCREEN


def test_there_is_a_marker_where_each_turn_begins() -> None:
    _, events = cast(EXAMPLE)

    markers = [text for _, kind, text in events if kind == "m"]
    assert markers == ["turn 1: sarah", "turn 2: max"]


@pytest.mark.parametrize("max_pause", [0, 0.25, 1.5, 5])
def test_no_pause_is_longer_than_asked_for(max_pause: float) -> None:
    _, events = cast(EXAMPLE, max_pause)

    *followed, _ = pairwise(at for at, _, _ in events)  # the last frame stays
    assert all(0 <= after - before <= max_pause + 0.002 for before, after in followed)


def test_something_moves_while_a_member_works() -> None:
    _, events = cast(EXAMPLE)

    shown = [screen for _, screen in frames(events, 80, 24)]
    assert any("running `pytest -q`" in screen for screen in shown)
    assert any(re.search(r"max +writing +0:5\d", screen) for screen in shown)


def test_the_same_conversation_gives_the_same_recording() -> None:
    assert cast(EXAMPLE) == cast(EXAMPLE)


def test_a_long_reply_streams_in_few_seconds() -> None:
    _, events = cast(conversation("Hi", "word " * 20_000))

    assert events[-1][0] < 60
    assert len(events) < 2000


def test_asciinema_plays_it() -> None:
    keep()
    assert run_here("export", "-o", "talk.cast").code == 0
    _, *lines = Path("talk.cast").read_text(encoding="utf-8").splitlines()
    written = "".join(text for _, kind, text in map(json.loads, lines) if kind == "o")

    for command in (["cat", "talk.cast"], ["play", "--speed", "1000", "talk.cast"]):
        played = subprocess.run(
            [sys.executable, "-m", "asciinema", *command], stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        assert (played.returncode, played.stdout.decode()) == (0, written), played.stderr


def test_max_pause_is_an_option() -> None:
    keep()

    lengths = []
    for seconds in ("0.1", "3"):
        assert run_here("export", "--format", "cast", "--max-pause", seconds, "-o", "talk.cast").code == 0
        lengths.append(json.loads(Path("talk.cast").read_text(encoding="utf-8").splitlines()[-1])[0])

    assert lengths[0] + 5 < lengths[1]


def test_no_text_controls_the_terminal() -> None:
    for seed in range(30):
        _, events = cast(hostile(seed), 0.1)
        written = "".join(text for _, kind, text in events if kind == "o")
        assert not CONTROL.search(OURS.sub("", written)), seed
        assert not any(CONTROL.search(text) for _, kind, text in events if kind == "m"), seed


# --- the picture


def shown_in(picture: ET.Element) -> str:
    return " ".join(" ".join("".join(text.itertext()) for text in picture.iter(f"{SVG}text")).split())


def test_the_picture_shows_the_last_screen_and_fetches_nothing() -> None:
    picture = "".join(writer("svg")(SHOWN, ExportOptions()))

    shown = shown_in(ET.fromstring(picture))  # noqa: S314 (our own)
    for text in ("sarah failed: the login was refused", "max", "✗ exit 1", "→ sarah", "0:58 · 24k tokens · $0.11"):
        assert text in shown
    assert set(re.findall(r"\w+://[^\s\"]*", picture)) == {"http://www.w3.org/2000/svg"}


def test_what_was_undone_says_so() -> None:
    assert "kai Never mind · msg-3 is undone" in shown_in(svg(EXAMPLE))


def test_the_picture_of_a_long_conversation_has_its_end() -> None:
    shown = shown_in(svg(conversation(*(f"word {number}" for number in range(200)))))

    assert "word 199" in shown
    assert "word 100" not in shown
    count = len(re.findall(r"word \d+", shown))
    assert f"· the last {count} of 200 messages" in shown
    assert "the last" not in shown_in(svg(conversation("word 1", "word 2")))


def test_a_picture_of_hostile_text_has_only_text() -> None:
    for seed in range(30):
        picture = svg(hostile(seed))
        kinds = {element.tag.removeprefix(SVG) for element in picture.iter()}
        assert kinds <= {"svg", "style", "defs", "clipPath", "rect", "g", "circle", "text"}, seed
        names = {name for element in picture.iter() for name in element.attrib}
        assert not any(name.startswith("on") or "href" in name for name in names), seed
