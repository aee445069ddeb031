"""A teamchat that an agent runs in its turn: how deep, with what, and what becomes of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from teamchat.cli.startup.workspace import store_file
from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from teamchat.core.turn.caller import VARIABLE
from tests.cli.helpers import objects
from tests.cli.inner import CHEAP, FORMS, errors, inner, python, select, spender, team
from tests.program import ROOT, cli, ended, run_here, start
from tests.runners.processes import eventually


@pytest.mark.parametrize("form", FORMS)
def test_a_chain_of_six_levels_ends_after_two_turns(form: str) -> None:
    world = team(max=f"echo turn >> ../turns; {inner('send', '--new', 'Deeper', form=form)}")
    assert cli("send", "Go").code == 0
    assert (world / "turns").read_text() == "turn\n" * 2
    assert "teamchat: no turn may begin here, inside of turn 1 of s1 (max): limits.depth = 1" in errors(world)
    assert select("SELECT COUNT(*) FROM sessions") <= [(2,)]  # nothing of the third one is stored


@pytest.mark.parametrize("command", [("send", "Hi"), ("run", "sequential", "Hi"), ("resume",), ("retry", "--yes")])
def test_past_the_bound_a_command_says_so_in_one_line_and_stores_nothing(command: tuple[str, ...]) -> None:
    world = team("depth = 0", max=inner(*command))
    assert cli("send", "Go").code == 0
    assert (world / "codes").read_text() == "7\n"
    assert (
        errors(world)
        == "teamchat: no turn may begin here, inside of turn 1 of s1 (max): limits.depth = 0 is left there\n"
    )
    assert select("SELECT COUNT(*) FROM sessions") == [(1,)]


@pytest.mark.parametrize(
    "command",
    [("log",), ("show",), ("sessions",), ("team",), ("--version",), ("todo",), ("usage",), ("send", "--dry-run", "Hi")],
)
def test_a_command_that_runs_no_turn_works_at_any_depth(command: tuple[str, ...]) -> None:
    deeper = inner("send", "--new", "Deeper")
    world = team(max=f"if [ -e ../once ]; then {inner(*command)}; else touch ../once; {deeper}; fi")
    assert cli("send", "Go").code == 0
    assert (world / "codes").read_text() == "0\n0\n", errors(world)


def test_raising_the_depth_needs_trust_and_lowering_it_none() -> None:
    team("depth = 2", max="true")
    trust_store().file.unlink()
    assert "the team has depth = 2 as a limit (1 by default)" in run_here("send", "Hi").err
    team("depth = 0", max="true")
    trust_store().file.unlink()
    assert "depth" not in run_here("send", "Hi").err


def test_with_a_depth_of_two_a_chain_ends_after_three_turns() -> None:
    world = team("depth = 2", max=f"echo turn >> ../turns; {inner('send', '--new', 'Deeper')}")
    assert cli("send", "Go").code == 0
    assert (world / "turns").read_text() == "turn\n" * 3


def test_what_an_inner_conversation_uses_counts_in_the_one_around_it() -> None:
    world = Path.cwd().parent
    spender(world)
    twice = f"{inner('send', 'One')}; {inner('send', 'Two')}"
    team(max=f"echo hidden && cd ../other-team && {twice}; cd ../work")
    assert cli("send", "Go").code == 0, errors(world)
    assert (world / "codes").read_text() == "0\n0\n", errors(world)
    child = {
        "session": "s1", "store": str(store_file(world / "other-team")), "turns": 2, "input_tokens": 200,
        "cached_tokens": None, "output_tokens": 40, "cost_usd": 1.0,
        "at_least": {"input_tokens": 200, "cached_tokens": None, "output_tokens": 40, "cost_usd": 1.0},
    }  # fmt: skip
    (shown,) = objects(run_here("show", "--json"))
    assert isinstance(shown["outcome"], dict)
    assert shown["outcome"]["children"] == [child]
    assert "  ran       the conversation s1: 2 turns, 240 tokens, $1.0000\n" in run_here("show").out
    used = {line["type"]: line for line in objects(run_here("usage", "--json"))}
    assert (used["child"]["member"], used["child"]["child"], used["child"]["turns"]) == ("max", "s1", 2)
    assert (used["total"]["turns"], used["total"]["at_least"]) == (3, child["at_least"])
    assert "max in s1" in run_here("usage").out
    assert select("SELECT turns, tokens, cost_usd FROM sessions") == [(3, 240, 1.0)]
    os.chdir("../other-team")
    (listed,) = objects(run_here("sessions", "--json"))
    store = str(store_file(world / "work"))
    assert listed["caller"] == {"store": store, "session": "s1", "turn": 1, "member": "max"}
    assert "begun in turn 1 of s1 by max" in run_here("sessions").out
    os.chdir("../work")


@pytest.mark.parametrize(
    ("limits", "code", "why"),
    [
        ("turns = 3", "7", "3 turns since the last human message (limits.turns)"),
        ("tokens = 200", "8", "240 tokens are spent (limits.tokens)"),
        ("minutes = 0.0001", "7", "0.0001 minutes since the last human message (limits.minutes)"),
    ],
)
def test_an_inner_conversation_gets_what_is_left_and_no_more(limits: str, code: str, why: str) -> None:
    world = Path.cwd().parent
    spender(world)
    send = inner("send", "--new", "--turns", "99", "Hi")
    team(limits, max=f"cd ../other-team; {'; '.join([send] * 4)}; cd ../work")
    assert cli("send", "Go").code == 0
    codes = (world / "codes").read_text().split()
    assert codes == (["0"] * 2 + [code] * 2 if "minutes" not in limits else [code] * 4)
    assert f"teamchat: {why} in s1, in whose turn 1 this runs\n" in errors(world)


def test_two_inner_conversations_at_once_do_not_both_take_the_last_turn() -> None:
    world = Path.cwd().parent
    spender(world)
    sends = " & ".join([f"({inner('send', '--new', 'Hi').replace('$$', str(number))})" for number in range(6)])
    team("turns = 4", max=f"cd ../other-team; {sends} & wait; cd ../work")
    assert cli("send", "Go").code == 0
    codes = sorted((world / "codes").read_text().split())
    assert codes == ["0"] * 3 + ["7"] * 3, errors(world)
    assert select("SELECT turns FROM sessions") == [(4,)]


def test_a_person_does_not_continue_an_inner_conversation_by_default() -> None:
    team(max=f"test -e ../once || {{ touch ../once; {inner('send', '--new', 'Deeper')}; }}")
    assert cli("send", "Go").code == 0
    assert [line["name"] for line in objects(run_here("sessions", "--json")) if line["current"]] == ["s1"]
    assert "session s1 continues" in cli("send", "Again").err
    assert "session s2 continues" in cli("send", "--session", "s2", "Again").err


def test_an_agent_without_a_name_continues_what_it_began_in_its_turn() -> None:
    """Its own conversation is not the one around it, which would wait for its end."""
    world = team(max=f"test -e ../once || {{ touch ../once; {inner('send', 'One')}; {inner('send', 'Two')}; }}")
    assert cli("send", "Go").code == 0
    assert (world / "codes").read_text() == "0\n0\n", errors(world)
    assert [line["name"] for line in objects(run_here("sessions", "--json"))] == ["s2", "s1"]


@pytest.mark.parametrize("command", [("send", "--session", "s1", "Hi"), ("resume",), ("compact", "--member", "max")])
def test_the_conversation_around_is_refused_at_once(command: tuple[str, ...]) -> None:
    world = team(max=inner(*command))
    assert cli("send", "Go").code == 0
    assert (world / "codes").read_text() == "2\n"
    assert "teamchat: session s1 waits for the turn of max in which this runs\n" in errors(world)


@pytest.mark.parametrize("command", ["trust", "send --trust Hi", "doctor --live", "init --force"])
def test_nobody_gives_trust_in_a_turn(command: str) -> None:
    world = Path.cwd().parent
    spender(world)
    trusted = trust_store().file.read_text()
    (world / "cheap.sh").write_text(CHEAP + "# changed\n")
    team(max=f"cd ../other-team; {inner(*command.split())}; cd ../work")
    before = trust_store().file.read_text()
    assert cli("send", "Go").code == 0
    assert trust_store().file.read_text() == before != trusted
    if command != "init --force":
        assert (world / "codes").read_text() == "5\n", errors(world)


def test_trust_of_another_state_folder_counts_for_nothing() -> None:
    world = Path.cwd().parent
    spender(world)
    team(max=f"cd ../other-team; export TEAMCHAT_HOME=$PWD/../other; {inner('send', 'Hi')}; cd ../work")
    (world / "other").mkdir()
    (world / "other" / "trust.json").write_text(trust_store().file.read_text())
    kept = json.loads(trust_store().file.read_text())
    del kept[str(world / "other-team" / "teamchat.toml")]
    trust_store().file.write_text(json.dumps(kept))
    assert cli("send", "Go").code == 0
    assert (world / "codes").read_text() == "5\n", errors(world)


@pytest.mark.parametrize(
    ("mine", "theirs", "why"),
    [
        ("", 'access = "edit"', "has access 'edit'"),
        ('access = "edit"', 'access = "full"', "has access 'full'"),
        ("", "web = true", "may read the web"),
        ("", 'mcp = ["db"]', "may call the MCP servers db"),
        ("", "project_settings = true", "runs the project's own settings"),
        ('access = "edit"\nallow = ["make"]', 'access = "edit"\nallow = ["make", "rm"]', "may run rm"),
        ('access = "edit"\nmcp = []', 'access = "edit"', "may call all of your MCP servers"),
    ],
)
def test_a_member_that_may_do_more_than_the_agent_gets_no_turn(mine: str, theirs: str, why: str) -> None:
    world = Path.cwd().parent
    spender(world)
    file = world / "other-team" / "teamchat.toml"
    file.write_text(file.read_text().replace("[agents", f"{theirs}\n[agents"))
    trust_store().grant(load(file))
    text = f"cd ../other-team; {inner('send', 'Hi')}; cd ../work"
    team(members=mine, max=text)
    if 'like = "claude"' not in Path("teamchat.toml").read_text():
        whole = Path("teamchat.toml").read_text() + '\nlike = "claude"\n'
        Path("teamchat.toml").write_text(whole)
        trust_store().grant(load(Path("teamchat.toml").absolute()))
        (world / "max.sh").write_text(f"{text}\n{CHEAP.partition(chr(10))[2]}")
        trust_store().grant(load(Path("teamchat.toml").absolute()))
    assert cli("send", "Go").code == 0
    assert (world / "codes").read_text() == "5\n", errors(world)
    assert f"ann {why}, which max may not, in whose turn (turn 1 of s1) this runs" in errors(world)


@pytest.mark.parametrize(
    "command", [("check", "'touch ran'"), ("run", "until", "--do", "ann", "--check", "'touch ran'", "Hi")]
)
@pytest.mark.parametrize(("mine", "code"), [("", 5), ('access = "edit"', 5), ('access = "full"', 0)])
def test_a_check_needs_an_agent_that_may_run_any_command(command: tuple[str, ...], mine: str, code: int) -> None:
    world = Path.cwd().parent
    spender(world)
    file = world / "other-team" / "teamchat.toml"
    file.write_text(file.read_text().replace("[agents", 'access = "edit"\n[agents'))
    trust_store().grant(load(file))
    subprocess.run(["git", "init", "-q", str(file.parent)], check=True)
    team(members=mine, max=f"cd ../other-team; {inner(*command)}; cd ../work")
    assert cli("send", "Go").code == 0
    assert (world / "codes").read_text() == f"{code}\n", errors(world)
    assert (world / "other-team" / "ran").exists() == (code == 0)
    if code:
        told = "a check runs commands as access 'full' may, which max does not have, in whose turn (turn 1 of s1)"
        assert told in errors(world)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_it_ends_with_the_turn_and_a_person_continues_it(number: signal.Signals) -> None:
    hang = "touch ../hangs; while [ -e ../hold ]; do sleep 0.05; done"
    world = team(max=f"if [ -e ../once ]; then {hang}; else touch ../once; {inner('send', '--new', 'Deeper')}; fi")
    (world / "hold").touch()
    with start("send", "Go") as process:
        assert eventually((world / "hangs").exists)
        process.send_signal(number)
        ended(process)
    assert eventually(lambda: not running(world))
    (world / "hold").unlink()
    assert select("SELECT name, caller NOT NULL FROM sessions") == [("s1", 0), ("s2", 1)]
    assert cli("resume", "--session", "s2").code == 0
    assert cli("resume").code == 0
    counted = objects(run_here("show", "1", "--json"))[0]["outcome"]
    assert isinstance(counted, dict)
    assert [(child["session"], child["turns"]) for child in counted["children"]] == [("s2", 1)]


def running(world: Path) -> list[str]:
    """The processes that work in the folder of the conversation."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and folder.name != str(os.getpid()):
            try:
                if (folder / "cwd").readlink() == world / "work":
                    found.append((folder / "cmdline").read_text())
            except OSError:
                continue
    return found


def test_the_token_is_nowhere_but_in_the_environment() -> None:
    world = team(max=f"echo ${VARIABLE} > ../token; echo ${VARIABLE}")
    assert cli("send", "--record", "../kept.cassette", "Go").code == 0
    token = (world / "token").read_text().strip()
    assert token.startswith("tct_")
    secret = token.partition("@")[0]
    assert secret not in (world / "kept.cassette").read_text()
    assert secret not in run_here("export").out
    (shown,) = objects(run_here("show", "--json"))
    assert secret not in json.dumps(shown["setup"])
    assert not list(Path(store_file(Path.cwd())).parent.glob("turns/*/caller.json"))  # it goes with the turn's folder


@pytest.mark.parametrize("trick", ["its own output", "a limit of its own"])
def test_a_turn_that_an_agent_makes_up_is_only_one_more_around_it(trick: str) -> None:
    fake = "mkdir -p ../turns/0123456789abcdef; touch ../turns/0123456789abcdef/caller.json"
    send = inner("send", "--new", "Deeper")
    tricks = {
        "its own output": f"{fake}; {send.replace('> ../out.$$', '> ../turns/0123456789abcdef/stdout')}",
        "a limit of its own": send.replace("( ", f"( {python(RAISED)} "),
    }
    world = team(max=f"echo turn >> ../count; {tricks[trick]}")
    assert cli("send", "Go").code == 0
    assert len((world / "count").read_text().splitlines()) <= 2
    assert "7" in (world / "codes").read_text().split()


RAISED = """
import os, resource, sys
try:
    resource.setrlimit(resource.RLIMIT_RTTIME, (15 << 59, 15 << 59))
except (OSError, ValueError):
    pass
os.execvp(*LINE)
"""


def test_each_turn_of_a_kept_process_has_what_it_runs_itself() -> None:
    world = Path.cwd().parent
    spender(world)
    once = "test -e ../once || { touch ../once; echo '[NEXT: bob]'; }"
    script = f"exec < /dev/null; {once}; echo Ran.; cd ../other-team; {inner('send', '--new', 'Hi')}"
    (world / "inner.sh").write_text(script)
    run = f"run sh {world}/inner.sh"
    team(bob=f"printf '[NEXT: max]\\n{run}\\n'; exit 0")
    live = json.dumps([sys.executable, str(ROOT / "tests" / "fakes" / "live.py")])
    max_ = f'[[members]]\nname = "max"\nagent = "max-agent"\nmemory = "live"\n[agents.max-agent]\ncommand = {live}\n'
    Path("teamchat.toml").write_text(f'{Path("teamchat.toml").read_text()}\n{max_}like = "claude"\n')
    trust_store().grant(load(Path("teamchat.toml").absolute()))
    assert cli("send", "--to", "max", run).code == 0, errors(world)
    assert (world / "codes").read_text() == "0\n0\n", errors(world)
    turns = [objects(run_here("show", number, "--json"))[0] for number in "13"]
    assert [turn["outcome"]["children"][0]["session"] for turn in turns] == ["s1", "s2"]  # type: ignore[index]
    assert turns[1]["setup"]["same_process"]  # type: ignore[index]


def test_the_limit_of_the_outer_team_counts_whatever_the_inner_one_has() -> None:
    world = Path.cwd().parent
    other = world / "other-team"
    other.mkdir()
    (world / "deep.sh").write_text(
        f"echo turn >> ../turns; cat > /dev/null; {inner('send', '--new', 'Deeper')}\necho Done\n"
    )
    (other / "teamchat.toml").write_text(
        '[team.limits]\ndepth = 5\n[[members]]\nname = "ann"\nagent = "ann-agent"\n'
        f'[agents.ann-agent]\ncommand = ["/bin/sh", "{world}/deep.sh"]\n'
    )
    trust_store().grant(load(other / "teamchat.toml"))
    team(max=f"cd ../other-team; {inner('send', '--new', 'Deep')}; cd ../work")
    assert cli("send", "Go").code == 0
    assert (world / "turns").read_text() == "turn\n"


def test_a_program_of_the_team_file_is_no_agent_of_a_bounded_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a CLI of the table is held to, a program that the inner team file names would not be."""
    world = Path.cwd().parent
    spender(world)
    (world / "bin").mkdir()
    (world / "bin" / "claude").write_text(f"#!/bin/sh\ncd ../other-team; {inner('send', 'Hi')}; cd ../work\n{CHEAP}")
    (world / "bin" / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{world}/bin:{os.environ['PATH']}")
    Path("teamchat.toml").write_text('[[members]]\nname = "max"\nagent = "claude"\naccess = "edit"\n')
    trust_store().grant(load(Path("teamchat.toml").absolute()))
    assert cli("send", "Go").code == 0
    assert (world / "codes").read_text() == "5\n", errors(world)
    assert "ann runs what the team file names, which max may not" in errors(world)


def test_where_a_guardian_was_killed_no_turn_begins() -> None:
    """What is known of the turn has gone with the guardian; the limit still says that it is one."""
    world = team(max=f"kill -9 $PPID; {inner('send', '--new', 'Hi', form='env -i')}")
    assert cli("send", "Go").code != 0
    assert select("SELECT COUNT(*) FROM sessions") == [(1,)], errors(world)
