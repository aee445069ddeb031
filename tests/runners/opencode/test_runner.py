"""The exact command and configuration of opencode for what a member may be given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from teamchat.runners import git_server
from teamchat.runners.base import Access, Job
from teamchat.runners.opencode.configuration import MACHINES, user_files
from teamchat.runners.opencode.runner import OpencodeRunner

RUNNER = OpencodeRunner()
SCRATCH = Path("/scratch")
FORMAT = ("--format", "json", "--thinking")
END = ("--title", "teamchat", "--print-logs", "--log-level", "ERROR")
ENVIRONMENTS = {"*": "allow", "*.env": "deny", "*.env.*": "deny", "*.env.example": "allow"}
GIT = {".git": "deny", ".git/*": "deny", "*/.git": "deny", "*/.git/*": "deny"}
READ = {"*": "deny", "read": ENVIRONMENTS, "glob": "allow", "grep": "allow", "skill": "allow", "todowrite": "allow"}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "work").mkdir()
    return Job(("cli",), tmp_path / "work", SCRATCH, memory="resume", env={"HOME": str(tmp_path)})


def configured(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RUNNER.command(job).env["OPENCODE_CONFIG_CONTENT"])
    return found


def permission(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = configured(job)["agent"]["teamchat"]["permission"]
    return found


def put(job: Job, name: str, text: str) -> None:
    file = Path(job.env["HOME"]) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("access", "flags"), [("read", ("--agent", "teamchat")), ("edit", ("--agent", "teamchat")), ("full", ("--auto",))]
)
def test_access(job: Job, access: Access, flags: tuple[str, ...]) -> None:
    command = RUNNER.command(replace(job, access=access))
    assert command.argv == ("cli", "run", "--dir", str(job.cwd), *FORMAT, *flags, *END)
    assert command.starts_in == Path("/")


def test_what_a_turn_is_given_stands_before_the_members_own_arguments(job: Job) -> None:
    given = replace(job, model="a/b", resumes="ses_1", images=(Path("/i 1.png"), Path("/i2.png")), args=("--x", "y"))
    added = ("--model", "a/b", "--session", "ses_1", "--file=/i 1.png", "--file=/i2.png", "--x", "y")
    assert RUNNER.command(given).argv[-len(added) :] == added


def test_a_member_that_reads_may_only_read(job: Job) -> None:
    assert permission(replace(job, allow=("pytest",))) == READ
    assert next(iter(permission(job))) == "*"  # of the rules that fit the last one counts


def test_a_member_that_edits_runs_nothing(job: Job) -> None:
    rules = {**READ, "edit": {"*": "allow", **GIT}}
    assert permission(replace(job, access="edit", allow=("pytest", "npm test"))) == rules


def test_a_member_that_edits_a_folder_of_a_repository_has_that_folder_alone(job: Job) -> None:
    top = job.cwd.parent
    (top / ".git").mkdir()
    found = permission(replace(job, access="edit"))["edit"]
    assert list(found.items())[:3] == [("*", "deny"), ("work/*", "allow"), (f"{top}/work/*"[1:], "allow")]
    assert GIT.items() <= found.items()
    link = top / "link"
    link.symlink_to(job.cwd)
    assert permission(replace(job, access="edit", cwd=link))["edit"] == found
    odd = top / "w*rk"
    odd.mkdir()
    assert "w?rk/*" in permission(replace(job, access="edit", cwd=odd))["edit"]


def test_full_access_has_the_users_own_permissions(job: Job) -> None:
    assert "agent" not in configured(replace(job, access="full"))


@pytest.mark.parametrize("access", ["read", "edit"])
def test_the_web_is_switched_on(job: Job, access: Access) -> None:
    web = {"webfetch": "allow", "websearch": "allow"}
    assert not web.keys() & permission(replace(job, access=access)).keys()
    assert web.items() <= permission(replace(job, access=access, web=True)).items()


def test_what_the_users_own_rules_deny_stays_denied(job: Job) -> None:
    own = {"read": {"*.pem": "deny", "*.txt": "allow"}, "grep": "deny", "edit": {"docs/*": "deny"}, "bash": "ask"}
    put(job, ".config/opencode/opencode.jsonc", f"// mine\n{json.dumps({'permission': own})}")
    found = permission(job)
    assert found["read"] == {**ENVIRONMENTS, "*.pem": "deny"}
    assert list(found["read"])[-1] == "*.pem"
    assert found["grep"] == {"*": "deny"}
    assert found["edit"] == {"*": "deny", "docs/*": "deny"}
    assert "bash" not in found
    assert permission(replace(job, access="edit"))["edit"] == {"*": "allow", **GIT, "docs/*": "deny"}


def test_nothing_of_the_project_runs_and_its_instructions_are_read(job: Job) -> None:
    (job.cwd / ".git").mkdir()
    inner = job.cwd / "a" / "b"
    found = configured(replace(job, cwd=inner))
    assert found["instructions"] == [str(folder / "AGENTS.md") for folder in (job.cwd, job.cwd / "a", inner)]
    assert (found["lsp"], found["formatter"], found["share"], found["autoupdate"]) == (False, False, "disabled", False)
    found = configured(replace(job, project_settings=True))
    assert found["instructions"] == []
    assert not {"lsp", "formatter"} & found.keys()


def test_without_a_repository_the_folder_alone_has_instructions(job: Job) -> None:
    assert configured(job)["instructions"] == [str(job.cwd / "AGENTS.md")]


def test_the_system_text_goes_by_a_file(job: Job) -> None:
    given = replace(job, system_text="Say {env:HOME}.\ud83d")
    assert RUNNER.command(given).files == {SCRATCH / "system.md": "Say {env:HOME}.\ufffd".encode()}
    assert configured(given)["instructions"][-1] == "/scratch/system.md"
    assert RUNNER.command(job).files == {}


@pytest.mark.parametrize("name", ["{env:HOME}", "{file:secret}", 'quote"{env:', "{", "{}"])
def test_nothing_in_a_path_is_substituted(job: Job, name: str) -> None:
    text = RUNNER.command(replace(job, cwd=job.cwd / name)).env["OPENCODE_CONFIG_CONTENT"]
    assert "{env:" not in text
    assert "{file:" not in text
    assert json.loads(text)["instructions"] == [str(job.cwd / name / "AGENTS.md")]


SERVERS = {"mcp": {"one": {"type": "local", "command": ["x"]}, "two.b": {"type": "remote", "url": "http://x"}}}


def test_servers_start_for_whom_they_are_meant(job: Job) -> None:
    put(job, ".config/opencode/opencode.json", json.dumps(SERVERS))
    off = {"enabled": False}
    assert configured(job)["mcp"] == {"one": off, "two.b": off}
    assert configured(replace(job, mcp=("two.b",)))["mcp"] == {"one": off}
    assert permission(replace(job, mcp=("two.b",)))["two_b_*"] == "allow"
    assert configured(replace(job, access="edit"))["mcp"] == {}
    assert {"one_*": "allow", "two_b_*": "allow"}.items() <= permission(replace(job, access="edit")).items()
    assert configured(replace(job, access="edit", mcp=()))["mcp"] == {"one": off, "two.b": off}


def test_git_is_a_server_of_its_own(job: Job, tmp_path: Path) -> None:
    given = replace(job, git=tmp_path / "git")
    command = list(git_server.server_command(job.cwd, tmp_path / "git", job.env))
    waits = git_server.STARTS_IN_S * 1_000
    server = {"type": "local", "command": command, "enabled": True, "timeout": waits}
    assert configured(given)["mcp"] == {"teamchat": server}
    assert permission(given)["teamchat_*"] == "allow"


def test_the_files_of_the_user_are_found_where_variables_say(tmp_path: Path) -> None:
    env = {
        "HOME": "/home/me",
        "XDG_CONFIG_HOME": "/x",
        "OPENCODE_CONFIG": "/one.json",
        "OPENCODE_CONFIG_DIR": str(tmp_path),
    }
    folders = (Path("/home/me/.opencode"), tmp_path, *MACHINES)
    both = [folder / name for folder in folders for name in ("opencode.json", "opencode.jsonc")]
    own = [Path("/x/opencode") / name for name in ("config.json", "opencode.json", "opencode.jsonc")]
    assert list(user_files(env)) == [*own, Path("/one.json"), *both]


WHY_NOT = "it has {env:...} or {file:...} in the name of an MCP server or in a rule"


@pytest.mark.parametrize("access", ["read", "edit", "full"])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"mcp": ', "Unexpected end of input"),
        ('{"permission": {"edit": "deny"} "mcp": {}}', "Unexpected"),
        ('{"mcp": {env:SERVERS}}', "Unexpected"),
        ('{"mcp": {"a{env:NAME}": {}}}', WHY_NOT),
        ('{"permission": {"edit": "{file:rule}"}}', WHY_NOT),
        ("[" * 5_000, "too deep"),
    ],
)
def test_no_turn_begins_beside_settings_that_are_not_understood(job: Job, access: Access, text: str, why: str) -> None:
    put(job, ".config/opencode/opencode.json", text)
    refusal = RUNNER.refusal(access, job.env)
    file = Path(job.env["HOME"]) / ".config/opencode/opencode.json"
    assert refusal is not None
    assert refusal.startswith(f"{file} cannot be read: ")
    assert why in refusal
    assert refusal.endswith("; its rules and MCP servers are not known")
    assert [found for found, _ in RUNNER.unreadable(job)] == [file]


TRAILING = """{
  // mine
  "permission": {"read": {"*.pem": "deny",}, "edit": {"docs/*": "deny"},},
  mcp: {'one': {"type": "local", "command": ["x"],},},
}
"""


def test_a_trailing_comma_keeps_rules_and_servers_as_they_are_meant(job: Job) -> None:
    put(job, ".config/opencode/opencode.json", TRAILING)
    assert RUNNER.refusal("edit", job.env) is None
    assert permission(job)["read"] == {**ENVIRONMENTS, "*.pem": "deny"}
    edits = replace(job, access="edit", mcp=())
    assert permission(edits)["edit"] == {"*": "allow", **GIT, "docs/*": "deny"}
    assert configured(edits)["mcp"] == {"one": {"enabled": False}}


@pytest.mark.parametrize(
    ("settings", "env", "denied"),
    [
        ({"permission": "deny"}, {}, {"*": {"*": "deny"}}),
        ({"tools": {"write": False, "grep": False, "bash": True}}, {}, {"edit": {"*": "deny"}, "grep": {"*": "deny"}}),
        ({}, {"OPENCODE_PERMISSION": '{"glob": "deny"}'}, {"glob": {"*": "deny"}}),
        ({}, {"OPENCODE_PERMISSION": "{"}, {}),
    ],
)
def test_rules_stay_in_every_form(
    job: Job, settings: dict[str, object], env: dict[str, str], denied: dict[str, object]
) -> None:
    put(job, ".config/opencode/opencode.json", json.dumps(settings))
    found = permission(replace(job, env={**job.env, **env}))
    assert {name: found[name] for name in denied} == denied
    assert list(found)[len(found) - len(denied) :] == list(denied)


def test_a_prompt_goes_as_it_is() -> None:
    text = "@note.txt /help !ls $skill\n\0 {env:HOME}\ud83d"
    prepared = RUNNER.prepare(text, typed=range(0), exists=lambda _: True)
    assert (prepared.stdin, prepared.inert_mentions) == (text.replace("\ud83d", "\ufffd").encode(), 0)


@pytest.mark.parametrize(
    ("env", "file", "there", "variables"),
    [
        ({}, None, None, None),
        ({}, ".local/share/opencode/auth.json", True, None),
        ({"XDG_DATA_HOME": "{home}/data"}, "data/opencode/auth.json", True, None),
        ({"OPENCODE_API_KEY": "k"}, None, True, ("OPENCODE_API_KEY",)),
        ({"OPENCODE_AUTH_CONTENT": "{}"}, ".local/share/opencode/auth.json", True, ("OPENCODE_AUTH_CONTENT",)),
    ],
)
def test_a_login_is_told_as_far_as_it_shows(
    job: Job, env: dict[str, str], file: str | None, there: bool | None, variables: tuple[str, ...] | None
) -> None:
    if file:
        put(job, file, "not looked at")
    home = job.env["HOME"]
    login = RUNNER.login(
        job.cwd, {"HOME": home, **{name: value.replace("{home}", home) for name, value in env.items()}}
    )
    assert login is not None
    assert (login.there, login.variables) == (there, variables)


@pytest.mark.parametrize("access", ["read", "edit", "full"])
@pytest.mark.parametrize("project_settings", [False, True])
def test_notes_say_what_a_member_may_do_and_reads(job: Job, access: Access, *, project_settings: bool) -> None:
    note = RUNNER.reads_note(replace(job, access=access, project_settings=project_settings))
    assert ("MCP servers" in note) is (access != "read")
    assert ("not the project's" in note) is not project_settings
    assert RUNNER.access_notes[access].isprintable()
