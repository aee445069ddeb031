"""Waiting for writes to a file: `teamchat/runners/process/written.py`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from teamchat.runners.process import written
from teamchat.runners.process.written import FIRST_WATCHED, Written
from tests.runners.processes import eventually

inotify = pytest.mark.skipif(sys.platform != "linux", reason="there is no inotify")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[BinaryIO]:
    with (tmp_path / "stdout").open("wb", buffering=0) as file:
        yield file


async def early(waits: Written) -> None:
    for _ in range(FIRST_WATCHED - 1):
        await waits.wait()


def assert_ends(work: Coroutine[Any, Any, None]) -> None:
    """What is waited for comes soon. A wait that only the clock ends takes an hour in these tests."""
    asyncio.run(asyncio.wait_for(work, 30))


def instances() -> int:
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # a thread has closed it meanwhile
            found += "inotify" in str(link.readlink())
    return found


def assert_none_is_left() -> None:
    """They are closed in threads."""
    assert eventually(lambda: not instances())


@inotify
def test_a_write_ends_the_wait(file: BinaryIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "LOOK_S", 3600.0)

    async def waits_for_a_write() -> None:
        waits = Written([file.fileno()])
        await early(waits)
        asyncio.get_running_loop().call_later(0.01, file.write, b"x")
        await waits.wait()
        waits.close()

    assert_ends(waits_for_a_write())


@inotify
def test_a_write_before_the_wait_ends_it_too(file: BinaryIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "LOOK_S", 3600.0)

    async def waits_for_a_write() -> None:
        waits = Written([file.fileno()])
        await early(waits)
        asyncio.get_running_loop().call_soon(file.write, b"x")
        await waits.wait()
        file.write(b"y")
        await waits.wait()
        waits.close()

    assert_ends(waits_for_a_write())


@inotify
def test_writes_to_other_files_wake_nobody_and_all_watches_share_an_instance(
    file: BinaryIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written, "LOOK_S", 3600.0)

    async def waits_for_a_write() -> int:
        with (tmp_path / "other").open("wb", buffering=0) as other:
            waits, others = Written([file.fileno()]), Written([other.fileno()])
            await early(waits)
            await early(others)
            waiting, else_waiting = asyncio.ensure_future(waits.wait()), asyncio.ensure_future(others.wait())
            asyncio.get_running_loop().call_later(0.01, file.write, b"x")
            await waiting
            assert not else_waiting.done()
            shared = instances()
            others.wake()
            await else_waiting
            waits.close()
            others.close()
        return shared

    assert_none_is_left()
    assert asyncio.run(asyncio.wait_for(waits_for_a_write(), 30)) == 1
    assert_none_is_left()


def assert_wait_is_short(*files: int) -> None:
    async def waits_for_nothing() -> None:
        waits = Written(list(files))
        await early(waits)
        await waits.wait()
        waits.close()

    assert_ends(waits_for_nothing())


def test_without_inotify_the_wait_is_short(file: BinaryIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "LOOK_S", 3600.0)

    def lacks_it(name: str, *_: object) -> int:
        raise OSError(name)

    monkeypatch.setattr(written, "_call", lacks_it)
    assert_wait_is_short(file.fileno())


@inotify
def test_a_file_that_cannot_be_watched_leaves_the_wait_short(file: BinaryIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "LOOK_S", 3600.0)
    assert_wait_is_short(file.fileno(), 10_000)
    assert_none_is_left()


def test_waking_ends_the_next_wait(file: BinaryIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "POLL_S", 3600.0)

    async def woken() -> None:
        waits = Written([file.fileno()])
        waits.wake()
        await waits.wait()
        waits.close()

    assert_ends(woken())
