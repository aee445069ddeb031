"""When a terminal draws text that streams: the first piece at once, the others of one burst together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread

import pytest

from teamchat.cli.output.terminal.output import PAUSE_S, TerminalOutput
from teamchat.core.turn.run_events import AgentSpoke, ConversationEvent, Warned
from teamchat.runners.agent_events import TextDelta
from tests.core.fake_conversation import Fails, Reply, Stage, team_of


class Drawn:
    """A surface that keeps what was shown on it last."""

    width, height = 80, 10

    def __init__(self) -> None:
        self.lines: Sequence[str] = ()

    def write(self, text: str) -> None:
        """Finished lines are not what these tests look at."""

    def show(self, lines: Sequence[str]) -> None:
        self.lines = lines


ONE = (
    '{"type": "stream_event", "event": {"type": "content_block_delta", "index": 0, '
    '"delta": {"type": "text_delta", "text": "one"}}}\n'
)


def drawn(folder: Path, later: float, *, more: bool = False) -> list[str]:
    """What was shown when an agent had streamed a piece, and when it streamed a second one so many seconds later.

    With `more` the second one came with another one.
    """
    surface, now, seen = Drawn(), [0.0], list[str]()
    output = TerminalOutput(("max",), surface, now=lambda: now[0])

    def hear(event: ConversationEvent) -> None:
        output(event)
        if isinstance(event, AgentSpoke) and isinstance(event.event, TextDelta):
            seen.append("\n".join(surface.lines))
            now[0] += later
            output(AgentSpoke(event.member, event.turn, TextDelta("two"), more))
            seen.append("\n".join(surface.lines))

    says: dict[str, list[Reply]] = {"max": [Fails(ONE)]}
    Stage(folder, team_of(folder, {"max": "claude"}), says, hear=hear).send("Go")
    return seen


@pytest.mark.parametrize(("later", "shown"), [(0.0, "one"), (PAUSE_S, "onetwo")])
def test_the_first_piece_is_drawn_at_once_and_those_of_one_burst_together(
    tmp_path: Path, later: float, shown: str
) -> None:
    first, second = drawn(tmp_path, later)
    assert "one" in first
    assert shown in second
    assert ("two" in second) is (shown == "onetwo")


def test_pieces_that_came_at_once_are_drawn_with_the_last_of_them(tmp_path: Path) -> None:
    first, second = drawn(tmp_path, PAUSE_S, more=True)
    assert second == first


def test_the_clock_does_not_wait_for_an_event_that_is_shown() -> None:
    writes, goes_on, shows = Event(), Event(), list[Sequence[str]]()

    class Slow(Drawn):
        def write(self, _text: str) -> None:
            writes.set()
            assert goes_on.wait(30)

        def show(self, lines: Sequence[str]) -> None:
            shows.append(lines)

    output = TerminalOutput(("max",), Slow(), now=lambda: 0.0)
    thread = Thread(target=output, args=(Warned("the disk is nearly full"),))
    thread.start()
    assert writes.wait(30)
    output.tick()
    while_it_was_shown = len(shows)
    goes_on.set()
    thread.join(30)
    assert (while_it_was_shown, len(shows)) == (0, 1)
    output.tick()
    assert len(shows) == 2
