"""Keys with what no reader sees within them: none leaves a conversation whole, in any file or any other prompt."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import get_args

from teamchat.cli.startup.options import FormatName
from teamchat.core.text.clean import told
from tests.core.text.test_key_shapes import COMMONEST, filled
from tests.program import run_here
from tests.scripted_team import crew

NAMES = ("AWS access key", "GitHub classic", "Anthropic", "Google API")
KEYS = (
    *(filled(COMMONEST[name], random.Random(name))[0] for name in NAMES),  # noqa: S311 (no secret)
    "-----BEGIN PRIVATE KEY-----MIIEMIIEaB+/aB+/-----END PRIVATE KEY-----",
)
# a pipe with NUL is refused
CONTROLS = [chr(code) for code in (*range(1, 9), *range(0x0B, 0x20), *range(0x7F, 0xA0))]
MARKS = [*"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"]
SEQUENCES = [
    *("\x1b[m", "\x1b[01;31m\x1b[K", "\x1b[38:2::1:2:3m", "\x1b[?25l", "\x9b31m"),
    *(
        "\x1b]0;title\x07",
        "\x1b]8;;https://x.invalid\x1b\\",
        "\x1b]0;a\\b\x07",
        "\x1b]0;title\x9c",
        "\x9d0;x\x9c",
        "\x9d0;x\x07",
    ),
    *(f"\x1b{kind}a{inner}b\x1b\\" for kind in "PX^_" for inner in ("", "\\", "\\\\u0007")),
    *(f"{kind}a\\b\x9c" for kind in "\x90\x98\x9e\x9f"),
    *("\x1b7", "\x1b(B", "\x1b#8", "\x1bc", "\x1bM"),
]
SIGNS = [*CONTROLS, *SEQUENCES, *MARKS]


def places(key: str) -> tuple[int, int, int]:
    return 2, len(key) // 2, len(key) - 2


HIDDEN = [f"{key[:at]}{sign}{key[at:]}" for key in KEYS for sign in SIGNS for at in places(key)]
PIPED = "\n".join(f"{number}: {hidden} there" for number, hidden in enumerate(HIDDEN))
_SIGNS = re.compile("|".join(map(re.escape, sorted(SIGNS, key=len, reverse=True))))


def unescaped(text: str) -> str:
    """The text with what JSON and our own escape codes stand for."""
    return re.sub(
        r"\\(?:u([0-9a-f]{4})|x([0-9a-f]{2})|([bfr\\]))",
        lambda code: {"b": "\b", "f": "\f", "r": "\r", "\\": "\\"}.get(code[3]) or chr(int(code[1] or code[2], 16)),
        text,
    )


def left(text: str) -> list[str]:
    """What can be read of the keys in this text, in whatever way somebody makes the signs invisible."""
    written = unescaped(text)
    forms = (
        text,
        told(text),
        written,
        told(written),
        _SIGNS.sub("", written),
        re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "", written),
    )
    return [key for key in KEYS for form in forms if key in form]


def test_the_looks_at_a_text_find_every_hidden_key() -> None:
    assert [hidden for hidden in HIDDEN if not left(hidden) or not left(json.dumps(hidden))] == []


def test_no_key_that_a_person_pipes_in_leaves_the_conversation(world: Path) -> None:
    made = crew(
        world, {"max": ["Hello"], "sarah": ["Hi"]}, team={"max_prompt_tokens": 150_000, "max_message_tokens": 70_000}
    )
    recording = world / "talk.cassette"

    ran = run_here("send", "--record", recording, "--to", "max", "Look:", stdin=PIPED)
    assert ran.code == 0, ran.err
    assert run_here("send", "--to", "sarah", "Go on").code == 0

    (prompt,) = made.prompts("sarah")
    assert all(f"{number}: " in prompt for number in range(len(HIDDEN)))
    outside = {"the prompt of sarah": prompt, "the recording": recording.read_text(encoding="utf-8")}
    for name in get_args(FormatName):
        file = world / f"talk.{name}"
        assert run_here("export", "--format", name, "-o", file).code == 0
        outside[f"the export as {name}"] = file.read_text(encoding="utf-8")
    assert {name: sorted(set(keys)) for name, text in outside.items() if (keys := left(text))} == {}
