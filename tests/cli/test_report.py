from __future__ import annotations

import pytest

from teamchat.cli.shared.report import report


def test_too_little_memory_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(lambda: bytearray(1 << 62)) == 13
    assert capsys.readouterr().err == "teamchat: there is not enough memory\n"


def test_too_few_threads_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def start() -> None:
        raise RuntimeError("can't start new thread")

    assert report(start) == 13
    assert capsys.readouterr().err == "teamchat: the system allows no more threads or processes\n"
