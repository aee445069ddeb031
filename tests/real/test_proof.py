"""The proof over small programs that speak the vendors' protocols, well and badly."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from teamchat.core.agents import AGENT_TYPES, CLIS
from teamchat.core.doctor.checks import DoctorCheck, exit_code
from teamchat.core.doctor.versions import newest_proven
from teamchat.core.errors import ExitCode
from teamchat.core.team.team import INSTALL
from teamchat.runners.base import Runner, Vendor
from teamchat.runners.child.command import capture
from tests.installed import SAYS, install, program
from tests.program import ROOT, fake
from tests.real.clis import PINNED
from tests.real.model.server import ModelServer
from tests.real.model.table import SELF_TESTS
from tests.real.proof.bench import Bench, make_home
from tests.real.proof.findings import stays
from tests.real.proof.prove import prove
from tests.real.proof.watch import Observed

VENDOR = ROOT / "tests" / "fakes" / "vendor.py"
ROWS = ["version", "flags", "events", "stdin", "project", "servers", "mentions", "resume", "stop", "denials", "time"]
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
CLAUDES = [*ROWS[:7], "keywords", "resume", "stays", "later", *ROWS[8:]]  # it has keywords and can be kept running
GEMINIS = [*ROWS[:5], "dotenv", *ROWS[5:]]
OF: dict[Vendor, list[str]] = {"claude": CLAUDES, "codex": ROWS, "gemini": GEMINIS}
Put = Callable[..., None]
pytestmark = pytest.mark.proof


@pytest.fixture
def put(world: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Install a program of that name, with its version and its knobs."""
    folder = install(world, monkeypatch)

    def put(vendor: str, version: str | None = None, **knobs: object) -> None:
        command = [*fake(VENDOR), json.dumps({"vendor": vendor, **knobs})]
        says = f'[ "$1" = --version ] && exec echo {shlex.quote(version or SAYS[vendor])}'
        program(folder / vendor, f'{says}\nexec {shlex.join(command)} "$@"')

    return put


Rows = dict[tuple[str, str], DoctorCheck]


def proved() -> tuple[ExitCode, Rows]:
    """What the proof finds: the exit code of its findings, and the rows by CLI and what they are about."""
    told: list[DoctorCheck] = []
    asyncio.run(prove(os.environ["PATH"], capture, told.append))
    return exit_code(told), {(check.member or "", check.what): check for check in told}


def states(rows: Rows, vendor: str) -> dict[str, str]:
    return {what: row.state for (name, what), row in rows.items() if name == vendor}


def test_clis_that_behave_hold_in_every_row(put: Put, world: Path) -> None:
    for vendor in VENDORS:
        put(vendor)
    (world / "state" / "temporary").mkdir()
    before = sorted(world.rglob("*"))
    code, rows = proved()
    assert code == 0
    for vendor in VENDORS:
        assert states(rows, vendor) == dict.fromkeys(OF[vendor], "ok")
        assert rows[vendor, "events"].value == " ".join(SELF_TESTS[vendor].needed_events)
    assert rows["claude", "stdin"].value == "2700000 characters"
    assert sorted(world.rglob("*")) == before, "something was left behind"


def test_no_cli_at_all_is_exit_11() -> None:
    code, rows = proved()
    assert code == ExitCode.AGENT_UNAVAILABLE
    assert {key: row.state for key, row in rows.items()} == {(row.name, "program"): "failed" for row in CLIS}


def test_a_program_that_can_not_be_started_is_exit_11(put: Put, world: Path) -> None:
    put("codex")
    program(world / "bin" / "gemini", "exit 127")
    code, rows = proved()
    assert code == ExitCode.AGENT_UNAVAILABLE
    assert states(rows, "gemini") == {"version": "failed"}
    assert rows["gemini", "version"].hint == f"npm install -g @google/gemini-cli@{PINNED['gemini']}"
    assert set(states(rows, "codex").values()) == {"ok"}


def test_a_version_beyond_the_newest_proven_one_is_a_warning(put: Put) -> None:
    put("codex", version="codex-cli 99.0.0")
    code, rows = proved()
    assert code == 0
    assert states(rows, "codex") == {**dict.fromkeys(ROWS, "ok"), "version": "warning"}
    row = rows["codex", "version"]
    assert row.text == f"99.0.0, not tested; the newest proven is {newest_proven('codex')}"
    assert row.hint is None  # this is what proves it


@pytest.mark.parametrize(
    ("vendor", "old", "new", "lost", "found"),
    [
        ("claude", "result", "outcome", "result", "outcome"),
        ("claude", "assistant", "reply", "assistant/thinking", "reply/thinking"),
        ("codex", "turn.completed", "turn.done", "turn.completed", "turn.done"),
        ("codex", "agent_message", "message", "item.completed/agent_message", "item.completed/message"),
        ("gemini", "tool_use", "tool_call", "tool_use", "tool_call"),
    ],
)
def test_a_renamed_event_is_named_with_what_came_instead(
    put: Put, vendor: Vendor, old: str, new: str, lost: str, found: str
) -> None:
    put(vendor, rename={old: new})
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    row = rows[vendor, "events"]
    assert row.state == "failed"
    missing, _, came = row.text.partition(" never came; unknown ones came instead: ")
    assert f"`{lost}`" in missing
    assert f"`{found}`" in came
    assert row.hint == f"{INSTALL[vendor]}@{PINNED[vendor]}"


def test_a_refused_flag_is_named_and_nothing_else_is_claimed(put: Put) -> None:
    put("codex", refuse="--ignore-rules")
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert "for read: " in rows["codex", "flags"].text
    assert "unexpected argument '--ignore-rules' found" in rows["codex", "flags"].text
    assert states(rows, "codex") == {
        "version": "ok",
        "flags": "failed",
        **dict.fromkeys(["events", "stdin", "project", "servers", "mentions", "resume", "stop", "denials"], "unknown"),
    }


def test_a_flag_of_one_access_that_is_refused_is_named_with_it(put: Put) -> None:
    put("gemini", refuse="auto_edit")
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert "for edit: " in rows["gemini", "flags"].text
    assert states(rows, "gemini") == {
        **dict.fromkeys(GEMINIS, "ok"),
        "flags": "failed",
        "mentions": "unknown",
        "stop": "unknown",
    }


def test_a_process_that_should_stay_and_leaves_fails(put: Put) -> None:
    put("claude", leaves=True)
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert {what for what, found in states(rows, "claude").items() if found != "ok"} == {"stays"}
    text = rows["claude", "stays"].text  # its end is noticed before the second turn, or by it
    assert text == "kept running, it ended after its first turn" or "did not answer 'Two.'" in text


def kept_running(world: Path) -> DoctorCheck:
    """What is found of the installed Claude as a process that stays."""
    with ModelServer() as server:
        folder = world / "tmp"
        bench = Bench(
            AGENT_TYPES["claude"].runner, server, make_home(folder, server, os.environ["PATH"], "claude"), folder
        )
        return stays(*asyncio.run(bench.turns_of_one_process()))


def test_a_process_that_stays_and_does_not_ask_its_model_is_no_failure(put: Put, world: Path) -> None:
    put("claude", knows={"Say one.": "One.", "Say two.": "Two."})
    found = kept_running(world)
    assert (found.state, found.text[:42]) == ("ok", "kept running, it answers a second turn in ")


def test_a_file_of_teamchat_that_cannot_be_made_is_not_the_clis_fault(
    put: Put, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("claude")

    def no_links(_self: Path, _target: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    words = "not known: a file of teamchat's own could not be made: Operation not permitted"
    assert kept_running(world) == DoctorCheck(None, "stays", "unknown", words)


def test_a_process_that_ends_in_the_middle_of_a_line_fails(put: Put) -> None:
    put("claude", leaves=True, abrupt=True)
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert {what for what, found in states(rows, "claude").items() if found != "ok"} == {"stays"}
    assert rows["claude", "stays"].text == "kept running, it ended after its first turn"


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_quoted_mention_that_is_taken_for_a_wish_fails(put: Put, vendor: Vendor) -> None:
    put(vendor, expands={"prover": 'The user wants\nthe agent "prover".'})
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert {what for what, found in states(rows, vendor).items() if found != "ok"} == {"mentions"}
    assert rows[vendor, "mentions"].text == (
        "files, agents and skills that others mention are acted on: 'The user wants the agent \"prover\".'"
    )


SERVES = {
    "claude": (".mcp.json", "~/.claude.json"),
    "codex": (".codex/config.toml", "~/.codex/config.toml"),
    "gemini": (".gemini/settings.json", "~/.gemini/settings.json"),
}


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(("what", "which"), [("project", 0), ("servers", 1)])
def test_a_cli_that_starts_a_server_that_it_should_leave_alone_fails(
    put: Put, vendor: Vendor, what: str, which: int
) -> None:
    put(vendor, serves=[SERVES[vendor][which]])
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert {name for name, found in states(rows, vendor).items() if found != "ok"} == {what}
    told = {
        "project": "hooks and MCP servers of a project's settings run without project_settings",
        "servers": "under read an MCP server of the user's starts, and can write anything",
    }
    assert rows[vendor, what].text == told[what]


def test_a_gemini_that_obeys_a_projects_dotenv_fails(put: Put) -> None:
    put("gemini", dotenv=True)
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert {what for what, found in states(rows, "gemini").items() if found != "ok"} == {"dotenv"}
    assert rows["gemini", "dotenv"].text.startswith("a project's .env is loaded and can send the user's key")


def test_a_quoted_keyword_that_is_taken_for_a_wish_fails(put: Put) -> None:
    put("claude", expands={"ultra-think": "The user included the keyword ULTRATHINK."})
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert {what for what, found in states(rows, "claude").items() if found != "ok"} == {"keywords"}
    assert rows["claude", "keywords"].text.startswith("keywords that others mention are acted on: 'The user")


def test_a_process_that_may_act_after_its_turn_fails(put: Put) -> None:
    put("claude", later=True)
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert {what for what, found in states(rows, "claude").items() if found != "ok"} == {"later"}
    text = "kept running, it may act after its turn: CronCreate, ScheduleWakeup, Monitor"
    assert rows["claude", "later"].text == text


def test_many_new_events_are_counted(put: Put) -> None:
    put("codex", chatty=40)
    code, rows = proved()
    assert code == 0
    assert states(rows, "codex") == {**dict.fromkeys(ROWS, "ok"), "events": "warning"}
    names = ", ".join(f"`news-{number}`" for number in range(5))
    assert rows["codex", "events"].text == (f"understood; new ones came, which teamchat ignores: {names} and 35 more")


@pytest.mark.parametrize("vendor", VENDORS)
def test_requests_that_can_not_be_read_are_told(put: Put, vendor: Vendor) -> None:
    put(vendor, garbled=True)
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert list(states(rows, vendor)) == OF[vendor]
    assert rows[vendor, "stdin"].state == "failed"
    assert rows[vendor, "stdin"].text.endswith("reached the model as 0 others")


def test_a_proof_that_breaks_off_keeps_what_it_found_out(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug of the proof that a new version of a CLI brings out costs that CLI's other rows, and no other CLI's."""
    put("claude")
    put("codex")

    def breaks(_turn: Observed, runner: Runner, _tool: str) -> DoctorCheck:
        if runner.vendor == "claude":
            raise ValueError("I/O operation on closed file")
        return DoctorCheck(None, "stop", "ok", "")

    monkeypatch.setattr("tests.real.proof.findings.stops_in_a_tool", breaks)
    _, rows = proved()
    lost = ("flags", "stays", "later", "stop")
    assert states(rows, "claude") == {what: "unknown" if what in lost else "ok" for what in CLAUDES[:-1]}
    text = "not known: the test broke off (ValueError: I/O operation on closed file)"
    assert {rows["claude", what].text for what in lost} == {text}
    assert set(states(rows, "codex").values()) == {"ok"}


def test_instructions_that_never_come_to_the_model_fail(put: Put) -> None:
    put("claude", headstrong=True)
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert rows["claude", "flags"].text == "instructions of 19 characters never reached the model"


def test_a_prompt_that_does_not_arrive_whole_fails(put: Put) -> None:
    put("gemini", cut=1_000_000)
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert rows["gemini", "stdin"].text == "a prompt of 4,000,000 bytes reached the model as 1,000,000 others"
    assert states(rows, "gemini") == {**dict.fromkeys(GEMINIS, "ok"), "stdin": "failed"}


def test_a_version_that_itself_refuses_a_prompt_that_is_let_through_is_a_warning(put: Put) -> None:
    put("claude", narrow=500_000)
    code, rows = proved()
    assert code == 0
    assert states(rows, "claude") == {**dict.fromkeys(CLAUDES, "ok"), "stdin": "warning"}
    text = "prompts arrive byte for byte, but this version refuses one of 2,700,000 characters itself"
    assert rows["claude", "stdin"].text == text


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("forgets", "a second turn continued the session, but its model did not get the first"),
        ("anew", "a second turn began a new session instead of continuing its own"),
    ],
)
def test_a_session_that_does_not_go_on_fails(put: Put, fault: str, text: str) -> None:
    put("codex", **{fault: True})
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert (rows["codex", "resume"].state, rows["codex", "resume"].text) == ("failed", text)


def test_a_cli_that_writes_under_read_fails(put: Put) -> None:
    put("gemini", writes=True)
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert "it wrote made.txt and made.txt.shell" in rows["gemini", "denials"].text


def test_a_refused_command_that_is_told_as_run_fails(put: Put) -> None:
    put("gemini", untrue=True)
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert rows["gemini", "denials"].text == "a command with an expansion did not run and is told as run"


@pytest.mark.parametrize(("vendor", "state"), [("claude", "failed"), ("codex", "unknown")])
def test_refusals_that_are_not_reported(put: Put, vendor: str, state: str) -> None:
    put(vendor, silent=True)
    code, rows = proved()
    assert {what for what, found in states(rows, vendor).items() if found != "ok"} == {"denials"}
    assert states(rows, vendor)["denials"] == state
    assert code == (ExitCode.MEMBER_FAILED if state == "failed" else 0)


def test_a_cli_that_obeys_no_signal_is_killed_with_its_tool(put: Put) -> None:
    put("codex", deaf=True)
    code, rows = proved()
    assert code == 0
    row = rows["codex", "stop"]
    assert row.state == "warning"
    assert row.text.endswith("on SIGTERM it did not end in 2 s and was killed")


def test_a_cli_that_says_nothing_is_not_called_well(world: Path, put: Put) -> None:
    put("codex")
    program(world / "bin" / "codex", 'test "$1" = --version && echo 1.2.3')
    code, rows = proved()
    assert code == ExitCode.MEMBER_FAILED
    assert rows["codex", "flags"].state == "failed"
    assert "ok" not in {state for what, state in states(rows, "codex").items() if what != "version"}


def test_nothing_of_the_users_reaches_a_cli(world: Path, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    put("codex")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    seen = world / "seen"
    program(world / "bin" / "codex", f"env >> {seen}; pwd >> {seen}; echo 1.2.3")
    Path("teamchat.toml").write_text("this is no team file")
    code, _ = proved()
    assert code == ExitCode.MEMBER_FAILED
    told = seen.read_text()
    assert "OPENAI_API_KEY=dummy-openai-key" in told
    assert not [word for word in ("sk-secret", "proxy.example", str(Path.home()), str(Path.cwd())) if word in told]
