"""`teamchat doctor --offline` over small programs that speak the vendors' protocols, well and badly."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pytest

from teamchat.core.agents import AGENT_TYPES, CLIS
from teamchat.core.doctor.checks import Check
from teamchat.core.doctor.scripted.server import ModelServer
from teamchat.core.doctor.selftest.bench import Bench, make_home
from teamchat.core.doctor.selftest.findings import stays
from teamchat.core.doctor.selftest.prove import prove
from teamchat.core.doctor.versions import newest_proven
from teamchat.core.errors import ExitCode
from teamchat.runners.base import Vendor
from teamchat.runners.process.command import capture
from tests.cli.helpers import objects, refused
from tests.installed import SAYS, install, program
from tests.program import ROOT, TIMEOUT_S, Result, argv, cli, ended, fake, run_here, start
from tests.real.clis import PINNED
from tests.runners.processes import eventually, ignores, ignoring, lives
from tests.terminals import Terminal

VENDOR = ROOT / "tests" / "fakes" / "vendor.py"
ROWS = ["version", "flags", "events", "stdin", "project", "servers", "mentions", "resume", "stop", "denials", "time"]
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
CLAUDES = [*ROWS[:7], "keywords", "resume", "stays", "later", *ROWS[8:]]  # it has keywords and can be kept running
GEMINIS = [*ROWS[:5], "dotenv", *ROWS[5:]]
OF: dict[Vendor, list[str]] = {"claude": CLAUDES, "codex": ROWS, "gemini": GEMINIS}
Put = Callable[..., None]


@pytest.fixture
def put(world: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Install a program of that name, with its version and its knobs."""
    folder = install(world, monkeypatch)

    def put(vendor: str, version: str | None = None, **knobs: object) -> None:
        command = [*fake(VENDOR), json.dumps({"vendor": vendor, **knobs})]
        says = f'[ "$1" = --version ] && exec echo {shlex.quote(version or SAYS[vendor])}'
        program(folder / vendor, f'{says}\nexec {shlex.join(command)} "$@"')

    return put


def proved(*options: str) -> tuple[Result, dict[tuple[str, str], dict[str, Any]]]:
    """What `--offline` finds: the run, and its rows by CLI and what they are about."""
    ran = run_here("doctor", "--offline", "--json", *options)
    found: list[dict[str, Any]] = objects(ran)
    assert [row["type"] for row in found] == ["check"] * (len(found) - 1) + ["result"], ran.err
    assert found[-1] == {"v": 1, "type": "result", "code": ran.code, "outcome": ExitCode(ran.code).name.lower()}
    return ran, {(row["member"], row["what"]): row for row in found[:-1]}


def states(rows: dict[tuple[str, str], dict[str, Any]], vendor: str) -> dict[str, str]:
    return {what: row["state"] for (name, what), row in rows.items() if name == vendor}


def test_clis_that_behave_hold_in_every_row(put: Put, world: Path) -> None:
    for vendor in VENDORS:
        put(vendor)
    (world / "state" / "temporary").mkdir()
    before = sorted(world.rglob("*"))
    ran, rows = proved()
    assert ran.code == 0, ran.out
    for vendor in VENDORS:
        assert states(rows, vendor) == dict.fromkeys(OF[vendor], "ok"), ran.out
        assert rows[vendor, "events"]["value"].split() == list(AGENT_TYPES[vendor].self_test.needed_events)
    assert rows["claude", "stdin"]["value"] == "2700000 characters"
    assert sorted(world.rglob("*")) == before, "something was left behind"


def test_a_person_gets_one_line_a_row_in_the_order_of_the_clis(put: Put) -> None:
    put("codex")
    ran = cli("doctor", "--offline")
    assert ran.code == 0, ran.out
    words = [line.split()[:3] for line in ran.out.splitlines() if not line.startswith("  try: ")]
    assert [line[1:] for line in words] == [
        ["claude", "program"],
        *(["codex", what] for what in ROWS),
        ["gemini", "program"],
        ["opencode", "program"],
    ]
    told = ["· claude   program not installed", "  try: npm install -g @anthropic-ai/claude-code"]
    assert ran.out.splitlines()[:2] == told
    assert ran.err == ""


def test_no_cli_at_all_is_exit_11() -> None:
    ran, rows = proved()
    assert ran.code == ExitCode.AGENT_UNAVAILABLE
    assert {key: row["state"] for key, row in rows.items()} == {(row.name, "program"): "failed" for row in CLIS}


def test_a_program_that_can_not_be_started_is_exit_11(put: Put, world: Path) -> None:
    put("codex")
    program(world / "bin" / "gemini", "exit 127")
    ran, rows = proved()
    assert ran.code == ExitCode.AGENT_UNAVAILABLE
    assert states(rows, "gemini") == {"version": "failed"}
    assert rows["gemini", "version"]["hint"] == f"npm install -g @google/gemini-cli@{PINNED['gemini']}"
    assert set(states(rows, "codex").values()) == {"ok"}


def test_a_version_beyond_the_newest_proven_one_is_a_warning(put: Put) -> None:
    put("codex", version="codex-cli 99.0.0")
    ran, rows = proved()
    assert ran.code == 0
    assert states(rows, "codex") == {**dict.fromkeys(ROWS, "ok"), "version": "warning"}
    row = rows["codex", "version"]
    assert row["text"] == f"99.0.0, newer than the newest proven {newest_proven('codex')}"
    assert row["hint"] is None  # this is what proves it


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
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    row = rows[vendor, "events"]
    assert row["state"] == "failed"
    missing, _, came = row["text"].partition(" never came; unknown ones came instead: ")
    assert f"`{lost}`" in missing
    assert f"`{found}`" in came
    assert row["hint"].startswith("npm install -g @")
    assert row["hint"].endswith(f"@{PINNED[vendor]}")


def test_a_refused_flag_is_named_and_nothing_else_is_claimed(put: Put) -> None:
    put("codex", refuse="--ignore-rules")
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    assert "for read: " in rows["codex", "flags"]["text"]
    assert "unexpected argument '--ignore-rules' found" in rows["codex", "flags"]["text"]
    assert states(rows, "codex") == {
        "version": "ok",
        "flags": "failed",
        **dict.fromkeys(["events", "stdin", "project", "servers", "mentions", "resume", "stop", "denials"], "unknown"),
    }


def test_a_flag_of_one_access_that_is_refused_is_named_with_it(put: Put) -> None:
    put("gemini", refuse="auto_edit")
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    assert "for edit: " in rows["gemini", "flags"]["text"]
    assert states(rows, "gemini") == {
        **dict.fromkeys(GEMINIS, "ok"),
        "flags": "failed",
        "mentions": "unknown",
        "stop": "unknown",
    }


def test_a_process_that_should_stay_and_leaves_fails(put: Put) -> None:
    put("claude", leaves=True)
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    assert {what for what, found in states(rows, "claude").items() if found != "ok"} == {"stays"}
    text = rows["claude", "stays"]["text"]  # its end is noticed before the second turn, or by it
    assert text == "kept running, it ended after its first turn" or "did not answer 'Two.'" in text


def kept_running(world: Path) -> Check:
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
    assert kept_running(world) == Check(None, "stays", "unknown", words)


def test_a_process_that_ends_in_the_middle_of_a_line_fails(put: Put) -> None:
    put("claude", leaves=True, abrupt=True)
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    assert {what for what, found in states(rows, "claude").items() if found != "ok"} == {"stays"}
    assert rows["claude", "stays"]["text"] == "kept running, it ended after its first turn"


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_quoted_mention_that_is_taken_for_a_wish_fails(put: Put, vendor: Vendor) -> None:
    put(vendor, expands={"prover": 'The user wants\nthe agent "prover".'})
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    assert {what for what, found in states(rows, vendor).items() if found != "ok"} == {"mentions"}
    assert rows[vendor, "mentions"]["text"] == (
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
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    assert {name for name, found in states(rows, vendor).items() if found != "ok"} == {what}
    told = {
        "project": "hooks and MCP servers of a project's settings run without project_settings",
        "servers": "under read an MCP server of the user's starts, and can write anything",
    }
    assert rows[vendor, what]["text"] == told[what]


def test_a_gemini_that_obeys_a_projects_dotenv_fails(put: Put) -> None:
    put("gemini", dotenv=True)
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    assert {what for what, found in states(rows, "gemini").items() if found != "ok"} == {"dotenv"}
    assert rows["gemini", "dotenv"]["text"].startswith("a project's .env is loaded and can send the user's key")


def test_a_quoted_keyword_that_is_taken_for_a_wish_fails(put: Put) -> None:
    put("claude", expands={"ultra-think": "The user included the keyword ULTRATHINK."})
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    assert {what for what, found in states(rows, "claude").items() if found != "ok"} == {"keywords"}
    assert rows["claude", "keywords"]["text"].startswith("keywords that others mention are acted on: 'The user")


def test_a_process_that_may_act_after_its_turn_fails(put: Put) -> None:
    put("claude", later=True)
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    assert {what for what, found in states(rows, "claude").items() if found != "ok"} == {"later"}
    text = "kept running, it may act after its turn: CronCreate, ScheduleWakeup, Monitor"
    assert rows["claude", "later"]["text"] == text


def test_many_new_events_are_counted(put: Put) -> None:
    put("codex", chatty=40)
    ran, rows = proved()
    assert ran.code == 0
    assert states(rows, "codex") == {**dict.fromkeys(ROWS, "ok"), "events": "warning"}
    names = ", ".join(f"`news-{number}`" for number in range(5))
    assert rows["codex", "events"]["text"] == (
        f"understood; new ones came, which teamchat ignores: {names} and 35 more"
    )


@pytest.mark.parametrize("vendor", VENDORS)
def test_requests_that_can_not_be_read_are_told(put: Put, vendor: Vendor) -> None:
    put(vendor, garbled=True)
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    assert list(states(rows, vendor)) == OF[vendor]
    assert rows[vendor, "stdin"]["state"] == "failed"
    assert rows[vendor, "stdin"]["text"].endswith("reached the model as 0 others")


def test_a_proof_that_breaks_off_keeps_what_it_found_out(put: Put) -> None:
    """A bug of the proof that a new version of a CLI brings out costs that CLI's other rows, and no other CLI's."""
    put("claude")
    put("codex")
    told: list[Check] = []

    def breaks(who: str, step: str | None) -> None:
        if (who, step) == ("claude", "a hanging turn"):
            raise ValueError("I/O operation on closed file")

    asyncio.run(prove(os.environ["PATH"], capture, told.append, breaks))
    found = {check.what: check for check in told if check.member == "claude"}
    assert list(found) == CLAUDES[:-1]
    lost = ("flags", "stays", "later", "stop")
    assert {what: check.state for what, check in found.items()} == {
        what: "unknown" if what in lost else "ok" for what in CLAUDES[:-1]
    }
    text = "not known: the test broke off (ValueError: I/O operation on closed file)"
    assert {found[what].text for what in lost} == {text}
    assert {check.state for check in told if check.member == "codex"} == {"ok"}


def test_instructions_that_never_come_to_the_model_fail(put: Put) -> None:
    put("claude", headstrong=True)
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    assert rows["claude", "flags"]["text"] == "instructions of 19 characters never reached the model"


def test_a_prompt_that_does_not_arrive_whole_fails(put: Put) -> None:
    put("gemini", cut=1_000_000)
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    assert rows["gemini", "stdin"]["text"] == "a prompt of 4,000,000 bytes reached the model as 1,000,000 others"
    assert states(rows, "gemini") == {**dict.fromkeys(GEMINIS, "ok"), "stdin": "failed"}


def test_a_version_that_itself_refuses_a_prompt_that_is_let_through_is_a_warning(put: Put) -> None:
    put("claude", narrow=500_000)
    ran, rows = proved()
    assert ran.code == 0
    assert states(rows, "claude") == {**dict.fromkeys(CLAUDES, "ok"), "stdin": "warning"}
    text = "prompts arrive byte for byte, but this version refuses one of 2,700,000 characters itself"
    assert rows["claude", "stdin"]["text"] == text


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("forgets", "a second turn continued the session, but its model did not get the first"),
        ("anew", "a second turn began a new session instead of continuing its own"),
    ],
)
def test_a_session_that_does_not_go_on_fails(put: Put, fault: str, text: str) -> None:
    put("codex", **{fault: True})
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    assert (rows["codex", "resume"]["state"], rows["codex", "resume"]["text"]) == ("failed", text)


def test_a_cli_that_writes_under_read_fails(put: Put) -> None:
    put("gemini", writes=True)
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    assert "it wrote made.txt and made.txt.shell" in rows["gemini", "denials"]["text"]


@pytest.mark.parametrize(("vendor", "state"), [("claude", "failed"), ("codex", "unknown")])
def test_refusals_that_are_not_reported(put: Put, vendor: str, state: str) -> None:
    put(vendor, silent=True)
    ran, rows = proved()
    assert {what for what, found in states(rows, vendor).items() if found != "ok"} == {"denials"}
    assert states(rows, vendor)["denials"] == state
    assert ran.code == (ExitCode.MEMBER_FAILED if state == "failed" else 0)


def test_a_cli_that_obeys_no_signal_is_killed_with_its_tool(put: Put) -> None:
    put("codex", deaf=True)
    ran, rows = proved()
    assert ran.code == 0
    row = rows["codex", "stop"]
    assert row["state"] == "warning"
    assert row["text"].endswith("on SIGTERM it did not end in 2 s and was killed")


def test_a_cli_that_says_nothing_is_not_called_well(world: Path, put: Put) -> None:
    put("codex")
    program(world / "bin" / "codex", 'test "$1" = --version && echo 1.2.3')
    ran, rows = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    assert rows["codex", "flags"]["state"] == "failed"
    assert "ok" not in {state for what, state in states(rows, "codex").items() if what != "version"}


def test_nothing_of_the_users_reaches_a_cli(world: Path, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    put("codex")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    seen = world / "seen"
    program(world / "bin" / "codex", f"env >> {seen}; pwd >> {seen}; echo 1.2.3")
    Path("teamchat.toml").write_text("this is no team file")
    ran, _ = proved()
    assert ran.code == ExitCode.MEMBER_FAILED
    told = seen.read_text()
    assert "OPENAI_API_KEY=dummy-openai-key" in told
    assert not [word for word in ("sk-secret", "proxy.example", str(Path.home()), str(Path.cwd())) if word in told]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_everything_of_it(world: Path, put: Put, number: signal.Signals, code: int) -> None:
    put("codex")
    pid = world / "pid"
    program(world / "bin" / "codex", f'test "$1" = --version && exec echo 1.2.3\necho $$ > {pid}\nexec sleep 60')
    with ignoring(signal.SIGHUP):
        running = start("doctor", "--offline", "--json")
    assert eventually(lambda: pid.exists() and bool(pid.read_text().strip()))
    assert ignores(running.pid, signal.SIGHUP)
    running.send_signal(number)
    done = ended(running)
    assert (done.code, done.err) == (code, "")
    assert objects(done)[-1]["code"] == code
    assert not lives(int(pid.read_text()))
    assert list((world / "state" / "temporary").iterdir()) == []


def test_a_terminal_shows_what_is_going_on_and_then_the_rows(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    put("codex")
    monkeypatch.setenv("TERM", "xterm")
    with Terminal(sys.executable, argv("doctor", "--offline")[1:], encoding="utf-8", timeout=TIMEOUT_S) as terminal:
        terminal.expect("codex: a large prompt")
        terminal.expect("✓ codex    stdin   prompts arrive")
        terminal.expect(pexpect.EOF)
        terminal.wait()
    assert terminal.exitstatus == 0


def test_options_that_exclude_each_other_are_exit_2() -> None:
    for options in (["--offline", "--live"], ["--offline", "--team", "x"]):
        ran = run_here("doctor", *options)
        assert ran.code == ExitCode.USAGE
        assert "--offline" in refused(ran)
        assert ran.err.endswith("\n  try: teamchat doctor --offline\n")
