"""What a member of Claude is shown of a project that its user trusts in Claude itself."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.runners.base import Job
from teamchat.runners.claude.project import MOST_FILES, shows, trusts
from teamchat.runners.claude.runner import ClaudeRunner
from tests.runners.claude.test_folders import git

AS_BEFORE = ("--setting-sources", "user")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A turn below the root of a trusted repository, with a program of the version that knows how."""
    package = tmp_path / "package"
    (package / "bin").mkdir(parents=True)
    describe(package, "2.1.330")
    (package / "bin" / "claude").touch(0o755)
    cwd = tmp_path / "repo" / "pkg"
    (cwd.parent / ".git").mkdir(parents=True)
    (tmp_path / "home" / ".claude").mkdir(parents=True)
    made = Job(("claude",), cwd, tmp_path / "scratch", access="edit",
               env={"HOME": str(tmp_path / "home"), "PATH": str(package / "bin")})  # fmt: skip
    put(cwd / ".claude" / "commands" / "go.md", "Near.")
    put(cwd.parent / ".claude" / "commands" / "go.md", "Far.")
    put(cwd.parent / ".claude" / "commands" / "git" / "log.md", "---\nhooks: x\nmodel: opus\n---\nLog.")
    put(cwd / ".claude" / "agents" / "a.md", "---\nname: near\n---\n")
    put(cwd.parent / ".claude" / "agents" / "a.md", "---\nname: far\n---\n")
    put(cwd / ".claude" / "skills" / "s" / "SKILL.md", "---\nname: s\n---\n")
    put(cwd / ".claude" / "skills" / "s" / "notes" / "more.md", "more")
    put(cwd / ".claude" / "skills" / "s" / ".mcp.json", "{}")
    put(cwd / ".claude" / "skills" / "s" / ".claude-plugin" / "plugin.json", "{}")
    put(cwd / ".claude" / "settings.json", "{}")
    trust(made, cwd.parent)
    return made


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def describe(package: Path, version: str) -> None:
    put(package / "package.json", json.dumps({"name": "@anthropic-ai/claude-code", "version": version}))


def record(job: Job, values: object) -> None:
    (Path(job.env["HOME"]) / ".claude.json").write_text(json.dumps(values))


def trust(job: Job, *folders: Path) -> None:
    record(job, {"projects": {str(folder): {"hasTrustDialogAccepted": True} for folder in folders}})


def shown(job: Job) -> dict[str, str]:
    """The files that it is shown, by their place in its own folder."""
    files = ClaudeRunner().command(job).files
    return {str(path.relative_to(job.scratch / "project")): content.decode() for path, content in files.items()}


def defined(job: Job) -> dict[str, object]:
    """The servers in the file that the command names."""
    command = ClaudeRunner().command(job)
    file = Path(command.argv[command.argv.index("--mcp-config") + 1])
    servers: dict[str, object] = json.loads(command.files[file])["mcpServers"]
    return servers


def test_it_is_shown_copies_that_run_nothing(job: Job) -> None:
    argv = ClaudeRunner().command(job).argv
    at = argv.index("--setting-sources")
    root = str(job.scratch / "project")
    assert argv[at : at + 4] == ("--setting-sources", "user,project,local", "--project-config-root", root)
    assert "--strict-mcp-config" in argv
    assert "--add-dir" not in argv
    assert shown(job) == {
        ".git/HEAD": "",
        ".claude/commands/go.md": "---\n\n---\nNear.",
        ".claude/commands/git/log.md": "---\nmodel: opus\n---\nLog.",
        ".claude/agents/0-a.md": "---\nname: near\n---\n",
        ".claude/agents/1-a.md": "---\nname: far\n---\n",
        ".claude/skills/s/SKILL.md": "---\nname: s\n---\n",
        ".claude/skills/s/notes/more.md": "more",
    }


def test_the_users_own_servers_stay(job: Job) -> None:
    local = {"hasTrustDialogAccepted": True, "mcpServers": {"here": {"command": "y"}, "both": {"command": "near"}}}
    everywhere = {"mine": {"command": "x"}, "both": {"command": "far"}}
    record(job, {"projects": {str(job.cwd.parent): local}, "mcpServers": everywhere})
    assert defined(job) == {"mine": {"command": "x"}, "here": {"command": "y"}, "both": {"command": "near"}}
    assert set(defined(replace(job, git=Path("/state/git")))) == {"mine", "here", "both", "teamchat"}
    assert defined(replace(job, mcp=("here",))) == {"here": {"command": "y", "alwaysLoad": True}}
    assert ClaudeRunner().command(replace(job, access="read")).argv.count("--strict-mcp-config") == 1


def test_those_of_the_folder_stay_where_it_is_not_trusted(job: Job) -> None:
    here = {"here": {"command": "y"}}
    record(job, {"projects": {str(job.cwd.parent): {"mcpServers": here}}, "mcpServers": {"mine": {"command": "x"}}})
    assert defined(job) == defined(replace(job, access="full")) == here
    assert "--strict-mcp-config" not in ClaudeRunner().command(job).argv
    for other in (replace(job, access="read"), replace(job, mcp=()), replace(job, project_settings=True)):
        assert "--mcp-config" not in ClaudeRunner().command(other).argv


@pytest.mark.parametrize("version", ["2.1.329", "2.1.260"])
def test_an_older_version_is_run_as_before(job: Job, tmp_path: Path, version: str) -> None:
    describe(tmp_path / "package", version)
    assert shown(job) == {}
    argv = ClaudeRunner().command(job).argv
    assert argv[argv.index("--setting-sources") :][:2] == AS_BEFORE


@pytest.mark.parametrize(
    ("settings", "is_shown"),
    [("{}", True), ('{"model": "opus"}', True), ('{"hooks": {"Stop": []}}', False),
     ('{"enabledPlugins": {"a@b": true}}', False), ("broken", False)],
)  # fmt: skip
def test_hooks_and_plugins_would_run_in_the_wrong_folder(job: Job, settings: str, *, is_shown: bool) -> None:
    put(Path(job.env["HOME"]) / ".claude" / "settings.json", settings)
    assert shows(job) is is_shown


def test_project_settings_are_the_projects_own(job: Job) -> None:
    assert not shows(replace(job, project_settings=True))
    assert "--setting-sources" not in ClaudeRunner().command(replace(job, project_settings=True)).argv


@pytest.mark.parametrize(("place", "trusted"), [("", True), ("..", True), ("../..", False), ("sub", False)])
def test_trust_reaches_up_to_the_root_of_the_repository(job: Job, place: str, *, trusted: bool) -> None:
    trust(job, Path(os.path.normpath(job.cwd / place)))
    assert trusts(job.cwd, job.env) is trusted


def test_without_a_repository_it_reaches_all_the_way_but_not_from_home(job: Job) -> None:
    (job.cwd.parent / ".git").rmdir()
    trust(job, job.cwd.parents[1])
    assert trusts(job.cwd, job.env)
    home = Path(job.env["HOME"])
    trust(job, home)
    assert not trusts(home / "work", job.env)
    (linked := home.parent / "linked").symlink_to(home)
    assert not trusts(linked / "work", {**job.env, "HOME": str(linked)})


@pytest.mark.parametrize(
    "values",
    [[], {}, {"projects": []}, {"projects": {"CWD": True}}, {"projects": {"CWD": {}}},
     {"projects": {"CWD": {"hasTrustDialogAccepted": "yes"}}},
     {"projects": {"CWD": {"hasTrustDialogAccepted": False}}}],
)  # fmt: skip
def test_a_record_of_another_form_trusts_nothing(job: Job, values: object) -> None:
    record(job, json.loads(json.dumps(values).replace("CWD", str(job.cwd))))
    assert not trusts(job.cwd, job.env)


def test_a_work_tree_is_trusted_with_its_repository(job: Job, tmp_path: Path) -> None:
    git("init", main := tmp_path / "main")
    git("-C", main, "commit", "--allow-empty", "-m", "x")
    git("-C", main, "worktree", "add", tree := tmp_path / "tree")
    (tree / "sub").mkdir()
    assert not trusts(tree / "sub", job.env)
    trust(job, main)
    assert trusts(tree / "sub", job.env)
    (thief := tmp_path / "thief").mkdir()
    (thief / ".git").write_bytes((tree / ".git").read_bytes())
    assert not trusts(thief, job.env)


def test_trust_that_the_user_takes_back_for_a_run_is_none(job: Job) -> None:
    assert not trusts(job.cwd, {**job.env, "CLAUDE_CODE_IGNORE_PERSISTED_TRUST": "1"})


def test_the_users_own_commands_above_are_none_of_the_projects(job: Job) -> None:
    home = Path(job.env["HOME"])
    put(home / ".claude" / "commands" / "mine.md", "---\nallowed-tools: Bash\n---\nMine.")
    put(home / "work" / ".claude" / "commands" / "go.md", "Go.")
    put(home / "key", "secret")
    (home / "work" / ".claude" / "commands" / "key.md").symlink_to(home / "key")
    trust(job, home / "work")
    assert shown(replace(job, cwd=home / "work")) == {".git/HEAD": "", ".claude/commands/go.md": "---\n\n---\nGo."}


def test_files_of_elsewhere_and_too_many_are_left_out(job: Job, tmp_path: Path) -> None:
    skill = job.cwd / ".claude" / "skills" / "s"
    put(tmp_path / "home" / "key", "secret")
    (skill / "key").symlink_to(tmp_path / "home" / "key")
    os.mkfifo(skill / "pipe")
    assert not {".claude/skills/s/key", ".claude/skills/s/pipe"} & set(shown(job))
    for number in range(MOST_FILES):
        put(skill / "many" / f"{number}.txt", "x")
    assert len(shown(job)) == MOST_FILES + 1
