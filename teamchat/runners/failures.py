"""Failures in words for people: the kind of a failure, and a reason that continues a sentence after the member's name.

The kind comes from the HTTP status if the CLI reports it, else from the words that the CLIs (2.1.197, 0.169.0, 0.61.0)
were seen to use. A kind decides the caller's next step (try again, ask for a login), so unknown words are `AGENT`.
"""

from __future__ import annotations

import json
import re
from signal import Signals

from msgspec import Struct

from teamchat.patterns import regex
from teamchat.runners.agent_events import Failure, FailureKind
from teamchat.runners.untrusted.json import one_line

# The matching is linear: each character is read once, and nothing is tried again.
SEQUENCE = (
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"  # colours, cursor, screen
    r"|(?:\x1b[\]P^_X]|[\x9d\x90\x9e\x9f\x98])[^\x07\x1b\x9c\n]*+(?:\x07|\x1b\\|\x9c)?"  # titles, links, clipboard
    r"|\x1b[ -/]*+[0-~]"
)
# Controls, formats and fillers, and the marks and selectors that only change a character before them.
_UNSEEN = (
    r"\s\x00-\x1f\x7f-\x9f\u00ad\u0300-\u036f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    r"\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u20d0-\u20f0\u2800\u3164\ufe00-\ufe0f\ufe20-\ufe2f\ufeff"
    r"\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
_NOTHING = regex(rf"(?:{SEQUENCE}|[{_UNSEEN}]){{1,65536}}+")  # no other thread runs while one is found


def is_blank(text: str) -> bool:
    """Whether nothing of the text is visible at a terminal."""
    if text[:1].isascii() and text[:1].isalnum():  # most replies begin so
        return False
    at = 0
    while match := _NOTHING.match(text, at):
        at = match.end()
    return at == len(text)


_REASON = 500  # characters
_Words = tuple[tuple[FailureKind, re.Pattern[str]], ...]


def _words(*rows: tuple[FailureKind, str]) -> _Words:
    """Compile patterns for a text in lower case: without `IGNORECASE` a search takes a fifth of the time."""
    return tuple((kind, regex(words)) for kind, words in rows)


_LIMITS = (
    ("any API", r"rate.?limit"),
    ("any API", r"too many requests"),
    ("any API", r"quota"),
    ("any API", r"usage.?limit"),
    ("Anthropic's API", r"credit balance"),
    ("Google's API", r"resource.?exhausted"),
    ("OpenAI's API", r"billing"),
    ("claude 2.1.330", r"hit your [\w' -]{0,40}limit"),
    (
        "claude, in public reports of 2025 and 2026",
        r"\b(?:session|weekly|daily|\d+-hour|opus|sonnet|fable) limit reached",
    ),
    ("claude, in public reports of 2026", r"out of extra usage"),
    ("codex 0.169.0", r"hit your spend cap"),
    ("codex, in public reports of 2026", r"out of credits\. ask your workspace owner"),
    ("codex, in public reports of 2026", r"out of credits\. add credits to continue"),
)
"""The words of limits in lower case, one row a wording, and whose they are."""
_STRONGER_THAN_STATUS = _words(
    (
        FailureKind.GONE,
        r"no conversation found with session|no rollout found|error resuming session|missing source rollout",
    ),
    (FailureKind.REFUSED, r"cannot be used with root|not (?:running in|inside) a trusted directory"),
    (
        FailureKind.TOO_LARGE,
        r"prompt is too long|context window|context.length|input exceeds|input.too.large|stdin input (?:exc|trunc)",
    ),
    (FailureKind.RATE_LIMIT, "|".join(words for _, words in _LIMITS)),
)
_WEAKER_THAN_STATUS = _words(
    (
        FailureKind.LOGIN,
        r"not logged in|\blog ?in\b|authenticat|unauthori[sz]ed|invalid auth|api.key|missing environment variable",
    ),
    (
        FailureKind.OVERLOADED,
        (
            r"overloaded|no response|high demand|at capacity|server.error|unavailable|timed? ?out|unable to connect"
            r"|connection|disconnected|fetch failed|network|econn|sending request|terminated"
            r"|ended without a finish reason"
        ),
    ),
)
_STATUS = regex(r'(?:status:?|API Error:|"code":)\s*([45]\d\d)\b|\(([45]\d\d)\)')
_LEADS = {
    FailureKind.LOGIN: "is not logged in, or the login was refused",
    FailureKind.TOO_LARGE: "got a prompt that is too large",
    FailureKind.REFUSED: "cannot run with this access",
    FailureKind.RATE_LIMIT: "reached a rate limit or quota",
    FailureKind.OVERLOADED: "got no answer from its model's service",
    FailureKind.BUDGET: "used up its budget",
    FailureKind.INTERRUPTED: "was interrupted",
    FailureKind.STOPPED: "was stopped",
    FailureKind.GONE: "has lost its own session",
}
NO_ANSWER = "finished without an answer"
_SAYS_NOTHING = regex(r"(?:success|succeeded|ok|completed|done|none|null|undefined|unknown)\W*", re.IGNORECASE)
_FEW = 6  # lines of stderr
_PREFIX = regex(r"^(?:\S+Z ERROR \S+: |(?:exception )?\w*error: |warning: )+", re.IGNORECASE)
_TELLING = regex(
    r"error|cannot|can't|could not|failed|denied|invalid|unknown|not found|missing|must|exceeds"
    r"|no version|not set\b|not (?:yet )?installed|not trusted|blocked",  # version managers, direnv
    re.IGNORECASE,
)
_POINTER = regex(r"\brun with --verbose\b|^error details written to ", re.IGNORECASE)  # mise, Volta


class FailureWords(Struct, frozen=True):
    """How one CLI words its failures: its login command, and the stderr lines to ignore."""

    login: str
    noise: re.Pattern[str] = regex(r"(?!)")


def classify(message: str, status: int | None = None) -> FailureKind:
    """Find the kind of the failure in `message`. `status` is the HTTP status if it is known separately."""
    if status is None and (match := _STATUS.search(message)):
        status = int(match[1] or match[2])
    lowered = message.lower()
    return (
        _by_words(lowered, _STRONGER_THAN_STATUS)
        or _by_status(status)
        or _by_words(lowered, _WEAKER_THAN_STATUS)
        or FailureKind.AGENT
    )


def _by_words(lowered: str, table: _Words) -> FailureKind | None:
    return next((kind for kind, words in table if words.search(lowered)), None)


def _by_status(status: int | None) -> FailureKind | None:
    match status:
        case 401 | 403:
            return FailureKind.LOGIN
        case 413:
            return FailureKind.TOO_LARGE
        case 429:
            return FailureKind.RATE_LIMIT
        case int() if status == 408 or 500 <= status < 600:
            return FailureKind.OVERLOADED
        case int() if 400 <= status < 500:
            return FailureKind.AGENT
    return None


def failure(voice: FailureWords, message: str, status: int | None = None, kind: FailureKind | None = None) -> Failure:
    """Build the failure that the CLI reports with `message`."""
    kind = kind or classify(message, status)
    said = plain(message)
    if _SAYS_NOTHING.fullmatch(said):
        said = ""
    lead = _LEADS.get(kind, "reported an error" if said else "failed and gave no reason")
    reason = f"{lead}: {said}" if said else lead
    return Failure(kind, reason, (voice.login or None) if kind is FailureKind.LOGIN else None)


def plain(message: str) -> str:
    """Strip the CLIs' wrapping from a message: `[API Error: …]`, JSON error bodies, `Error:`, log columns."""
    for _ in range(4):  # the message of a body may be another body
        if match := re.match(r"\s*\[API Error: (.*?)\](?:\n|$)", message, re.DOTALL):
            message = match[1]
        elif inner := _json_message(message):
            message = inner
        else:
            break
    return _PREFIX.sub("", one_line(message, _REASON))


def _json_message(text: str) -> str | None:
    try:
        body = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return None
    match body:
        case {"error": {"message": str(message)}} | {"message": str(message)} if message.strip():
            return message
    return None


def last_words(stderr: str, voice: FailureWords) -> str:
    """Find the most useful line of stderr: the last that mentions an error, else the last that is not noise.

    If there are few lines and none mentions an error, the first comes before the last. A line that ends in a colon is
    joined with the next one. A line that only points to more words counts if there is no other.
    """
    cleaned = (one_line(line, _REASON) for line in stderr.split("\n") if not voice.noise.search(line))
    written = [line for line in cleaned if line]
    lines = [line for line in written if not _POINTER.search(line)] or written
    if not lines:
        return ""
    at = next((at for at in reversed(range(len(lines))) if _TELLING.search(lines[at])), None)
    if at is None:
        few = lines[:1] if len(lines) <= _FEW else []
        return one_line(" … ".join(dict.fromkeys((*few, lines[-1]))), _REASON)
    return one_line(" ".join(lines[at : at + 2]), _REASON) if lines[at].endswith(":") else lines[at]


def no_answer(stderr: str, voice: FailureWords) -> Failure:
    """Build the failure of a program that reports success and prints nothing visible; stderr may say why."""
    words = last_words(stderr, voice)
    kind = classify(words)
    if kind is not FailureKind.AGENT:
        return failure(voice, words, kind=kind)
    return Failure(kind, f"{NO_ANSWER}: {words}" if words else NO_ANSWER)


def ending(exit_code: int) -> str:
    """Say how a process ended: `was ended by SIGTERM`, `ended with exit code 2`. Shells write a signal as 128 + n."""
    number = -exit_code if exit_code < 0 else exit_code - 128
    if exit_code < 0 or exit_code in _SHELL_SIGNALS:
        name = Signals(number).name if number in _SIGNALS else f"signal {number}"
        return f"was ended by {name}"
    return f"ended with exit code {exit_code}"


_SIGNALS = frozenset(Signals)
_SHELL_SIGNALS = frozenset({129, 130, 134, 137, 139, 143})
