"""`@name` at the beginning of a line that a person types calls, in `send` as in chat."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import notes, queue, select
from tests.program import Result, cli, run_here
from tests.screens import screen
from tests.scripted_team import Crew, crew

INSIDE = "calls nobody here: it stands inside a line; @ calls at the beginning of one"


@pytest.fixture
def team(world: Path) -> Crew:
    return crew(world, {"max": ["Me.", "Me, too."], "sarah": ["Mine.", "Mine, too."]}, team={"lead": "max"})


def stored() -> list[str]:
    return [str(text) for (text,) in select("SELECT content FROM messages ORDER BY id")]


@pytest.mark.parametrize(
    ("typed", "speaking", "text"),
    [
        (["@sarah look at this"], "sarah", "look at this"),
        (["@max+sarah Look"], "max + sarah", "Look"),
        (["@max one\n@sarah two"], "max, then sarah", "one\ntwo"),
        (["--to", "max", "@sarah Look"], "max, then sarah", "Look"),
        (["[NEXT: max] Hi\n@sarah Look"], "sarah, then max", "[NEXT: max] Hi\nLook"),
        (["@sarah", "Look", "there"], "sarah", "Look there"),
    ],
)
def test_it_calls_as_a_marker_does(team: Crew, typed: list[str], speaking: str, text: str) -> None:
    assert f"\nspeaking: {speaking}\n" in f"\n{run_here('send', '--dry-run', *typed).out}"
    assert run_here("send", "--quiet", *typed).err == ""
    assert stored()[0] == text
    last = "sarah" if "sarah" in speaking.rsplit(maxsplit=1)[-1] else "max"
    assert "@sarah" not in team.prompts(last)[0]


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize(
    ("typed", "told", "hint"),
    [
        ("@sarha hi", "nobody is called 'sarha': did you mean sarah?", "send --to sarah '@sarha hi'"),
        ("@mxa hi", "nobody is called 'mxa': did you mean max?", "send --to max '@mxa hi'"),
        ("@max+sarha hi", "nobody is called 'sarha': did you mean sarah?", "send --to max+sarah '@max+sarha hi'"),
        ("@planner hi", "nobody is called 'planner'", "team"),
        ("@dataclass\nclass X", "nobody is called 'dataclass'", "team"),
        ("@all hi", "nobody is called 'all'; --to max+sarah calls everybody", "send --to max+sarah '@all hi'"),
    ],
)
@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_nobody_of_that_name_is_refused(typed: str, told: str, hint: str, dry: list[str]) -> None:
    ran = run_here("send", typed, *dry)
    end = " --dry-run" if dry and hint != "team" else ""
    assert (ran.code, ran.err) == (4, f"teamchat: {told} (--anyway sends it as it is)\n  try: teamchat {hint}{end}\n")
    assert stored() == []


@pytest.mark.usefixtures("team")
def test_all_is_refused_in_a_marker_and_in_an_option_too() -> None:
    told = "teamchat: nobody is called 'all'; --to max+sarah calls everybody\n  try: teamchat send --to max+sarah"
    assert run_here("send", "[NEXT:all] Hi").err == f"{told} '[NEXT:all] Hi'\n"
    assert run_here("send", "--to", "all", "Hi") == Result(4, "", f"{told} Hi\n")
    assert run_here("send", "--quiet", "--to", "max+sarah", "@all Hi").code == 0


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("Look at what @sarah wrote", f"'@sarah' {INSIDE}"),
        ("fix this:\n@dataclass\nclass X", "'@dataclass' is text: nobody is called 'dataclass'"),
        ("fix this:\n@srah said", "'@srah' is text: nobody is called 'srah'"),
        ("Mail kai@sarah.org\n@app.route('/')", None),
        ("@README.md is old", None),
        ("@notes is old", "'@notes' is text: nobody is called 'notes'"),
    ],
)
def test_elsewhere_it_is_text_with_a_note(typed: str, told: str | None) -> None:
    Path("notes").mkdir()
    assert run_here("send", "--quiet", typed) == Result(0, "Me.\n", notes(told) if told else "")
    assert stored()[0] == typed


@pytest.mark.usefixtures("team")
def test_piped_text_and_files_never_call() -> None:
    Path("a.txt").write_text("@sarah in a file\n")
    assert run_here("send", "--quiet", "--file", "a.txt", "Look").out == "Me.\n"
    assert run_here("send", "--quiet", "--new", "-", stdin="@sarah in a pipe") == Result(
        0, "Me, too.\n", notes("'@sarah' is not a marker and does nothing: did you mean [NEXT: sarah]?")
    )


@pytest.mark.usefixtures("team")
def test_a_name_alone_is_a_marker_alone() -> None:
    assert run_here("send", "@sarah").err == run_here("send", "[NEXT: sarah]").err
    assert run_here("send", "--quiet", "@sarah", stdin="@max reads this").out == "Mine.\n"
    assert stored() == ["[NEXT: sarah]\n\n```\n@max reads this\n```", "Mine."]
    assert run_here("send", "--quiet", "@max").out == "Me.\n"


@pytest.mark.usefixtures("team")
def test_a_reply_never_calls(world: Path) -> None:
    crew(world, {"max": ["@sarah Look"], "sarah": []})
    ran = run_here("send", "Hi")
    assert "· max: '@sarah' is not a marker and does nothing: did you mean [NEXT: sarah]?\n" in ran.err
    assert queue() == []


@pytest.mark.usefixtures("team")
def test_a_recording_calls_the_same_members(world: Path) -> None:
    cassette = world / "talk.cassette"
    assert run_here("send", "--quiet", "--record", str(cassette), "@sarah Look at @max").out == "Mine.\n"
    assert cli("replay", str(cassette), "--verify").code == 0


def test_an_answer_at_the_terminal_calls(world: Path) -> None:
    crew(world, {"max": ["Which one?\n[NEXT: kailai]"], "sarah": ["The first."]}, team={"lead": "max"})
    with screen("send", "--ask", "Write it") as shown:
        shown.until(lambda text: text.split("\n")[-1] == "you → max")
        shown.child.sendline("@sarah which one?")
        shown.to_the_end()
        assert shown.child.exitstatus == 0
    assert stored()[2:] == ["which one?", "The first."]


@pytest.mark.usefixtures("team")
def test_chat_refuses_the_same_names_and_keeps_the_text() -> None:
    with screen("chat") as shown:
        shown.until(lambda text: "›" in text)
        shown.child.send("@planner Plan it\r")
        shown.until(lambda text: "nobody is called 'planner'" in text and "› @planner Plan it" in text)
        shown.child.send("\x15\x04")
        shown.to_the_end()
    assert stored() == []
