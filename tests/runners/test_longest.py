"""What is too long to be kept: lines, and texts that come in pieces."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners import json_events
from teamchat.runners.agent_events import AgentEvent, Note, ToolResult
from teamchat.runners.base import EventParser, Runner, Verdict
from teamchat.runners.child import supervisor
from teamchat.runners.child.supervisor import LineFramer, framer_of
from teamchat.runners.claude.runner import ClaudeRunner
from teamchat.runners.codex.runner import CodexRunner
from teamchat.runners.gemini.runner import GeminiRunner
from teamchat.runners.longest import ESCAPED, KEPT, LONGEST_REPLY, ReplyText, ShortenedLine, cut
from teamchat.runners.opencode.runner import OpencodeRunner
from teamchat.runners.pipe import PipeRunner
from teamchat.runners.terminal.runner import TerminalRunner
from teamchat.runners.untrusted.json import decode
from tests.fakes.scripted import spoken
from tests.trials import some

RUNNERS: dict[str, Runner] = {
    "claude": ClaudeRunner(),
    "codex": CodexRunner(),
    "gemini": GeminiRunner(),
    "opencode": OpencodeRunner(),
}
CHARACTERS = 'aé水🙂"\\\n\t\x7f'


@pytest.fixture(autouse=True, scope="module")
def _lines_are_long_soon() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (json_events, supervisor):
            patch.setattr(module, "LONGEST_REPLY", KEPT)
        yield


def read(parser: EventParser, output: bytes) -> list[AgentEvent]:
    framer = framer_of(parser)
    chunks = (output[at : at + 1000] for at in range(0, len(output), 1000))
    lines = [line for chunk in chunks for line in framer.push(chunk)] + framer.flush()
    return [event for line in lines for event in parser.feed(line)]


@given(st.lists(st.text()))
def test_a_text_has_all_that_was_added(pieces: list[str]) -> None:
    text = ReplyText()
    for piece in pieces:
        text.add(piece, LONGEST_REPLY)
    assert str(text) == "".join(pieces)


@given(st.lists(st.integers(1, 3 * KEPT), max_size=8), st.integers(1, 2 * KEPT))
def test_a_long_text_has_its_beginning_and_its_end(sizes: list[int], longest: int) -> None:
    pieces = [(f"{number} " * size)[:size] for number, size in enumerate(sizes)]
    text, whole = ReplyText(), "".join(pieces)
    for piece in pieces:
        text.add(piece, longest)
    assert text.over == (len(whole) > longest)
    found = str(text)
    assert found in (whole, cut(whole))
    assert len(found) < 5 * KEPT


def test_a_text_in_small_pieces_takes_little_more_memory_than_it_is_long() -> None:
    text = ReplyText()
    tracemalloc.start()
    try:
        for _ in range(4 * LONGEST_REPLY // 64):
            text.add("x" * 64, LONGEST_REPLY)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert text.over
    assert peak < 6 * LONGEST_REPLY  # the text while it is collected: four bytes a character, and once more as text


@given(st.text(st.sampled_from(CHARACTERS), min_size=1, max_size=30), st.booleans(), st.integers(1000, 5000))
def test_a_line_without_its_middle_is_json(text: str, ascii_only: bool, chunk: int) -> None:
    text = f"{text}a" * (5 * KEPT // len(text))
    line = json.dumps({"id": "1", "text": text, "last": 2}, ensure_ascii=ascii_only).encode()
    framer = LineFramer(2 * KEPT)
    found = [one for at in range(0, len(line), chunk) for one in framer.push(line[at : at + chunk])]
    found += framer.push(b"\nrest")
    assert isinstance(found[0], ShortenedLine)
    assert found[0].size == len(line)
    assert len(found[0]) < 2 * KEPT + 100
    event = decode(found[0])
    assert event is not None
    assert (event["id"], event["last"]) == ("1", 2)
    begin, _, rest = str(event["text"]).partition("…(")
    end = rest.rpartition(")…")[2]
    assert text[: KEPT // 12] == begin[: KEPT // 12]
    assert text[-KEPT // 12 :] == end[-KEPT // 12 :]
    assert framer.flush() == [b"rest"]


@pytest.mark.parametrize("like", RUNNERS)
def test_a_reply_as_long_as_it_may_be_is_whole(like: str) -> None:
    parser, text = RUNNERS[like].parser(), 'A "line" \\ of code.\n' * 500
    parser.longest = len(text)
    read(parser, spoken(like, text).encode())
    verdict = parser.finish(0, "")
    assert (verdict.text.strip(), verdict.failure, verdict.cut) == (text.strip(), None, False)


@pytest.mark.parametrize("like", RUNNERS)
def test_a_reply_in_a_line_that_is_too_long_keeps_its_beginning_and_its_end(like: str) -> None:
    parser, text = RUNNERS[like].parser(), f"Begin.{' of a line' * KEPT} End."
    parser.longest = KEPT
    read(parser, spoken(like, text).encode())
    verdict = parser.finish(0, "")
    assert verdict.cut
    assert verdict.text.startswith("Begin. of")
    assert verdict.text.strip().endswith("line End.")
    assert len(verdict.text) < 3 * KEPT


def test_so_does_a_reply_that_is_the_output() -> None:
    parser = PipeRunner().parser()
    parser.longest = KEPT
    read(parser, b"Begin.%s End.\n" % (b" of a line" * KEPT))
    verdict = parser.finish(0, "")
    assert verdict.cut
    assert verdict.text.startswith("Begin. of")
    assert verdict.text.endswith("line End.")


@pytest.mark.parametrize("size", some([KEPT, 3 * KEPT, 10 * KEPT], KEPT, 10 * KEPT))
def test_a_long_line_that_is_no_reply_is_noted_and_keeps_its_call(size: int) -> None:
    parser, call = CodexRunner().parser(), {"id": "item_1", "type": "command_execution", "command": "cat huge"}
    parser.longest = KEPT
    done = {**call, "aggregated_output": "x" * size, "exit_code": 0, "status": "completed"}
    lines = [{"type": "item.started", "item": call}, {"type": "item.completed", "item": done}]
    events = read(
        parser, b"".join(json.dumps(line).encode() + b"\n" for line in lines) + spoken("codex", "Read.").encode()
    )
    [note] = [event.text for event in events if isinstance(event, Note)]
    assert note.startswith("left out most of a line of ")
    [result] = [event for event in events if isinstance(event, ToolResult)]
    assert (result.id, result.failed) == ("item_1", False)
    assert len(result.output) < 2 * KEPT + 100
    verdict = parser.finish(0, "")
    assert (verdict.text, verdict.failure, verdict.cut) == ("Read.", None, False)


def test_a_long_line_of_anything_else_is_noted() -> None:
    parser = ClaudeRunner().parser()
    parser.longest = KEPT
    [note] = read(parser, b"x" * (ESCAPED * KEPT + 1 + 2 * KEPT))
    assert isinstance(note, Note)


def test_the_answer_of_a_program_that_has_only_a_terminal_is_cut_too() -> None:
    parser = TerminalRunner().parser()
    parser.longest = KEPT
    read(parser, json.dumps({"type": "answer", "text": "word " * ESCAPED * KEPT}).encode() + b"\n")
    assert parser.finish(0, "").cut


def test_a_low_limit_is_one_of_the_reply_alone() -> None:
    parser = CodexRunner().parser()
    parser.longest = 10
    events = read(parser, spoken("codex", "word " * 1000).encode() + spoken("codex", "Short.").encode())
    assert [event for event in events if isinstance(event, Note)] == []
    assert parser.finish(0, "") == Verdict("Short.", usage=parser.finish(0, "").usage)


def test_what_gemini_said_before_a_tool_call_does_not_count() -> None:
    parser = GeminiRunner().parser()
    parser.longest = KEPT
    said = {"type": "message", "role": "assistant", "content": "word " * KEPT, "delta": True}
    call = {"type": "tool_use", "tool_name": "ls", "tool_id": "1", "parameters": {}}
    output = "".join(f"{json.dumps(line)}\n" for line in (said, call)) + spoken("gemini", "Short.")
    read(parser, output.encode())
    assert (parser.finish(0, "").text.strip(), parser.finish(0, "").cut) == ("Short.", False)
