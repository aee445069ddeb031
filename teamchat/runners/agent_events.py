"""What an agent does, as one union for all CLIs: `AgentEvent`; and why a turn failed."""

from __future__ import annotations

import re
from enum import StrEnum

from msgspec import Struct

from teamchat.patterns import regex

_EXIT = regex(r"\s*Exit code:? (\d{1,3})\b")  # how Claude's output begins
_LAST_EXIT = regex(r"^Exit Code: (\d{1,3})\b", re.MULTILINE)  # and Gemini's ends
_END = 400  # characters of an output in which that is


class FailureKind(StrEnum):
    """Why a turn failed, in as many kinds as callers have to distinguish."""

    AGENT = "agent"  # the CLI or its model failed
    TIMEOUT = "timeout"  # one of teamchat's clocks ran out
    MISSING = "missing"  # the program is not installed
    LOGIN = "login"  # no login, or a rejected one
    TOO_LARGE = "too_large"  # the input is over the CLI's own limit
    REFUSED = "refused"  # the requested access cannot be given
    RATE_LIMIT = "rate_limit"  # rate limit or quota: a later try may work
    OVERLOADED = "overloaded"  # the vendor or the network: another try may work
    BUDGET = "budget"  # it has used up its budget
    INTERRUPTED = "interrupted"  # the user stopped it
    STOPPED = "stopped"  # teamchat stopped it, because its process is decided without it
    GONE = "gone"  # the vendor session that it was to continue no longer exists


class Started(Struct, frozen=True, gc=False):
    """The CLI has started. `model` and `version` are what it reports."""

    model: str | None = None
    version: str | None = None


class TextDelta(Struct, frozen=True, gc=False):
    """A piece of text as it streams; a later `Text` replaces all pieces since the last one."""

    text: str


class Text(Struct, frozen=True, gc=False):
    """A finished block of the agent's text."""

    text: str


class Thinking(Struct, frozen=True, gc=False):
    text: str


class ToolCall(Struct, frozen=True, gc=False):
    """A tool that began to run; `summary` is one line (a command, a path) for a person to read.

    `lines` are those that an edit adds and removes, if its arguments tell.
    """

    id: str
    name: str
    summary: str
    lines: tuple[int, int] | None = None


class ToolResult(Struct, frozen=True, gc=False):
    """The end of the tool call of that id. `paths` are files the CLI says it changed.

    `exit_code` is that of a command, if the CLI reports it apart from the output.
    """

    id: str
    output: str = ""
    failed: bool = False
    paths: tuple[str, ...] = ()
    exit_code: int | None = None

    @property
    def told_exit_code(self) -> int:
        """The exit code of a command, as far as it is told: 0 otherwise."""
        if self.exit_code is not None:
            return self.exit_code
        match = _EXIT.match(self.output) if self.failed else _LAST_EXIT.search(self.output[-_END:])
        return int(match[1]) if match else 0


class Denied(Struct, frozen=True, gc=False):
    """An action the CLI refused the agent; `detail` is one line."""

    tool: str
    detail: str


class Question(Struct, frozen=True, gc=False):
    """What the agent asked its user by a tool of its CLI, with the options. Nobody answered."""

    text: str


class Retry(Struct, frozen=True, gc=False):
    """The CLI retries its model by itself. For the stall clock this is no sign of life.

    `attempt` is the number of this retry, of `most` at most, and `delay_s` is the wait before it; None is unknown.
    """

    reason: str
    kind: FailureKind = FailureKind.AGENT
    attempt: int | None = None
    most: int | None = None
    delay_s: float | None = None


class Usage(Struct, frozen=True, gc=False):
    """What the CLI reports it used; None is unknown, never zero. `input_tokens` includes the cached ones.

    `cumulative` marks figures that add up over a vendor session (Codex): subtract the previous turn's.
    """

    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    cumulative: bool = False

    @property
    def is_nothing(self) -> bool:
        """True if no tokens are reported. A model call uses some, so zeros mean that nobody counted."""
        return not (self.input_tokens or self.cached_tokens or self.output_tokens)


class UsedSoFar(Struct, frozen=True, gc=False):
    """What the turn has used by now, if the CLI reports it before the end. Each one replaces the one before.

    It is only shown: the `Usage` of the turn's end counts.
    """

    usage: Usage


class VendorSession(Struct, frozen=True, gc=False):
    id: str


NOTHING_YET = "nothing yet (this program answers at its end)"
"""The text of a `Note` on a program that has printed nothing for a while."""


class Note(Struct, frozen=True, gc=False):
    """Something a person may want to know; never fatal."""

    text: str


class Error(Struct, frozen=True, gc=False):
    """An error the CLI reported and may still recover from."""

    text: str


class Done(Struct, frozen=True, gc=False):
    """The CLI's own terminal event; no other event decides success."""

    ok: bool


AgentEvent = (
    Started
    | TextDelta
    | Text
    | Thinking
    | ToolCall
    | ToolResult
    | Denied
    | Question
    | Retry
    | Usage
    | UsedSoFar
    | VendorSession
    | Note
    | Error
    | Done
)
SHOWN_ONLY = (TextDelta, UsedSoFar)
"""The events that the store leaves out: a later `Text` or `Usage` holds what they tell."""


class Failure(Struct, frozen=True, gc=False):
    """Why a turn failed, in words for the user, and what to do if that is known."""

    kind: FailureKind
    reason: str
    hint: str | None = None
