"""A process for many turns, of a small program that answers lines."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from teamchat.runners.base import LiveRule
from teamchat.runners.child.live import LiveAgent
from teamchat.runners.child.running import FIRST_LINE, Launch, SpawnFailed
from tests.leftovers import marked
from tests.runners.processes import PATIENCE_S, Ran, following, shell

RULE = LiveRule(lambda prompt: prompt + b"\n", b"interrupt\n")
LIMIT = 3_000_000
WRITES = 'while read -r size; do head -c "$size" /dev/zero; echo; echo end; done'


class Talk:
    """Turns with one process."""

    def __init__(self, folder: Path, script: str) -> None:
        self.folder, self.argv, self.agent, self.number = folder, shell(script), LiveAgent(RULE), 0
        self.env = marked({"PATH": os.environ["PATH"]})

    async def turn(self, prompt: bytes) -> Ran:
        self.number += 1
        folder = self.folder / f"turn{self.number}"
        what = Launch(self.argv, self.folder, self.env, prompt, folder, max_output=LIMIT, stays=self.agent)
        self.last = self.agent.turn(what)
        return await asyncio.wait_for(following(self.last, ends=b"end\n"), PATIENCE_S)


def test_its_limit_of_output_is_that_of_a_turn_and_not_of_all_turns(tmp_path: Path) -> None:
    async def main() -> list[tuple[int, int, int | None]]:
        talk = Talk(tmp_path, WRITES)
        try:
            ran = [await talk.turn(b"2000000") for _ in range(3)]
            ran.append(await talk.turn(b"100000000"))
        finally:
            await talk.agent.close()
        return [(len(turn.out) if not turn.exit.code else 0, turn.exit.code, turn.exit.over_limit) for turn in ran]

    whole = 2_000_000 + len(b"\nend\n")
    assert asyncio.run(main()) == [(whole, 0, None)] * 3 + [(0, -signal.SIGKILL, LIMIT)]


def test_what_it_writes_between_two_turns_has_a_limit_too(tmp_path: Path) -> None:
    async def main() -> bool:
        talk = Talk(tmp_path, "read -r line; echo end; head -c 100000000 /dev/zero; sleep 600")
        try:
            await talk.turn(b"Hi")
            assert talk.agent.process
            async with asyncio.timeout(PATIENCE_S):
                while talk.agent.process.exit is None:  # noqa: ASYNC110 (nothing tells it to anybody)
                    await asyncio.sleep(0.01)
            return talk.agent.runs()
        finally:
            await talk.agent.close()

    assert not asyncio.run(main())


def test_what_it_writes_between_two_turns_is_part_of_none(tmp_path: Path) -> None:
    script = "says() { read -r line; printf '%s\\nend\\n' $1; }; says one; says late; touch late; says two"

    async def main() -> list[bytes]:
        talk = Talk(tmp_path, script)
        try:
            first = await talk.turn(b"Hi")
            talk.agent.feed(b"more\n")
            async with asyncio.timeout(PATIENCE_S):
                while not (tmp_path / "late").exists():  # noqa: ASYNC110 (a file is no event)
                    await asyncio.sleep(0.01)
            second = await talk.turn(b"Hi")
        finally:
            await talk.agent.close()
        return [first.out, second.out]

    assert asyncio.run(main()) == [b"one\nend\n", b"two\nend\n"]
    assert (tmp_path / "turn2" / "begins").read_text() == str(len(FIRST_LINE + b"one\nend\nlate\nend\n"))


def test_there_is_no_turn_in_a_process_that_has_ended(tmp_path: Path) -> None:
    async def main() -> None:
        talk = Talk(tmp_path, "read -r line; exit 3")
        try:
            await talk.turn(b"Hi")
            await talk.turn(b"Hi again")
        finally:
            await talk.agent.close()

    with pytest.raises(SpawnFailed, match="the process that was kept running has ended"):
        asyncio.run(main())


@pytest.mark.parametrize("hard", [False, True])
def test_a_stop_that_crosses_its_end_is_harmless(tmp_path: Path, *, hard: bool) -> None:
    async def main() -> int:
        talk = Talk(tmp_path, "read -r line; exit 3")
        try:
            ran = await talk.turn(b"Hi")
            talk.last.stop(hard=hard)
        finally:
            await talk.agent.close()
        return ran.exit.code

    assert asyncio.run(main()) == 3
