"""What the program says to commands and options that are none, and to any message at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.cli.helpers import refused
from tests.program import Result, cli, run_here
from tests.scripted_team import crew

DEMO = "teamchat demo --help"
DASH = "a text that begins with - is read as an option; put -- before it"


@pytest.mark.parametrize(
    ("args", "error", "hint"),
    [
        (["sned", "Hi"], "there is no command 'sned': did you mean send?", "teamchat --help"),
        (["statsu"], "there is no command 'statsu': did you mean status?", "teamchat --help"),
        (["xyzzy"], "there is no command 'xyzzy'", "teamchat --help"),
        ([""], "there is no command ''", "teamchat --help"),
        (["a\x1b[2J\n"], r"there is no command 'a\x1b[2J\n'", "teamchat --help"),
        (["\udcff"], r"there is no command '\udcff'", "teamchat --help"),
        (["--frob"], "no such option: --frob", "teamchat --help"),
        (["log", "--frob"], "no such option: --frob", "teamchat log --help"),
        (["log", "--sesion", "x"], "no such option: --sesion (perhaps --json, --session)", "teamchat log --help"),
        (["send", "- do this"], DASH, "teamchat send -- '- do this'"),
        (["send", "--do this", "--to", "max"], DASH, "teamchat send --to max -- '--do this'"),
        (["send", "- a\nb"], DASH, "teamchat send -- '- Your message'"),
        (["demo", "--speed", "nan"], "invalid value for '--speed': expected 0 or more, got nan", DEMO),
        (["log", "a", "b"], "too many arguments: a b (a text with spaces needs quotes)", "teamchat log --help"),
        (["log", "-n", "x"], "invalid value for '-n': 'x' is not a whole number", "teamchat log --help"),
        (["log", "-n", "-1"], "invalid value for '-n': expected 0 or more, got -1", "teamchat log --help"),
        (["show", "one"], "expected the number of a turn or a reply such as msg-2, got 'one'", "teamchat log"),
        (["demo", "--speed", "x"], "invalid value for '--speed': 'x' is not a number", DEMO),
        (["log", "--json=1"], "option '--json' does not take a value", "teamchat --help"),
        (["send", "--to"], "option '--to' requires an argument", "teamchat --help"),
    ],
)  # fmt: skip
def test_what_is_no_command_or_option_is_one_line_and_a_hint(args: list[str], error: str, hint: str) -> None:
    assert run_here(*args) == Result(2, "", f"teamchat: {error}\n  try: {hint}\n")


@pytest.mark.parametrize("name", ["TEAMCHAT_SESSION", "--session"])
def test_a_session_needs_a_name_that_can_be_shown(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name.startswith("--"):
        ran = run_here("log", "--session", "a\nb")
    else:
        monkeypatch.setenv(name, "a\nb")
        ran = run_here("log")
    assert ran.code == 2
    assert refused(ran).endswith(r"expected a name of printable characters, got 'a\nb'")


@pytest.mark.parametrize(
    "args", [["log", "--session"], ["send", "--dry-run", "x", "--session"], ["sessions", "delete"]]
)
def test_a_sessions_name_has_a_greatest_length(args: list[str]) -> None:
    ran = run_here(*args, "a" * 101)
    assert ran.code == 2
    assert refused(ran).endswith("expected at most 100 characters, got 101")


def test_a_session_may_have_a_name_of_the_greatest_length(world: Path) -> None:
    crew(world, {"max": ["Yes."]})
    assert run_here("send", "--quiet", "--new", "--session", "a" * 100, "Hi") == Result(0, "Yes.\n", "")


@pytest.mark.parametrize("command", [["send", "Hi"], ["resume"], ["compact", "--member", "max"]])
def test_a_run_is_shown_in_one_way(world: Path, command: list[str]) -> None:
    crew(world, {"max": []})
    ran = run_here(*command, "--json", "--quiet")
    assert (ran.code, refused(ran)) == (
        2,
        "--json and --quiet exclude each other; the last line of --json has the last reply",
    )


# --- whatever is typed

TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=30)
BYTES = st.binary(max_size=8).map(lambda raw: raw.replace(b"\0", b"?").decode("utf-8", "surrogateescape"))
WORDS = st.sampled_from(
    ["max", "sarah", "kailai", "bob", "max,sarah", "max+bob", "[NEXT: max]", "[NEXT: bob]", "[FROM: max] x",
     "[NEXT: max",
     "[DROP: ALL]", "[TEAM_TASK] x", "1", "0", "-1", "99999999999999999999", "5s", ".", "/", "nope.toml"]
)  # fmt: skip


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(TEXT, BYTES, st.lists(WORDS, min_size=1, max_size=4).map(" ".join)).filter(str.strip))
@example("\udcff")
@example("[NEXT: max] \u202e\x1b]0;x\x07\r\n\x85\u2028")
def test_any_message_is_said_and_answered_or_refused(world: Path, text: str) -> None:
    made = crew(world, {"max": [], "sarah": []})
    made.say("max", *["Yes."] * 99)
    made.say("sarah", *["No."] * 99)
    ran = run_here("send", "--new", "--quiet", "--", text)
    assert ran.code in (0, 2, 4, 9), ran
    assert "Traceback" not in ran.err
    assert (ran.out in ("Yes.\n", "No.\n")) or ran.code or "[" in text, ran
    assert run_here("log").code in (0, 4)


def test_arguments_that_are_no_utf_8_reach_the_real_program(world: Path) -> None:
    crew(world, {"max": ["Yes."]})
    ran = cli("send", "--quiet", "a\udcff\udcfeb")
    assert ran == Result(0, "Yes.\n", "")
    assert '"text": "a\ufffd\ufffdb"' in cli("log", "--json").out
