"""Messages typed at random moments while members work: each is shown as queued until it is shown as sent.

`TYPED_MESSAGES=1000` types so many.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from teamchat.cli.chatting.layout import MOST_QUEUED
from tests.cli.test_chat import PROMPT, chat, kept, leave, line, said
from tests.program import TIMEOUT_S
from tests.screens import Screen
from tests.scripted_team import Crew, crew

MESSAGES = int(os.environ.get("TYPED_MESSAGES", "20"))
SEED = int(os.environ.get("SEED", "16"))
HELD = 5  # every such turn waits until the test lets it go on
LET_GO = 0.3  # the chance of that after each message
QUIET_S = 0.01  # a frame is what stands on the screen after this time without output
SENT = re.compile(r"^you → max   message (\d+)$")
QUEUED = re.compile(r'^queued: "message (\d+)"')
MORE = re.compile(r"^queued: (\d+) more")
KEPT = re.compile(r"^message (\d+)$")
RULE = re.compile("^─+$")


@dataclass
class Follower:
    """Reads the screen frame by frame. In each, every entered message is queued or sent, and none is both."""

    shown: Screen
    entered: int = 0  # messages that were seen
    frames: int = 0
    longest: int = 0  # queue
    seen_queued: set[int] = field(default_factory=set)
    queued: int = 0
    sent: list[int] = field(default_factory=list)
    _scrolled: list[int] = field(default_factory=list)

    def frame(self, typed: int) -> None:
        """Read one whole frame, when so many messages were typed, of which the last may not be shown yet."""
        rows = self._rows()
        rule = max(at for at, row in enumerate(rows) if RULE.match(row))
        lines = [row for row in rows[:rule] if row.startswith("queued: ")]
        self.sent = self._scrolled + numbers(SENT, rows[:rule])
        self.queued = sum(numbers(MORE, lines)) + len(numbers(QUEUED, lines))
        assert self.entered <= len(self.sent) + self.queued <= typed, f"neither queued nor sent:\n{self.shown.text}"
        self.entered = len(self.sent) + self.queued
        assert self.sent == list(range(len(self.sent)))
        waiting = list(range(len(self.sent), self.entered))
        assert numbers(QUEUED, lines) == waiting[-MOST_QUEUED:], "the last ones are shown"
        stored = numbers(KEPT, [str(text) for text in kept()])
        assert {number for number in stored if number < self.entered} <= set(waiting), "what is kept is shown as queued"
        self.seen_queued.update(waiting)
        self.frames += 1
        self.longest = max(self.longest, self.queued)

    def until_seen(self, typed: int) -> None:
        for _ in tries():
            self.frame(typed)
            if self.entered == typed:
                return
        raise AssertionError(f"message {typed - 1} is not shown:\n{self.shown.text}")

    def until_sent(self, typed: int) -> None:
        for _ in tries():
            self.frame(typed)
            if len(self.sent) == typed and len(said()) == 2 * typed:
                return
        raise AssertionError(f"some are not sent:\n{self.shown.text}")

    def _rows(self) -> list[str]:
        """The screen's rows when nothing has been written for a moment, and the prompt is there."""
        for _ in tries():
            before = self.shown.display
            assert self.shown.read(QUIET_S)
            rows = self.shown.display
            self._scrolled += numbers(SENT, self.shown.scrolled())
            if rows == before and any(row.startswith(PROMPT) for row in rows):
                return rows
        raise AssertionError(f"the screen is never quiet:\n{self.shown.text}")


def numbers(kind: re.Pattern[str], rows: list[str]) -> list[int]:
    return [int(found[1]) for found in map(kind.match, rows) if found]


def tries() -> Iterator[None]:
    end = time.monotonic() + TIMEOUT_S + MESSAGES
    while time.monotonic() < end:
        yield


def held(world: Path) -> bool:
    """Whether a turn waits for the test."""
    return any(not (world / f"go-{file.name.removeprefix('held-')}").exists() for file in world.glob("held-*"))


def scripted(world: Path) -> Crew:
    made = crew(world, {"max": []})
    short = {"hang": 0.02}
    made.say(
        "max",
        *[
            {
                "say": f"Reply {turn}.",
                **(
                    {"touch": str(world / f"held-{turn}"), "wait": str(world / f"go-{turn}")}
                    if not turn % HELD
                    else short
                ),
            }
            for turn in range(MESSAGES)
        ],
    )
    return made


@pytest.mark.timeout(60 + 2 * MESSAGES)
def test_each_message_is_shown_as_queued_until_it_is_sent_once(world: Path) -> None:
    scripted(world)
    chance = random.Random(SEED)  # noqa: S311 (no secret)
    let_go = iter(range(0, MESSAGES, HELD))
    counted = 0
    with chat() as shown:
        follower = Follower(shown)
        for number in range(MESSAGES):
            was_held = held(world)
            line(shown, f"message {number}")
            follower.until_seen(number + 1)
            if number == 0:
                shown.until(lambda _: held(world))
            if was_held:
                assert number in follower.seen_queued
                assert follower.queued == len(kept())
                counted += 1
            until = time.monotonic() + chance.uniform(0, 0.05)
            while time.monotonic() < until:
                follower.frame(number + 1)
            if was_held and chance.random() < LET_GO:
                (world / f"go-{next(let_go)}").touch()
        for turn in let_go:
            (world / f"go-{turn}").touch()
        follower.until_sent(MESSAGES)
        assert (follower.queued, kept()) == (0, [])
        assert leave(shown) == 0
    assert counted
    assert [text for text in said() if text.startswith("kailai")] == [f"kailai: message {n}" for n in range(MESSAGES)]
    print(
        f"{MESSAGES} sent once, {len(follower.seen_queued)} seen as queued, {counted} typed while a turn was held;"
        f" at most {follower.longest} queued; {follower.frames} frames"
    )
