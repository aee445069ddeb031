"""`team` and `trust`: who is there, what each may do, and the one question that is asked before anything runs."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from teamchat.runners.edits import KINDS
from tests.cli.helpers import FILE, notes, refused
from tests.installed import install, program
from tests.program import Result, fake, run_here
from tests.runners.processes import agent
from tests.scripted_team import SCRIPTED, crew

OWN = """\
[[members]]
name = "al"
agent = "own"
[agents.own]
command = ["{program}"]
"""


def test_the_team_is_shown_with_what_each_member_may_do(world: Path) -> None:
    made = crew(world, {"max": []}, members={"max": {"title": "Architect", "timeout": "90s"}})
    assert run_here("team") == Result(
        0,
        f"""\
crew ({made.file})
  max runs {" ".join(fake(SCRIPTED))} {made.scripts} max; its access is not enforced
  fence is off: a text can pass for another speaker

kailai · person

max · Architect · max-agent
  access read: not enforced: teamchat cannot bound what another program does
  reads: its prompt, and whatever the program reads by itself
  memory: fresh
  works in: {world}/work
  runs: {" ".join(fake(SCRIPTED))} {made.scripts} max
  clocks: first byte none, stall none, total 90 s
""",
        "",
    )


def test_the_processes_of_the_team_file_are_shown_with_what_they_do(world: Path) -> None:
    made = crew(world, {"max": [], "sarah": []})
    review = '[processes.review]\nkind = "debate"\nprompt = "Be strict."\n'
    made.file.write_text(f'{made.file.read_text()}{review}[processes.choose]\nkind = "vote"\n')
    needs = "needs options to choose from, such as --options yes,no"
    does = "max and sarah answer blind, then once more, and max sums up"
    assert run_here("team").out.endswith(f"""
review · debate: {does}
  prompt: Be strict.

choose · vote: needs options to choose from, such as --options yes,no
""")
    assert json.loads(run_here("team", "--json").out)["processes"] == [
        {"name": "review", "kind": "debate", "does": does, "problem": None, "prompt": "Be strict."},
        {"name": "choose", "kind": "vote", "does": None, "problem": needs, "prompt": None},
    ]


def test_the_team_as_json_has_every_member(world: Path) -> None:
    crew(
        world,
        {"max": []},
        like={"max": "claude"},
        members={"max": {"model": "opus", "allow": ["make"], "access": "edit"}},
    )
    team = json.loads(run_here("team", "--json").out)
    assert (team["name"], team["file"], team["trusted"]) == ("crew", str(FILE.absolute()), True)
    person, member = team["members"]
    assert person == {"name": "kailai", "title": None, "type": "human"}
    assert member["access"] == "edit"
    assert member["allow"] == ["make"]
    assert (member["edits"]["file commands"], member["edits"]["programs"]) == ("lets", "refuses")
    assert member["edits"].keys() == KINDS.keys()
    shown = run_here("team").out
    assert (
        "  lets: create and change files by its edit tool; ls, cat, git log; mkdir, touch, cp, mv, rm, sed -i; "
        in shown
    )
    assert "  refuses: chmod, ln -s; node -e, sh FILE, tests; git commit, git checkout; " in shown
    assert member["model"] == "opus"
    assert member["program"] == sys.executable
    assert member["clocks_s"] == {"first_byte": 60.0, "stall": 300.0, "timeout": 1800.0}


def test_a_program_that_is_not_installed_is_shouted() -> None:
    FILE.write_text(OWN.format(program="no-such-program"))
    assert "al · own (is not installed; install it, or change its command in the team file)\n" in run_here("team").out


def test_without_a_team_file_the_installed_clis_are_the_team(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(world, monkeypatch, "claude", "codex")
    out = run_here("team").out
    assert "\n  without, against plain codex: web\n" in out
    assert out.startswith("work (no team file: the installed CLIs are the team)\n\nclaude · claude\n  access read: ")
    assert "\n\ncodex · codex\n" in out
    assert "gemini" not in out


def test_a_team_can_be_named_as_a_file_and_in_the_users_folder(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(world / "config"))
    teams = world / "config" / "teamchat" / "teams"
    teams.mkdir(parents=True)
    (teams / "mine.toml").write_text(OWN.format(program="sh"))
    assert run_here("team", "--team", "mine").out.startswith(f"mine ({teams}/mine.toml), not trusted yet: ")
    assert run_here("team", "--team", str(teams / "mine.toml")).out.startswith(f"mine ({teams}/mine.toml), not trusted")
    ran = run_here("team", "--team", "other")
    assert (ran.code, refused(ran)) == (4, f"there is no team 'other' in {teams} (teams: mine)")


def test_names_and_titles_can_not_rewrite_the_screen(world: Path) -> None:
    folder = world / "work" / "\x1b[31mred\nfolder"
    folder.mkdir()
    (folder / "teamchat.toml").write_text(OWN.format(program="sh"))
    ran = run_here("team", "--team", str(folder / "teamchat.toml"))
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert ran.out.startswith("\\x1b[31mred\\nfolder (")


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
def test_a_team_of_the_installed_clis_answers(world: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The fake CLI of that name on PATH gets what the real one would get, and its answer is understood."""
    folder = install(world, monkeypatch, name)
    program(folder / name, f"exec {shlex.join(agent(f'{name}-like', f'Hello from {name}.'))}")
    assert run_here("send", "--quiet", f"[NEXT: {name}] Hi") == Result(0, f"Hello from {name}.\n", "")
    assert run_here("show").out.startswith(f"turn 1 · {name} ({name}) · done\n")


def test_values_of_variables_are_not_shown(world: Path) -> None:
    made = crew(world, {"max": []})
    env = 'env = { MY_TOKEN = "s3cret", PLAIN = "val-ue" }'
    made.file.write_text(made.file.read_text().replace('name = "max"', f'name = "max"\n{env}'))
    for ran in (run_here("team"), run_here("team", "--json")):
        assert "MY_TOKEN" in ran.out
        assert "s3cret" not in ran.out
        assert "val-ue" in ran.out  # as `teamchat trust` shows it


def test_a_team_file_can_not_repaint_its_own_display() -> None:
    FILE.write_text(
        '[team]\nname = "x"\n[[members]]\nname = "max"\nagent = "own"\n'
        '[agents.own]\ncommand = ["sh", "-c", "evil\\u001b[2K\\nclocks: \\u202e"]\n'
    )
    shown = run_here("team").out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "evil\\x1b[2K\\nclocks: \\u202e" in shown


def test_the_command_that_trusts_is_of_the_team_that_is_shown(world: Path) -> None:
    teams = world / "home" / "config_home" / "teamchat" / "teams"
    teams.mkdir(parents=True)
    (teams / "mine.toml").write_text(OWN.format(program="sh"))
    shown = run_here("team", "--team", "mine").out
    assert shown.startswith(f"mine ({teams}/mine.toml), not trusted yet: teamchat trust --team mine\n")
    assert run_here("trust", "--team", "mine").code == 0
    assert run_here("team", "--team", "mine").out.startswith(f"mine ({teams}/mine.toml)\n")


def test_checks_are_among_what_needs_trust(world: Path) -> None:
    made = crew(world, {"max": []})
    made.file.write_text(f'{made.file.read_text()}[checks.tests]\ncommand = ["./run", "a b"]\nneeds = ["lint"]\n')
    made.file.write_text(f'{made.file.read_text()}[checks.lint]\ncommand = "make lint"\n')
    needs = json.loads(run_here("team", "--json").out)["needs"]
    assert [(need["member"], need["key"], need["line"]) for need in needs[1:4]] == [
        ("the check tests", "command", f"the check tests runs {made.file.parent}/run 'a b'"),
        ("the check tests", "needs", "the check tests needs lint"),
        ("the check lint", "command", "the check lint runs make lint"),
    ]
    shown = run_here("team").out
    assert all(f"\n  {need['line']}\n" in shown for need in needs)


# --- trust


def test_trust_says_what_is_trusted_and_then_it_runs(world: Path) -> None:
    made = crew(world, {"max": ["Hi."]})
    (world / "state" / "trust.json").unlink()
    line = f"max runs {' '.join(fake(SCRIPTED))} {made.scripts} max; its access is not enforced"
    ran = run_here("send", "Go")
    assert ran == Result(5, "", f"teamchat: {made.file} is not trusted yet; with it\n  {line}\n  try: teamchat trust\n")
    assert made.prompts("max") == []
    assert run_here("team").out.startswith(f"crew ({made.file}), not trusted yet: teamchat trust\n")
    assert run_here("trust") == Result(0, "", notes(line, f"{made.file} is trusted"))
    assert run_here("team").out.startswith(f"crew ({made.file})\n")
    assert run_here("send", "Go").code == 0


def test_a_team_that_only_reads_needs_no_trust(world: Path) -> None:
    FILE.write_text('[[members]]\nname = "max"\nagent = "claude"\n')
    assert run_here("trust") == Result(0, "", notes("this team needs no trust: its members only read"))
    assert not (world / "state" / "trust.json").exists()


def test_what_runs_nothing_never_asks_again_and_another_command_does(world: Path) -> None:
    made = crew(world, {"max": ["Hi."]})
    text = made.file.read_text()
    made.file.write_text(text.replace('name = "crew"', 'name = "crew"\ntask = "New"'))
    assert run_here("send", "Go").code == 0
    made.file.write_text(text.replace('"max"]', '"max", "more"]'))
    assert run_here("send", "Go").code == 5


def test_trust_in_a_script_is_an_option(world: Path) -> None:
    crew(world, {"max": ["Hi."]})
    (world / "state" / "trust.json").unlink()
    assert run_here("send", "--trust", "--quiet", "Go") == Result(0, "Hi.\n", "")
    assert run_here("team").out.startswith(f"crew ({FILE.absolute()})\n")
