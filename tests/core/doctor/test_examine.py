"""What `doctor` finds out about members, by a fake that stands for running programs; the rest is real."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from msgspec.structs import replace

from teamchat.cli.startup.workspace import open_store
from teamchat.core.agents import AGENT_TYPES, CLIS
from teamchat.core.conversation.permission import trust_store
from teamchat.core.doctor.checks import DoctorCheck, exit_code
from teamchat.core.doctor.examine import examine
from teamchat.core.errors import ExitCode, UnknownName
from teamchat.core.files.folders import config_dir, state_path, workspace_path
from teamchat.core.team.find import load
from teamchat.core.team.programs import job_of
from teamchat.runners import git_server
from teamchat.runners.child.running import SpawnFailed
from teamchat.runners.edits import in_words
from tests.installed import SAYS, install
from tests.real.clis import PINNED

FILE = Path("teamchat.toml")
ONE = '[[members]]\nname = "max"\nagent = "claude"\n'


class Programs:
    """Stands for the programs: what each says when it is asked, and how it was asked."""

    def __init__(self, says: Mapping[str, str] = SAYS, code: int | None = 0) -> None:
        self.says, self.code = says, code
        self.asked: list[tuple[str, ...]] = []
        self.cwd = Path()
        self.env: Mapping[str, str] = {}

    def __call__(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, timeout_s: float
    ) -> tuple[int | None, bytes]:
        assert timeout_s > 0
        self.asked.append(tuple(argv))
        self.cwd, self.env = cwd, env
        return self.code, self.says[Path(argv[0]).name].encode()


def found(ask: Programs | None = None, option: str | None = None) -> list[DoctorCheck]:
    return list(examine(option, Path.cwd(), config_dir(), os.environ, ask or Programs()))


def one(checks: list[DoctorCheck], what: str, member: str | None = None) -> DoctorCheck:
    """The only finding of that kind, about that member or about any."""
    (check,) = (check for check in checks if check.what == what and member in (None, check.member))
    return check


@pytest.fixture
def programs(world: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return install(world, monkeypatch, "claude", "codex", "gemini")


@pytest.mark.usefixtures("programs")
class TestVersion:
    @pytest.fixture(autouse=True)
    def known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A ledger of three versions, one of which does not report what it refuses."""
        holds, misses = {"denials": {"state": "ok"}}, {"denials": {"state": "failed", "text": "none was reported"}}
        monkeypatch.setattr(
            "teamchat.core.doctor.versions.ledger",
            lambda: {"claude": {"2.1.330": holds, "2.1.260": misses, "2.1.197": holds}},
        )

    @pytest.mark.parametrize(
        ("said", "state", "text"),
        [
            ("2.1.330 (Claude Code)", "ok", "2.1.330, proven"),
            ("2.1.197 (Claude Code)", "ok", "2.1.197, proven; the newest proven is 2.1.330"),
            ("2.1.260", "warning", "2.1.260, proven but for denials; the newest proven is 2.1.330"),
            ("2.1.261 (Claude Code)", "warning", "2.1.261, not tested; the newest proven is 2.1.330"),
            ("2.0", "warning", "2.0, not tested; the newest proven is 2.1.330"),
            ("v2.1.330-rc1", "warning", "2.1.330-rc1, not tested; the newest proven is 2.1.330"),
            ("2.10.0", "warning", "2.10.0, not tested; the newest proven is 2.1.330"),
            ("claude 3.0.0\nmore 1.0.0", "warning", "3.0.0, not tested; the newest proven is 2.1.330"),
        ],
    )
    def test_it_is_held_against_the_ledger(self, said: str, state: str, text: str) -> None:
        FILE.write_text(ONE)
        checks = found(Programs({"claude": said}))
        version = one(checks, "version")
        assert (version.state, version.text, version.value) == (state, text, text.partition(",")[0])
        assert exit_code(check for check in checks if check.what == "version") == ExitCode.DONE

    @pytest.mark.parametrize(
        ("said", "hint"),
        [
            ("2.1.330", None),
            ("2.1.260", "npm install -g @anthropic-ai/claude-code"),
            ("9.0.0", "npm install -g @anthropic-ai/claude-code@2.1.330"),
            ("1.0.0", "npm install -g @anthropic-ai/claude-code@2.1.330"),
        ],
    )
    def test_one_that_is_not_proven_comes_with_what_to_do(self, said: str, hint: str | None) -> None:
        FILE.write_text(ONE)
        assert one(found(Programs({"claude": said})), "version").hint == hint

    @pytest.mark.parametrize(("said", "code"), [("", 0), ("no version here", 0), ("2.1.330", 1), ("2.1.330", None)])
    def test_no_answer_is_a_warning(self, said: str, code: int | None) -> None:
        FILE.write_text(ONE)
        version = one(found(Programs({"claude": said}, code)), "version")
        assert (version.state, version.value) == ("warning", None)

    @pytest.mark.parametrize("code", [126, 127])
    def test_a_program_whose_interpreter_is_missing_can_not_run(self, code: int) -> None:
        FILE.write_text(ONE)
        checks = found(Programs({"claude": ""}, code))
        assert one(checks, "version").state == "failed"
        assert exit_code([one(checks, "version")]) == ExitCode.AGENT_UNAVAILABLE

    def test_a_program_that_does_not_start_can_not_run(self) -> None:
        class Broken(Programs):
            def __call__(
                self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, timeout_s: float
            ) -> tuple[int | None, bytes]:
                del argv, env, cwd, timeout_s
                raise SpawnFailed("Exec format error")

        FILE.write_text(ONE)
        version = one(found(Broken()), "version")
        assert (version.state, version.code) == ("failed", ExitCode.AGENT_UNAVAILABLE)
        assert "Exec format error" in version.text

    def test_a_program_of_two_members_is_asked_once(self) -> None:
        FILE.write_text(ONE + ONE.replace("max", "moritz"))
        ask = Programs()
        checks = found(ask)
        assert len(ask.asked) == 1
        assert one(checks, "version", "max") == replace(one(checks, "version", "moritz"), member="max")

    def test_it_is_asked_where_no_project_has_a_say(self) -> None:
        FILE.write_text(ONE)
        ask = Programs()
        found(ask)
        assert ask.cwd == Path("/")

    def test_a_cli_is_not_shown_keys_of_others(self, monkeypatch: pytest.MonkeyPatch) -> None:
        FILE.write_text(ONE)
        monkeypatch.setenv("GEMINI_API_KEY", "g")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "a")
        ask = Programs()
        found(ask)
        assert "GEMINI_API_KEY" not in ask.env
        assert ask.env["ANTHROPIC_API_KEY"] == "a"


class TestTrust:
    @pytest.fixture(autouse=True)
    def programs_elsewhere(self, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A team file that puts another program in place of the user's own."""
        install(world, monkeypatch, "claude")
        shutil.copytree(world / "bin", "evil")
        FILE.write_text(ONE + f'env = {{ PATH = "{world}/work/evil" }}\n')

    def test_nothing_is_run_for_a_team_that_is_not_trusted(self) -> None:
        ask = Programs()
        checks = found(ask)
        assert ask.asked == []
        assert one(checks, "version").state == "unknown"
        assert one(checks, "team").state == "warning"
        assert one(checks, "team").hint == "teamchat trust"

    def test_what_a_turn_would_run_is_asked_once_it_is_trusted(self, world: Path) -> None:
        trust_store().grant(load(FILE))
        ask = Programs()
        checks = found(ask)
        assert ask.asked == [(f"{world}/work/evil/claude", "--version")]
        assert one(checks, "version").value == PINNED["claude"]
        assert one(checks, "team").text == f"{world}/work/teamchat.toml, trusted"


def test_a_program_of_the_team_file_is_found_but_not_run() -> None:
    FILE.write_text('[[members]]\nname = "al"\nagent = "x"\n[agents.x]\ncommand = ["sh", "x.sh"]\nlike = "claude"\n')
    trust_store().grant(load(FILE))
    ask = Programs()
    checks = found(ask)
    assert ask.asked == []
    assert one(checks, "program").value == shutil.which("sh")
    assert {check.what for check in checks if check.member} == {"program", "access", "reads", "folder"}


def test_a_program_that_is_missing_comes_with_how_to_install_it() -> None:
    FILE.write_text(ONE + '[[members]]\nname = "al"\nagent = "x"\n[agents.x]\ncommand = ["xyzzy"]\n')
    checks = found()
    assert one(checks, "program", "max").hint == "npm install -g @anthropic-ai/claude-code"
    missing = one(checks, "program", "al")
    why = "'xyzzy' is not installed; install it, or change its command in the team file"
    assert (missing.state, missing.text, missing.value, missing.hint) == ("failed", why, None, None)
    assert exit_code(checks) == ExitCode.AGENT_UNAVAILABLE
    assert "version" not in [check.what for check in checks]


@pytest.mark.usefixtures("programs")
class TestArguments:
    """Options of a member's `args`, held against what the CLI's own help names."""

    HELP = MappingProxyType(
        {**SAYS, "codex": "codex-cli 0.169.0\n -c, --config <key=value>\n --no-color  --add-dir=<DIR>"}
    )

    def args(
        self, text: str, help_: Mapping[str, str] = HELP, *, trusted: bool = True
    ) -> tuple[list[DoctorCheck], Programs]:
        FILE.write_text(ONE.replace("claude", "codex") + f"args = {text}\n")
        if trusted:
            trust_store().grant(load(FILE))
        ask = Programs(help_)
        return [check for check in found(ask) if check.what == "args"], ask

    def test_one_that_the_help_does_not_name_is_a_warning(self) -> None:
        checks, ask = self.args('["--colour", "red", "-c", "x=--y", "--dir=z", "--config", "-q", "--", "--after"]')
        words = "`codex exec --help` does not name --colour, --dir, -q: a misspelt option fails every turn"
        assert checks == [DoctorCheck("max", "args", "warning", words, "--colour, --dir, -q")]
        assert [argv[1:] for argv in ask.asked] == [("--version",), ("exec", "--help")]

    def test_those_that_it_names_are_fine(self) -> None:
        checks, _ = self.args('["-c", "x=1", "--add-dir", "/x", "--no-color"]')
        assert checks == [
            DoctorCheck(
                "max",
                "args",
                "ok",
                "named by `codex exec --help`: -c, --add-dir, --no-color",
                "-c, --add-dir, --no-color",
            )
        ]

    def test_without_an_answer_nothing_is_known(self) -> None:
        checks, _ = self.args('["--x"]', {**SAYS, "codex": ""})
        assert checks == [DoctorCheck("max", "args", "unknown", "`codex exec --help` did not answer")]

    @pytest.mark.parametrize("text", ["[]", '["a prompt", "-", "---", "-12"]'])
    def test_without_options_nothing_is_asked(self, text: str) -> None:
        checks, ask = self.args(text)
        assert (checks, len(ask.asked)) == ([], 1)

    def test_a_team_that_is_not_trusted_and_sets_variables_is_not_asked(self) -> None:
        checks, ask = self.args('["--x"]\nenv = { A = "b" }', trusted=False)
        assert (checks, ask.asked) == ([], [])


@pytest.mark.usefixtures("programs")
class TestLogin:
    @pytest.mark.parametrize(("key", "state", "value"), [("k", "ok", "yes"), ("", "failed", "no")])
    def test_it_is_there_or_not(self, monkeypatch: pytest.MonkeyPatch, key: str, state: str, value: str) -> None:
        FILE.write_text(ONE)
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
        login = one(found(), "login")
        assert (login.state, login.value) == (state, value)
        assert (login.code == ExitCode.AGENT_UNAVAILABLE) == (state == "failed")

    def test_what_only_the_cli_knows_is_unknown(self) -> None:
        FILE.write_text(ONE)
        Path("~/.claude.json").expanduser().write_text("{}")
        checks = found()
        assert (one(checks, "login").state, one(checks, "login").value) == ("unknown", "unknown")
        assert exit_code(checks) == ExitCode.DONE

    def test_arguments_of_the_member_may_bring_one(self) -> None:
        FILE.write_text(ONE + 'args = ["--settings", "mine.json"]\n')
        assert one(found(), "login").state == "unknown"

    @pytest.mark.parametrize(("access", "state"), [("read", "failed"), ("edit", "note")])
    def test_a_configuration_that_cannot_be_read_is_named_as_such(self, access: str, state: str) -> None:
        FILE.write_text(ONE.replace("claude", "codex") + f'access = "{access}"\n')
        config = Path("~/.codex/config.toml").expanduser()
        config.parent.mkdir()
        config.write_text("a = [broken\n")
        checks = found()
        words = f"{config} cannot be read: Invalid value (at line 1, column 6)"
        assert (one(checks, "login").state, one(checks, "login").text) == ("unknown", words)
        assert (one(checks, "access").state, words in one(checks, "access").text) == (state, access == "read")

    def test_variables_of_the_member_count(self) -> None:
        FILE.write_text(ONE + 'env = { ANTHROPIC_API_KEY = "k" }\n')
        assert one(found(), "login").state == "ok"


@pytest.mark.usefixtures("programs")
class TestAccess:
    def test_what_it_reads_and_may_do_is_told(self) -> None:
        FILE.write_text(ONE + 'access = "edit"\n')
        runner = AGENT_TYPES["claude"].runner
        team = load(FILE)
        [member] = team.ai_members
        checks = found()
        assert one(checks, "access").text == f"edit: {runner.access_notes['edit']}; no web, your MCP servers"
        assert "tools" not in [check.what for check in checks]
        assert one(checks, "reads").text == runner.reads_note(job_of(member, team.agent_of(member), {}))
        assert runner.edits
        told = dict(in_words(runner.edits))
        assert {what: one(checks, what).text for what in ("lets", "refuses")} == told
        assert {one(checks, what).state for what in ("access", "lets", "refuses", "reads")} == {"note"}

    def test_what_edit_lets_is_told_of_a_member_that_edits_alone(self) -> None:
        FILE.write_text(ONE)
        assert not {"lets", "refuses"} & {check.what for check in found()}

    def test_servers_that_it_names_are_there_or_not(self) -> None:
        Path("~/.claude.json").expanduser().write_text('{"mcpServers": {"github": {"command": "x"}}}')
        FILE.write_text(ONE + 'web = true\nmcp = ["github"]\n')
        checks = found()
        assert one(checks, "access").text.endswith("; web, MCP servers github")
        assert (one(checks, "tools").state, one(checks, "tools").text) == ("ok", "github")
        FILE.write_text(ONE + 'mcp = ["githb"]\n')
        tools = one(found(), "tools")
        assert (tools.state, tools.hint, tools.code) == ("failed", None, ExitCode.AGENT_UNAVAILABLE)
        change = "change mcp in the team file (there are: github)"
        assert tools.text == f"mcp: you have set up no server 'githb' in claude; {change}"

    def test_what_git_lacks_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(git_server, "missing", lambda _env: ("the package mcp is not installed", "pip install mcp"))
        FILE.write_text(ONE + "git = true\n")
        checks = found()
        tools = one(checks, "tools")
        assert (tools.state, tools.hint) == ("failed", "pip install mcp")
        assert tools.text == "max has git = true, but the package mcp is not installed"
        assert exit_code(checks) == ExitCode.AGENT_UNAVAILABLE

    def test_access_that_the_cli_would_refuse_can_not_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        FILE.write_text(ONE + 'access = "full"\n')
        access = one(found(), "access")
        assert (access.state, access.code) == ("failed", ExitCode.AGENT_UNAVAILABLE)
        assert "root" in access.text


class TestWithoutATeamFile:
    def test_the_installed_clis_are_looked_at_and_the_others_named(
        self, world: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(world, monkeypatch, "codex")
        monkeypatch.setenv("CODEX_API_KEY", "k")
        checks = found()
        assert one(checks, "program", "codex").state == "ok"
        assert one(checks, "program", "gemini") == DoctorCheck(
            "gemini", "program", "note", "not installed", hint="npm install -g @google/gemini-cli"
        )
        assert one(checks, "team").hint == "teamchat init"
        assert exit_code(checks) == ExitCode.DONE

    def test_none_installed_is_a_failure(self) -> None:
        checks = found()
        assert [check.state for check in checks if check.what == "program"] == ["failed"] * len(CLIS)
        assert exit_code(checks) == ExitCode.AGENT_UNAVAILABLE
        assert one(checks, "store").state == "ok"


class TestTeamFile:
    def test_a_broken_one_is_one_line_and_the_rest_is_still_told(self) -> None:
        FILE.write_text("members = 3")
        checks = found()
        assert one(checks, "team").state == "failed"
        assert "members" in one(checks, "team").text
        assert one(checks, "sqlite").state == "ok"
        assert exit_code(checks) == ExitCode.USAGE

    def test_one_that_only_reads_needs_no_trust(self, world: Path) -> None:
        FILE.write_text(ONE)
        assert one(found(), "team").text == f"{world}/work/teamchat.toml, needs no trust"

    def test_trust_of_a_team_elsewhere_is_given_with_its_option(self, world: Path) -> None:
        (world / "other.toml").write_text(ONE + 'access = "edit"\n')
        file = one(found(option="../other.toml"), "team")
        assert file.hint == f"teamchat trust --team {world}/other.toml"
        assert "max edits files in" in file.text

    def test_damaged_trust_is_told(self) -> None:
        FILE.write_text(ONE + 'access = "edit"\n')
        trust_store().file.write_text("x")
        team = one(found(), "team")
        assert (team.state, team.code) == ("failed", ExitCode.STORE)

    def test_no_such_team_is_an_error(self) -> None:
        with pytest.raises(UnknownName):
            found(option="nobody")


class TestStore:
    def test_looking_makes_nothing(self, world: Path) -> None:
        before = sorted(world.rglob("*"))
        store = one(found(), "store")
        assert store.state == "ok"
        assert store.value == str(workspace_path(Path.cwd()) / "teamchat.db")
        assert sorted(world.rglob("*")) == before

    def test_one_that_is_there_is_opened(self) -> None:
        with open_store(Path.cwd()):
            pass
        assert one(found(), "store").text == str(workspace_path(Path.cwd()) / "teamchat.db")

    def test_a_broken_one_is_told(self) -> None:
        with open_store(Path.cwd()) as db:
            file = db.path
        file.write_bytes(b"no database at all, but a file that is long enough to be looked at" * 20)
        store = one(found(), "store")
        assert (store.state, store.code) == ("failed", ExitCode.STORE)
        assert str(file) in store.text

    def test_a_place_that_can_not_be_written_is_told(self, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (world / "file").touch()
        monkeypatch.setenv("TEAMCHAT_HOME", str(world / "file" / "state"))
        store = one(found(), "store")
        assert (store.state, store.code) == ("failed", ExitCode.STORE)
        assert str(state_path()) in store.text
        assert store.text.endswith("; set TEAMCHAT_HOME to a folder that can be written")


def test_the_gravest_problem_first() -> None:
    def failing(code: ExitCode) -> DoctorCheck:
        return DoctorCheck(None, "", "failed", "", code=code)

    store, agent, file = (failing(code) for code in (ExitCode.STORE, ExitCode.AGENT_UNAVAILABLE, ExitCode.USAGE))
    assert exit_code([store]) == ExitCode.STORE
    assert exit_code([store, agent]) == ExitCode.AGENT_UNAVAILABLE
    assert exit_code([store, agent, file]) == ExitCode.USAGE
    assert (
        exit_code([DoctorCheck(None, "", state, "") for state in ("ok", "note", "warning", "unknown")]) == ExitCode.DONE
    )
