"""Recorded streams of the real CLIs, damaged at random: no turn crashes, and no damage looks like success.

9,600 damaged streams a run (8 parts of 400 for each of the three CLIs), the same ones in every run; `make fuzz` takes
240,000 others.
"""

from __future__ import annotations

import asyncio
import json
import math
import tempfile
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from unicodedata import category

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields

from teamchat.core.store.turn_events import stored_events
from teamchat.runners.agent_events import AgentEvent, Done, Failure
from teamchat.runners.base import EventParser, Verdict
from teamchat.runners.child.running import Chunk, Exit
from teamchat.runners.child.supervisor import Clocks, Stopper, TurnEnd, run_turn
from teamchat.runners.failures import NO_ANSWER, is_blank
from tests.core.fake_conversation import Fails, Stage, team_of
from tests.runners.captures import RUNNERS, Capture, Cli, captures, lines, replay
from tests.runners.captures import play as captured
from tests.runners.mutations import CLIS, LONGEST, PLANS, Damaged, Lines, damaged, harmless
from tests.trials import trials

CLOCKS = Clocks(first_byte_s=60.0, stall_s=300.0, total_s=1800.0)
PARTS = range(8)  # which several processes can share
EXAMPLES = 80  # of each part of each CLI
STEADY = settings(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None)
FUZZ = settings() if settings.get_current_profile_name() == "fuzz" else STEADY


class Played:
    """A process that says these chunks at once and exits."""

    def __init__(self, chunks: tuple[Chunk, ...], code: int) -> None:
        self._chunks, self._code = chunks, code
        self.exit: Exit | None = None

    def over(self) -> None:
        """It is."""

    def end_input(self) -> bool:
        return False

    def stop(self, why: Failure | None = None, *, hard: bool = False) -> None:
        """It is over already."""

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        for chunk in self._chunks:
            yield chunk
        self.exit = Exit(self._code)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with asyncio.Runner() as runner:
        yield runner.get_loop()


def play(loop: asyncio.AbstractEventLoop, stream: Damaged, parser: EventParser) -> tuple[list[AgentEvent], TurnEnd]:
    events: list[AgentEvent] = []
    process = Played(stream.chunks, stream.code)
    return events, loop.run_until_complete(run_turn(process, parser, CLOCKS, Stopper(), events.extend))


# --- what is true of a stream, read without the code under test


def events_of(lines: Lines) -> Iterator[dict[str, object]]:
    for line in lines:
        try:
            event = json.loads(line.decode(errors="replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event


def says_success(cli: Cli, event: dict[str, object]) -> bool:
    """Whether this event is the CLI's own word that the turn went well."""
    match cli:
        case "claude":
            return event.get("type") == "result" and event.get("is_error") is False
        case "codex":
            return event.get("type") == "turn.completed"
        case "gemini":
            return event.get("type") == "result" and event.get("status") == "success"
        case "opencode":
            part = event.get("part")
            return event.get("type") == "step_finish" and isinstance(part, dict) and part.get("reason") == "stop"


def spoken(cli: Cli, event: dict[str, object]) -> Iterator[str]:
    """The texts of an event that may be the agent's own: of no prompt, tool, error or thought."""
    match event:
        case {"type": "stream_event" | "assistant"} if cli == "claude":
            yield from named("text", event)
        case {"type": "result", "result": str(text)} if cli == "claude":
            yield text
        case {"type": "item.completed", "item": {"type": "agent_message", "text": str(text)}} if cli == "codex":
            yield text
        case {"type": "message", "role": "assistant", "content": str(text)} if cli == "gemini":
            yield text
        case {"type": "text", "part": {"text": str(text)}} if cli == "opencode":
            yield text


def named(name: str, value: object) -> Iterator[str]:
    """Every string under this key, at any depth."""
    for key, item in value.items() if isinstance(value, dict) else [("", item) for item in _items(value)]:
        if key == name and isinstance(item, str):
            yield item
        yield from named(name, item)


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def made_of(text: str, pieces: list[str]) -> bool:
    """Whether the text is some of these pieces in their order, with nothing but white space between them."""
    rest = _bare(text)
    ends = {0}
    for piece in map(_bare, pieces):
        ends |= {end + len(piece) for end in ends if rest.startswith(piece, end)}
    return len(rest) in ends


def _bare(text: str) -> str:
    """Without white space; half a surrogate pair is U+FFFD, as no file can hold it."""
    return "".join(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").split())


def size(value: object) -> int:
    """How much text a structure holds, and one for each of its parts."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(1 + size(key) + size(item) for key, item in value.items())
    if isinstance(value, list | tuple | set):
        return sum(1 + size(item) for item in value)
    if isinstance(value, Struct):
        return sum(1 + size(getattr(value, field.name)) for field in fields(value))
    return 1


def assert_storable(event: AgentEvent) -> None:
    for field in fields(event):
        match getattr(event, field.name):
            case str(text):
                text.encode()
            case float(number):
                assert math.isfinite(number)
            case int(number):
                assert abs(number) < 2**53


def assert_sound(cli: Cli, stream: Damaged, events: list[AgentEvent], end: TurnEnd) -> None:
    """No false success, no failure without words, no text but the agent's, and nothing that cannot be stored."""
    seen = list(events_of(stream.lines()))
    if end.failure is None:
        assert any(says_success(cli, event) for event in seen)
        assert not is_blank(end.text)
    else:
        assert end.failure.reason.strip()
        assert not any(category(character) == "Cc" for character in end.failure.reason)
    assert made_of(end.text, [text for event in seen for text in spoken(cli, event)])
    assert_usage(end)
    for event in events:
        assert_storable(event)
        assert event != Done(ok=True) or any(says_success(cli, event) for event in seen)


def assert_usage(end: TurnEnd) -> None:
    """No number is made up: who counted nothing tells no zeros, and a turn that failed cost not nothing."""
    if end.usage and end.usage.is_nothing:
        assert (end.usage.input_tokens, end.usage.cached_tokens, end.usage.output_tokens) == (None, None, None)
    if end.usage and end.failure and not end.failure.reason.startswith(NO_ANSWER):
        assert end.usage.cost_usd != 0


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("cli", CLIS)
@settings(FUZZ)
@given(plan=PLANS)
def test_a_damaged_stream_is_survived_and_none_is_a_success_without_the_clis_own_word(
    loop: asyncio.AbstractEventLoop, cli: Cli, part: int, plan: bytes
) -> None:
    del part
    stream = damaged(cli, plan)
    parser = RUNNERS[cli].parser()
    events, end = play(loop, stream, parser)
    if end.failure is None:
        assert stream.code == 0
    assert_sound(cli, stream, events, end)
    assert size(events) + size(end) + size(vars(parser)) <= 16 * len(stream.stdout + stream.stderr) + 20_000


@pytest.mark.parametrize(("cli", "name"), [(cli, name) for cli in CLIS for name in captures(cli)])
def test_what_another_version_adds_and_orders_otherwise_changes_nothing(cli: Cli, name: str) -> None:
    found = captures(cli)[name]
    told = replay(cli, name)
    for seed in range(3 if len(found.stdout) <= LONGEST else 1):
        assert told_by(cli, harmless(found, seed), found) == told


def told_by(cli: Cli, stdout: Lines, found: Capture) -> tuple[list[AgentEvent], Verdict]:
    return captured(RUNNERS[cli].parser(), stdout, lines(found.stderr), found.exit_code)


@settings(STEADY, max_examples=trials(40))
@given(cli=st.sampled_from(CLIS), plan=PLANS)
def test_a_conversation_survives_a_damaged_turn(cli: Cli, plan: bytes) -> None:
    stream = damaged(cli, plan)
    printed = Fails(stream.stdout.decode(errors="replace"), stream.code, stream.stderr.decode(errors="replace"))
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder), team_of(Path(folder), {"max": cli}), {"max": [printed]})
        stage.send("[NEXT:max] Hi")
        turn = stage.turns[0]
        assert stage.said[1:] == ([f"max: {stage.log[1].content}"] if turn.status == "done" else [])
        assert stage.queue == ([] if turn.status == "done" else ["max held"])
        assert turn.outcome
        assert turn.outcome.tools <= len(stored_events(stage.db, turn.id))
        stage.db.close()
