"""Errors of `teamchat send`: one line, an exit code of the table, and no incomplete turn in the store."""

from __future__ import annotations

import re
import sqlite3
import sys
from pathlib import Path

import pytest

from teamchat.cli.startup.workspace import store_file
from tests.cli.helpers import FILE, actors, mistake, notes, refused, rows, said, steady, turn
from tests.installed import install
from tests.program import Result, cli, ended, run_here, start
from tests.runners.processes import Pids
from tests.scripted_team import crew

BEGINS = "session s1 begins"
MEMBER = '[[members]]\nname = "z"\nagent = "{}"'
PEOPLE = "teamchat team"
THERE_ARE = "in team 'crew' (there are: kailai, mia)"
AGENT = "max is an agent; only people send messages: --as kailai or mia"

NO_TEAM = "there is no team 'nope' in {home}/config_home/teamchat/teams (teams: none yet)"
NAMELESS = (
    "invalid value for '--session' (env var: 'TEAMCHAT_SESSION'): expected a name of printable characters, got {}\n"
    "  try: teamchat send --help"
)


def assert_fails(ran: Result, code: int, reason: str, *, half: bool) -> None:
    """The member's turn failed: no reply is stored, and partial text is kept on the receipt."""
    partial = ["what max had said is in: teamchat show 1"] if half else []
    ending = (f"failed: max {reason}; held: max", "try: teamchat resume")
    assert steady(ran) == Result(code, "", notes(BEGINS, *turn("max", 1), *partial, *ending))
    assert ("  | half\n" in run_here("show").out) == half
    assert said() == [("kailai", "Hi")]


@pytest.mark.parametrize("file", [".", "teamchat.toml", "/dev/full"])
def test_no_session_is_created_if_the_recording_cannot_be_written(world: Path, file: str) -> None:
    """The next message continues the earlier conversation, not an empty one."""
    crew(world, {"max": ["Hi.", "Again."]})
    assert run_here("send", "Go").code == 0
    before = rows()
    ran = run_here("send", "--new", "--record", file, "Once more")
    assert (ran.code, ran.out) == (2, "")
    assert rows() == before
    assert "· session s1 continues" in run_here("send", "Go on").err


class TestInvalidMessageOrOptions:
    """A wrong message or option is reported before a session is created, and nothing is stored."""

    @pytest.fixture(autouse=True)
    def team(self, world: Path) -> None:
        titles = {"max": {"title": "Architect"}, "sarah": {"title": "architect"}}
        crew(world, {"max": [], "sarah": []}, humans=("kailai", "mia"), members=titles)

    @pytest.mark.parametrize(
        ("args", "code", "error"),
        [
            ([""], 2, "there is nothing to send\n  try: teamchat send 'Your message'"),
            ([" \n\t"], 2, "there is nothing to send\n  try: teamchat send 'Your message'"),
            (["--as", "mia", "--to", "mex", "Hi"], 4, f"nobody is called 'mex': did you mean max?\n  try: {PEOPLE}"),
            (["--as", "mia", "[NEXT: mex] Hi"], 4, f"nobody is called 'mex': did you mean max?\n  try: {PEOPLE}"),
            (
                ["--as", "mia", "[NEXT: bob, sara]"],
                4,
                f"nobody is called 'bob'; nobody is called 'sara': did you mean sarah?\n  try: {PEOPLE}",
            ),
            (
                ["--as", "mia", "--to", "max\x1b[2J\n", "Hi"],
                4,
                f"nobody is called 'max\\x1b[2J': did you mean max?\n  try: {PEOPLE}",
            ),
            (
                ["--as", "mia", "--to", "architect", "Hi"],
                4,
                f"'architect' is the title of several members: max or sarah?\n  try: {PEOPLE}",
            ),
            (
                ["--as", "mia", "--to", "max,Architect", "Hi"],
                4,
                f"'Architect' is the title of several members: max or sarah?\n  try: {PEOPLE}",
            ),
            (["--to", " , +", "Hi"], 2, "--to names nobody\n  try: teamchat send --to max Hi"),
            (["--as", "", "Hi"], 4, f"no person '' {THERE_ARE}\n  try: teamchat send --as kailai Hi"),
            (["--as", "bob", "Hi"], 4, f"no person 'bob' {THERE_ARE}\n  try: teamchat send --as kailai Hi"),
            (
                ["--as=mai", "Hi"],
                4,
                f"no person 'mai' {THERE_ARE}: did you mean mia?\n  try: teamchat send --as=mia Hi",
            ),
            (["--as", "max", "Hi"], 4, f"{AGENT}\n  try: teamchat send --as kailai Hi"),
            (["[FROM: max] Hi"], 4, f"{AGENT}\n  try: teamchat send --as kailai 'Your message'"),
            (["--as", "mia", "[FROM: kailai] Hi"], 2, "--as says mia, and the message says it is from kailai"),
            (
                ["--timeout", "soon", "Hi"],
                2,
                '--timeout \'soon\': expected a time above zero such as "90s", "30m" or "1h30m", got \'soon\'',
            ),
            (["--stream", "Hi"], 2, "--stream needs --json; without both, a terminal shows text as it arrives"),
            (["--team", "nope.toml", "Hi"], 2, "{work}/nope.toml: no such file"),
            (["--team", "nope", "Hi"], 4, NO_TEAM + "\n  try: teamchat help team-file"),
            (["--session", "", "Hi"], 2, NAMELESS.format("''")),
            (["--session", "a\nb", "Hi"], 2, NAMELESS.format(r"'a\nb'")),
            (["--session", "\udcff", "Hi"], 2, NAMELESS.format(r"'\udcff'")),
        ],
        ids=lambda value: " ".join(value).encode("ascii", "replace").decode() if isinstance(value, list) else "",
    )
    def test_it_is_refused_in_one_line_and_maybe_a_hint(
        self, world: Path, args: list[str], code: int, error: str
    ) -> None:
        ran = run_here("send", *args)
        refused(ran)
        expected = error.format(work=world / "work", home=world / "home")
        assert (ran.code, ran.err) == (code, f"teamchat: {expected}\n")
        assert run_here("sessions", "--json").out == ""

    def test_an_error_changes_nothing_in_an_existing_session(self, world: Path) -> None:
        crew(world, {"max": ["Here."]})
        assert run_here("send", "Hi").code == 0
        before = rows()
        assert run_here("send", "--to", "bob", "Hi").code == 4
        assert run_here("send", "").code == 2
        assert rows() == before


class TestTheTeamFile:
    @pytest.mark.parametrize(
        ("text", "error"),
        [
            ("[team\n", "not TOML: Expected ']' at the end of a table declaration (at line 1, column 6)"),
            ("", "members: missing, expected at least one [[members]] table"),
            (MEMBER.format("claud"), "members 'z': agent: unknown agent 'claud', did you mean 'claude'?"),
            (MEMBER.format('claude"\nacess = "full'), "members 'z': acess: unknown key, did you mean 'access'?"),
            (
                MEMBER.format('claude"\ninstruction_file = "gone.md'),
                "members 'z': instruction_file: {work}/gone.md: no such file",
            ),
            (
                '[[members]]\nname = "z\\u001b[2J"\nagent = "claude"',
                "members 'z\\x1b[2J': name: expected letters, digits, _ . and -, got 'z\\x1b[2J'",
            ),
        ],
    )
    @pytest.mark.parametrize(
        "command", [("send", "Hi"), ("send", "--dry-run", "Hi"), ("team",), ("trust",), ("resume",)]
    )
    def test_an_invalid_file_is_one_line_of_error(
        self, world: Path, command: tuple[str, ...], text: str, error: str
    ) -> None:
        FILE.write_text(text)
        ran = run_here(*command)
        assert (ran.code, mistake(ran, world / "work" / FILE)) == (2, error.format(work=world / "work"))
        assert ran.err.splitlines()[1:] == ["  try: teamchat help team-file"]

    def test_reading_commands_work_with_an_invalid_team_file(self, world: Path) -> None:
        crew(world, {"max": ["Here."]})
        assert run_here("send", "Hi").code == 0
        FILE.write_bytes(b"\xff")
        assert run_here("log").out.endswith("msg-2 max (turn 1):\nHere.\n\n")
        assert run_here("show").code == run_here("sessions").code == run_here("task").code == 0


class TestTheAgent:
    @pytest.mark.parametrize(
        ("steps", "reason"),
        [
            (["reply", "half", "+", "err", "boom: no", "+", "exit-with", "3"], "ended with exit code 3: boom: no"),
            (["exit-with", "1"], "ended with exit code 1"),
            (["say", ""], "finished without an answer"),
            (["say", " \n\t\n"], "finished without an answer"),
            (["reply", "half", "+", "die", "SIGKILL"], "was ended by SIGKILL"),
            (["reply", "half", "+", "die", "SIGSEGV"], "was ended by SIGSEGV"),
            (["err", "\x1b[31mred\x1b[0m\x07 alert", "+", "exit-with", "2"], "ended with exit code 2: red alert"),
        ],
    )
    def test_a_failed_turn_stores_no_reply(self, steps: list[str], reason: str) -> None:
        actors({"max": steps})
        assert_fails(run_here("send", "Hi"), 1, reason, half="half" in steps)

    def test_an_answer_without_visible_text_fails_with_that_reason(self) -> None:
        actors({"max": ["say", "\u200b\u2060\n"]})
        ran = run_here("send", "Hi")
        assert (ran.code, "failed: max finished without an answer" in ran.err) == (1, True)
        assert "· what max had said is in: teamchat show 1\n" in ran.err
        assert run_here("show").out.endswith("in a prompt):\n  | (only invisible characters)\n")
        assert run_here("show", "--reply").out.strip() == "\u200b\u2060"

    @pytest.mark.usefixtures("_until_it_hangs")
    @pytest.mark.parametrize(
        ("keys", "options", "steps", "reason"),
        [
            ({}, ["--timeout", "0.3s"], ["reply", "half", "+", "hang"], "was still running after 0.3 s (its timeout)"),
            ({"timeout": "0.3s"}, [], ["reply", "half", "+", "hang"], "was still running after 0.3 s (its timeout)"),
            ({"first_byte": "0.3s"}, [], ["hang"], "wrote nothing in its first 0.3 s (first_byte)"),
            ({"stall": "0.3s"}, [], ["reply", "half", "+", "hang"], "was silent for 0.3 s (stall)"),
        ],
    )
    def test_a_timeout_names_the_limit_that_was_reached(
        self, pids: Pids, keys: dict[str, object], options: list[str], steps: list[str], reason: str
    ) -> None:
        actors({"max": steps}, members={"max": keys})
        assert_fails(run_here("send", *options, "Hi"), 3, reason, half="half" in steps)
        assert pids.all()
        assert pids.alive() == []

    def test_a_failure_puts_the_queued_members_on_hold(self, world: Path) -> None:
        crew(world, {"max": [{"say": "half", "exit": 3}], "sarah": []})
        ran = run_here("send", "--quiet", "[NEXT: max, sarah] Hi")
        assert ran == Result(
            1, "", notes("failed: max ended with exit code 3; held: max, sarah", "try: teamchat resume")
        )

    def test_the_error_of_a_rejected_login_has_the_login_command(self) -> None:
        actors({"max": ["claude-init", "+", "claude-retry", "401", "+", "hang"]}, like="claude")
        ran = run_here("send", "--quiet", "Hi")
        assert ran.code == 11
        assert re.fullmatch(
            r"· failed: max is not logged in, .*; held: max\n· try: claude auth login && teamchat resume\n", ran.err
        )

    @pytest.mark.parametrize(
        ("agent", "install"),
        [
            ("claude", "npm install -g @anthropic-ai/claude-code"),
            ("codex", "npm install -g @openai/codex"),
            ("gemini", "npm install -g @google/gemini-cli"),
        ],
    )
    def test_the_error_of_a_missing_cli_has_the_install_command(self, agent: str, install: str) -> None:
        FILE.write_text(f'[[members]]\nname = "max"\nagent = "{agent}"')
        ran = run_here("send", "--quiet", "Hi")
        assert ran == Result(
            11,
            "",
            notes(f"failed: max's program '{agent}' is not installed; held: max", f"try: {install} && teamchat resume"),
        )

    def test_the_error_of_a_missing_program_points_to_the_team_file(self, world: Path) -> None:
        FILE.write_text('[[members]]\nname = "max"\nagent = "own"\n[agents.own]\ncommand = ["./agent.sh"]')
        ran = run_here("send", "--quiet", "--trust", "Hi")
        assert ran.code == 11
        why = "is not installed; install it, or change its command in the team file; held: max\n"
        assert ran.err.endswith(f"· failed: max's program {str(world / 'work' / 'agent.sh')!r} {why}")

    def test_the_error_of_a_script_that_is_not_executable_says_how_to_fix_it(self, world: Path) -> None:
        program = world / "work" / "agent.sh"
        program.write_text("echo Hi\n")
        FILE.write_text('[[members]]\nname = "max"\nagent = "own"\n[agents.own]\ncommand = ["./agent.sh"]')
        program.chmod(0o644)
        ran = run_here("send", "--quiet", "--trust", "Hi")
        assert ran.err.endswith(f"is not executable; held: max\n· try: chmod +x {program} && teamchat resume\n")
        program.chmod(0o755)
        why = f"{str(program)!r} has no #! line; begin the file with one, such as #!/bin/sh"
        told = notes(f"failed: max's program {why}; held: max")
        assert run_here("resume", "--quiet", "--trust") == Result(11, "", told)
        assert f"program {why}\n" in run_here("doctor").out
        program.write_text("#!/bin/sh\necho Hi\n")
        assert run_here("resume", "--quiet", "--trust").out == "Hi\n"

    def test_a_program_that_the_system_cannot_start_is_reported(self, world: Path) -> None:
        program = world / "work" / "agent.sh"
        program.write_bytes(Path(sys.executable).read_bytes()[:32])
        program.chmod(0o755)
        FILE.write_text('[[members]]\nname = "max"\nagent = "own"\n[agents.own]\ncommand = ["./agent.sh"]')
        ran = run_here("send", "--quiet", "--trust", "Hi")
        assert ran.code == 11
        assert "could not be started: Exec format error" in ran.err
        assert len(ran.err.splitlines()) == 2

    @pytest.mark.skipif(sys.platform != "linux", reason="another system may run several kinds")
    def test_a_program_for_another_processor_is_reported(self, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("teamchat.core.team.programs.FORMATS", world / "none")
        program = world / "work" / "agent.sh"
        program.write_bytes(b"\x7fELF\0")
        program.chmod(0o755)
        FILE.write_text('[[members]]\nname = "max"\nagent = "own"\n[agents.own]\ncommand = ["./agent.sh"]')
        why = f"{str(program)!r} is for another kind of machine; install it, or change its command in the team file"
        told = notes(f"failed: max's program {why}; held: max")
        assert run_here("send", "--quiet", "--trust", "Hi") == Result(11, "", told)

    def test_without_a_team_file_and_any_cli_the_error_lists_what_to_install(self) -> None:
        assert run_here("send", "Hi") == Result(
            11,
            "",
            "teamchat: no team file here, and no agent CLI is installed; install one, or try teamchat without one\n"
            "  try: npm install -g @anthropic-ai/claude-code\n"
            "  try: npm install -g @openai/codex\n"
            "  try: npm install -g @google/gemini-cli\n"
            "  try: npm install -g opencode-ai\n"
            "  try: teamchat init --template offline\n",
        )

    def test_full_access_is_refused_to_root(self, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        install(world, monkeypatch, "claude")
        monkeypatch.setattr("os.geteuid", lambda: 0)
        FILE.write_text('[[members]]\nname = "max"\nagent = "claude"\naccess = "full"')
        ran = run_here("send", "--quiet", "--trust", "Hi")
        assert ran.code == 5
        assert "max cannot have access 'full': " in ran.err


class TestTooLarge:
    def test_no_agent_starts_if_the_prompt_is_too_large_without_the_message(self, world: Path) -> None:
        made = crew(world, {"max": []}, team={"max_bytes": 2000, "task": "x" * 3000})
        ran = run_here("send", "--quiet", "Hi")
        assert ran.code == 12
        assert refused(ran).startswith("max: system text, task and turn note take ")
        assert made.prompts("max") == []
        assert run_here("sessions", "--json").out == ""

    def test_no_agent_starts_if_the_prompt_exceeds_the_limit_of_its_cli(self, world: Path) -> None:
        large = {"max_bytes": 20_000_000, "max_prompt_tokens": 5_000_000}
        made = crew(world, {"max": []}, like={"max": "codex"}, team=large)
        ran = run_here("send", "--quiet", "-", stdin="x" * 1_100_000)
        assert ran.code == 12
        assert "characters" in refused(ran)
        assert made.prompts("max") == []
        assert run_here("sessions", "--json").out == ""


class TestTheStore:
    @pytest.fixture
    def store(self, world: Path) -> Path:
        crew(world, {"max": ["Here.", "Again."]})
        assert run_here("send", "Hi").code == 0
        return store_file(Path.cwd())

    COMMANDS = (("send", "Hi"), ("send", "--dry-run", "Hi"), ("resume",), ("log",), ("show",), ("sessions",), ("task",))

    @pytest.mark.parametrize("command", COMMANDS)
    def test_a_damaged_store(self, store: Path, command: tuple[str, ...]) -> None:
        for file in store.parent.glob("teamchat.db-*"):
            file.unlink()
        store.write_bytes(b"no database at all" * 1000)
        ran = run_here(*command)
        assert (ran.code, refused(ran)) == (13, f"the store {store} is damaged: file is not a database")
        assert ran.err.endswith("  try: teamchat doctor --store\n")

    @pytest.mark.parametrize("command", COMMANDS)
    def test_a_store_of_a_newer_version_is_refused(self, store: Path, command: tuple[str, ...]) -> None:
        with sqlite3.connect(store) as db:
            db.execute("PRAGMA user_version = 999")
        db.close()
        ran = run_here(*command)
        assert ran == Result(13, "", f"teamchat: the store {store} was written by a newer teamchat; upgrade teamchat\n")

    @pytest.mark.parametrize("command", COMMANDS)
    def test_a_state_folder_that_cannot_be_created_is_reported(
        self, world: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
    ) -> None:
        FILE.write_text('[[members]]\nname = "max"\nagent = "claude"')
        (world / "file").touch()
        monkeypatch.setenv("TEAMCHAT_HOME", str(world / "file"))
        ran = run_here(*command)
        assert (ran.code, refused(ran)) == (
            13,
            f"the folder {world}/file cannot be made: File exists; set TEAMCHAT_HOME to a folder that can be written",
        )

    def test_a_damaged_trust_file_is_reported(self, store: Path, world: Path) -> None:
        (world / "state" / "trust.json").write_text("{")
        ran = run_here("send", "Hi")
        assert store.exists()
        assert ran == Result(
            13,
            "",
            f"teamchat: {world}/state/trust.json is damaged; without it every team file asks for trust once more\n"
            f"  try: rm {world}/state/trust.json\n",
        )


def test_the_error_of_a_locked_session_names_the_process_that_holds_it(pids: Pids) -> None:
    actors({"max": ["reply", "half", "+", "hang"]})
    assert run_here("send", "--to", "nobody", "Hi").code == 4
    first = start("send", "--to", "max", "Hi\nthere")
    try:
        pids.await_count(1)
        before = rows()
        for command, again in (
            (("send", "Me, too"), "'Me, too' --no-wait"),
            (("resume",), "'Your message'"),
            (("send", "--json", "Me, too"), "--json 'Me, too' --no-wait"),
        ):
            ran = run_here(*command, "--no-wait")
            assert (ran.code, ran.out) == (13, "")
            told = [line for line in ran.err.splitlines() if not line.startswith("· ")]
            holder = f"process {first.pid} (teamchat send --to max 'Hi\\nthere')"
            assert told == [
                f"teamchat: this conversation is being run by {holder}; wait, stop it, or start another one",
                "  try: teamchat stop",
                f"  try: teamchat send --new {again}",
            ]
        assert {**rows(), "sessions": []} == {**before, "sessions": []}  # only the time of last use changed
        assert run_here("log").out.startswith("msg-1 kailai -> max:")
    finally:
        first.terminate()
        assert ended(first).code == 143


REMOVED = 'rm -rf "$TEAMCHAT_HOME"'
REPLACED = 'cd "$(dirname "$(find "$TEAMCHAT_HOME" -name teamchat.db)")"; cp teamchat.db new; mv new teamchat.db'


@pytest.mark.parametrize("how", [REMOVED, REPLACED], ids=["removed", "replaced"])
@pytest.mark.parametrize("option", [[], ["--json"], ["--quiet"]], ids=["text", "json", "quiet"])
def test_a_reply_that_cannot_be_stored_is_printed_and_fails(world: Path, how: str, option: list[str]) -> None:
    script = world / "agent.sh"
    script.write_text(f"cat > /dev/null\n({how})\necho All of it.\n")
    Path("teamchat.toml").write_text(
        f'[[members]]\nname = "max"\nagent = "own"\n[agents.own]\ncommand = ["sh", "{script}"]\n'
    )
    ran = cli("send", "--trust", *option, "Go", env={"TEAMCHAT_HOME": str(world / "state")})
    assert ran.code == 13
    assert "All of it." in (ran.out if option else ran.err)
    assert " was removed or replaced meanwhile" in ran.out + ran.err
    assert "Traceback" not in ran.err
    assert "teamchat resume" not in ran.out + ran.err
