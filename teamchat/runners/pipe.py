"""A program without code of its own here: prompt on stdin, answer on stdout, and the rest as its row says."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from textwrap import dedent

from teamchat.patterns import regex
from teamchat.runners.agent_events import AgentEvent, Failure, FailureKind, TextDelta, VendorSession
from teamchat.runners.agent_row import ANY, ARGUMENT_BYTES, OWN, AgentRow, Prompt
from teamchat.runners.base import (
    NOT_ENFORCED,
    NOT_PROVEN,
    Access,
    Command,
    EventParser,
    Job,
    Limit,
    Prepared,
    Runner,
    Sessions,
    Verdict,
)
from teamchat.runners.failures import SEQUENCE, FailureWords, classify, ending, failure, is_blank, last_words, no_answer
from teamchat.runners.longest import LONGEST_REPLY, ReplyText
from teamchat.runners.untrusted.json import at_path, decode, document, one_line, scalar

_TOLD = (FailureKind.LOGIN, FailureKind.RATE_LIMIT, FailureKind.OVERLOADED, FailureKind.TOO_LARGE)
"""The kinds of failure that a program's own words may tell."""
_BULLET = regex(r"[•●⏺◦▪] ")
_SEQUENCE = regex(SEQUENCE)
_THROUGH: Mapping[Prompt, tuple[str, ...]] = {
    "file": (),
    "pipe": ("/bin/sh", "-c", 'cat | "$@"', "sh"),
    "argument": ("/bin/sh", "-c", 'p="$(cat)"; case "$p" in -*) p=" $p";; esac; exec "$@" "$p"', "sh"),
}
"""The command that runs the program so that the prompt reaches it: teamchat gives it a file as standard input.

A prompt that is an argument never begins with a dash, which would make it an option.
"""


class PipeOutput:
    """Reads output that is the answer. Success is exit code 0 and visible text: there is no other sign."""

    by_lines = False
    at_end = True
    answered = False
    longest = LONGEST_REPLY

    def __init__(self, row: AgentRow = ANY) -> None:
        self._row = row
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._text = ReplyText()
        self._line_end = ""  # line ends at the end so far; the last one may not belong to the answer

    def feed(self, *data: bytes) -> Iterable[AgentEvent]:
        piece = self._decoder.decode(b"".join(data))
        self._add(piece)
        return (TextDelta(piece),) if piece and self._row.reply == "plain" else ()

    def _add(self, piece: str) -> None:
        if piece:
            body = piece.removesuffix("\n")
            self._text.add(self._line_end + body, self.longest)
            self._line_end = piece[len(body) :]

    def feed_stderr(self, line: bytes) -> Iterable[AgentEvent]:  # noqa: ARG002 (nothing is known of it)
        return ()

    def finish(self, exit_code: int, stderr_tail: str) -> Verdict:
        self._add(self._decoder.decode(b"", final=True))
        text = str(self._text)
        if self._row.reply == "strip":
            text = stripped(text)
        return Verdict(text, failure_of(self._row, text, exit_code, stderr_tail), cut=self._text.over)


class JsonReply:
    """Reads JSON with the reply at the row's path: in one document, or in the last line that has it."""

    by_lines = True
    at_end = True
    answered = False
    longest = LONGEST_REPLY

    def __init__(self, row: AgentRow) -> None:
        self._row = row
        self._reply: str | None = None
        self._session = ""
        self._text = ReplyText()

    def feed(self, *lines: bytes) -> Iterable[AgentEvent]:
        for line in lines:
            self._text.add(line.decode(errors="replace") + "\n", self.longest)
            if (event := decode(line)) is not None:
                yield from self._read(event)

    def _read(self, value: object) -> Iterable[AgentEvent]:
        reply, session = at_path(value, self._row.json), at_path(value, self._row.session)
        if isinstance(reply, str):
            self._reply = reply
        if isinstance(session, str) and session != self._session and _is_id(session):
            self._session = session
            yield VendorSession(session)

    def feed_stderr(self, line: bytes) -> Iterable[AgentEvent]:  # noqa: ARG002 (nothing is known of it)
        return ()

    def finish(self, exit_code: int, stderr_tail: str) -> Verdict:
        printed = str(self._text)
        if self._reply is None:
            for _ in self._read(document(printed)):
                pass
        if self._reply is None:
            lacks = Failure(FailureKind.AGENT, f"printed no JSON with a text at {self._row.json}")
            return Verdict(printed.rstrip("\n"), failure_of(self._row, printed, exit_code, stderr_tail) or lacks)
        return Verdict(self._reply, failure_of(self._row, self._reply, exit_code, stderr_tail))


def _voice(row: AgentRow) -> FailureWords:
    noise = "|".join(map(re.escape, row.noise))
    return FailureWords(row.login, regex(noise)) if noise else FailureWords(row.login)


def _is_id(session: str) -> bool:
    """Whether a text can be the id of a session: one word that an argument can hold."""
    return 0 < len(session) <= _LONGEST_ID and session.isprintable() and not session.startswith("-")


_LONGEST_ID = 200  # characters


def stripped(text: str) -> str:
    """Remove colours, a bullet before the first line, and the common indent of the other lines."""
    first, line_end, others = _SEQUENCE.sub("", text).strip("\n").partition("\n")
    if bullet := _BULLET.match(first.lstrip()):
        first = first.lstrip()[bullet.end() :]
    return (first + line_end + dedent(others)).rstrip()


def failure_of(row: AgentRow, text: str, exit_code: int, stderr_tail: str) -> Failure | None:
    """Say why a turn that printed this reply failed; None if it did not.

    The program's last words, on stderr or else at the end of its output, tell whether a login, a limit or its model's
    service is the reason.
    """
    voice = _voice(row)
    if exit_code != 0:
        words, ended = last_words(stderr_tail, voice), ending(exit_code)
        if not ended.startswith("was ended"):
            for said in (words, last_words(text[-_LAST:], voice)):
                if (kind := classify(said)) in _TOLD:
                    return failure(voice, said, kind=kind)
        return Failure(FailureKind.AGENT, f"{ended}: {words}" if words else ended)
    try:
        place = _searched(row.fail_pattern, text) if row.fail_pattern else None
    except TimeoutError as error:
        return Failure(FailureKind.AGENT, str(error))
    if place:
        begin, end = text.rfind("\n", 0, place[0]) + 1, text.find("\n", place[1])
        words = one_line(text[begin : end if end >= 0 else None], _LONGEST_REASON)
        return failure(voice, words, kind=kind if (kind := classify(words)) in _TOLD else FailureKind.AGENT)
    return no_answer(stderr_tail, voice) if is_blank(text) else None


def _searched(pattern: str, text: str) -> tuple[int, int] | None:
    """Find the characters that the pattern matches; None if it does not match. Raises `TimeoutError`.

    Another process searches, since no search of Python's own can be stopped, and some take for ever.
    """
    from teamchat.runners.child.command import run  # most programs have no pattern

    given = json.dumps([pattern, scalar(text)]).encode()
    try:
        done = run((sys.executable, "-I", "-S", "-c", _SEARCH), Path("/"), os.environ, PATTERN_S, given)
    except OSError as error:
        raise TimeoutError(f"its fail_pattern could not be searched for: {error}") from None
    if done.code is None:
        why = f"took longer than {PATTERN_S:g} s on this reply: make it simpler"
        raise TimeoutError(f"its fail_pattern {why}")
    if done.code:
        raise TimeoutError(f"its fail_pattern could not be searched for: {ending(done.code)}")
    begin, _, end = done.out.partition(b" ")
    return (int(begin), int(end)) if end else None


PATTERN_S = 5.0
_SEARCH = """
import json, re, sys
pattern, text = json.load(sys.stdin)
match = re.search(pattern, text, re.MULTILINE)
print(*(match.span() if match else ()))
"""
_LAST = 4000  # characters at the end of an output
_LONGEST_REASON = 500  # characters


class PipeRunner(Runner):
    """Runs a program by its row; `parser_of` reads its output where that is a vendor's format.

    If the row bounds no access, nothing limits the program.
    """

    first_byte_s = math.inf  # most such programs print their reply at its end
    stall_s = math.inf

    def __init__(self, row: AgentRow = ANY, parser_of: Callable[[], EventParser] | None = None) -> None:
        self.row, self._parser_of = row, parser_of
        largest = min(row.largest or ARGUMENT_BYTES, ARGUMENT_BYTES) if row.prompt == "argument" else row.largest
        self.limit = Limit(largest) if largest else None
        if row.access:
            self.access_notes = {access: self._note(access) for access in Runner.access_notes}
        if row.resume:
            self.sessions = Sessions(
                system_each_time=False,
                live=False,
                open=lambda session, _cwd: _filled(row.resume, session),
                stays_in=row.stays_in,
                keeps_all=True,
            )

    def _note(self, access: Access) -> str:
        bounds = self.row.access.get(access)
        if bounds is None:
            return f"{NOT_ENFORCED}: its row has no access {access}"
        if not bounds.note:
            return Runner.access_notes[access]
        if self.row.origin != OWN:
            return f"as its row says: {bounds.note}"
        return bounds.note if self.row.proven else f"{bounds.note}, observed {self.row.observed}: {NOT_PROVEN}"

    def prepare(self, prompt: str, *, typed: range, exists: Callable[[str], bool]) -> Prepared:
        """Make an `@path` of others inert where the path exists: several CLIs add such a file to their prompt.

        Seen in qwen 0.24.4, vibe 3.0.2 and cline 3.0.65. Nothing else is escaped, so that a plain program reads the
        text unchanged.
        """
        if self.row.mentions != "inert" or "@" not in prompt:
            return super().prepare(prompt, typed=typed, exists=exists)
        from teamchat.runners.mentions import Existing, escaped_mention, inert, mention  # most prompts have none

        known = Existing(exists)

        def escaped(mention: re.Match[str]) -> str:
            there = known.all or known.at(mention.string, mention.end())
            return escaped_mention(mention[0]) if there else mention[0]

        return inert(prompt, typed, regex(mention()), escaped)

    def command(self, job: Job) -> Command:
        row, bounds = self.row, self.row.access.get(job.access)
        argv = [*job.program, *(bounds.args if bounds else ())]
        if job.model and row.model:
            argv += _filled(row.model, job.model)
        if job.resumes and row.resume:
            argv += _filled(row.resume, job.resumes)
        env = {**row.env, **(bounds.env if bounds else {})}
        return Command((*argv, *job.args, *row.last), env, through=_THROUGH[row.prompt])

    def parser(self) -> EventParser:
        if self._parser_of:
            from teamchat.runners.json_events import JsonEvents  # a vendor's parser has loaded it

            parser = self._parser_of()
            if isinstance(parser, JsonEvents):
                parser.voice, parser.at_end = _voice(self.row), True
            return parser
        return JsonReply(self.row) if self.row.json else PipeOutput(self.row)

    def refusal(self, access: Access, env: Mapping[str, str]) -> str | None:  # noqa: ARG002 (as for every user)
        if not self.row.access or access in self.row.access:
            return None
        return f"its row has {' and '.join(self.row.access)} alone"

    def reads_note(self, job: Job) -> str:
        read, run = self.row.instructions, self.row.files_that_run
        note = f"{', '.join(read)} of its folder, and its user's settings" if read else super().reads_note(job)
        return f"{note}; runs what {', '.join(run)} of its folder names" if run else note


def _filled(words: Iterable[str], value: str) -> tuple[str, ...]:
    return tuple(word.replace("{}", value) for word in words)
