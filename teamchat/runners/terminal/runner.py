"""A program that has only a terminal: `typist.py` types the prompt there and reads the answer from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from teamchat.patterns import regex
from teamchat.runners.agent_events import AgentEvent, Done, Failure, FailureKind, Note, Started, Text, TextDelta
from teamchat.runners.base import Command, EventParser, Job, Prepared, Runner, Verdict
from teamchat.runners.child import isolated
from teamchat.runners.failures import FailureWords, ending, is_blank, last_words, no_answer
from teamchat.runners.longest import LONGEST_REPLY, ShortenedLine
from teamchat.runners.pipe import PipeRunner
from teamchat.runners.untrusted.json import decode, scalar

_KEYS = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_KINDS = frozenset(FailureKind)


class TerminalEvents:
    """The typist's reports. A visible `answer` is success, however the program ended after it."""

    by_lines = True
    at_end = False
    answered = False
    longest = LONGEST_REPLY

    def __init__(self) -> None:
        self._live: list[str] = []
        self._answer: str | None = None
        self._cut = False
        self._failure: Failure | None = None

    def feed(self, *lines: bytes) -> Iterable[AgentEvent]:
        self._cut = self._cut or any(isinstance(line, ShortenedLine) for line in lines)
        return tuple(event for line in lines for event in self._read(decode(line)))

    def _read(self, told: dict[str, object] | None) -> Iterator[AgentEvent]:
        match told:
            case {"type": "ready"}:
                yield Started()
            case {"type": "text", "text": str(text)}:
                self._live.append(text)
                yield TextDelta(text)
            case {"type": "note", "text": str(text)}:
                yield Note(text)
            case {"type": "answer", "text": str(text)}:
                self._answer = text
                yield Text(text)
                yield Done(ok=not is_blank(text))
            case {"type": "failed", "kind": str(kind), "reason": str(reason)}:
                self._failure = Failure(FailureKind(kind) if kind in _KINDS else FailureKind.AGENT, reason)
                yield Done(ok=False)

    def feed_stderr(self, line: bytes) -> Iterable[AgentEvent]:  # noqa: ARG002 (the program's own goes to its terminal)
        return ()

    def finish(self, exit_code: int, stderr_tail: str) -> Verdict:
        voice = FailureWords(login="")
        if self._answer is not None:
            failed = no_answer(stderr_tail, voice) if is_blank(self._answer) else None
            return Verdict(self._answer, failed, cut=self._cut)
        words = last_words(stderr_tail, voice)
        reason = f"{ending(exit_code)} before its prompt came" + (f": {words}" if words else "")
        return Verdict("".join(self._live).rstrip("\n"), self._failure or Failure(FailureKind.AGENT, reason))


class TerminalRunner(PipeRunner):
    """Runs an unknown program, as one on a pipe; nothing limits it.

    Its prompt has to come in time, and its screen shows its output.
    """

    first_byte_s = Runner.first_byte_s
    stall_s = Runner.stall_s

    def prepare(self, prompt: str, *, typed: range, exists: Callable[[str], bool]) -> Prepared:  # noqa: ARG002
        """Remove control characters. They are keys: others' text must not press Ctrl-C or end its own paste."""
        return Prepared(_KEYS.sub("", scalar(prompt).replace("\r\n", "\n").replace("\r", "\n")).encode())

    def command(self, job: Job) -> Command:
        """Build the command, whose program the typist runs. Raises `ValueError` for a job without a terminal."""
        if job.terminal is None:
            raise ValueError("a program on a terminal needs its prompt pattern")
        terminal = job.terminal
        settings = {
            "pattern": terminal.prompt,
            "submit": terminal.submit,
            "leave": terminal.exit,
            "ready_s": job.first_byte_s,
        }
        through = isolated.isolated_command("teamchat.runners.terminal.typist", json.dumps(settings))
        return replace(super().command(job), env={"TERM": "dumb"}, through=through)

    def parser(self) -> EventParser:
        return TerminalEvents()
