"""What hands type out of habit from other programs: it is told, and costs nothing."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from teamchat.cli.chatting.slash import HABITS, OF_OTHERS, SENDS, command_of, habit_of, keys
from teamchat.core.team.find import load
from teamchat.core.team.team import Team
from tests.cli.test_chat import (
    CTRL_U,
    ENTER,
    PROMPT,
    UP,
    begun,
    chat,
    leave,
    line,
    prompt_of,
    said,
    slow,
    stands,
    types,
)
from tests.program import run_here
from tests.screens import Screen, screen
from tests.scripted_team import Crew, crew
from tests.shell_team import repository, shell

NOT_SENT = {
    "exit": "/quit or Ctrl-D leaves",
    "quit": "/quit or Ctrl-D leaves",
    ":q": "/quit or Ctrl-D leaves",
    "help": "/help lists the commands",
    "?": "Ctrl-D",
    "!ls": "another terminal, or Ctrl-Z, and fg",
    "! git status": "another terminal, or Ctrl-Z, and fg",
    "# use tabs": "goes into CLAUDE.md or AGENTS.md, or /learn stores it",
    "&": "nohup teamchat send ... & goes on without this terminal, and teamchat watch shows it",
    "& fix it": "nohup teamchat send ... & goes on without this terminal, and teamchat watch shows it",
}
TOLD = {
    "/permissions": "/team shows what each may",
    "/approvals": "`access` and `allow` of a member in the team file",
    "/tools": "`access`, `allow`, `web` and `mcp`",
    "/mcp": "`mcp` of a member in the team file",
    "/agents": "the members of the team file are the agents here",
    "/hooks": "[hooks] of the team file",
    "/context": "/usage shows what was spent, and /show --prompt",
    "/rename": "/sessions rename NAME TITLE",
    "/copy": "/export writes the conversation",
    "/review": "`@sarah Review the changes` asks sarah",
    "/security-review": "`@sarah Review the changes for security`",
    "/memory": "goes into CLAUDE.md or AGENTS.md, or /learn stores it",
    "/plan": '`access = "read"` of a member in the team file',
    "/tasks": "did you mean /todo?",
    "/todos": "did you mean /todo?",
    "/vim": "/vim: there is none here",
    "/statusline": "/statusline: there is none here",
    "/terminal-setup": "/terminal-setup: there is none here",
    "/output-style": "/output-style: there is none here",
    "/theme": "TEAMCHAT_THEME=light or dark",
    "/bug": "there is none here",
    "/feedback": "there is none here",
    "/release-notes": "teamchat --version",
    "/login": "claude /login; /doctor says who is logged in",
    "/logout": "in another terminal",
    "/auth": "in another terminal",
    "/config": "teamchat.toml, the team file, has the settings",
    "/settings": "teamchat.toml, the team file, has the settings",
    "/editor": "Ctrl-G",
    "/bashes": "nothing runs in the background of chat",
    "/init": "/init runs outside of chat: teamchat init",
    "/deploy": "there is no command /deploy; /help lists them",
}
MESSAGES = (
    "#12 still fails",
    "help me",
    "quit it",
    "? what",
    "?? ",
    "exit\nnow",
    "!ls\n!ls",
    "#\nnote",
    "&\nb",
    "&&",
    "!",
)
SPACED = (" exit", " quit", " help", " :q", " ?", " !ls", " # x", " & x", " /undo")


@pytest.fixture
def team(world: Path) -> Crew:
    replies = [f"I did it {number}." for number in range(20)]
    return crew(world, {"max": replies, "sarah": ["Looks right."]}, team={"lead": "max"})


def requests(team: Crew) -> int:
    return len(team.prompts("max") + team.prompts("sarah"))


def found(team: Crew) -> Team:
    return load(team.file)


def told(shown: Screen, typed: str, words: str) -> None:
    """Type the line in place of what is selected, and wait for the words and for the prompt that still has it."""
    shown.scrolled()
    line(shown, CTRL_U + typed)
    shown.until(lambda text: prompt_of(text) == f"{PROMPT} {typed}" and words in " ".join(text.split()))


def ran(typed: str, text: str) -> bool:
    return f"\n{typed}\n" in text and prompt_of(text) == PROMPT


@pytest.mark.parametrize("typed", NOT_SENT)
def test_a_habit_is_told_with_the_way_to_send_it(typed: str) -> None:
    for line_ in (typed, f"{typed}  \n"):
        lines = habit_of(line_)
        assert NOT_SENT[typed] in " ".join(" ".join(lines).split())
        assert lines[-1].endswith(SENDS)


@pytest.mark.parametrize("typed", [*MESSAGES, *SPACED, ""])
def test_what_only_looks_like_a_habit_is_a_message(typed: str) -> None:
    assert habit_of(typed) == []
    assert command_of(typed) is None


@pytest.mark.parametrize("columns", [80, 120])
def test_the_keys_take_at_most_fifteen_lines(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert len(habit_of("?")) <= 15
    assert max(map(len, keys())) < columns


@pytest.mark.parametrize("columns", [80, 120])
def test_habits_are_told_and_cost_nothing(columns: int, team: Crew) -> None:
    with chat(columns=columns) as shown:
        for typed, words in {**NOT_SENT, **TOLD}.items():
            told(shown, typed, words)
        assert requests(team) == 0
        for typed in ("/help", "/model", "/model opus", "/diff"):
            line(shown, CTRL_U + typed)
            shown.until(partial(ran, typed))
        assert requests(team) == 0
        assert leave(shown) == 0
    assert said() == []


def test_a_space_sends_each_as_it_is(team: Crew) -> None:
    with chat(rows=50) as shown:
        for number, typed in enumerate((*SPACED, "#12 still fails", "? more", "help me")):
            line(shown, typed)
            shown.until(partial(stands, f"I did it {number}."))
        leave(shown)
    assert [text.removeprefix("kailai: ") for text in said()[::2]] == [*SPACED, "#12 still fails", "? more", "help me"]
    assert requests(team) == len(SPACED) + 3


def test_a_pasted_habit_of_several_lines_is_a_message(team: Crew) -> None:
    with chat() as shown:
        types(shown, "\x1b[200~!ls\nexit\n\x1b[201~" + ENTER)
        shown.until(lambda text: "I did it 0." in text)
        leave(shown)
    assert requests(team) == 1


# --- the commands of other programs


def refusal(typed: str, team: Team | None) -> str:
    try:
        command_of(typed, team)
    except Exception as error:  # noqa: BLE001
        return str(error)
    return ""


@pytest.mark.parametrize("word", OF_OTHERS)
def test_each_word_of_another_program_says_what_does_it_here(word: str, team: Crew) -> None:
    words = refusal(f"/{word}", found(team))
    assert words.startswith(f"there is no command /{word}")
    assert words.endswith(SENDS)
    assert "@max" not in words
    assert "{" not in words


def test_a_review_is_asked_of_the_first_agent_that_is_not_the_lead(world: Path) -> None:
    for lead, reviewer in (("max", "sarah"), ("sarah", "max")):
        made = crew(world, {"max": [], "sarah": []}, team={"lead": lead})
        assert f"@{reviewer} Review" in refusal("/review", found(made))
    assert "@max Review" in refusal("/review", found(crew(world, {"max": []}, team={"lead": "max"})))


@pytest.mark.parametrize(
    ("file", "like", "typed", "owner"),
    [
        ("home/.claude/commands/deploy.md", "claude", "/deploy", "sarah"),
        ("home/.claude/skills/deploy/SKILL.md", "claude", "/deploy", "sarah"),
        ("home/.claude/commands/review.md", "claude", "/review", "sarah"),
        ("home/.claude/commands/other.md", "claude", "/deploy", None),
        ("home/.claude/commands/deploy.md", "plain", "/deploy", None),
        ("home/.gemini/commands/deploy.toml", "gemini", "/deploy", "sarah"),
        ("home/.codex/prompts/deploy.md", "codex", "/deploy", None),
    ],
)
def test_a_command_of_a_cli_is_only_offered_where_its_file_is(
    file: str, like: str, typed: str, owner: str | None, world: Path
) -> None:
    made = crew(world, {"max": [], "sarah": []}, like={"sarah": like}, team={"lead": "max"})
    (world / file).parent.mkdir(parents=True)
    (world / file).write_text('prompt = "Do it."')
    words = refusal(typed, found(made))
    assert (f"@sarah {typed} gives it to sarah, whose CLI has it" in words) is (owner == "sarah")
    assert ("gives it to" in words) is (owner is not None)


# --- the model


def test_model_names_the_line_of_the_team_file(world: Path) -> None:
    members = {"max": {"model": "opus"}}
    made = crew(
        world,
        {"max": [], "sarah": [], "al": []},
        members=members,
        team={"lead": "max"},
        like={"max": "claude", "sarah": "claude"},
    )
    number = made.file.read_text().split("\n").index('model = "opus"') + 1
    with chat(columns=120, rows=60) as shown:
        line(shown, "/model")
        text = shown.until(lambda text: "chooses" in text and prompt_of(text) == PROMPT)
        assert f'max: model = "opus" is line {number} of teamchat.toml' in text
        key = 'model = "..." under [[members]] name = "sarah" sets it'
        assert f"sarah: no model in teamchat.toml; claude chooses: {key}" in text
        assert "al: no model in teamchat.toml; the command of [agents.al-agent] chooses" in text
        assert "max-agent" in text
        shown.resize(80, 60)
        line(shown, "/model sonnet")
        key = 'model = "sonnet" under [[members]] name = "max" in teamchat.toml'
        told = f"· chat sets no model: {key} does, from the next message on"
        shown.until(lambda text: told in " ".join(text.split()) and prompt_of(text) == PROMPT)
        leave(shown)


# --- the turn of /diff


TURN = "· turn 1, max: the last that changed files"


def test_diff_without_a_turn_says_which_turn_it_shows(tmp_path: Path) -> None:
    repository(tmp_path / "unused")
    shell(max="sed -i s/a/A/ app.py")
    run_here("send", "Go")
    assert run_here("diff").err == ""
    with screen("diff") as shown:
        assert shown.to_the_end()[:2] == [TURN, "diff --git a/app.py b/app.py"]
    with screen("diff", "1") as shown:
        assert shown.to_the_end()[0] == "diff --git a/app.py b/app.py"
    with chat(rows=60) as shown:
        line(shown, "/diff")
        text = shown.until(lambda text: "+A = 1" in text and prompt_of(text) == PROMPT)
        assert f"\n/diff\n{TURN}\ndiff --git " in text
        leave(shown)


# --- a name inside a line


AT = (
    "· @sarah is text here, and this goes to max: Enter once more sends it; "
    "@sarah at the beginning of a line calls sarah"
)


def asks(shown: Screen, typed: str) -> None:
    shown.until(lambda text: AT in " ".join(text.split()) and prompt_of(text) == f"{PROMPT} {typed}")


def is_queued(typed: str, text: str) -> bool:
    return f'queued: "{typed}"' in text and prompt_of(text) == PROMPT


@pytest.mark.parametrize("columns", [80, 120])
def test_a_name_inside_a_line_is_told_before_it_is_sent(columns: int, team: Crew) -> None:
    with chat(columns=columns, rows=40) as shown:
        line(shown, "hey @sarah look")
        asks(shown, "hey @sarah look")
        line(shown, "!")  # what is typed is added: nothing is selected
        shown.until(lambda text: " ".join(text.split()).count(AT) == 2 and prompt_of(text).endswith("look!"))
        assert requests(team) == 0
        types(shown, ENTER)
        text = shown.until(lambda text: stands("I did it 0.", text))
        assert "calls nobody here" not in text
        for number, typed in enumerate(("see @README.md and `@sarah`", "ask @max, too"), 1):
            line(shown, typed)
            shown.until(partial(stands, f"I did it {number}."))
        leave(shown)
    assert said()[0] == "kailai: hey @sarah look!"
    assert len(team.prompts("sarah")) == 0


def test_a_name_inside_a_line_is_told_while_members_work(world: Path, team: Crew) -> None:
    slow(world, team, "max", "I did it.", "Yes.", "Again.")
    with chat(columns=120, rows=40) as shown:
        line(shown, "Write it")
        begun(world, shown)
        for typed in ("hey @sarah look", "and @sarah look"):
            line(shown, typed)
            asks(shown, typed)
            types(shown, ENTER)
            shown.until(partial(is_queued, typed))
        types(shown, UP)
        shown.until(lambda text: prompt_of(text) == f"{PROMPT} and @sarah look")
        types(shown, CTRL_U)
        (world / "go").touch()
        text = shown.until(lambda text: stands("Yes.", text))
        assert "calls nobody here" not in text
        leave(shown)
    assert [text for text in said() if text.startswith("kailai")] == ["kailai: Write it", "kailai: hey @sarah look"]


def test_habits_are_data_that_every_line_matches_once() -> None:
    for typed in NOT_SENT:
        assert sum(1 for habit, _ in HABITS if habit.fullmatch(typed)) == (typed != "?")
