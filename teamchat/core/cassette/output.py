"""The output of a turn as a cassette has it: line by line, without secrets."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from teamchat.core.cassette.streamed import redact_streamed
from teamchat.runners.framing import LineFramer
from teamchat.runners.running import Chunk


@dataclass(frozen=True, slots=True)
class OutputLine:
    """A line of output with its line end, and when its last byte came."""

    at: float
    stream: str
    data: bytes


def named(cwd: Path | None, lines: Iterable[OutputLine]) -> str | None:
    """The folder, if the output tells it anyway."""
    name = str(cwd)
    written = {form.encode(errors="surrogateescape") for form in (name, json.dumps(name)[1:-1])}
    return name if cwd and any(form in line.data for line in lines for form in written) else None


def output_lines(chunks: Iterable[Chunk]) -> list[OutputLine]:
    """The output of a turn, line by line, in the order the lines were complete."""
    framers = {"out": LineFramer(), "err": LineFramer()}
    lines, at = [], 0.0
    for chunk in chunks:
        at = chunk.at
        lines += [OutputLine(at, chunk.stream, line + b"\n") for line in framers[chunk.stream].push(chunk.data)]
    return lines + [OutputLine(at, stream, line) for stream, framer in framers.items() for line in framer.flush()]


def redact_lines(lines: list[OutputLine], redact: Callable[[str], str]) -> list[OutputLine]:
    """Without the secrets that stand in the output as it is, one over several lines too, or are streamed in pieces."""
    result = list(lines)
    for stream in ("out", "err"):
        places = [index for index, line in enumerate(lines) if line.stream == stream]
        whole = b"".join(lines[index].data for index in places).decode("utf-8", "surrogateescape")
        # the pieces first: what is taken out of one of them alone could hide the rest of the secret
        clean = redact("".join(redact_streamed(_split(whole), redact)))
        for index, text in zip(places, _split(clean), strict=True):
            result[index] = OutputLine(lines[index].at, stream, text.encode("utf-8", "surrogateescape"))
    return result


def _split(text: str) -> list[str]:
    """At line feeds only, which stay with their line."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def encoded(line: OutputLine) -> tuple[float, str, str]:
    at = round(line.at, 3)
    try:
        return at, line.stream, line.data.decode()
    except UnicodeDecodeError:
        return at, f"{line.stream}64", base64.b64encode(line.data).decode()
