"""`teamchat resume`: what a failure, a guard, Ctrl-C or a crash has left."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from teamchat.core.errors import ExitCode
from tests.cli.helpers import notes, objects, queue, refused, rows, said, steady, turn
from tests.program import Result, run_here
from tests.scripted_team import Crew, crew

GOES_ON = "session s1 continues"


failed = pytest.mark.usefixtures("made")


@pytest.fixture
def made(world: Path) -> Crew:
    """`max` has failed his first turn, and `sarah` waits behind him."""
    made = crew(world, {"max": [{"say": "half", "exit": 3}, "Whole."], "sarah": ["Hi."], "carol": ["Me."]})
    assert run_here("send", "--to", "max,sarah", "Go").code == 1
    return made


def test_it_runs_what_failed_again_and_then_what_waited(made: Crew) -> None:
    assert steady(run_here("resume")) == Result(
        0, "max:\nWhole.\n\nsarah:\nHi.\n\n", notes(GOES_ON, *turn("max", 2), *turn("sarah", 3))
    )
    assert made.prompts("max")[0] == made.prompts("max")[1]
    assert said() == [("kailai", "Go"), ("max", "Whole."), ("sarah", "Hi.")]


def test_what_is_to_be_typed_names_the_team_that_was_named(world: Path) -> None:
    made = crew(world, {"max": [{"say": "half", "exit": 3}, "[NEXT: kailai]", {"exit": 3}]})
    Path("a team").mkdir()
    file = made.file.rename(Path("a team/other.toml").absolute())
    with file.open("a") as more:
        more.write("# moved\n")
    named = ["--team", "a team/other.toml"]
    ran = run_here("send", *named, "--trust", "[NEXT: max] Go")
    assert f"· try: teamchat resume --team '{file}'\n" in ran.err
    hint = ran.err.splitlines()[-1].removeprefix("· try: teamchat ")
    asked = run_here(*shlex.split(hint))
    assert asked.code == 9
    assert f"· answer: teamchat send 'Your answer' --team '{file}'\n" in asked.err
    assert objects(run_here("send", *named, "--json", "Yes"))[-1]["hint"] == f"teamchat resume --team '{file}'"
    assert f"; teamchat resume --team '{file}' runs it, " in run_here("send", *named, "x").err


@failed
def test_what_is_to_be_typed_names_the_session_where_it_is_not_the_last_one(
    made: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.say("max", *[{"exit": 3}] * 9)
    assert "· try: teamchat resume\n" in run_here("send", "--new", "--session", "dev", "--to", "max", "Hi").err
    monkeypatch.setenv("TEAMCHAT_SESSION", "s1")
    ran = run_here("send", "--session", "dev", "Hi")
    resume, drop = "teamchat resume --session dev runs it", "teamchat resume --drop --session dev drops it"
    assert f"still on hold: max for msg-1 'Hi'; {resume}, {drop}\n" in ran.err
    assert ran.err.endswith("· try: teamchat resume --session dev\n")
    assert run_here("send", "Hi").err.endswith("· try: teamchat resume\n")


@failed
def test_the_second_try_is_named_on_its_receipt() -> None:
    run_here("resume", "--retry")
    assert "  why       kailai asked for max in msg-1, attempt 2\n" in run_here("show", "2").out
    assert "attempt" not in run_here("show", "1").out
    (receipt,) = objects(run_here("show", "2", "--json"))
    assert receipt["setup"]["attempt"] == 2  # type: ignore[index]


@failed
def test_it_can_go_on_without_what_failed() -> None:
    assert steady(run_here("resume", "--skip")) == Result(
        0, "sarah:\nHi.\n\n", notes(GOES_ON, "dropped: max, called by kailai in msg-1", *turn("sarah", 2))
    )


@failed
def test_it_can_run_nothing_of_what_is_held() -> None:
    dropped = [f"dropped: {name}, called by kailai in msg-1" for name in ("max", "sarah")]
    assert run_here("resume", "--drop") == Result(0, "", notes(GOES_ON, *dropped))
    assert refused(Result(2, "", run_here("resume").err.removeprefix(notes(GOES_ON)))) == (
        "nothing is waiting in this conversation"
    )
    assert run_here("resume").code == 2


def test_skipping_leaves_out_the_turn_that_failed_last(made: Crew) -> None:
    made.say("carol", {"exit": 3})
    assert run_here("send", "--to", "carol", "And you?").code == 1
    ran = run_here("resume", "--skip")
    assert ran.code == 0
    assert "dropped: carol, called by kailai in msg-2" in ran.err
    assert [name for name, _ in said()] == ["kailai", "kailai", "max", "sarah"]


def test_who_is_asked_is_asked_again(world: Path) -> None:
    crew(world, {"max": ["May I?\n[NEXT: kailai]"]})
    run_here("send", "Go")
    asked = notes(GOES_ON, "waiting: max asks kailai", "answer: teamchat send 'Your answer'")
    assert run_here("resume") == Result(9, "", asked)


@pytest.mark.parametrize(
    ("option", "out", "told"),
    [
        ("--skip", "sarah:\nHi.\n\n", ["dropped: kailai, called by max in msg-2", *turn("sarah", 2)]),
        ("--drop", "", [f"dropped: {name}, called by max in msg-2" for name in ("kailai", "sarah")]),
    ],
)
def test_it_can_go_on_without_an_answer(world: Path, option: str, out: str, told: list[str]) -> None:
    crew(world, {"max": ["May I?\n[NEXT: kailai, sarah]"], "sarah": ["Hi."]})
    assert run_here("send", "--to", "max", "Go").code == 9
    assert steady(run_here("resume", option)) == Result(0, out, notes(GOES_ON, *told))
    assert run_here("resume").code == 2


@failed
def test_it_resumes_the_named_session_or_the_last_one() -> None:
    assert run_here("send", "--new", "--to", "sarah", "Hi").code == 0
    assert run_here("resume").code == 2
    assert run_here("resume", "--session", "s1", "--drop").code == 0
    assert refused(run_here("resume", "--session", "nope")) == "there is no session 'nope' (sessions: s1, s2)"


@failed
def test_it_shows_itself_as_send_does() -> None:
    assert run_here("resume", "--quiet") == Result(0, "Hi.\n", "")
    assert run_here("send", "--to", "max", "Again").code == 1
    result = objects(run_here("resume", "--json"))[-1]
    assert (result["type"], result["code"], result["outcome"]) == ("result", 1, "member_failed")
    assert [route["target"] for route in result["held"]] == ["max"]  # type: ignore[attr-defined]


@failed
@pytest.mark.parametrize(
    ("options", "code", "error"),
    [
        (["--skip", "--drop"], 2, "--retry, --skip and --drop exclude each other"),
        (["--retry", "--skip"], 2, "--retry, --skip and --drop exclude each other"),
        (
            ["--timeout", "soon"],
            2,
            '--timeout \'soon\': expected a time above zero such as "90s", "30m" or "1h30m", got \'soon\'',
        ),
        (["--stream"], 2, "--stream needs --json; without both, a terminal shows text as it arrives"),
        (["Go on"], 4, "nothing waits for 'Go on' (what waits: msg-1)"),
        (["--skip", "msg-1"], 2, "--skip takes no message"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_and_nothing_runs(options: list[str], code: int, error: str) -> None:
    before = rows()
    ran = run_here("resume", *options)
    assert (ran.code, refused(ran)) == (code, error)
    assert rows() == before


def test_where_nothing_was_said_there_is_nothing_to_resume(world: Path) -> None:
    crew(world, {"max": []})
    ran = run_here("resume")
    assert (ran.code, refused(ran)) == (4, "there is no conversation here yet")


def test_a_team_file_that_changed_must_be_trusted_again(made: Crew) -> None:
    made.file.write_text(
        made.file.read_text().replace("plain", "plain", 1) + '\n[[members]]\nname = "new"\nagent = "max-agent"\n'
    )
    ran = run_here("resume")
    assert ran.code == 5
    assert ran.err.startswith(f"teamchat: {made.file} has changed since you trusted it: added command of new: runs ")
    assert run_here("resume", "--trust").code == 0


def test_what_waits_can_be_dropped_without_trust_for_it_runs_nothing(made: Crew) -> None:
    with made.file.open("a") as file:
        file.write('\n[agents.other]\ncommand = ["true"]\n[[members]]\nname = "other"\nagent = "other"\n')
    assert run_here("resume", "--skip").code == ExitCode.NOT_TRUSTED
    assert run_here("resume", "--drop").code == ExitCode.DONE
    assert queue() == []
