"""What is written to a process that stays: all of it, as it takes it, and without a copy of what is still to come."""

from __future__ import annotations

import asyncio
import os
import tracemalloc
from dataclasses import dataclass
from typing import cast

from teamchat.runners.claude import LIVE
from teamchat.runners.live import LiveAgent
from teamchat.runners.process import Process

SIZE = 24_000_000


@dataclass
class Pipe:
    """A process, as far as it is written to."""

    stdin: int


def test_a_prompt_of_many_megabytes_is_written_as_it_is_taken_and_never_copied() -> None:
    first, second = os.urandom(1000) * (SIZE // 1000), b"stop\n"

    async def run() -> tuple[bytes, int]:
        theirs, ours = os.pipe()
        os.set_blocking(ours, False)
        agent = LiveAgent(LIVE)
        agent.process = cast("Process", Pipe(ours))
        got = bytearray(SIZE + len(second))
        tracemalloc.start()
        agent.feed(first)
        agent.feed(second)
        with open(theirs, "rb", buffering=0) as reader:  # noqa: ASYNC230, PTH123 (a descriptor)
            at = 0
            while at < len(got):
                at += reader.readinto(memoryview(got)[at : at + 50_000])
                await asyncio.sleep(0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        asyncio.get_running_loop().remove_writer(ours)
        os.close(ours)
        return bytes(got), peak

    got, peak = asyncio.run(run())
    assert got == first + second
    assert peak < SIZE / 4
