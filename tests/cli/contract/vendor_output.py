"""How each kind of agent says things: bytes for the fake agent's step `raw`, in the events of the CLI it stands for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from teamchat.core.agents import ProtocolName
from tests.fakes.scripted import spoken

ANSWER = "Whole answer, grüße 🎉"
HALF = "half of it"
Event = Mapping[str, object]


@dataclass(frozen=True)
class Voice:
    """`begins` and `half` are what comes before a half answer and the half answer itself; `failures` are outputs in
    which the CLI itself says "the model is gone", in all its ways."""

    protocol: ProtocolName
    begins: tuple[Event, ...] = ()
    half_said: tuple[Event, ...] = ()
    failures: tuple[tuple[Event, ...], ...] = ()
    soft: str = "SIGTERM"  # what it is told first, to stop
    stays: bool = False  # kept running for many turns (`memory = "live"`)

    @property
    def name(self) -> str:
        return "live" if self.stays else self.protocol

    @property
    def eventful(self) -> bool:
        return self.protocol != "plain"

    @property
    def half(self) -> bytes:
        """The beginning of an answer, which goes no further."""
        return lines(self.begins + self.half_said) or HALF.encode()

    def whole(self, text: str = ANSWER) -> bytes:
        """All output of a turn that ends well, its text in UTF-8 and not escaped."""
        said = spoken(self.protocol, text)
        return said.encode() + b"\n" if self.protocol == "plain" else lines(map(json.loads, said.splitlines()))

    def heard(self, *output: bytes) -> str:
        """What is to be stored of a turn with this output: of a program on a pipe all of it, else the answer."""
        return b"".join(output).decode("utf-8", "replace").removesuffix("\n") if self.protocol == "plain" else ANSWER


def lines(events: Iterable[Event]) -> bytes:
    return "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events).encode()


def raw(*output: bytes) -> list[str]:
    """The fake agent's step that writes these bytes."""
    return ["raw", b"".join(output).hex()]


GONE = "the model is gone"
_DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": HALF}}
_SYNTHETIC = {"model": "<synthetic>", "content": [{"type": "text", "text": GONE}]}
_MESSAGE = {"id": "item_0", "type": "agent_message", "text": HALF}
_RESULT = {"type": "result", "subtype": "success", "is_error": True, "result": GONE}
_SUCCESS = {"type": "result", "status": "success", "stats": {}}

VOICES = (
    Voice("plain"),
    Voice(
        "claude",
        ({"type": "system", "subtype": "init", "model": "fake", "session_id": "v-1"},),
        ({"type": "stream_event", "event": _DELTA},),
        (({"type": "assistant", "message": _SYNTHETIC, "error": "unknown"}, _RESULT), (_RESULT,),
         ({"type": "assistant", "message": _SYNTHETIC, "error": "unknown"},)),
        soft="SIGINT",
    ),
    Voice(
        "codex",
        ({"type": "thread.started", "thread_id": "v-1"}, {"type": "turn.started"}),
        ({"type": "item.completed", "item": _MESSAGE},),
        (({"type": "turn.failed", "error": {"message": GONE}},), ({"type": "error", "message": GONE},)),
    ),
    Voice(
        "gemini",
        ({"type": "init", "session_id": "v-1", "model": "fake"},),
        ({"type": "message", "role": "assistant", "content": HALF, "delta": True},),
        (({"type": "error", "severity": "error", "message": GONE}, _SUCCESS),
         ({"type": "result", "status": "error", "error": {"type": "Error", "message": GONE}},),
         ({"type": "error", "severity": "error", "message": GONE},)),
    ),
    Voice(
        "opencode",
        ({"type": "step_start", "sessionID": "v-1", "part": {"messageID": "m1"}},),
        ({"type": "text", "sessionID": "v-1", "part": {"messageID": "m1", "text": HALF}},),
        (({"type": "error", "sessionID": "v-1", "error": {"name": "APIError", "data": {"message": GONE}}},),),
    ),
)  # fmt: skip
EVENTFUL = VOICES[1:]
LIVE = replace(VOICES[1], stays=True)
