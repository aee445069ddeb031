"""JSON events of programs that also write for a terminal: titles, the cursor, progress bars, a byte order mark."""

from __future__ import annotations

import json

import pytest

from teamchat.runners.base import EventParser, Runner
from teamchat.runners.child.supervisor import LineFramer
from teamchat.runners.claude.runner import ClaudeRunner
from teamchat.runners.codex.runner import CodexRunner
from teamchat.runners.gemini.runner import GeminiRunner
from teamchat.runners.opencode.runner import OpencodeRunner
from teamchat.runners.untrusted.json import decode
from tests.fakes.scripted import spoken

NOISE = {
    "title": b"\x1b]0;claude\x07",
    "title of another end": b'\x1b]2;a "title" {x}\x1b\\',
    "cursor": b"\x1b[?25l\x1b[2K\x1b[1;1H",
    "bracketed paste": b"\x1b[?2004h",
    "carriage return": b"\r\r",
    "NUL": b"\0",
    "byte order mark": b"\xef\xbb\xbf",
    "progress": b"loading 10 %\rloading {100} %\r\x1b[K",
    "keypad": b"\x1b=\x1b(B",
}
PARSERS: dict[str, Runner] = {
    "claude": ClaudeRunner(),
    "codex": CodexRunner(),
    "gemini": GeminiRunner(),
    "opencode": OpencodeRunner(),
}


def answer(parser: EventParser, output: bytes) -> str:
    framer = LineFramer()
    parser.feed(*framer.push(output), *framer.flush())
    verdict = parser.finish(0, "")
    assert verdict.failure is None
    return verdict.text


@pytest.mark.parametrize("like", PARSERS)
@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
@pytest.mark.parametrize("behind", [b"", b"\r", b"\x1b[0m"])
def test_what_is_for_a_terminal_is_no_part_of_an_event(like: str, noise: bytes, behind: bytes) -> None:
    events = spoken(like, "It is \x1b[1m4\x1b[0m.").encode().rstrip(b"\n").split(b"\n")
    output = b"".join(noise + event + behind + b"\n" for event in events)
    assert answer(PARSERS[like].parser(), output) == "It is \x1b[1m4\x1b[0m."


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_a_long_event_behind_it_is_whole(noise: bytes) -> None:
    framer, event = LineFramer(), {"type": "text", "text": "\0é" * 1_000_000}
    assert [decode(line) for line in framer.push(noise + json.dumps(event).encode() + b"\x1b[0m\n")] == [event]


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_what_a_string_of_an_event_has_stays(noise: bytes) -> None:
    event = {"text": noise.decode(), noise.decode(): 1}
    assert decode(noise + json.dumps(event).encode()) == event


@pytest.mark.parametrize("line", [b"\x1b[0m", b"\r", b"loading\r", b"{\r}x", b"\x1b]0;{}\x07 no", b'{"a": 1} {"b": 2}'])
def test_a_line_without_an_object_alone_is_no_event(line: bytes) -> None:
    assert decode(line) is None
