"""The last step before stdin: mentions that a CLI would expand are made inert, and nothing else changes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.runners.agent_row import AgentRow
from teamchat.runners.base import Prepared, Runner
from teamchat.runners.claude.runner import ClaudeRunner
from teamchat.runners.codex.runner import CodexRunner
from teamchat.runners.gemini.runner import GeminiRunner
from teamchat.runners.pipe import PipeRunner
from tests.core.routing.marker_texts import grows_linearly

CLAUDE, CODEX, GEMINI = ClaudeRunner(), CodexRunner(), GeminiRunner()
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


THERE = {*FILES, "$zebra", "$a:b-c"}


def prepare(runner: Runner, prompt: str, own: str = "") -> Prepared:
    return runner.prepare(prompt + own, typed=range(len(prompt), len(prompt + own)), exists=THERE.__contains__)


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


@pytest.mark.parametrize(
    "prompt",
    ["@agent-spy", "so, @agent-spy?", '@"spy (agent)"', "。@agent-spy", "@docs:file://x", "@a.b-c:x", "\n@agent-x\n"],
)
def test_an_agent_and_what_a_server_has_become_inert_for_claude(prompt: str) -> None:
    at = prompt.index("@")
    assert prepare(CLAUDE, prompt) == Prepared(f"{prompt[:at]}\\{prompt[at:]}".encode(), 1)


@pytest.mark.parametrize("word", ["ultrathink", "ULTRATHINK", "Ultracode", "ultraplan", "ultrareview"])
@pytest.mark.parametrize("around", ["{}", "please {}!", "<said-1>{}</said-1>", "`{}`", "\n{}\n"])
def test_keywords_become_inert_for_claude(word: str, around: str) -> None:
    sent = prepare(CLAUDE, around.format(word))
    assert sent == Prepared(around.format(f"{word[:5]}-{word[5:]}").encode(), 1)


@pytest.mark.parametrize("text", ["ultrathinking", "ultra think", "ultra-think", "xultrathink", "ultra", "ultrasound"])
def test_words_that_are_like_keywords_stay(text: str) -> None:
    assert prepare(CLAUDE, text) == Prepared(text.encode(), 0)


@pytest.mark.parametrize(
    "prompt", ["$zebra", "use $zebra.", "`$zebra`", "> a$zebra", "$$zebra", "$a:b-c", "[$x](/a/SKILL.md)", "[$x] \n(y)"]
)
def test_a_skill_becomes_inert_for_codex(prompt: str) -> None:
    at = prompt.rindex("$") + 1
    assert prepare(CODEX, prompt) == Prepared(f"{prompt[:at]}\\{prompt[at:]}".encode(), 1)


def test_a_link_to_a_plugin_becomes_inert_for_codex() -> None:
    assert prepare(CODEX, "[@git](plugin://git)") == Prepared(b"[@\\git](plugin://git)", 1)


@pytest.mark.parametrize(
    "prompt",
    ["[$x]", "[$x] y(z)", "[@x]", "$HOME", "${zebra}", "$\\zebra", "$zebras", "$ zebra", "zebra$", "@note.txt", "$1"],
)
def test_what_is_no_skill_stays_as_it_is_for_codex(prompt: str) -> None:
    assert prepare(CODEX, prompt) == Prepared(prompt.encode(), 0)


@pytest.mark.parametrize(
    ("runner", "typed"), [(CLAUDE, "@note.txt ultrathink @agent-spy"), (GEMINI, "@note.txt @spy"), (CODEX, "$zebra")]
)
def test_what_a_person_typed_expands_and_what_stands_before_and_behind_it_does_not(runner: Runner, typed: str) -> None:
    begin, end = f"max: {typed}\n", f"\n\n```\n{typed}\n```"
    whole = begin + typed + end
    place = range(len(begin), len(begin + typed))
    sent = text(runner.prepare(whole, typed=place, exists=THERE.__contains__))
    others = text(prepare(runner, begin)), text(prepare(runner, end))
    assert sent == others[0] + typed + others[1]
    assert typed not in "".join(others)


@given(prompt=st.text(alphabet=st.characters(exclude_characters="@")))
def test_a_program_gets_the_prompt_as_it_is_but_for_paths_that_exist(prompt: str) -> None:
    sent = f"@missing.txt $zebra ultrathink me@example.com {prompt}"
    assert prepare(PipeRunner(), sent) == Prepared(sent.encode(), 0)
    assert prepare(PipeRunner(), f"see @note.txt, {sent}") == Prepared(f"see \\@note.txt, {sent}".encode(), 1)


@given(prompt=st.text())
def test_a_program_that_reads_no_mentions_gets_the_prompt_as_it_is(prompt: str) -> None:
    sent = f"@note.txt $zebra ultrathink {prompt}"
    assert prepare(PipeRunner(AgentRow(mentions="as they are")), sent) == Prepared(sent.encode(), 0)


@pytest.mark.parametrize("runner", [CLAUDE, CodexRunner(), GEMINI, PipeRunner()])
def test_a_lone_surrogate_becomes_a_replacement_character(runner: Runner) -> None:
    assert prepare(runner, "a\ud83d \U0001f600 b").stdin == "a\ufffd \U0001f600 b".encode()


@given(quoted=st.text("@ax./\\ \n\"'`(*é，"), own=st.text("@a \\"), data=st.sampled_from([CLAUDE, GEMINI]))
def test_only_backslashes_are_added_and_only_before_mentions(quoted: str, own: str, data: Runner) -> None:
    whole = quoted + own
    prepared = data.prepare(whole, typed=range(len(quoted), len(whole)), exists=lambda path: path.startswith("a"))
    sent = text(prepared)
    assert sent.endswith(own)
    changed = sent.removesuffix(own) if own else sent
    assert len(changed) == len(quoted) + prepared.inert_mentions
    assert re.sub(r"\\+@", "@", changed) == re.sub(r"\\+@", "@", quoted)


BEFORE_AT = r"(?<!\\)(?=(?:\\\\)*+@"
PLACES = [  # where each CLI's escape goes, as a search for empty places says it
    (CLAUDE, rf"""(?:(?<![\w"`(])|(?=\\)){BEFORE_AT}(?P<begin>\S))|(?<=\bultra)(?=(?:code|plan|review|think)\b)"""),
    (GEMINI, rf"{BEFORE_AT}[^\s,;!?()\[\]{{}}])"),
    (CODEX, r"(?<=\[[$@])(?=[\w:-]++\]\s*+\()|(?<=\$)(?=[\w:-]++)"),
]
SIGNS = st.sampled_from([*'@$\\ab-: \n"`()[]é,/', "ultra", "Ultra", "ULTRA", "think", "[$a](", "[@a] (", "\\\\"])


@pytest.mark.parametrize(("runner", "places"), PLACES)
@given(prompt=st.lists(SIGNS, max_size=30).map("".join))
def test_every_place_is_found(runner: Runner, places: str, prompt: str) -> None:
    def escape(place: re.Match[str]) -> str:
        return "-" if runner is CLAUDE and place["begin"] is None else "\\"

    expected = re.sub(places, escape, prompt, flags=re.ASCII | (re.IGNORECASE if runner is CLAUDE else 0))
    assert text(runner.prepare(prompt, typed=range(0), exists=lambda _: True)) == expected


@pytest.mark.parametrize("pattern", ["@", "@a", "@a.", "@x/", "@文", '@"', "@\\ "])
def test_hostile_text_costs_a_bounded_number_of_checks(pattern: str) -> None:
    asked = 0

    def exists(path: str) -> bool:
        nonlocal asked
        asked += 1
        assert len(path) < 5_000
        return False

    prompt = pattern * (500_000 // len(pattern))
    prepared = CLAUDE.prepare(f" {prompt}", typed=range(0), exists=exists)
    assert asked <= 10_000
    assert prepared.stdin.replace(b"\\@", b"@") == f" {prompt}".encode().replace(b"\\@", b"@")


@pytest.mark.parametrize("runner", [CLAUDE, CODEX, GEMINI])
@pytest.mark.parametrize("piece", ["\\", "@", "\\@", "@a/", '@"', "$", "$a", "ultra", "ultrathink "])
def test_preparing_takes_time_in_proportion_to_the_text(runner: Runner, piece: str) -> None:
    def prepare(prompt: str) -> None:
        runner.prepare(prompt, typed=range(0), exists=lambda _: False)

    assert grows_linearly(prepare, piece)
