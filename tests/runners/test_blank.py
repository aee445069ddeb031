"""A reply that nobody could see is none, whichever agent gives it."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest

from teamchat.runners.agent_events import Failure, FailureKind
from teamchat.runners.base import EventParser
from teamchat.runners.claude.events import ClaudeEvents
from teamchat.runners.codex.events import CodexEvents
from teamchat.runners.failures import NO_ANSWER, is_blank
from teamchat.runners.gemini.events import GeminiEvents
from teamchat.runners.opencode.events import OpencodeEvents
from teamchat.runners.pipe import PipeOutput
from teamchat.runners.terminal.runner import TerminalEvents
from tests.core.routing.marker_texts import grows_linearly
from tests.fakes.scripted import spoken

UNSEEN = {
    "nothing": "",
    "white space": " \t\r\n\x0b\x0c\u00a0\u2028\u2029\u3000",
    "C0": "\x00\x01\x07\x08\x7f",
    "C1": "\x80\x85\x9c",
    "colours": "\x1b[31m\x1b[0m\x9b1;2H\x1b[?25l",
    "a title": "\x1b]0;a title\x07",
    "a link": "\x1b]8;;https://example.org\x1b\\",
    "an open title": "\x9d0;a title",
    "other escapes": "\x1bc\x1b(B\x1b",
    "zero width": "\u200b\u200c\u200d\u2060\ufeff",
    "soft hyphens": "\u00ad\u00ad",
    "directions": "\u200e\u202e\u2066\u2069",
    "tags": "\U000e0041\U000e007f",
    "selectors": "\ufe0f\U000e0100",
    "marks of nothing": "\u0301\u20e3",
    "fillers": "\u115f\u3164\uffa0\u2800",
}
SEEN = ("a", "0", ".", "-", "é", "你", "\u200b👍\ufe0f", "\x1b[31m!\x1b[0m", "\ufffd", "\x1b]0;title\x07 ok", "\u0301e")
PARSERS: dict[str, type[EventParser]] = {
    "plain": PipeOutput,
    "claude": ClaudeEvents,
    "codex": CodexEvents,
    "gemini": GeminiEvents,
    "opencode": OpencodeEvents,
    "terminal": TerminalEvents,
}


def output(like: str, text: str) -> bytes:
    told = json.dumps({"type": "answer", "text": text}) + "\n" if like == "terminal" else spoken(like, text)
    return told.encode()


@pytest.mark.parametrize("like", PARSERS)
@pytest.mark.parametrize("text", UNSEEN.values(), ids=UNSEEN)
def test_what_nobody_can_see_is_no_answer_of_any_agent(like: str, text: str) -> None:
    parser = PARSERS[like]()
    for line in output(like, text).split(b"\n"):
        parser.feed(line)
    assert parser.finish(0, "").failure == Failure(FailureKind.AGENT, NO_ANSWER)


@pytest.mark.parametrize("like", PARSERS)
@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        ("Error: model gpt-x not found", FailureKind.AGENT),
        ("loading\nfatal: no such model gpt-x\n\n", FailureKind.AGENT),
        ("\x1b[31merror:\x1b[0m gpt-x: 429 Too Many Requests", FailureKind.RATE_LIMIT),
        ("gpt-x: you are not logged in", FailureKind.LOGIN),
    ],
)
@pytest.mark.parametrize("said", [True, False])
def test_the_reason_on_standard_error_is_told_though_the_exit_code_is_0(
    like: str, stderr: str, kind: FailureKind, said: bool
) -> None:
    parser = PARSERS[like]()
    for line in output(like, " ").split(b"\n") if said else ():
        parser.feed(line)
    failed = parser.finish(0, stderr).failure
    assert failed is not None
    assert "gpt-x" in failed.reason
    if said or like != "terminal":  # whose prompt never came
        assert failed.kind is kind


@pytest.mark.parametrize("like", PARSERS)
@pytest.mark.parametrize("text", SEEN)
def test_one_visible_character_is_an_answer(like: str, text: str) -> None:
    parser = PARSERS[like]()
    for line in output(like, text).split(b"\n"):
        parser.feed(line)
    assert parser.finish(0, "").failure is None


def test_every_character_without_a_shape_is_blank_and_no_other() -> None:
    blank = [chr(number) for number in range(sys.maxunicode + 1) if is_blank(chr(number))]
    kinds = {unicodedata.category(character) for character in blank}
    assert kinds == {"Cc", "Cf", "Cn", "Lo", "Me", "Mn", "So", "Zl", "Zp", "Zs"}
    for kind in ("Cc", "Cf", "Zl", "Zp", "Zs"):
        missed = [n for n in range(sys.maxunicode + 1) if unicodedata.category(chr(n)) == kind and not is_blank(chr(n))]
        assert missed == [], kind
    shapes = [character for character in blank if unicodedata.category(character) in ("Lo", "So")]
    assert shapes == ["\u115f", "\u1160", "\u2800", "\u3164", "\uffa0"]


@pytest.mark.parametrize("piece", ["\u200b", "\x1b[31m", "\x1b]0;", "\x1b", "\x1b[", " "])
def test_it_takes_time_in_proportion_to_the_text(piece: str) -> None:
    assert grows_linearly(is_blank, piece)
