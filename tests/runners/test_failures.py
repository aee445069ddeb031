from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners.agent_events import FailureKind
from teamchat.runners.failures import FailureWords, classify, ending, failure, last_words, plain

VOICE = FailureWords(login="log in", noise=re.compile("^noise"))


@pytest.mark.parametrize(
    ("message", "status", "kind"),
    [
        ("no", 401, FailureKind.LOGIN),
        ("no", 403, FailureKind.LOGIN),
        ("no", 408, FailureKind.OVERLOADED),
        ("no", 413, FailureKind.TOO_LARGE),
        ("no", 429, FailureKind.RATE_LIMIT),
        ("no", 500, FailureKind.OVERLOADED),
        ("no", 529, FailureKind.OVERLOADED),
        ("no connection", 404, FailureKind.AGENT),
        ("Prompt is too long", 400, FailureKind.TOO_LARGE),
        ("Credit balance is too low", 400, FailureKind.RATE_LIMIT),
        ("unexpected status 503 Service", None, FailureKind.OVERLOADED),
        ('{"error":{"code":401,"message":"x"}}', None, FailureKind.LOGIN),
        ("Request rejected (429) · x", None, FailureKind.RATE_LIMIT),
        ("usage_limit_exceeded", None, FailureKind.RATE_LIMIT),
        ("You've hit your weekly limit", None, FailureKind.RATE_LIMIT),
        ("RESOURCE_EXHAUSTED", None, FailureKind.RATE_LIMIT),
        ("API key not valid", None, FailureKind.LOGIN),
        ("logging 500 files", None, FailureKind.AGENT),
        ("something else", None, FailureKind.AGENT),
        ("", None, FailureKind.AGENT),
    ],
)
def test_the_kind_comes_from_the_status_and_the_words(message: str, status: int | None, kind: FailureKind) -> None:
    assert classify(message, status) is kind


@pytest.mark.parametrize(
    "words",
    [
        "You've hit your 5-hour limit · resets 9:03pm (UTC)",
        "You've hit your weekly limit · resets Jun 9 at 1am (UTC)",
        "You've hit your Opus limit",
        "You've hit your limit · resets 2pm (Asia/Shanghai)",
        "You've hit your org's monthly spend limit · ask your admin to raise it",
        "5-hour limit reached ∙ resets 2am",
        "Weekly limit reached · resets Jun 9 at 1am",
        "Session limit reached ∙ resets 4pm",
        "You're out of extra usage · resets 3pm (UTC)",
        "You’ve hit your usage limit for GPT-5.5-Spark. Switch to another model now, or try again at 9:04 PM.",
        "You hit your spend cap set by the owner of your workspace.",
        "Your workspace is out of credits. Ask your workspace owner to refill in order to continue.",
        "Your workspace is out of credits. Add credits to continue.",
        "5 hour usage limit reached. It will reset in 2 hours 30 minutes.",
    ],
)
def test_a_limit_is_known_in_the_words_of_each_vendor(words: str) -> None:
    assert classify(words) is FailureKind.RATE_LIMIT


@pytest.mark.parametrize("words", ["Turn limit reached", "Context limit reached", "The recursion limit was hit"])
def test_what_a_program_may_not_exceed_is_no_limit_of_a_vendor(words: str) -> None:
    assert classify(words) is FailureKind.AGENT


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("[API Error: mock says 429]\nPlease wait", "mock says 429"),
        ('[API Error: {"error":{"message":"{\\"error\\":{\\"message\\":\\"deep\\"}}"}}]', "deep"),
        ('{"message": "x"}', "x"),
        ('{"error": "x"}', '{"error": "x"}'),
        ("{broken", "{broken"),
        ("Error: error: no", "no"),
        ("2026-11-21T20:24:51.757175Z ERROR codex_core::session: no", "no"),
        ("\x1b[31mred\x1b[0m\n and\tmore", "red and more"),
        ("x" * 600, "x" * 499 + "…"),
    ],
)
def test_a_message_is_told_without_its_wrappers(message: str, said: str) -> None:
    assert plain(message) == said


def test_a_failure_without_words_still_says_what_it_is() -> None:
    assert failure(VOICE, "").reason == "failed and gave no reason"
    assert failure(VOICE, "", 401).reason == "is not logged in, or the login was refused"
    assert failure(VOICE, "", 401).hint == "log in"


@pytest.mark.parametrize(
    ("stderr", "words"),
    [
        ("", ""),
        ("noise\n\n", ""),
        ("noise\nhello\n", "hello"),
        ("error: bad flag\n\nUsage: x\n", "error: bad flag"),
        ("Error loading config:\nline 3 is odd\nmore\n", "Error loading config: line 3 is odd"),
        ("Error at the end:", "Error at the end:"),
        ("first error\nsecond error\r\nnoise error\nbye", "second error"),
        ("It is late.\nCome back.\nnoise\nbye", "It is late. … bye"),
        ("\n".join(map(str, range(9))), "8"),
        (
            "No version is set for command claude\nConsider adding one of the following\nnodejs 22.1.0\n",
            "No version is set for command claude",
        ),
        ("/home/you/.envrc is blocked\nRun: direnv allow\n(see the manual)", "/home/you/.envrc is blocked"),
        ("pyenv: version `3.12' is not installed\nbye", "pyenv: version `3.12' is not installed"),
        (
            (
                "mise ERROR No version is set for shim: claude\nSet a global default version with one of these:\n"
                "mise use -g node@22\nmise ERROR Run with --verbose or MISE_VERBOSE=1 for more information\n"
            ),
            "mise ERROR No version is set for shim: claude",
        ),
        (
            (
                "mise ERROR Config files in ~/w/mise.toml are not trusted.\nTrust them with `mise trust`.\n"
                "mise ERROR Run with --verbose or MISE_VERBOSE=1 for more information\n"
            ),
            "mise ERROR Config files in ~/w/mise.toml are not trusted.",
        ),
        (
            (
                "Volta error: Node is not available.\n\nTo run any Node command, first set a default version using"
                " `volta install node`\nError details written to /h/.volta/log/volta-error-1.log\n"
            ),
            "Volta error: Node is not available.",
        ),
        ("Error details written to /h/.volta/log/x.log\n", "Error details written to /h/.volta/log/x.log"),
    ],
)
def test_the_telling_line_of_stderr_is_found(stderr: str, words: str) -> None:
    assert last_words(stderr, VOICE) == words


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with exit code 0"),
        (1, "ended with exit code 1"),
        (-9, "was ended by SIGKILL"),
        (143, "was ended by SIGTERM"),
        (144, "ended with exit code 144"),
        (-250, "was ended by signal 250"),
    ],
)
def test_an_end_is_told_in_words(code: int, words: str) -> None:
    assert ending(code) == words


@given(st.text(), st.integers())
def test_no_message_makes_it_raise(message: str, number: int) -> None:
    assert failure(VOICE, message, number).reason
    assert "\n" not in last_words(message, VOICE)
    assert ending(number)
