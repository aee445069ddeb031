"""`[hooks]`: commands that are told what happened, and change nothing of it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from tests.cli.helpers import objects, refused
from tests.cli.inner import errors, inner, team
from tests.program import argv, cli, ended, run_here, start
from tests.runners.processes import eventually

NAMES = ("message", "turn_started", "turn_finished", "asked", "paused", "task_changed")


def hooks(**scripts: str) -> Path:
    """Add hooks that run the texts of a shell. They are trusted. Returns the folder of what they write."""
    file, world = Path("teamchat.toml"), Path.cwd().parent
    lines = [f"{name} = {json.dumps(['/bin/sh', '-c', script])}" for name, script in scripts.items()]
    file.write_text(f"{file.read_text()}\n[hooks]\n" + "\n".join(lines))
    trust_store().grant(load(file.absolute()))
    return world


def keeping(*names: str) -> dict[str, str]:
    """Hooks that keep what they are told."""
    return dict.fromkeys(names, "printf '%s ' $TEAMCHAT_HOOK >> ../told; cat >> ../told")


def told(world: Path) -> list[tuple[str, dict[str, Any]]]:
    lines = (world / "told").read_text().splitlines() if (world / "told").exists() else []
    return [(line.partition(" ")[0], json.loads(line.partition(" ")[2])) for line in lines]


def test_each_gets_the_line_of_json_in_the_order_in_which_it_happened() -> None:
    team(max="printf '[NEXT: bob]\\n'; exit 0", bob="true")
    world = hooks(**keeping(*NAMES))
    ran = cli("send", "--json", "--to", "max", "[TEAM_TASK: Build it] Go")
    assert ran.code == 0
    names = {
        "message": "message",
        "task": "task_changed",
        "turn_started": "turn_started",
        "turn_finished": "turn_finished",
    }
    printed = [(names[str(line["type"])], line) for line in objects(ran) if line["type"] in names]
    assert told(world) == printed
    assert [name for name, _ in told(world)] == [
        "message", "task_changed", "turn_started", "message", "turn_finished", "turn_started", "message",
        "turn_finished",
    ]  # fmt: skip
    assert told(world)[1][1]["text"] == "Build it"


def test_asked_and_paused_get_the_result() -> None:
    team("turns = 1", max="printf '[NEXT: kailai] Shall I?\\n'; exit 0", bob="printf '[NEXT: max]\\n'; exit 0")
    world = hooks(**keeping("asked", "paused"))
    asked = cli("send", "--json", "--to", "max", "Go")
    paused = cli("send", "--json", "--to", "bob", "--new", "Go")
    assert (asked.code, paused.code) == (9, 7)
    assert told(world) == [("asked", objects(asked)[-1]), ("paused", objects(paused)[-1])]


def test_task_tells_its_change() -> None:
    team(max="true")
    world = hooks(**keeping("task_changed"))
    assert cli("send", "Go").code == 0
    assert cli("task", "Build it").code == 0
    assert cli("task", "--clear").code == 0
    assert [line["text"] for _, line in told(world)] == ["Build it", None]


def test_no_turn_waits_for_a_hook() -> None:
    """The second turn begins while the hook of the first one still runs."""
    team(max="printf '[NEXT: bob]\\n'; exit 0", bob="touch ../bob")
    world = hooks(
        turn_started="test -e ../bob && exit; for n in $(seq 100); do test -e ../bob && exit; sleep 0.05; done; exit 3"
    )
    ran = cli("send", "--to", "max", "Go")
    assert ran.code == 0
    assert "hook turn_started" not in ran.err, ran.err
    assert (world / "bob").exists()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("sleep 60", "took longer than 10 s and was ended"),
        ("echo no such channel >&2; exit 3", "failed with exit code 3: no such channel"),
        ("yes", "printed more than 1,048,576 bytes and was ended"),
        ("kill -9 $$", "failed with exit code -9"),
        ("setsid sleep 60 & exit 4", "failed with exit code 4"),
    ],
)
def test_one_that_hangs_fails_floods_or_kills_itself_is_a_warning_and_loses_nothing(script: str, why: str) -> None:
    team(max="true")
    hooks(turn_started=script, **keeping("message"))
    ran = cli("send", "Go")
    assert (ran.code, ran.out) == (0, "max:\nDone\n\n")
    assert f"the hook turn_started {why}" in ran.err, ran.err
    assert [line["from"] for _, line in told(Path.cwd().parent)] == ["kailai", "max"]
    assert len(objects(run_here("log", "--json"))) == 2


def test_a_program_that_is_not_there_is_a_warning() -> None:
    team(max="true")
    file = Path("teamchat.toml")
    file.write_text(file.read_text() + '\n[hooks]\nmessage = ["no-such-program"]\n')
    trust_store().grant(load(file.absolute()))
    ran = cli("send", "Go")
    assert ran.code == 0
    assert "the hook message was not run: its program 'no-such-program' is not installed" in ran.err


def test_ctrl_c_ends_a_run_whose_hook_hangs() -> None:
    team(max="touch ../runs; sleep 60")
    world = hooks(turn_started="sleep 60", message="sleep 60", paused="touch ../paused")
    with start("send", "Go") as process:
        assert eventually((world / "runs").exists)
        process.send_signal(2)
        time.sleep(1)
        process.send_signal(2)
        begun = time.monotonic()
        assert ended(process).code == 130
        assert time.monotonic() - begun < 8
    assert not (world / "paused").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("send", "--new", "Hi"), ("resume",), ("run", "sequential", "Hi"), ("task", "Mine"), ("learn", "Mine"),
        ("todo", "add", "Mine"), ("todo", "clear"), ("undo", "--yes"), ("trust",), ("branch",),
        ("compact", "--member", "max"),
        ("sessions", "delete", "--yes", "s1"), ("init", "--force"), ("import", "x.json"), ("send", "--trust", "Hi"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_in_a_hook_what_runs_turns_or_changes_anything_is_refused(words: tuple[str, ...]) -> None:
    team(max="true")
    world = hooks(turn_finished=inner(*words))
    before = trust_store().file.read_text()
    assert cli("send", "Go").code == 0
    assert (world / "codes").read_text() == "5\n", errors(world)
    assert errors(world).endswith("and this runs in the hook turn_finished\n")
    assert errors(world).count("\n") == 1
    assert trust_store().file.read_text() == before
    assert len(objects(run_here("log", "--json"))) == 2


@pytest.mark.parametrize(
    "words", [("log",), ("show", "1"), ("sessions",), ("team",), ("todo",), ("usage",), ("export",)]
)
def test_in_a_hook_reading_commands_work(words: tuple[str, ...]) -> None:
    team(max="true")
    world = hooks(turn_finished=inner(*words))
    assert cli("send", "Go").code == 0
    assert (world / "codes").read_text() == "0\n", errors(world)


def test_there_is_none_in_a_replay_a_dry_run_and_a_nested_teamchat() -> None:
    world = team(max=f"test -e ../once || {{ touch ../once; {inner('send', '--new', 'Deeper')}; }}")
    hooks(**keeping("message"))
    assert cli("send", "--dry-run", "Go").code == 0
    assert told(world) == []
    assert cli("send", "--record", "it.cassette", "Go").code == 0
    assert [line["text"] for _, line in told(world)] == ["Go", "Done"], errors(world)
    (world / "told").unlink()
    assert cli("test", "it.cassette").code == 0
    assert cli("replay", "--speed", "0", "it.cassette").code == 0
    assert told(world) == []


def test_a_warning_about_a_hook_is_in_no_recording() -> None:
    team(max="true")
    hooks(message="exit 3")
    ran = cli("send", "--record", "it.cassette", "Go")
    assert "the hook message failed with exit code 3" in ran.err
    assert cli("test", "it.cassette").code == 0


def test_hooks_need_trust_with_the_files_that_they_run() -> None:
    team(max="true")
    file, script = Path("teamchat.toml"), Path("tell.sh")
    script.write_text("touch ../told\n")
    file.write_text(file.read_text() + '\n[hooks]\nmessage = ["sh", "tell.sh"]\n')
    ran = cli("send", "Go")
    assert ran.code == 5
    assert "added hooks.message of the team: runs sh tell.sh as the hook message" in ran.err
    assert cli("trust").code == 0
    script.write_text("touch ../other\n")
    assert cli("send", "Go").code == 5
    assert not (Path.cwd().parent / "told").exists()


def test_a_hook_that_a_turn_has_changed_is_not_run() -> None:
    world = team(max="echo 'touch ../theirs' > tell.sh")
    Path("tell.sh").write_text("touch ../mine\n")
    file = Path("teamchat.toml")
    file.write_text(file.read_text() + '\n[hooks]\nturn_finished = ["sh", "tell.sh"]\n')
    trust_store().grant(load(file.absolute()))
    ran = cli("send", "Go")
    assert ran.code == 0
    assert "the hook turn_finished" in ran.err
    assert "tell.sh" in ran.err
    assert not (world / "theirs").exists()
    assert not (world / "mine").exists()


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("message = []", "expected a program and its arguments"),
        ('message = "echo"', "list"),
        ('messages = ["echo"]', "unknown key"),
    ],
)
def test_what_is_no_hook_is_refused_with_its_line(table: str, why: str) -> None:
    team(max="true")
    file = Path("teamchat.toml")
    file.write_text(f"{file.read_text()}\n[hooks]\n{table}\n")
    assert why in refused(cli("send", "Go"))


def test_a_hook_may_use_the_conversation_by_its_name() -> None:
    team(max="true")
    world = hooks(turn_finished=f"{' '.join(argv('log'))} > ../log")
    assert cli("send", "--session", "mine", "--new", "Go").code == 0
    assert "Go" in (world / "log").read_text()


APPENDS = "echo 'touch ../ran' >> log.sh; sleep 0.5; echo Done"


def scripted(script: str, member: str = APPENDS) -> None:
    """A team whose hook `turn_started` is a script of the workspace."""
    Path("log.sh").write_text(f"#!/bin/sh\n{script}\n")
    Path("log.sh").chmod(0o755)
    team(max=member)
    file = Path("teamchat.toml")
    file.write_text(f'{file.read_text()}\n[hooks]\nturn_started = ["./log.sh"]\n')
    trust_store().grant(load(file.absolute()))


def test_a_hook_does_not_run_what_a_member_appends_to_its_script() -> None:
    scripted("touch ../began; sleep 1")
    ran = cli("send", "--to", "max", "Go")
    assert (ran.code, Path("../ran").exists(), Path("../began").exists()) == (0, False, False)
    assert "the hook turn_started was not run: " in ran.err


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", '"$PWD"/hooks/log.sh'],
        ["sh", "-c", "'my hooks/h 2.sh'"],
        ["sh", "-c", 'sh "my hooks/h 2.sh"'],
        ["sh", "-c", r"my\ hooks/h\ 2.sh"],
        ["sh", "-c", "cd 'my hooks' && './h 2.sh'"],
        ["sh", "-c", "sh -c \"sh 'my hooks/h 2.sh'\""],
        ["sh", "-c", 'hooks/lo"g".sh; true'],
        ["sh", "-c", "~/outside.sh"],
        ["sh", "-c", '"$HOME"/outside.sh'],
        ["OUTSIDE"],
        ["sh", "OUTSIDE"],
    ],
    ids=lambda command: command[-1],
)
def test_a_hook_waits_for_its_script_however_its_words_name_it(command: list[str]) -> None:
    outside = Path.home() / "outside.sh"
    scripts = (Path("hooks/log.sh"), Path("my hooks/h 2.sh"), outside)
    for script in scripts:
        script.parent.mkdir(exist_ok=True)
        script.write_text("#!/bin/sh\ntouch ../began; sleep 1\n")
        script.chmod(0o755)
    appends = "; ".join(f"echo 'touch ~/ran' >> '{script.absolute()}'" for script in scripts)
    team(max=f"{appends}; sleep 0.5; echo Done")
    words = json.dumps([word.replace("OUTSIDE", str(outside)) for word in command])
    file = Path("teamchat.toml")
    file.write_text(f"{file.read_text()}\n[hooks]\nturn_started = {words}\n")
    trust_store().grant(load(file.absolute()))
    ran = cli("send", "--to", "max", "Go")
    assert (ran.code, (Path.home() / "ran").exists()) == (0, False)
    assert "the hook turn_started was not run: " in ran.err


def test_a_hook_whose_script_nobody_may_write_starts_at_once() -> None:
    team(max="while [ ! -e ../began ]; do sleep 0.05; done; echo Done")
    world = hooks(turn_started="touch ../began")
    assert (cli("send", "--to", "max", "Go").code, (world / "began").exists()) == (0, True)


def test_a_hook_that_waited_runs_when_nobody_works_and_has_its_whole_time() -> None:
    scripted("touch ../began", "sleep 0.5; [ ! -e ../began ] && echo Done")
    ran = cli("send", "--to", "max", "Go")
    assert (ran.code, "Done" in ran.out, Path("../began").exists(), ran.err.count("hook")) == (0, True, True, 0)


def test_trust_and_team_say_which_hooks_wait() -> None:
    scripted("true")
    words = "runs ./log.sh as the hook turn_started, while no member works that may write log.sh"
    assert words in " ".join(run_here("team").out.split()).replace(str(Path.cwd()) + "/", "./")
