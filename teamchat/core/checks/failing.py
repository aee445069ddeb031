"""The failures in the output of a check, in a form that does not change when they fail again."""

from __future__ import annotations

import re
from hashlib import sha256

from teamchat.core.text.clean import told
from teamchat.patterns import regex

_FAILS = regex(r"fail|error|exception|assert|panic|expected|not ok|[✗✖×●]", re.IGNORECASE)
_CHANGES = regex(r"0x[0-9a-fA-F]+|\btmp\w{4,}|\b[0-9a-f]{8,}\b|[0-9]+(?:[.,:][0-9]+)*")  # numbers, times, made-up names


def failing_lines(output: bytes) -> str:
    """Hash the lines that tell of failures, without their numbers and times; empty if there are none.

    Without such a line the hash is of all of the output.
    """
    lines = [line.strip() for line in told(output.decode(errors="replace")).splitlines()]
    failing = [line for line in lines if _FAILS.search(line)] or [line for line in lines if line]
    masked = sorted({_CHANGES.sub("#", line) for line in failing})
    return sha256("\n".join(masked).encode()).hexdigest()[:16] if masked else ""
