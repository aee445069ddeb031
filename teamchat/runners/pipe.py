"""Any other program: prompt on stdin, answer on stdout, nothing else is known of it."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterable

from teamchat.runners.agent_events import AgentEvent, Failure, FailureKind, TextDelta
from teamchat.runners.base import Command, EventParser, Job, Runner, Verdict
from teamchat.runners.failures import FailureWords, ending, is_blank, last_words, no_answer
from teamchat.runners.longest import LONGEST_REPLY, ReplyText


class PipeOutput:
    """Its output is its answer. Success is exit code 0 and visible text: there is no other sign."""

    by_lines = False
    answered = False
    longest = LONGEST_REPLY

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._text = ReplyText()
        self._line_end = ""  # line ends at the end so far; the last one may not belong to the answer

    def feed(self, *data: bytes) -> Iterable[AgentEvent]:
        piece = self._decoder.decode(b"".join(data))
        self._add(piece)
        return (TextDelta(piece),) if piece else ()

    def _add(self, piece: str) -> None:
        if piece:
            body = piece.removesuffix("\n")
            self._text.add(self._line_end + body, self.longest)
            self._line_end = piece[len(body) :]

    def feed_stderr(self, line: bytes) -> Iterable[AgentEvent]:  # noqa: ARG002 (nothing is known of it)
        return ()

    def finish(self, exit_code: int, stderr_tail: str) -> Verdict:
        self._add(self._decoder.decode(b"", final=True))
        was_cut, text = self._text.over, str(self._text)
        voice = FailureWords(login="")
        if exit_code != 0:
            words = last_words(stderr_tail, voice)
            failed: Failure | None = Failure(FailureKind.AGENT, ending(exit_code) + (f": {words}" if words else ""))
        else:
            failed = no_answer(stderr_tail, voice) if is_blank(text) else None
        return Verdict(text, failed, cut=was_cut)


class PipeRunner(Runner):
    """Nothing limits what the program does."""

    def command(self, job: Job) -> Command:
        return Command((*job.program, *job.args))

    def parser(self) -> EventParser:
        return PipeOutput()
