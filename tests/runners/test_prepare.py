"""The last step before stdin: mentions that a CLI would expand are made inert, and nothing else changes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners.base import Prepared, Runner
from teamchat.runners.claude import ClaudeRunner
from teamchat.runners.codex import CodexRunner
from teamchat.runners.gemini import GeminiRunner
from teamchat.runners.pipe import PipeRunner
from tests.core.texts import grows_linearly

CLAUDE, GEMINI = ClaudeRunner(), GeminiRunner()
FILES = {
    "note.txt",
    ".env",
    ".",
    "..",
    "../x",
    "/",
    "/etc/hostname",
    "/etc",
    "src",
    "src/app.py",
    "my file.txt",
    "文件.md",
    "a,b(1).txt",
}


def prepare(runner: Runner, prompt: str, own: str = "") -> Prepared:
    return runner.prepare(prompt + own, own_from=len(prompt), exists=FILES.__contains__)


def text(prepared: Prepared) -> str:
    return prepared.stdin.decode()


@pytest.mark.parametrize(
    "prompt",
    [
        "@note.txt",
        "see @note.txt please",
        "see @note.txt.",
        "see @note.txt, then",
        "is it @note.txt?",
        "line\n@note.txt\n",
        "```\n@note.txt\n```",
        "@.env",
        "@../x",
        "@/etc/hostname",
        "@src/",
        "@src/app.py#L1-20",
        "@src/app.py:12",
        '@"my file.txt"',
        "@my\\ file.txt",
        "读@文件.md然后",
        "读 @文件.md，然后",
        "@a,b(1).txt",
        "\u3000@note.txt",
        "\ufeff@note.txt",
        "@note.txt\u00a0x",
    ],
)
def test_a_mention_of_something_that_exists_becomes_inert_for_claude(prompt: str) -> None:
    at = prompt.index("@")
    prepared = prepare(CLAUDE, prompt)
    assert (text(prepared), prepared.inert_mentions) == (f"{prompt[:at]}\\{prompt[at:]}", 1)


@pytest.mark.parametrize(
    "prompt",
    ["@nosuchfile.txt", "ask @max", "a@ note.txt", "@", "me@note.txt", '"@note.txt"', "`@note.txt`", "(@note.txt)"],
)
def test_other_text_stays_as_it_is_for_claude(prompt: str) -> None:
    assert prepare(CLAUDE, prompt) == Prepared(prompt.encode(), 0)


@pytest.mark.parametrize(
    "prompt",
    ["@note.txt", "foo@note.txt", '"@note.txt"', "(@note.txt)", "@*.txt", "@app", "@@x", "@..", '@"my file.txt"'],
)
def test_every_mention_becomes_inert_for_gemini_which_also_searches_for_names(prompt: str) -> None:
    at = prompt.index("@")
    assert text(prepare(GEMINI, prompt)).startswith(f"{prompt[:at]}\\@")


@pytest.mark.parametrize("prompt", ["@", "a @ b", "@\n", "@(x)", "@{note.txt}", "@, @! @?"])
def test_what_is_no_mention_stays_as_it_is_for_gemini(prompt: str) -> None:
    assert prepare(GEMINI, prompt) == Prepared(prompt.encode(), 0)


@pytest.mark.parametrize("runner", [CLAUDE, GEMINI])
@pytest.mark.parametrize(
    ("prompt", "sent"),
    [("\\@note.txt", "\\@note.txt"), ("\\\\@note.txt", "\\\\\\@note.txt"), (" \\\\\\@note.txt", " \\\\\\@note.txt")],
)
def test_a_mention_that_is_inert_already_is_not_escaped_again(runner: Runner, prompt: str, sent: str) -> None:
    assert text(prepare(runner, prompt)) == sent


@pytest.mark.parametrize("runner", [CLAUDE, GEMINI])
def test_the_humans_own_message_stays_as_it_was_written(runner: Runner) -> None:
    prepared = prepare(runner, "max said @note.txt\n\n[MESSAGE]\n", "look at @note.txt and @src/app.py")
    assert text(prepared) == "max said \\@note.txt\n\n[MESSAGE]\nlook at @note.txt and @src/app.py"
    assert prepared.inert_mentions == 1


@pytest.mark.parametrize("runner", [CodexRunner(), PipeRunner()])
@given(prompt=st.text())
def test_other_clis_get_the_prompt_as_it_is(runner: Runner, prompt: str) -> None:
    sent = f"@note.txt {prompt}"
    assert prepare(runner, sent) == Prepared(sent.encode(), 0)


@pytest.mark.parametrize("runner", [CLAUDE, CodexRunner(), GEMINI, PipeRunner()])
def test_a_lone_surrogate_becomes_a_replacement_character(runner: Runner) -> None:
    assert prepare(runner, "a\ud83d \U0001f600 b").stdin == "a\ufffd \U0001f600 b".encode()


@given(quoted=st.text("@ax./\\ \n\"'`(*é，"), own=st.text("@a \\"), data=st.sampled_from([CLAUDE, GEMINI]))
def test_only_backslashes_are_added_and_only_before_mentions(quoted: str, own: str, data: Runner) -> None:
    prepared = data.prepare(quoted + own, own_from=len(quoted), exists=lambda path: path.startswith("a"))
    sent = text(prepared)
    assert sent.endswith(own)
    changed = sent.removesuffix(own) if own else sent
    assert len(changed) == len(quoted) + prepared.inert_mentions
    assert re.sub(r"\\+@", "@", changed) == re.sub(r"\\+@", "@", quoted)


@pytest.mark.parametrize("pattern", ["@", "@a", "@a.", "@x/", "@文", '@"', "@\\ "])
def test_hostile_text_costs_a_bounded_number_of_checks(pattern: str) -> None:
    asked = 0

    def exists(path: str) -> bool:
        nonlocal asked
        asked += 1
        assert len(path) < 5_000
        return False

    prompt = pattern * (500_000 // len(pattern))
    prepared = CLAUDE.prepare(f" {prompt}", own_from=len(prompt) + 1, exists=exists)
    assert asked <= 20_000
    assert prepared.stdin.replace(b"\\@", b"@") == f" {prompt}".encode().replace(b"\\@", b"@")


@pytest.mark.parametrize("piece", ["\\", "@", "\\@", "@a/", '@"'])
def test_preparing_takes_time_in_proportion_to_the_text(piece: str) -> None:
    def prepare(prompt: str) -> None:
        CLAUDE.prepare(prompt, own_from=len(prompt), exists=lambda _: False)

    assert grows_linearly(prepare, piece)
