from __future__ import annotations

import asyncio
import math
import sys
from pathlib import Path

import pytest

from teamchat.core.cassette.player import STOPPED, NotRecorded, Player, RecordedTurn, Recorder
from teamchat.runners.child.process import launch
from teamchat.runners.child.running import Chunk, Exit, Identity, Launch, Running

MAX = Identity("max", "plain", "You are Max")


def what(folder: Path, stdin: bytes = b"Hi", identity: Identity = MAX) -> Launch:
    program = "import sys; sys.stdout.write(sys.stdin.read().upper()); print('oops', file=sys.stderr); sys.exit(3)"
    argv = (sys.executable, "-c", program, str(folder), f"{folder}/tmp/x", "/home/kai/lib")
    return Launch(
        argv,
        folder,
        {"B": "2", "A": "1", "HOME": "/home/kai"},
        stdin,
        folder / "turn",
        scratch=folder / "tmp",
        identity=identity,
    )


async def output(process: Running) -> list[Chunk]:
    return [chunk async for chunk in process.chunks() if isinstance(chunk, Chunk)]


def record(folder: Path, stdin: bytes = b"Hi") -> RecordedTurn:
    kept: list[RecordedTurn] = []
    (folder / "tmp").mkdir(exist_ok=True)
    asyncio.run(output(Recorder(launch, kept.append)(what(folder, stdin))))
    (turn,) = kept
    return turn


def test_a_recorded_turn_is_what_crossed_the_boundary(tmp_path: Path) -> None:
    turn = record(tmp_path)
    assert (turn.identity, turn.stdin, turn.env_names) == (MAX, b"Hi", ("A", "B", "HOME"))
    assert turn.argv[0] == Path(sys.executable).name
    assert turn.argv[3:] == (".", "$TMPDIR/x", "~/lib")
    assert b"".join(chunk.data for chunk in turn.chunks if chunk.stream == "out") == b"HI"
    assert b"".join(chunk.data for chunk in turn.chunks if chunk.stream == "err") == b"oops\n"
    assert turn.exit is not None
    assert turn.exit.code == 3
    assert turn.exit.seconds > 0


def test_a_playback_gives_the_same_output_and_end(tmp_path: Path) -> None:
    turn = record(tmp_path)
    process = Player([turn], math.inf)(what(tmp_path))
    assert asyncio.run(output(process)) == list(turn.chunks)
    assert process.exit == turn.exit


def test_the_same_prompt_twice_is_played_in_the_order_recorded(tmp_path: Path) -> None:
    turns = [RecordedTurn(MAX, b"Hi", (), (), (Chunk("out", text, 0.0),), Exit(0)) for text in (b"one", b"two")]
    player = Player(turns, math.inf)
    said = [asyncio.run(output(player(what(tmp_path))))[0].data for _ in turns]
    assert said == [b"one", b"two"]
    with pytest.raises(NotRecorded):
        player(what(tmp_path))


@pytest.mark.parametrize(
    "other",
    [
        {"stdin": b"Ho"},
        {"identity": Identity("sarah", "plain", "You are Max")},
        {"identity": Identity("max", "claude", "You are Max")},
        {"identity": Identity("max", "plain", "You are Maxi")},
    ],
)
def test_any_other_turn_is_not_recorded(tmp_path: Path, other: dict[str, object]) -> None:
    turn = RecordedTurn(MAX, b"Hi", (), (), (), Exit(0))
    with pytest.raises(NotRecorded):
        Player([turn], math.inf)(what(tmp_path, **other))  # type: ignore[arg-type]  # a table of keywords


def test_it_is_played_at_its_own_pace_or_faster(tmp_path: Path) -> None:
    chunks = (Chunk("out", b"a", 0.2), Chunk("out", b"b", 0.4))
    turn = RecordedTurn(MAX, b"Hi", (), (), chunks, Exit(0, seconds=0.6))

    async def seconds(speed: float) -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await output(Player([turn], speed)(what(tmp_path)))
        return loop.time() - began

    assert asyncio.run(seconds(1.0)) >= 0.6
    assert 0.05 < asyncio.run(seconds(10.0)) < 0.5


def test_a_playback_can_be_stopped(tmp_path: Path) -> None:
    turn = RecordedTurn(MAX, b"Hi", (), (), (Chunk("out", b"a", 0.0), Chunk("out", b"b", 60.0)), Exit(0, seconds=60.0))

    async def stopped() -> tuple[list[Chunk], Exit | None]:
        process = Player([turn], 1.0)(what(tmp_path))
        asyncio.get_running_loop().call_later(0.1, process.stop)
        return await output(process), process.exit

    chunks, exit_ = asyncio.run(stopped())
    assert [chunk.data for chunk in chunks] == [b"a"]
    assert exit_ is not None
    assert exit_.code == STOPPED
