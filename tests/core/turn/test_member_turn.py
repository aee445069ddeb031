"""One turn: what is settled before it starts, and what is kept of it when it has ended."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.agents import ProtocolName
from teamchat.core.context.conversation_view import manager_of
from teamchat.core.context.vendor_session import Past
from teamchat.core.doctor.versions import newest_proven
from teamchat.core.engine.state import Route
from teamchat.core.errors import AgentMissing, ExitCode, NotTrusted, StoreError, TeamchatError, UsageError
from teamchat.core.files.room import room_in
from teamchat.core.messages import NewMessage, Speaker
from teamchat.core.team.team import AgentSpec
from teamchat.core.turn.execution import FinishedTurn, execute
from teamchat.core.turn.machine import Machine, ReadyTurn, check_runnable, scratch_of, steady_now, wait_to_start
from teamchat.core.turn.plan import plan_reply
from teamchat.runners import git_server
from teamchat.runners.agent_events import Denied, FailureKind, Note, TextDelta
from teamchat.runners.child.process import ChildProcess
from teamchat.runners.child.running import Launch
from teamchat.runners.child.supervisor import Stopper
from tests.core.fake_conversation import Running, Stage, team_of
from tests.core.fake_machine import FakeMachine
from tests.fakes.scripted import spoken
from tests.runners.processes import clocks_wait_for

ENV = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/home/kailai",
    "ANTHROPIC_API_KEY": "a",
    "OPENAI_API_KEY": "o",
    "CLAUDECODE": "1",
}
ROUTE = Route("msg-1", "kailai", "msg-1", 1, "max", attempt=1, as_of="msg-1")


def nothing(_: object) -> None:
    pass


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, team_of(tmp_path, {"max": "plain"}))


def made_ready(stage: Stage, inherited: Mapping[str, str] = ENV, /, **member: object) -> ReadyTurn:
    """The turn of `max`, changed as given, in answer to "Hi"."""
    stage.member("max", **member)
    manager = manager_of(stage.team, stage.db, stage.session)
    if manager.get_latest_message() is None:
        manager.add_message(NewMessage("Hi", Speaker("kailai", "kailai", type="human")))
    return plan_reply(stage.team, ROUTE, manager, FakeMachine(env=inherited))


def runs(stage: Stage, *command: str, protocol: ProtocolName = "plain") -> None:
    agents = {**stage.team.agents, "max-agent": AgentSpec("max-agent", command, protocol)}
    stage.team = replace(stage.team, agents=agents)


# --- before it starts


def test_a_turn_that_is_ready_has_written_nothing(stage: Stage) -> None:
    before = sorted(stage.folder.rglob("*"))
    turn = made_ready(stage)
    assert sorted(stage.folder.rglob("*")) == before
    assert turn.command.argv == ("max-program",)
    assert turn.setup.why == "kailai asked for max in msg-1"
    assert turn.setup.attempt == 2
    assert turn.setup.access_note == "not enforced: teamchat cannot bound what another program does"


def test_the_first_turn_of_a_member_names_what_it_lacks(stage: Stage) -> None:
    assert made_ready(stage, agent="codex").setup.without == ("web",)
    machine = FakeMachine(env=ENV, live=False)
    manager = manager_of(stage.team, stage.db, stage.session)
    assert plan_reply(stage.team, ROUTE, manager, machine).setup.without == ()  # a replay is on another machine
    later = Past(first=False)
    assert plan_reply(stage.team, ROUTE, manager, FakeMachine(env=ENV), past=later).setup.without == ()


@pytest.mark.parametrize(
    ("protocol", "keys"),
    [
        ("plain", {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}),
        ("claude", {"ANTHROPIC_API_KEY"}),
        ("codex", {"OPENAI_API_KEY"}),
        ("gemini", set()),
    ],
)
def test_a_member_sees_the_keys_of_its_own_vendor(stage: Stage, protocol: ProtocolName, keys: set[str]) -> None:
    stage.team = team_of(stage.folder, {"max": protocol})
    turn = made_ready(stage)
    assert {name for name in turn.env if name.endswith("_KEY")} == keys
    assert turn.env["HOME"] == "/home/kailai"
    assert "CLAUDECODE" not in turn.env


def test_a_team_file_may_keep_keys_and_add_variables_which_the_receipt_hides(stage: Stage) -> None:
    stage.team = team_of(stage.folder, {"max": "gemini"})
    turn = made_ready(stage, env_keep=("OPENAI_API_KEY",), env={"COLOUR": "red", "MY_TOKEN": "secret"})
    assert turn.env["OPENAI_API_KEY"] == "o"
    assert (turn.env["COLOUR"], turn.env["MY_TOKEN"]) == ("red", "secret")
    red = f"(sha256 {sha256(b'red').hexdigest()[:12]})"
    assert (turn.setup.env["COLOUR"], turn.setup.env["MY_TOKEN"]) == (red, "(hidden)")
    assert turn.setup.env["ANTHROPIC_API_KEY"] is None
    assert "secret" not in str(turn.setup)


def refusal(turn: ReadyTurn) -> TeamchatError:
    with pytest.raises(TeamchatError) as caught:
        check_runnable(turn)
    return caught.value


def test_a_missing_program_says_how_to_get_it(stage: Stage) -> None:
    error = refusal(made_ready(stage))
    assert type(error) is AgentMissing
    why = "max's program 'max-program' is not installed; install it, or change its command in the team file"
    assert (str(error), error.hint) == (why, None)
    runs(stage, "claude", protocol="claude")
    assert refusal(made_ready(stage)).hint == "npm install -g @anthropic-ai/claude-code"


def test_a_server_that_is_not_set_up_is_told_with_those_that_are(stage: Stage) -> None:
    runs(stage, "sh", protocol="claude")
    home = {"HOME": str(stage.folder), "PATH": os.defpath}
    error = refusal(made_ready(stage, home, mcp=("githb",)))
    assert type(error) is UsageError
    said = "max: mcp: you have set up no server 'githb' in max-agent"
    alone = "set it up there, or take it out of mcp in the team file (there is none)"
    assert (str(error), error.hint) == (f"{said}; {alone}", None)
    servers = {"mcpServers": {"jira": {"command": "x"}, "github": {"command": "y"}}}
    (stage.folder / ".claude.json").write_text(json.dumps(servers))
    others = "change mcp in the team file (there are: github, jira)"
    assert str(refusal(made_ready(stage, home, mcp=("githb",)))) == f"{said}; {others}"
    check_runnable(made_ready(stage, home, mcp=("github",)))


def test_git_without_what_it_needs_is_told(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(stage, "sh", protocol="claude")
    monkeypatch.setattr(git_server, "missing", lambda _env: ("git is not installed", None))
    error = refusal(made_ready(stage, {"PATH": os.defpath}, git=True))
    assert type(error) is AgentMissing
    assert str(error) == "max has git = true, but git is not installed"


def test_the_program_is_looked_for_on_the_path_that_it_is_run_with(stage: Stage) -> None:
    runs(stage, "sh")
    check_runnable(made_ready(stage))
    assert type(refusal(made_ready(stage, {"PATH": str(stage.folder)}))) is AgentMissing


def test_a_folder_that_is_gone_is_told(stage: Stage) -> None:
    runs(stage, "sh")
    gone = stage.folder / "gone"
    error = refusal(made_ready(stage, cwd=gone))
    assert type(error) is UsageError
    assert str(error) == f"max's folder {gone} does not exist; create it, or change cwd in the team file"
    assert error.hint == f"mkdir -p {gone}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused")
def test_access_that_the_cli_would_refuse_is_told(stage: Stage) -> None:
    runs(stage, "sh", protocol="claude")
    error = refusal(made_ready(stage, access="full"))
    assert type(error) is NotTrusted
    assert str(error).startswith("max cannot have access 'full': ")


def test_without_room_for_a_scratch_folder_there_is_one_line(world: Path) -> None:
    shutil.rmtree(world / "tmp")
    with pytest.raises(StoreError, match=r"^no temporary folder can be made; set TMPDIR to a folder .*$"):
        scratch_of(world / "turn")


# --- a real process


def finished(stage: Stage, heard: Callable[[Sequence[object]], None] = nothing, /, **member: object) -> FinishedTurn:
    """The turn of `max`, really run."""
    turn = made_ready(stage, ENV, **member)
    scratch = scratch_of(stage.folder / "turn")
    turn = replace(turn, scratch=scratch, env={**turn.env, "TMPDIR": str(scratch)})
    return asyncio.run(execute(turn, stage.folder / "turn", Machine(), Stopper(), heard))


def test_a_turn_has_a_private_folder_while_it_runs(stage: Stage) -> None:
    runs(stage, "sh", "-c", 'stat -c "%a %n" "$TMPDIR"')
    scratch = scratch_of(stage.folder / "turn")
    assert finished(stage).text == f"700 {scratch}"
    assert scratch.exists(), "it goes when the turn is stored"


def test_a_turn_whose_private_folder_can_not_be_made_fails(stage: Stage) -> None:
    runs(stage, "sh", "-c", "echo Hi")
    scratch_of(stage.folder / "turn").write_text("in its place")
    end = finished(stage)
    assert end.outcome.failure is not None
    assert end.outcome.failure.reason.startswith("could not be started: File exists")


def test_a_program_gets_its_prompt_its_folder_and_its_environment(stage: Stage) -> None:
    runs(stage, "sh", "-c", 'cat; echo; pwd; echo "$COLOUR"; ls -A "$TMPDIR" | wc -l')
    (stage.folder / "src").mkdir()
    end = finished(stage, cwd=stage.folder / "src", env={"COLOUR": "red"})
    assert end.outcome.failure is None
    assert end.text.endswith(f"\n\nHi\n{stage.folder}/src\nred\n0\n") or end.text.endswith(
        f"Hi\n{stage.folder}/src\nred\n0"
    )


def test_a_file_system_that_counts_no_blocks_is_not_full(tmp_path: Path) -> None:
    assert (room_in(tmp_path) or 0) > 0
    assert room_in(tmp_path / "missing") is None
    if Path("/proc/self").exists():  # it counts none
        assert room_in(Path("/proc")) is None


def test_a_program_that_fails_is_judged_by_its_exit_code(stage: Stage) -> None:
    runs(stage, "sh", "-c", "echo half; echo it broke >&2; exit 3")
    end = finished(stage)
    assert end.text.strip() == "half"
    assert end.outcome.failure is not None
    assert end.outcome.failure.kind is FailureKind.AGENT
    assert end.outcome.failure.reason == "ended with exit code 3: it broke"
    assert (end.outcome.exit_code, end.outcome.stderr_tail) == (3, "it broke\n")


def test_a_program_that_can_not_be_started_is_missing(stage: Stage) -> None:
    program = stage.folder / "agent"
    program.write_text("neither a script nor a program\n")
    program.chmod(0o755)
    runs(stage, str(program))
    end = finished(stage)
    assert end.outcome.failure is not None
    assert end.outcome.failure.kind is FailureKind.MISSING
    assert end.outcome.failure.reason.startswith("could not be started: ")
    assert "Exec format error" in end.outcome.failure.reason


def test_a_relative_folder_of_its_path_is_seen_from_where_a_member_works(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, says in ((stage.folder, "Not this."), (stage.folder / "sub", "This.")):
        (folder / "bin").mkdir(parents=True)
        program = folder / "bin" / "agent"
        program.write_text(f"#!/bin/sh\necho {says} $PATH\n")
        program.chmod(0o755)
    monkeypatch.chdir(stage.folder)
    runs(stage, "agent")
    end = finished(stage, cwd=stage.folder / "sub", env={"PATH": "bin:/usr/bin"})
    assert end.text.strip() == f"This. {stage.folder}/sub/bin:/usr/bin"


def test_a_folder_that_is_replaced_before_the_process_starts_is_refused(stage: Stage) -> None:
    real, home = stage.folder / "real", stage.folder / "home"
    for folder in (real, home):
        folder.mkdir()
    (stage.folder / "sub").symlink_to(home)
    runs(stage, "/bin/sh", "-c", "touch here; echo Hi")
    turn = made_ready(stage, cwd=stage.folder / "sub")

    def launcher(what: Launch) -> ChildProcess:
        return ChildProcess(replace(what, real_cwd=real))

    end = asyncio.run(execute(turn, stage.folder / "turn", FakeMachine(launcher), Stopper(), nothing))
    assert end.outcome.failure is not None
    reason = f"could not be started: its folder {stage.folder}/sub was {real}, and now is {home}"
    assert (end.outcome.failure.kind, end.outcome.failure.reason) == (FailureKind.REFUSED, reason)
    assert end.outcome.code is ExitCode.NOT_TRUSTED
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("protocol", ["claude", "plain"])
@pytest.mark.parametrize("wait_s", [0, 0.05])
def test_a_start_that_had_to_wait_for_others_of_its_vendor_says_so(
    stage: Stage, protocol: ProtocolName, wait_s: float
) -> None:
    machine = FakeMachine(moment=lambda _: steady_now() + wait_s)
    runs(stage, "claude", protocol=protocol)
    waited = asyncio.run(wait_to_start(made_ready(stage), machine, Stopper()))
    assert waited is (wait_s > 0 and protocol == "claude")


def test_the_folder_that_reminds_of_the_private_one_is_there_before_it(stage: Stage) -> None:
    folder, turn = stage.folder / "turns" / "turn", made_ready(stage)
    turn.scratch.mkdir()  # so that nothing else is made

    end = asyncio.run(execute(turn, folder, Machine(), Stopper(), nothing))
    assert end.outcome.failure is not None
    assert "File exists" in end.outcome.failure.reason
    assert folder.is_dir()


def test_files_of_a_command_that_can_not_be_written_are_no_crash(stage: Stage) -> None:
    turn = made_ready(stage)
    turn = replace(turn, command=replace(turn.command, files={stage.folder / "gone" / "x": b"x"}))
    end = asyncio.run(execute(turn, stage.folder / "turn", Machine(), Stopper(), nothing))
    assert end.outcome.failure is not None
    assert end.outcome.failure.reason.startswith("could not be started: No such file or directory")


@pytest.mark.parametrize(
    ("clock", "script", "reason"),
    [
        ("timeout_s", "echo a; touch hangs; sleep 60", "was still running after 0.3 s (its timeout)"),
        ("first_byte_s", "touch hangs; sleep 60", "wrote nothing in its first 0.3 s (first_byte)"),
        ("stall_s", "echo a; touch hangs; sleep 60", "was silent for 0.3 s (stall)"),
    ],
)
def test_each_clock_says_that_it_ran_out(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, clock: str, script: str, reason: str
) -> None:
    clocks_wait_for((stage.folder / "hangs").exists, monkeypatch)
    runs(stage, "sh", "-c", script)
    end = finished(stage, nothing, **{clock: 0.3})
    assert end.outcome.failure is not None
    assert (end.outcome.failure.kind, end.outcome.failure.reason) == (FailureKind.TIMEOUT, reason)
    assert end.text.strip() == ("" if clock == "first_byte_s" else "a")


SLEEPER = "sleep 60 > /dev/null 2>&1 & until grep -q sleep /proc/$!/comm; do :; done"


def test_what_a_program_leaves_behind_is_ended_and_named(stage: Stage) -> None:
    runs(stage, "sh", "-c", f"{SLEEPER}; echo done")
    end = finished(stage)
    assert end.outcome.failure is None
    assert end.outcome.left == ("sleep",)
    assert end.outcome.notes == ("ended processes that it left running: sleep",)


def test_that_it_left_something_behind_is_told_however_much_else_is(stage: Stage) -> None:
    runs(stage, "sh", "-c", f"{SLEEPER}; seq 100", protocol="codex")
    notes = finished(stage).outcome.notes
    assert (len(notes), notes[-1]) == (21, "ended processes that it left running: sleep")


# --- what is counted


def follow(stage: Stage, output: str, protocol: ProtocolName) -> FinishedTurn:
    stage.team = team_of(stage.folder, {"max": protocol})

    def launcher(launch: Launch) -> Running:
        return Running(launch, output, "")

    return asyncio.run(execute(made_ready(stage), stage.folder / "turn", FakeMachine(launcher), Stopper(), nothing))


TOOLS = """\
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Write","input":{"file_path":"%(in)s"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"Write","input":{"file_path":"/etc/x"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"ok"}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t3","name":"Bash","input":{"command":"rm"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t3","is_error":true,"content":"%(no)s"}]}}
"""


def test_a_receipt_counts_tools_files_and_denials(stage: Stage) -> None:
    inside = stage.folder / "src" / "a.py"
    end = follow(
        stage,
        TOOLS % {"in": inside, "no": "Claude requested permissions to use Bash"} + spoken("claude", "done"),
        "claude",
    )
    assert (end.outcome.tools, end.outcome.failed_tools) == (3, 1)
    assert end.outcome.files == ("src/a.py", "/etc/x")
    assert end.outcome.denied == (Denied("Bash", "rm"),)
    assert end.outcome.model == "scripted"
    assert end.vendor_session == "v-1"


@pytest.mark.parametrize(("protocol", "denied"), [("claude", ()), ("gemini", None), ("codex", None), ("plain", None)])
def test_no_denial_is_told_apart_from_an_unknown_number(
    stage: Stage, protocol: ProtocolName, denied: tuple[()] | None
) -> None:
    assert follow(stage, spoken(protocol, "Hi"), protocol).outcome.denied == denied


@pytest.mark.parametrize(
    ("version", "denied"), [(newest_proven("claude"), ()), ("999.0.0", None), ("", None), (None, None), (7, None)]
)
def test_no_denial_is_believed_of_a_proven_version(stage: Stage, version: object, denied: tuple[()] | None) -> None:
    said = spoken("claude", "Hi", version=version)
    outcome = follow(stage, said, "claude").outcome
    assert (outcome.denied, outcome.version) == (denied, version if isinstance(version, str) and version else None)


def test_a_denial_that_was_seen_is_told_whatever_the_version(stage: Stage) -> None:
    refused = TOOLS % {"in": "x", "no": "Claude requested permissions to use Bash"}
    outcome = follow(stage, refused + spoken("claude", "done", version="999.0.0"), "claude").outcome
    assert outcome.denied == (Denied("Bash", "rm"),)


@pytest.mark.parametrize(("version", "denied"), [(newest_proven("gemini"), ()), ("999.0.0", None)])
def test_the_version_of_a_cli_that_does_not_say_it_is_that_of_its_package(
    stage: Stage, version: str, denied: tuple[()] | None
) -> None:
    program = stage.folder / "gemini"
    program.touch(0o755)
    (stage.folder / "package.json").write_text(f'{{"name": "@google/gemini-cli", "version": "{version}"}}')
    runs(stage, str(program), protocol="gemini")
    said = asyncio.run(
        execute(
            made_ready(stage),
            stage.folder / "turn",
            FakeMachine(lambda launch: Running(launch, spoken("gemini", "Hi"), "")),
            Stopper(),
            nothing,
        )
    )
    assert (said.outcome.version, said.outcome.denied) == (version, denied)


def test_notes_are_kept_but_not_without_end(stage: Stage) -> None:
    end = follow(stage, "no JSON\n" * 100 + spoken("codex", "Hi"), "codex")
    assert len(end.outcome.notes) == 20
    assert sum(isinstance(timed.event, Note) for timed in end.events) == 20


def test_streamed_pieces_are_heard_and_not_kept(stage: Stage) -> None:
    heard: list[object] = []
    runs(stage, "printf", "a\\nb\\n")
    end = finished(stage, heard.extend)
    assert all(isinstance(event, TextDelta) for event in heard)
    assert "".join(event.text for event in heard if isinstance(event, TextDelta)) == "a\nb\n"
    assert end.events == ()
