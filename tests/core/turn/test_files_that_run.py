"""A turn that changed what other tools run is marked, whoever tells of the change: the CLI, or the file system."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from threading import Event, current_thread
from typing import Any

import pytest
from msgspec.structs import replace

from teamchat.core.agents import ProtocolName
from teamchat.core.conversation.inputs import Message
from teamchat.core.receipt import Outcome
from teamchat.core.team.team import BUILTIN_AGENTS, AgentSpec, Member
from teamchat.core.team.writers import may_write
from teamchat.core.turn.files_that_run import MOST_LOOKED_AT, MOST_READ, files_that_run
from teamchat.core.turn.watching import watched
from teamchat.runners.agent_events import Failure
from teamchat.runners.child.running import Chunk, Exit, Launch, Running
from teamchat.runners.untrusted.file_changes import NoCheckpoint
from tests.cli.helpers import actors, objects, steady
from tests.core.fake_conversation import Stage, team_of
from tests.fakes.scripted import spoken
from tests.program import run_here
from tests.scripted_team import crew

CHANGES = (
    ("mkdir -p .claude && echo '{}' > .claude/settings.json", ".claude/settings.json"),
    ("mkdir -p .gemini && echo '{}' > .gemini/settings.json", ".gemini/settings.json"),
    ("mkdir -p .codex && echo > .codex/config.toml", ".codex/config.toml"),
    ("echo ls > .envrc", ".envrc"),
    ("echo ls > .git/hooks/pre-commit", ".git/hooks/pre-commit"),
    ("chmod +x .git/hooks/waiting", ".git/hooks/waiting"),
    ("rm .git/hooks/waiting", ".git/hooks/waiting"),
    ("echo '[core]' > .git/config.worktree", ".git/config.worktree"),
    ("echo '[core]' > sub/deep/.git/config", "sub/deep/.git/config"),
    ("echo ls > sub/deep/.git/hooks/pre-commit", "sub/deep/.git/hooks/pre-commit"),
    ("mkdir -p new/.git && echo '[core]' > new/.git/config", "new/.git/config"),
    ("echo ls > .git/modules/part/hooks/pre-commit", ".git/modules/part/hooks/pre-commit"),
    ("mkdir -p .vscode && echo '{}' > .vscode/tasks.json", ".vscode/tasks.json"),
    ("touch -r Makefile .; echo x: >> Makefile; touch -r . Makefile", "Makefile"),
    ("echo two > real.sh", ".husky/pre-push"),
)


def repository(root: Path) -> None:
    for name in (".git/hooks", ".husky", "sub/deep/.git/hooks", ".git/modules/part/hooks"):
        (root / name).mkdir(parents=True)
    (root / ".git/hooks/waiting").write_text("#!/bin/sh\n")
    (root / ".git/hooks/waiting").chmod(0o644)
    (root / "Makefile").write_text("all:\n")
    (root / "real.sh").write_text("one\n")
    (root / ".husky/pre-push").symlink_to("../real.sh")


def done_by_shell(folder: Path, script: str, cwd: Path) -> Stage:
    """A conversation whose one turn was a shell that ran `script` in `cwd`."""
    own = AgentSpec("max-agent", ("/bin/sh", "-c", f"{script}; echo Done"))
    team = team_of(folder, {"max": "plain"})
    stage = Stage(folder, replace(team, agents={**team.agents, "max-agent": own}))
    stage.member("max", cwd=cwd)
    ended = asyncio.run(stage.open_real().run_input(Message(text="[NEXT: max] Go")))
    assert ended.text == "Done"
    return stage


def marked(stage: Stage) -> tuple[str, ...]:
    (turn,) = stage.turns
    assert turn.outcome is not None
    return turn.outcome.files_that_run


@pytest.mark.parametrize(("script", "name"), CHANGES)
def test_what_a_shell_command_changed_is_marked(tmp_path: Path, script: str, name: str) -> None:
    repository(tmp_path / "repo")
    stage = done_by_shell(tmp_path, script, tmp_path / "repo")
    assert marked(stage) == (name,)
    assert stage.warnings == [f"max changed files that run things: {name}"]


def test_a_change_at_the_root_of_the_repository_is_seen_from_a_folder_in_it(tmp_path: Path) -> None:
    repository(tmp_path / "repo")
    assert marked(done_by_shell(tmp_path, "echo > ../.envrc; echo > .env", tmp_path / "repo" / "sub")) == (
        "../.envrc",
        ".env",
    )


@pytest.mark.parametrize(
    "script", ["true", "cp Makefile x; mv x Makefile", "touch Makefile", "echo > a.py; mkdir .env"]
)
def test_what_is_there_as_it_was_is_not_marked(tmp_path: Path, script: str) -> None:
    repository(tmp_path / "repo")
    stage = done_by_shell(tmp_path, script, tmp_path / "repo")
    assert (marked(stage), stage.warnings) == ((), [])


def test_repositories_in_too_many_folders_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(tmp_path / "repo")
    monkeypatch.setattr("teamchat.core.turn.files_that_run.MOST_FOLDERS", 2)
    stage = done_by_shell(tmp_path, "echo x: >> Makefile; echo > sub/deep/.git/config", tmp_path / "repo")
    assert marked(stage) == ("Makefile",)
    assert stage.warnings == ["max changed files that run things: Makefile"]


def test_a_file_that_may_hold_a_login_counts_by_its_times(tmp_path: Path) -> None:
    repository(tmp_path / "repo")
    (tmp_path / "repo" / ".env").write_text("KEY=x\n")
    assert marked(done_by_shell(tmp_path, "touch .env Makefile", tmp_path / "repo")) == (".env",)


def test_a_pipe_and_a_large_file_of_such_a_name_are_no_trouble(tmp_path: Path) -> None:
    repository(tmp_path / "repo")
    (tmp_path / "repo" / "package.json").write_bytes(b"x" * (MOST_READ + 1))
    script = "mkfifo .envrc; printf y | dd of=package.json conv=notrunc 2>/dev/null"
    assert marked(done_by_shell(tmp_path, script, tmp_path / "repo")) == ("package.json",)


def written(path: str) -> tuple[dict[str, object], ...]:
    """What Claude tells of a file that it wrote."""
    call = {"type": "tool_use", "id": path, "name": "Write", "input": {"file_path": path}}
    result = {"type": "tool_result", "tool_use_id": path, "content": "written"}
    return (
        {"type": "assistant", "message": {"content": [call]}},
        {"type": "user", "message": {"content": [result]}, "tool_use_result": {"filePath": path}},
    )


def test_what_the_cli_tells_of_counts_wherever_it_lies_and_the_receipt_lists_all(world: Path) -> None:
    paths = [f"{world}/work/deep{number}/.envrc" for number in range(7)]
    names = [f"deep{number}/.envrc" for number in range(7)]
    events = [event for path in paths for event in written(path)]
    output = "".join(json.dumps(event) + "\n" for event in events) + spoken("claude", "Done")
    actors({"max": ("say", output)}, like="claude")
    ran = steady(run_here("send", "--record", "a.cassette", "Go"))
    assert ran.err.endswith(f"· max changed files that run things: {', '.join(names[:5])} and 2 more\n"), ran
    lines = objects(run_here("replay", "--speed", "0", "--json", "a.cassette"))
    (finished,) = [line for line in lines if line["type"] == "turn_finished"]
    assert finished["files_that_run"] == names
    assert f"  runs      changed files that run things: {', '.join(names)}\n" in run_here("show").out


def test_a_recording_has_what_the_file_system_showed(world: Path) -> None:
    crew(world, {"max": [{"say": "Done", "touch": ".envrc"}]})
    assert run_here("send", "--record", "a.cassette", "Go").code == 0
    assert run_here("show", "--json").out.count('"files_that_run": [".envrc"]') == 1
    played = run_here("replay", "--speed", "0", "--verify", "a.cassette")
    assert (played.code, "changed files that run things: .envrc" in played.err) == (0, True), played.err


def flooded(root: Path, count: int) -> Path:
    """A repository with that many commands of Claude's."""
    repository(root)
    commands = root / ".claude" / "commands"
    commands.mkdir(parents=True)
    for number in range(count):
        (commands / f"{number}.md").write_text("x")
    return root


def test_what_was_not_looked_at_is_said_and_the_other_folders_are_looked_at(tmp_path: Path) -> None:
    folder = flooded(tmp_path / "repo", MOST_LOOKED_AT + 1)
    stage = done_by_shell(tmp_path, "echo ls > .git/hooks/post-merge; echo > .envrc", folder)
    assert set(marked(stage)) == {".git/hooks/post-merge", ".envrc"}
    assert stage.turns[0].outcome is not None
    assert stage.turns[0].outcome.not_all_looked_at
    (warning,) = stage.warnings
    assert warning.endswith("; there are too many to compare them all")


@pytest.mark.parametrize("script", ["true", "rm .claude/commands/*0.md", "echo y > .claude/commands/new.md"])
def test_a_full_folder_in_which_nothing_that_was_looked_at_changed_names_no_file_in_vain(
    tmp_path: Path, script: str
) -> None:
    stage = done_by_shell(tmp_path, script, flooded(tmp_path / "repo", 2 * MOST_LOOKED_AT))
    assert [name for name in marked(stage) if (tmp_path / "repo" / name).exists() and "new.md" not in name] == []
    assert len(stage.warnings) == 1
    if script == "true":
        assert stage.warnings == ["max may have changed files that run things: there are too many to compare them all"]


def test_a_folder_that_fills_up_in_the_turn_is_said(tmp_path: Path) -> None:
    repository(tmp_path / "repo")
    script = "mkdir -p .claude/commands; cd .claude/commands; i=0; while [ $i -le 1000 ]; do : > $i; i=$((i+1)); done"
    stage = done_by_shell(tmp_path, script, tmp_path / "repo")
    assert marked(stage)
    assert stage.warnings[0].endswith("; there are too many to compare them all")


@pytest.mark.parametrize(
    ("name", "keys", "writes"),
    [
        ("claude", {}, False),
        ("codex", {}, False),
        ("gemini", {}, False),
        ("claude", {"access": "edit"}, True),
        ("claude", {"access": "full"}, True),
        ("claude", {"mcp": ("x",)}, True),
        ("claude", {"args": ("--x",)}, True),
        ("claude", {"project_settings": True}, True),
    ],
)
def test_a_member_may_write_unless_its_cli_bounds_it_to_reading(
    tmp_path: Path, name: str, keys: dict[str, Any], *, writes: bool
) -> None:
    (agent,) = (one for one in BUILTIN_AGENTS.values() if one.name == name)
    assert may_write(Member("max", "ai", tmp_path, agent=name, **keys), agent) is writes


@pytest.mark.parametrize("protocol", ["plain", "claude"])
def test_a_program_of_the_teams_own_may_write_whatever_its_access(tmp_path: Path, protocol: ProtocolName) -> None:
    assert may_write(Member("max", "ai", tmp_path, agent="claude"), AgentSpec("claude", ("./claude.sh",), protocol))


class Ended:
    """A process that wrote a file and has ended."""

    exit = Exit(0)

    def __init__(self, what: Launch) -> None:
        (what.cwd / ".envrc").write_text(str(what.may_write))

    def over(self) -> None: ...

    def end_input(self) -> bool:
        return False

    def stop(self, why: Failure | None = None, *, hard: bool = False) -> None: ...

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        yield Chunk("out", b"", 0.0)


def watched_process(start: Callable[[Launch], Running], what: Launch) -> Running:
    watch = watched(what)
    return watch(start(what))


@pytest.mark.parametrize("read_to_its_end", [True, False])
@pytest.mark.parametrize("may_write", [True, False])
def test_nothing_is_looked_at_where_nothing_can_be_written(
    tmp_path: Path, *, may_write: bool, read_to_its_end: bool
) -> None:
    process = watched_process(Ended, Launch(("x",), tmp_path, {}, b"", tmp_path, may_write=may_write))

    async def ended() -> Exit | None:
        async for _ in process.chunks():
            pass
        return process.exit

    end = asyncio.run(ended()) if read_to_its_end else process.exit
    assert end == Exit(0, changed=(".envrc",) if may_write else ())


class SlowTree:
    """A work tree that is looked at until `seen` is set."""

    def __init__(self) -> None:
        self.begun, self.seen = Event(), Event()
        self.looked: list[str] = []

    def changes(self, _cwd: Path) -> NoCheckpoint:
        self.looked.append(current_thread().name)
        self.begun.set()
        self.seen.wait(10)
        return NoCheckpoint("for this test")


def test_whoever_asks_for_the_exit_meanwhile_does_not_look_at_the_files_again(tmp_path: Path) -> None:
    tree = SlowTree()
    process = watched_process(Ended, Launch(("x",), tmp_path, {}, b"", tmp_path, may_write=False, tree=tree))

    async def read() -> None:
        async for _ in process.chunks():
            assert process.exit == Exit(0)

    async def both() -> Exit | None:
        reading = asyncio.ensure_future(read())
        assert await asyncio.to_thread(tree.begun.wait, 10)
        assert process.exit == Exit(0)
        tree.seen.set()
        await reading
        return process.exit

    assert asyncio.run(both()) == Exit(0, files=NoCheckpoint("for this test"))
    assert [name == current_thread().name for name in tree.looked] == [False]


def test_ten_thousand_paths_are_known_at_once() -> None:
    paths = [f"{'deep/' * 20}file-{number}.py" for number in range(10_000)]
    assert files_that_run([*paths, "a/.env"]) == ("a/.env",)


@pytest.mark.parametrize(
    ("path", "runs"),
    [
        ("/far/away/.git/hooks/pre-push", True),
        (".claude/skills/x/SKILL.md", True),
        ("deep/Makefile", True),
        ("src/settings.json", False),
        (".claude/notes.md", False),
        ("Makefile.am", False),
        ("", False),
        ("deep/.env/", True),
        (".git//hooks/./pre-push", True),
        (".claude/commands/a\nb", True),
        ("my.env", False),
        (".claude/commands/", False),
        (".claude/commands/deep/x.md", False),
    ],
)
def test_a_path_is_known_by_its_end(path: str, *, runs: bool) -> None:
    assert bool(files_that_run([path])) is runs


def test_a_line_names_the_first_of_many_and_the_receipt_all() -> None:
    outcome = Outcome(0, 1.0, files_that_run=("\x1b[2K", *(f"{number}/.env" for number in range(6))))
    first = "changed files that run things: \\x1b[2K, 0/.env, 1/.env, 2/.env, 3/.env"
    assert (outcome.marked_in_brief, outcome.marked) == (f"{first} and 2 more", f"{first}, 4/.env, 5/.env")
    few = Outcome(0, 1.0, files_that_run=(".env",))
    assert few.marked_in_brief == few.marked == "changed files that run things: .env"
    assert (Outcome(0, 1.0).marked_in_brief, Outcome(0, 1.0).marked) == (None, None)
