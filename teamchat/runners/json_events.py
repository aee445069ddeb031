"""The common part of the parsers of CLIs that print one JSON object per line: junk, partial text, the judgement.

A parser of one CLI reads an event in `read` and leaves its results here: `said` and `live` (text so far), `reply` and
`done` (the CLI's own success event), `error` (the CLI's own word that it failed). Success needs all of exit code 0,
`done`, no `error` and a visible reply; the CLIs were seen to exit with 0 without each of the others.

An agent may ask its user a question by a tool of its CLI. Nobody can answer while the agent runs.

Claude's AskUserQuestion and Gemini's ask_user have the same input. Without a terminal neither CLI offers its tool
(Claude 2.1.197 to 2.1.330 except with `--permission-prompt-tool`, Gemini 0.55.1 to 0.61.0), and both refuse a call of
it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from teamchat.runners.agent_events import (
    AgentEvent,
    Error,
    Failure,
    FailureKind,
    Note,
    Question,
    Retry,
    Text,
    TextDelta,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from teamchat.runners.base import Verdict
from teamchat.runners.failures import FailureWords, classify, ending, failure, is_blank, last_words, no_answer
from teamchat.runners.longest import LONGEST_REPLY, ReplyText, ShortenedLine, cut
from teamchat.runners.untrusted.json import PartOfObject, decode, one_line, summary

_TROUBLES, _PROGRESS = (Retry, Error), (TextDelta, Text, Thinking, ToolCall)
_JUNK_NOTES = 20  # per turn: a program that prints no JSON at all must not flood the record


class JsonEvents(ABC):
    by_lines = True
    at_end = False
    answered = False
    longest = LONGEST_REPLY

    def __init__(self, voice: FailureWords) -> None:
        self.voice = voice
        self.said: list[list[str]] = []  # texts, each in blocks that follow each other
        self.goes_on = False  # whether the next block follows the last one
        self.live = ReplyText()
        self.cut = False  # whether the middle of its reply was left out
        self.reply = ""
        self.done = False
        self.error: str | None = None
        self.status: int | None = None
        self.kind: FailureKind | None = None
        self._trouble: Retry | Error | None = None
        self._junk: list[str] = []
        self._asked: dict[str, str] = {}  # open questions to the user, by their calls
        self._asks = False

    @abstractmethod
    def read(self, event: dict[str, object]) -> Iterable[AgentEvent]:
        """Read the events of one JSON object; unknown shapes have none."""

    def piece(self, event: dict[str, object]) -> str | None:  # noqa: ARG002 (some CLIs stream no text)
        """Return the text of an event that does nothing but stream text or other input; None of any other event.

        A long answer has hundreds of thousands of these, so they take a short way past `read`.
        """
        return None

    def feed(self, *lines: bytes) -> Iterable[AgentEvent]:
        events: list[AgentEvent] = []
        pieces: list[str] = []
        longest = max(self.longest, LONGEST_REPLY)
        for line in lines:
            event = decode(line)
            if event is None:
                events += self._streamed(pieces)
                events += self._note_junk(line)
            elif len(line) > longest or isinstance(line, ShortenedLine) or isinstance(event, PartOfObject):
                events += self._streamed(pieces)
                events += self._read_long(line, event)
            elif (text := self.piece(event)) is not None:
                pieces.append(text)
            else:
                events += self._streamed(pieces)
                for agent_event in self.read(event):
                    self._watch(agent_event)
                    events.append(agent_event)
        events += self._streamed(pieces)
        return events

    def _read_long(self, line: bytes, event: dict[str, object]) -> Iterator[AgentEvent]:
        """Read the events of a line that is longer than a reply may be. Outside a reply most of it is left out."""
        text, was_cut = self.piece(event), isinstance(line, ShortenedLine)
        events = list(self.read(event) if text is None else self.stream(text))
        if text is not None:
            self.live.over = self.live.over or was_cut
        elif self.done or any(isinstance(agent_event, Text) for agent_event in events):
            self.cut = self.cut or was_cut
        else:
            size = line.size if isinstance(line, ShortenedLine) else len(line)
            events = [Note(f"left out most of a line of {size:,} bytes, which is no part of its reply"), *events]
        for agent_event in events:
            self._watch(agent_event)
            match agent_event:
                case Thinking(text=text) | Error(text=text) | Question(text=text):
                    yield replace(agent_event, text=cut(text))
                case ToolResult(output=output):
                    yield replace(agent_event, output=cut(output))
                case _:
                    yield agent_event

    def _streamed(self, pieces: list[str]) -> Iterator[AgentEvent]:
        """Join the pieces into one text, stream it, and empty the list."""
        if pieces:
            text = "".join(pieces)
            pieces.clear()
            for event in self.stream(text):
                self._watch(event)
                yield event

    def feed_stderr(self, line: bytes) -> Iterable[AgentEvent]:
        events = tuple(self.read_stderr(line.decode("utf-8", "replace")))
        for event in events:
            self._watch(event)
        return events

    def read_stderr(self, line: str) -> Iterator[AgentEvent]:  # noqa: ARG002 (most CLIs say nothing of use there)
        yield from ()

    def finish(self, exit_code: int, stderr_tail: str) -> Verdict:
        if problem := self._failure(exit_code, stderr_tail):
            text, live = self.texts(), str(self.live)
            if not is_blank(live):
                text += live if self.goes_on or not text else f"\n\n{live}"
            return Verdict(text, problem, self.used(), cut=self.cut)
        return Verdict(self.reply, usage=self.used(), cut=self.cut)

    def used(self) -> Usage | None:
        """Return the turn's usage so far, apart from `Usage` events; most CLIs report it only at the end."""
        return None

    def fail(self, message: str, *, status: int | None = None, kind: FailureKind | None = None) -> None:
        """Note that the CLI reports the turn as failed."""
        self.error, self.status, self.kind = message, status, kind

    def say(self, text: str) -> Iterator[AgentEvent]:
        """Add a finished block of text, which replaces its streamed pieces."""
        self.forget()
        if self.goes_on:
            self.said[-1].append(text)
        elif not is_blank(text):
            self.said.append([text])
        if not is_blank(text):
            yield Text(text)

    def texts(self, since: int = 0) -> str:
        """Join the texts said from number `since` on, with an empty line between them."""
        return "\n\n".join("".join(blocks) for blocks in self.said[since:])

    def stream(self, text: str) -> Iterator[AgentEvent]:
        if text:
            self.live.add(text, self.longest)
            yield TextDelta(text)

    def unanswered(self, tool: str, *, failed: bool = True) -> Iterator[AgentEvent]:
        """Report the question of a finished tool call, if it was one and got no answer."""
        question = self._asked.pop(tool, None)
        if question is not None and failed:
            self._asks = True
            yield Question(question)

    def all_unanswered(self) -> Iterator[AgentEvent]:
        for tool in tuple(self._asked):
            yield from self.unanswered(tool)

    def forget(self) -> None:
        """Drop the streamed text: it is not part of the answer, or has come as a whole."""
        self.live = ReplyText()

    def retry(self, reason: str, attempt: int | None = None, status: int | None = None) -> Retry:
        return Retry(one_line(reason), classify(reason, status), attempt)

    def _watch(self, event: AgentEvent) -> None:
        """Remember a retry or an error until something follows it. If the turn ends there, it is the reason."""
        if isinstance(event, _TROUBLES):
            self._trouble = event
        elif isinstance(event, _PROGRESS):
            self._trouble = None

    def _note_junk(self, line: bytes) -> Iterable[AgentEvent]:
        if len(self._junk) < _JUNK_NOTES and (text := one_line(line.decode("utf-8", "replace"), 500)):
            self._junk.append(text)
            yield Note(f"printed a line that is no event: {text}")

    def _failure(self, exit_code: int, stderr_tail: str) -> Failure | None:
        untold = self.error is None or self.kind is FailureKind.INTERRUPTED
        if isinstance(self._trouble, Retry) and not self.done and untold:
            return failure(self.voice, self._trouble.reason, kind=self._trouble.kind)
        if self.error is not None:
            return failure(self.voice, self.error, self.status, self.kind)
        if self.done and exit_code == 0:
            return no_answer(stderr_tail, self.voice) if is_blank(self.reply) and not self._asks else None
        signalled = ending(exit_code).startswith("was ended")
        if isinstance(self._trouble, Error) and not self.done and not signalled:
            return failure(self.voice, self._trouble.text, self.status)
        words = "" if signalled else last_words(stderr_tail, self.voice) or "".join(self._junk[-1:])
        if words and not self.done and (exit_code != 0 or classify(words) is not FailureKind.AGENT):
            return failure(self.voice, words, self.status)
        when = "after it had answered" if self.done else "before it had finished its answer"
        return Failure(FailureKind.AGENT, f"{ending(exit_code)} {when}" + (f": {words}" if words else ""))


def questions_text(asked: object) -> str:
    """Write the questions of a tool call, each with its options, for a person to read."""
    questions = asked.get("questions") if isinstance(asked, dict) else None
    texts = [text for question in _dicts(questions) if (text := _question(question))]
    return "\n\n".join(texts) or summary(asked) or "(a question without words)"


def _question(question: dict[str, object]) -> str:
    text = question.get("question")
    if not isinstance(text, str):
        return ""
    several = " (several may be chosen)" if question.get("multiSelect") is True else ""
    return "\n".join((text.strip() + several, *map(_option, _dicts(question.get("options"))))).strip()


def _option(option: dict[str, object]) -> str:
    parts = (option.get("label"), option.get("description"))
    return "- " + ": ".join(part for part in parts if isinstance(part, str) and part)


def _dicts(values: object) -> Iterator[dict[str, object]]:
    yield from (value for value in values if isinstance(value, dict)) if isinstance(values, list) else ()
