from __future__ import annotations

import pytest

from teamchat.cli.startup.report import reported


def test_too_little_memory_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with reported() as ending:
        bytearray(1 << 62)
    assert ending.code == 13
    assert capsys.readouterr().err == "teamchat: there is not enough memory\n"


def test_too_few_threads_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with reported() as ending:
        raise RuntimeError("can't start new thread")
    assert ending.code == 13
    assert capsys.readouterr().err == "teamchat: the system allows no more threads or processes\n"
