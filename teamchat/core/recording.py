"""Recording a conversation: every turn and input, secrets taken out, appended to a cassette as it happens."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from teamchat.core.agents import AGENT_TYPES
from teamchat.core.cassette import (
    EndLine,
    Entry,
    Header,
    HumanLine,
    Line,
    Said,
    Stream,
    TurnLine,
    dump_line,
    read_cassette,
)
from teamchat.core.errors import UsageError
from teamchat.core.messages import ConversationMessage
from teamchat.core.redact import Redactor
from teamchat.core.team import Like, Team
from teamchat.core.team_json import team_to_json
from teamchat.runners.base import TextDelta, Thinking
from teamchat.runners.framing import LineFramer
from teamchat.runners.process import Chunk
from teamchat.runners.recorded import RecordedTurn


@dataclass(frozen=True, slots=True)
class OutputLine:
    """A line of output with its line end, and when its last byte came."""

    at: float
    stream: str
    data: bytes


class CassetteWriter:
    """Appends to the cassette at `path`; `existing` collects the `@paths` of the turn that is being prepared."""

    def __init__(self, path: Path, team: Team, env: Mapping[str, str], label: str | None = None) -> None:
        self.path, self.redact = path, Redactor(env)
        self.existing: set[str] = set()
        self.header = Header(team=self._clean(team_to_json(team)), label=label)

    def begin(self, messages: int) -> None:
        """Write the header, or see that the file goes on where this conversation stands (`messages` so far).

        Raises `UsageError` when it does not: a replay could never find the turns.
        """
        if self.path.exists() and self.path.stat().st_size:
            self._check(messages)
        elif messages:
            raise UsageError(
                "a recording begins with a new conversation: what was said before would be missing in it",
                f"teamchat send --new --record {self.path} ...",
            )
        else:
            self._append(self.header)

    def _check(self, messages: int) -> None:
        there = read_cassette(self.path)
        recorded = sum(len(end.said) for _, end in there.runs if end)
        if there.header.team != self.header.team or recorded != messages:
            raise UsageError(
                f"{self.path} records another team or conversation", "record into another file, or go on with that one"
            )

    def human(self, text: str, speaker: str | None, to: str | None) -> None:
        self._append(Entry(human=HumanLine(text=self.redact(text), speaker=speaker, to=to)))

    def end(self, code: int, messages: Iterable[ConversationMessage]) -> None:
        said = [Said.of(message) for message in messages]
        clean = [line.model_copy(update={"text": self.redact(line.text)}) for line in said]
        self._append(Entry(end=EndLine(code=code, said=clean)))

    def turn(self, turn: RecordedTurn) -> None:
        self._append(Entry(turn=self.turn_line(turn)))
        self.existing.clear()

    def turn_line(self, turn: RecordedTurn) -> TurnLine:
        lines = redact_streamed(redact_lines(output_lines(turn.chunks), self.redact), turn.identity.agent, self.redact)
        system = turn.identity.system_text
        return TurnLine(
            member=turn.identity.member,
            agent=turn.identity.agent,
            system=None if system is None else self.redact(system),
            stdin=self.redact(turn.stdin.decode(errors="replace")),
            argv=[self.redact(word) for word in turn.argv],
            env=list(turn.env_names),
            existing=sorted(self.redact(path) for path in self.existing),
            output=[_encoded(line) for line in lines],
            exit_code=turn.exit.code,
            seconds=round(turn.exit.seconds, 3),
            left=list(turn.exit.left),
        )

    def _clean(self, value: Any) -> Any:
        """JSON with every text in it redacted."""
        return json.loads(self.redact(json.dumps(value, ensure_ascii=False, default=list)))

    def _append(self, line: Line) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(dump_line(line))
        except OSError as error:
            raise UsageError(f"the cassette {self.path} can not be written: {error.strerror}") from error


def output_lines(chunks: Iterable[Chunk]) -> list[OutputLine]:
    """The output of a turn, line by line, in the order the lines were complete."""
    framers = {"out": LineFramer(), "err": LineFramer()}
    lines, at = [], 0.0
    for chunk in chunks:
        at = chunk.at
        lines += [OutputLine(at, chunk.stream, line + b"\n") for line in framers[chunk.stream].push(chunk.data)]
    return lines + [OutputLine(at, stream, line) for stream, framer in framers.items() for line in framer.flush()]


def redact_lines(lines: list[OutputLine], redact: Redactor) -> list[OutputLine]:
    """Without the secrets that stand in the output as it is; one may go over several lines."""
    result = list(lines)
    for stream in ("out", "err"):
        places = [index for index, line in enumerate(lines) if line.stream == stream]
        whole = redact(b"".join(lines[index].data for index in places).decode("utf-8", "surrogateescape"))
        for index, text in zip(places, _split(whole), strict=True):
            result[index] = OutputLine(lines[index].at, stream, text.encode("utf-8", "surrogateescape"))
    return result


def _split(text: str) -> list[str]:
    """At line feeds only, which stay with their line."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def redact_streamed(lines: list[OutputLine], agent: str, redact: Redactor) -> list[OutputLine]:
    """Without the secrets that only stand there when streamed pieces of text are put together."""
    parser = AGENT_TYPES[cast("Like", agent)].runner.parser()
    pieces: list[tuple[int, str]] = []
    for index, line in enumerate(lines):
        if line.stream == "out":
            events = parser.feed(line.data.removesuffix(b"\n"))
            pieces += [(index, event.text) for event in events if isinstance(event, TextDelta | Thinking)]
    whole = "".join(text for _, text in pieces)
    clean = redact(whole)
    if clean == whole:
        return lines
    result, start = list(lines), 0
    for index, text in pieces:
        piece = clean[start : start + len(text)]
        start += len(text)
        if piece != text:
            result[index] = _with_text(result[index], text, piece)
    return result


def _with_text(line: OutputLine, old: str, new: str) -> OutputLine:
    """The line with that text in its JSON, or as it stands, replaced."""
    try:
        value = json.loads(line.data)
    except ValueError:
        text = line.data.decode("utf-8", "surrogateescape").replace(old.removesuffix("\n"), new.removesuffix("\n"))
        return OutputLine(line.at, line.stream, text.encode("utf-8", "surrogateescape"))
    data = json.dumps(_replaced(value, old, new), ensure_ascii=False).encode() + b"\n"
    return OutputLine(line.at, line.stream, data)


def _replaced(value: Any, old: str, new: str) -> Any:
    match value:
        case str():
            return new if value == old else value
        case list():
            return [_replaced(item, old, new) for item in value]
        case dict():
            return {key: _replaced(item, old, new) for key, item in value.items()}
        case _:
            return value


def _encoded(line: OutputLine) -> tuple[float, Stream, str]:
    at = round(line.at, 3)
    try:
        return at, cast("Stream", line.stream), line.data.decode()
    except UnicodeDecodeError:
        return at, cast("Stream", f"{line.stream}64"), base64.b64encode(line.data).decode()
