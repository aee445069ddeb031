"""A reply that nobody could see is none, whichever agent gives it."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest

from teamchat.runners.base import EventParser
from teamchat.runners.blank import NO_ANSWER, is_blank
from teamchat.runners.claude.events import ClaudeEvents
from teamchat.runners.codex.events import CodexEvents
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
    assert parser.finish(0, "").failure == NO_ANSWER


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
