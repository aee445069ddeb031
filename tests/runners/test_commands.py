"""The exact command of every CLI for what a member may be given."""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from itertools import pairwise
from pathlib import Path
from signal import Signals

import pytest
from msgspec.structs import replace

from teamchat.runners.base import Access, Job, Limit, Memory, Runner, StopRule
from teamchat.runners.claude.runner import IN_TURNS_ONLY, ClaudeRunner
from teamchat.runners.claude.tools import ACTS_LATER, WEB
from teamchat.runners.codex.runner import CodexRunner
from teamchat.runners.edits import KINDS, in_words
from teamchat.runners.gemini.project import NOWHERE
from teamchat.runners.gemini.runner import GeminiRunner
from teamchat.runners.pipe import PipeRunner

CWD, SCRATCH = Path("/work space"), Path("/scratch")
JOB = Job(program=("cli",), cwd=CWD, scratch=SCRATCH, memory="resume")
ALL: list[Runner] = [ClaudeRunner(), CodexRunner(), GeminiRunner(), PipeRunner()]
CLAUDE = ("cli", "-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages")
USER_ONLY = ("--setting-sources", "user", "--add-dir", "/work space")
CODEX = ("cli", "exec", "--json", "--skip-git-repo-check", "--color", "never", "-C", "/work space")
UNRULED = ("--ignore-rules", "-c", 'approval_policy="never"', "-c", 'web_search="disabled"')
BOUNDED = ("--disable", "unbounded_connection_retries")
GEMINI = ("cli", "--output-format", "stream-json")
POLICY = ("--admin-policy", "/scratch/policy.toml")
NO_SERVERS = ("--strict-mcp-config", "--settings", '{"allowedMcpServers":[]}')
LATER = ("--disallowedTools", *ACTS_LATER)
EDIT = ("--permission-mode", "acceptEdits", *LATER, "WebFetch", "WebSearch")
WORKSPACE = tuple(
    word
    for key in ("exclude_slash_tmp=true", "writable_roots=[]", "network_access=false")
    for word in ("-c", f"sandbox_workspace_write.{key}")
)


class TestClaude:
    @pytest.mark.parametrize(
        ("access", "flags"),
        [
            ("read", ("--permission-mode", "default", "--tools", "Read,Grep,Glob", *NO_SERVERS)),
            ("edit", (*EDIT, "--allowedTools", "Bash(pytest:*)", "Bash(npm test:*)")),
            ("full", ("--dangerously-skip-permissions", *LATER)),
        ],
    )
    def test_access(self, access: Access, flags: tuple[str, ...]) -> None:
        job = replace(JOB, access=access, allow=("pytest", "npm test"))
        assert ClaudeRunner().command(job).argv == (*CLAUDE, *flags, *USER_ONLY)

    def test_edit_without_allowed_commands_names_none(self) -> None:
        argv = ClaudeRunner().command(replace(JOB, access="edit")).argv
        assert argv == (*CLAUDE, *EDIT, *USER_ONLY)

    @pytest.mark.parametrize(
        ("access", "flags"),
        [
            ("read", ("--tools", "Read,Grep,Glob,WebFetch,WebSearch", *NO_SERVERS, "--allowedTools", *WEB)),
            ("edit", (*LATER, "--allowedTools", *WEB)),
            ("full", LATER),
        ],
    )
    def test_the_web_is_allowed(self, access: Access, flags: tuple[str, ...]) -> None:
        argv = ClaudeRunner().command(replace(JOB, access=access, web=True)).argv
        begin = len(CLAUDE) + (1 if access == "full" else 2)
        assert argv[begin:] == (*flags, *USER_ONLY)

    @pytest.mark.parametrize("access", ["read", "edit", "full"])
    def test_the_servers_that_are_named_are_all_that_start(self, tmp_path: Path, access: Access) -> None:
        mine, here = {"command": "mine"}, {"type": "http", "url": "http://127.0.0.1:9"}
        record = {"mcpServers": {"mine": mine, "other": mine}, "projects": {str(CWD): {"mcpServers": {"a b": here}}}}
        (tmp_path / ".claude.json").write_text(json.dumps(record))
        env = {"HOME": str(tmp_path)}
        command = ClaudeRunner().command(replace(JOB, access=access, env=env, mcp=("mine", "a b")))
        (content,) = command.files.values()
        assert json.loads(content) == {
            "mcpServers": {"mine": {**mine, "alwaysLoad": True}, "a b": {**here, "alwaysLoad": True}}
        }
        only = '{"allowedMcpServers":[{"serverName":"mine"},{"serverName":"a b"}]}'
        flags = ("--strict-mcp-config", "--settings", only, "--mcp-config", "/scratch/mcp.json")
        allowed = () if access == "full" else ("--allowedTools", "mcp__mine", "mcp__a_b")
        assert (*flags, *allowed, *USER_ONLY) == command.argv[-len((*flags, *allowed, *USER_ONLY)) :]
        assert set(ClaudeRunner().servers(CWD, env)) == {"mine", "other", "a b"}
        assert set(ClaudeRunner().servers(Path("/elsewhere"), env)) == {"mine", "other"}

    def test_git_is_a_server_beside_the_users_own(self) -> None:
        command = ClaudeRunner().command(replace(JOB, access="edit", git=Path("/state/git")))
        assert "--strict-mcp-config" not in command.argv
        assert command.argv[command.argv.index("--allowedTools") + 1] == "mcp__teamchat"
        server = json.loads(command.files[SCRATCH / "mcp.json"])["mcpServers"]["teamchat"]
        assert server["args"][-4:-1] == ["teamchat.runners.git_server.serve", str(CWD), "/state/git"]

    def test_model_and_extra_arguments_come_last(self) -> None:
        argv = ClaudeRunner().command(replace(JOB, model="opus", args=("--effort", "high"))).argv
        assert argv[-4:] == ("--model", "opus", "--effort", "high")

    def test_project_settings_let_the_cli_read_them_itself(self) -> None:
        command = ClaudeRunner().command(replace(JOB, project_settings=True))
        assert "--setting-sources" not in command.argv
        assert "--add-dir" not in command.argv
        assert command.env == {"CLAUDE_CODE_MAX_RETRIES": "3", **IN_TURNS_ONLY}

    def test_the_environment_keeps_the_projects_own_instructions(self) -> None:
        assert ClaudeRunner().command(JOB).env == {
            "CLAUDE_CODE_MAX_RETRIES": "3",
            **IN_TURNS_ONLY,
            "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",
        }

    @pytest.mark.parametrize("text", ["You are Max", "-starts with a dash", "x" * 100_000])
    def test_system_text_goes_by_argument_to_a_program_whose_version_is_not_known(self, text: str) -> None:
        command = ClaudeRunner().command(replace(JOB, system_text=text))
        assert command.argv[len(CLAUDE) : len(CLAUDE) + 2] == ("--append-system-prompt", text)
        assert command.files == {}

    @pytest.mark.parametrize("text", ["x" * 100_001, "é" * 50_001, "a\0b"])
    def test_system_text_that_no_argument_holds_goes_by_file(self, text: str) -> None:
        command = ClaudeRunner().command(replace(JOB, system_text=text))
        path = SCRATCH / "system.md"
        assert command.argv[len(CLAUDE) : len(CLAUDE) + 2] == ("--append-system-prompt-file", str(path))
        assert command.files == {path: text.encode()}

    @pytest.mark.parametrize(
        ("package", "by_file"),
        [
            ({"name": "@anthropic-ai/claude-code", "version": "2.1.330"}, True),
            ({"name": "@anthropic-ai/claude-code", "version": "2.1.197-beta.1"}, True),
            ({"name": "@anthropic-ai/claude-code", "version": "10.0"}, True),
            ({"name": "@anthropic-ai/claude-code", "version": "2.1.196"}, False),
            ({"name": "@anthropic-ai/claude-code", "version": "1.9"}, False),
            ({"name": "@anthropic-ai/claude-code", "version": "new"}, False),
            ({"name": "claude", "version": "2.1.330"}, False),
            ([], False),
            (None, False),
        ],
    )
    def test_system_text_goes_by_file_to_a_version_that_takes_one(
        self, tmp_path: Path, package: object, *, by_file: bool
    ) -> None:
        program = tmp_path / "claude-code" / "bin" / "claude.exe"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        if package is not None:
            (program.parent.parent / "package.json").write_text(json.dumps(package))
        (tmp_path / "claude").symlink_to(program)
        job = replace(JOB, program=("claude",), system_text="You are Max", env={"PATH": str(tmp_path)})
        command = ClaudeRunner().command(job)
        assert ("You are Max" in command.argv) == (not by_file)
        assert command.files == ({SCRATCH / "system.md": b"You are Max"} if by_file else {})

    def test_its_own_installer_tells_the_version_by_the_name_of_the_program(self, tmp_path: Path) -> None:
        program = tmp_path / "share" / "claude" / "versions" / "2.1.330"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        (tmp_path / "claude").symlink_to(program)
        job = replace(JOB, program=("claude",), system_text="You are Max", env={"PATH": str(tmp_path)})
        assert "--append-system-prompt-file" in ClaudeRunner().command(job).argv

    @pytest.mark.parametrize("text", [None, ""])
    def test_no_system_text_is_no_argument(self, text: str | None) -> None:
        assert not any("system" in word for word in ClaudeRunner().command(replace(JOB, system_text=text)).argv)

    def test_a_lone_surrogate_in_the_system_text_reaches_the_command_as_a_replacement(self) -> None:
        assert "a\ufffdb" in ClaudeRunner().command(replace(JOB, system_text="a\ud800b")).argv

    @pytest.mark.parametrize(
        ("user", "access", "env", "refused"),
        [
            (0, "full", {}, True),
            (0, "full", {"IS_SANDBOX": "1"}, False),
            (0, "edit", {}, False),
            (7, "full", {}, False),
        ],
    )
    def test_full_access_is_refused_to_root(
        self, monkeypatch: pytest.MonkeyPatch, user: int, access: Access, env: dict[str, str], *, refused: bool
    ) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: user)
        assert (ClaudeRunner().refusal(access, env) is not None) == refused


class TestCodex:
    @pytest.mark.parametrize(
        ("access", "flags"),
        [
            ("read", ("--sandbox", "read-only", *UNRULED, "--disable", "plugins", "--disable", "apps")),
            ("edit", ("--sandbox", "workspace-write", *WORKSPACE, *UNRULED)),
            ("full", ("--dangerously-bypass-approvals-and-sandbox",)),
        ],
    )
    def test_access(self, access: Access, flags: tuple[str, ...]) -> None:
        job = replace(JOB, access=access, allow=("pytest",), system_text="is in the prompt")
        assert CodexRunner().command(job).argv == (*CODEX, *flags, *BOUNDED, "-")

    @pytest.mark.parametrize(("access", "there"), [("read", True), ("edit", True), ("full", False)])
    def test_the_web_is_switched_on(self, access: Access, *, there: bool) -> None:
        argv = CodexRunner().command(replace(JOB, access=access, web=True)).argv
        assert ('web_search="live"' in argv) == there  # full has what the user's own settings say
        assert 'web_search="disabled"' not in argv

    def test_what_brings_servers_is_off_where_they_are_named(self) -> None:
        argv = CodexRunner().command(replace(JOB, access="edit", mcp=())).argv
        assert argv[argv.index("plugins") - 1 : argv.index("plugins") + 3] == (
            "--disable",
            "plugins",
            "--disable",
            "apps",
        )

    def test_extra_arguments_come_before_the_dash_that_means_stdin(self) -> None:
        argv = CodexRunner().command(replace(JOB, model="gpt-5.5", args=("-c", "a=1"))).argv
        assert argv[-5:] == ("-m", "gpt-5.5", "-c", "a=1", "-")

    def test_project_settings_are_trusted_for_this_run_only(self) -> None:
        trusting = 'projects={"/work space"={trust_level="trusted"}}'
        assert trusting not in CodexRunner().command(JOB).argv
        argv = CodexRunner().command(replace(JOB, project_settings=True)).argv
        assert argv[argv.index(trusting) - 1] == "-c"
        assert "--trust" not in argv


class TestGemini:
    @pytest.mark.parametrize(
        ("access", "flags"),
        [
            ("read", ("--approval-mode", "default", "--allowed-mcp-server-names", "(none)", *POLICY)),
            ("edit", ("--approval-mode", "auto_edit", *POLICY)),
            ("full", ("--approval-mode", "yolo")),
        ],
    )
    def test_access(self, access: Access, flags: tuple[str, ...]) -> None:
        job = replace(JOB, access=access, allow=("pytest", "npm test"), system_text="is in the prompt")
        assert GeminiRunner().command(job).argv == (*GEMINI, *flags, "--skip-trust")

    def test_read_brings_a_policy_that_denies_all_but_looking(self) -> None:
        policy = GeminiRunner().command(JOB).files[SCRATCH / "policy.toml"]
        deny, allow = sorted(tomllib.loads(policy.decode())["rule"], key=lambda rule: int(rule["priority"]))
        assert (deny["toolName"], deny["decision"], allow["decision"]) == ("*", "deny", "allow")
        assert {"read_file", "glob"} <= set(allow["toolName"])
        assert not {"write_file", "replace", "run_shell_command", "web_fetch"} & set(allow["toolName"])

    def test_edit_brings_a_policy_for_the_commands_it_allows(self) -> None:
        job = replace(JOB, access="edit", allow=('say "hi"', "npm test"))
        policy = GeminiRunner().command(job).files[SCRATCH / "policy.toml"]
        web, *rules = tomllib.loads(policy.decode())["rule"]
        assert (web["toolName"], web["decision"]) == (["google_web_search", "web_fetch"], "deny")
        assert {(rule["toolName"], rule["decision"]) for rule in rules} == {("run_shell_command", "allow")}

        def allowed(command: str) -> list[bool]:
            arguments = f'{{\0"command":{json.dumps(command)}\0,\0"description":"x; y"\0}}'
            return [bool(re.search(rule["argsPattern"], arguments)) for rule in rules]

        assert allowed('say "hi"') == allowed('say "hi" there') == [True, False]
        assert allowed("npm test") == allowed("npm test -- 'a b'") == [False, True]
        refused = (
            "npm",
            "npm tests",
            "npm test;x",
            "npm test >x",
            "npm test $(x)",
            "npm test\nx",
            "X=1 npm test",
            'say "hi"x',
        )
        assert not any(any(allowed(command)) for command in refused)

    @pytest.mark.parametrize("access", ["read", "edit"])
    def test_the_policy_allows_the_web_and_the_servers_that_the_member_has(self, access: Access) -> None:
        job = replace(JOB, access=access, web=True, mcp=("mine", "a b"), git=Path("/state/git"))
        command = GeminiRunner().command(job)
        rules = tomllib.loads(command.files[SCRATCH / "policy.toml"].decode())["rule"]
        allowed = [rule for rule in rules if rule["decision"] == "allow"]
        assert set(allowed[0]["toolName"]) >= {"google_web_search", "web_fetch"}
        assert [rule["mcpName"] for rule in allowed[1:]] == ["mine", "a b", "teamchat"]
        assert {rule["toolName"] for rule in allowed[1:]} == {"*"}
        assert [rule["toolName"] for rule in rules if rule["decision"] == "deny"] == (["*"] if access == "read" else [])

    @pytest.mark.parametrize(
        ("access", "mcp", "git", "names"),
        [
            ("read", None, None, ["(none)"]),
            ("read", None, Path("/state/git"), ["teamchat"]),
            ("read", ("a",), None, ["a"]),
            ("edit", None, Path("/state/git"), []),
            ("edit", (), None, ["(none)"]),
            ("full", ("a", "b c"), Path("/state/git"), ["a", "b c", "teamchat"]),
        ],
    )
    def test_only_the_servers_that_the_member_has_start(
        self, access: Access, mcp: tuple[str, ...] | None, git: Path | None, names: list[str]
    ) -> None:
        argv = GeminiRunner().command(replace(JOB, access=access, mcp=mcp, git=git)).argv
        assert [word for flag, word in pairwise(argv) if flag == "--allowed-mcp-server-names"] == names

    def test_the_users_servers_are_those_of_the_settings_and_of_extensions(self, tmp_path: Path) -> None:
        (tmp_path / ".gemini" / "extensions" / "x").mkdir(parents=True)
        (tmp_path / ".gemini" / "extensions" / "x" / "gemini-extension.json").write_text('{"mcpServers": {"of x": {}}}')
        (tmp_path / ".gemini" / "settings.json").write_text(
            '{ // "mcpServers": {"old": {}},\n "mcpServers": {"mine": {"url": "http://127.0.0.1/*"}} /* mine */ }'
        )
        assert set(GeminiRunner().servers(CWD, {"HOME": str(tmp_path)})) == {"mine", "of x"}
        assert set(GeminiRunner().servers(CWD, {"HOME": "/nowhere"})) == set()

    def test_full_brings_no_policy(self) -> None:
        command = GeminiRunner().command(replace(JOB, access="full"))
        assert [path.name for path in command.files] == ["users-own-env.cjs"]
        assert "--admin-policy" not in command.argv

    @pytest.mark.parametrize(
        ("access", "folder", "refused"),
        [
            ("read", "a,b", True),
            ("edit", "a,b", True),
            ("full", "a,b", False),
            ("full", "a,b:c", True),
            *((access, folder, False) for access in ("read", "edit", "full") for folder in ("a-b", "a:b")),
        ],
    )
    def test_a_temporary_folder_with_a_comma_is_refused_where_a_policy_is_in_it(
        self, access: Access, folder: str, *, refused: bool
    ) -> None:
        why = "Gemini splits a folder's name at a comma, and TMPDIR has one: set another TMPDIR"
        assert GeminiRunner().refusal(access, {"TMPDIR": f"/tmp/{folder}/teamchat-0"}) == (why if refused else None)

    def test_images_below_a_folder_with_a_comma_come_the_way_that_is_not_split(self) -> None:
        job = replace(JOB, access="full", images=(Path("/tmp/a,b (c)/images/1.png"),))
        command = GeminiRunner().command(job)
        assert "--include-directories" not in command.argv
        assert command.env["GEMINI_CLI_IDE_WORKSPACE_PATH"] == "/tmp/a,b (c)/images"
        images = GeminiRunner().images
        assert images
        assert images.mention
        assert images.mention("/tmp/a,b (c)/images/1.png") == r"@/tmp/a\,b\ \(c\)/images/1.png"

    @pytest.mark.parametrize(("access", "refused"), [("read", True), ("edit", True), ("full", False)])
    def test_policies_of_the_machine_switch_off_those_of_the_member(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, access: Access, *, refused: bool
    ) -> None:
        monkeypatch.setattr("teamchat.runners.gemini.runner.SYSTEM_POLICIES", (tmp_path / "none", tmp_path))
        assert GeminiRunner().refusal(access, {}) is None
        (tmp_path / "ours.toml").touch()
        told = f"the policies in {tmp_path} switch off --admin-policy, which bounds its tools"
        assert GeminiRunner().refusal(access, {}) == (told if refused else None)

    def test_model_and_extra_arguments_come_last(self) -> None:
        argv = GeminiRunner().command(replace(JOB, model="flash", args=("--debug",))).argv
        assert argv[-3:] == ("-m", "flash", "--debug")

    def test_project_settings_trust_the_folder_by_environment(self) -> None:
        command = GeminiRunner().command(replace(JOB, project_settings=True))
        assert "--skip-trust" not in command.argv
        assert command.env["GEMINI_CLI_TRUST_WORKSPACE"] == "true"

    def test_the_environment_is_headless_and_keeps_the_project_out(self) -> None:
        command = GeminiRunner().command(replace(JOB, env={"NODE_OPTIONS": "--use-openssl-ca"}))
        assert command.env == {
            "GEMINI_CLI_IDE_WORKSPACE_PATH": "",
            "GEMINI_CLI_NO_RELAUNCH": "true",
            "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": NOWHERE,
            "GEMINI_CLI_TRUST_WORKSPACE": "false",
            "NODE_OPTIONS": '--require "/scratch/users-own-env.cjs" --use-openssl-ca',
            "NO_COLOR": "1",
        }


def test_a_pipe_agent_is_its_command_and_arguments() -> None:
    job = replace(JOB, program=("ollama", "run", "llama3"), args=("--think",), model="x", access="full")
    assert PipeRunner().command(job).argv == ("ollama", "run", "llama3", "--think")


@pytest.mark.parametrize("runner", ALL)
def test_the_prompt_is_never_in_the_command_and_a_program_of_several_words_stays_whole(runner: Runner) -> None:
    argv = runner.command(replace(JOB, program=("env", "A=1", "cli"))).argv
    assert argv[:3] == ("env", "A=1", "cli")


@pytest.mark.parametrize("runner", ALL)
@pytest.mark.parametrize("access", ["read", "edit", "full"])
def test_what_a_member_may_do_is_one_line(runner: Runner, access: Access) -> None:
    note = runner.access_notes[access]
    assert note.isprintable()
    assert len(note) < 120


@pytest.mark.parametrize("runner", ALL)
@pytest.mark.parametrize("project_settings", [False, True])
@pytest.mark.parametrize(
    ("access", "mcp", "start"),
    [
        ("read", None, False),
        ("read", ("github",), False),
        ("edit", None, True),
        ("edit", (), False),
        ("full", None, True),
    ],
)
def test_what_a_member_reads_names_mcp_servers_only_where_all_start(
    runner: Runner, access: Access, mcp: tuple[str, ...] | None, *, start: bool, project_settings: bool
) -> None:
    note = runner.reads_note(replace(JOB, access=access, mcp=mcp, project_settings=project_settings))
    assert note.isprintable()
    assert ("MCP servers" in note.partition(";")[0]) is (start and runner.vendor is not None)


def test_what_members_read_of_each_cli() -> None:
    notes = {
        (runner.vendor, access): runner.reads_note(replace(JOB, access=access)).partition("; ")[0].rpartition(", ")[2]
        for runner in ALL
        for access in ("read", "edit")
        if runner.vendor
    }
    assert notes == {
        ("claude", "read"): "the user's settings",
        ("claude", "edit"): "MCP servers and skills",
        ("codex", "read"): "the user's configuration",
        ("codex", "edit"): "the user's configuration and MCP servers",
        ("gemini", "read"): "the user's settings and extensions",
        ("gemini", "edit"): "MCP servers and extensions",
    }
    with_project = ClaudeRunner().reads_note(replace(JOB, access="full", project_settings=True))
    assert with_project.endswith("MCP servers and skills, and of the project settings, hooks and MCP servers")


def test_what_edit_lets_and_refuses_is_all_kinds_of_action_once() -> None:
    for runner in ALL:
        if runner.edits is None:
            assert runner.vendor is None
            continue
        said = [words for _, those in in_words(runner.edits) for words in those.split("; ")]
        assert sorted(said) == sorted(words.replace("`", "") for words in KINDS.values())


def test_each_cli_is_stopped_limited_and_told_apart_as_observed() -> None:
    facts = {runner.vendor: (runner.limit, runner.stop, runner.stall_s, runner.reports_denials) for runner in ALL}
    assert facts == {
        "claude": (Limit(2_700_000, "characters"), StopRule(Signals.SIGINT, group=False), 300, True),
        "codex": (Limit(1_048_576, "characters"), StopRule(Signals.SIGTERM, group=True), 900, False),
        "gemini": (Limit(4_000_000), StopRule(Signals.SIGTERM, group=True), 300, True),
        None: (None, StopRule(Signals.SIGTERM, group=True), math.inf, False),
    }


@pytest.mark.parametrize(
    ("runner", "memory", "resumes", "words"),
    [
        (ClaudeRunner(), "fresh", None, ("--no-session-persistence",)),
        (ClaudeRunner(), "resume", None, ()),
        (ClaudeRunner(), "resume", "v-1", ("--resume", "v-1")),
        (CodexRunner(), "fresh", None, ("--ephemeral",)),
        (CodexRunner(), "resume", None, ()),
        (CodexRunner(), "resume", "v-1", ("resume", "v-1", "-")),
        (GeminiRunner(), "fresh", None, ()),
        (GeminiRunner(), "resume", "v-1", ("--resume", "v-1")),
    ],
)
def test_memory_is_a_word_to_the_cli(
    runner: Runner, memory: Memory, resumes: str | None, words: tuple[str, ...]
) -> None:
    argv = runner.command(replace(JOB, memory=memory, resumes=resumes)).argv
    plain = runner.command(replace(JOB, memory="resume")).argv
    added = [word for word in argv if word not in plain or word == "-"]
    assert tuple(added) == (words if words[-1:] == ("-",) or "-" not in argv else (*words, "-"))


def test_codex_takes_its_options_before_the_word_resume() -> None:
    argv = CodexRunner().command(replace(JOB, resumes="v-1", model="gpt-5.5", args=("-c", "a=1"))).argv
    assert argv[-7:] == ("-m", "gpt-5.5", "-c", "a=1", "resume", "v-1", "-")
