"""`teamchat show`: all that a receipt holds, of an agent that tells much of itself and of one that tells nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.cli.output.receipt import TRY
from teamchat.cli.output.terminal.receipt_rows import rows_of
from tests.cli.helpers import actors, objects, refused, steady
from tests.program import fake, run_here
from tests.screens import screen
from tests.scripted_team import SCRIPTED, Crew, crew

INSTRUCTION = "You are Max.\n\n\tCareful."


@pytest.fixture
def made(world: Path) -> Crew:
    made = crew(world, {"max": ["One."]})
    assert run_here("send", "[NEXT: max] 你好").code == 0
    return made


@pytest.mark.usefixtures("made")
def test_a_session_without_a_turn() -> None:
    assert run_here("send", "--new", "--session", "new", "[TEAM_TASK: Build]").code == 0
    assert refused(run_here("show")) == "session new has no turn yet"
    assert run_here("show", "--session", "s1").code == 0


def test_json_has_everything(world: Path, made: Crew) -> None:
    (receipt,) = objects(run_here("show", "--json"))
    outcome, setup = receipt["outcome"], receipt["setup"]
    assert isinstance(outcome, dict)
    assert isinstance(setup, dict)
    assert isinstance(receipt.pop("started_at"), float)
    assert isinstance(outcome.pop("seconds"), float)
    assert isinstance(outcome.pop("first_byte_s"), float)
    scratch = setup["env"].pop("TMPDIR")
    assert setup.pop("thread_key")
    assert [block["name"] for block in setup.pop("blocks")] == ["system", "turn", "message"]
    assert Path(scratch).parent == world / "tmp"
    command = [*fake(SCRIPTED), str(world / "scripts"), "max"]
    assert receipt == {
        "v": 1, "type": "turn", "turn": 1, "member": "max", "agent": "max-agent", "status": "done", "abandoned": False,
        "undone": False,
        "route": 1, "shown_through": "msg-1", "vendor_session": None,
        "setup": {
            "argv": command, "env": {"PWD": str(world / "work")}, "cwd": str(world / "work"), "access": "read",
            "access_note": "not enforced: teamchat cannot bound what another program does",
            "why": "kailai asked for max in msg-1", "answers": "msg-1", "asked_in": None,
            "request": "msg-1", "attempt": 1,
            "model": None, "stdin_bytes": len(made.prompts("max")[0].encode()), "system_bytes": 0,
            "inert_mentions": 0, "redacted": 0,
            "trimmed": {
                "history_messages": 0, "message_bytes": 0, "request_bytes": 0, "layers": [], "long_messages": 0,
                "bytes": 0, "limit": None,
            },
            "memory": "fresh", "resumes": None, "fresh_because": "its memory is fresh", "opened": False,
            "same_process": False,
            "fresh_bytes": len(made.prompts("max")[0].encode()), "shown_from": "msg-1", "beside": [], "edits": 0,
            "sources": {},
            "purpose": "reply", "images": [], "slash": None, "without": [], "adopted": None, "host": None,
            "place": None, "lost": [],
        },
        "prompt": made.prompts("max")[0], "system": None,
        "outcome": {
            "ok": True, "code": 0, "failure": None, "reply": "msg-2", "exit_code": 0, "model": None, "version": None,
            "usage": None, "denied": None, "files": [], "changes": {"unknown": "no git repository"}, "reported": [],
            "files_that_run": [],
            "not_all_looked_at": False, "tools": None, "failed_tools": 0, "left": [],
                "children": [], "ran": None,
        },
        "partial": "", "summary": None,
    }  # fmt: skip


def test_a_tool_that_failed_is_counted_and_marked() -> None:
    steps = ["claude-tool", "Bash", "+", "claude-tool-fail", "no such\nfile", "+", "claude-like", "Done"]
    actors({"max": steps}, like="claude")
    assert run_here("send", "Go").code == 0
    shown = run_here("show").out
    assert "  tools     1 used, 1 failed, 0 denied\n" in shown
    assert "s  failed: Bash make test: no such file\n" in shown


class TestAClaude:
    """A CLI that tells of itself: its system text, tools, tokens and cost."""

    @pytest.fixture(autouse=True)
    def talk(self) -> None:
        steps = ["claude-tool", "Bash", "+", "claude-tool-end", "ok", "+", "claude-like", "Done \x1b[31mred\x1b[0m"]
        keys = {"system_instruction": INSTRUCTION, "model": "opus"}
        actors({"max": steps}, like="claude", members={"max": keys})
        assert run_here("send", "Look at @teamchat.toml").code == 0
        assert run_here("send", "And now?").code == 0

    def test_its_receipt_has_what_it_reports(self) -> None:
        shown = run_here("show", "2").out
        assert "  model     claude-fake-1\n  version   2.1.197\n  tokens    in 14, cached 3, out 7, $0.0025\n" in shown
        assert "  tools     1 used, 0 denied\n" in shown
        assert shown.endswith("s  Bash make test\n")
        assert "  inert     1 mention in others' text made inert\n" in shown
        assert "\x1b" not in shown
        assert "--append-system-prompt 'You are Max.…'" in shown  # the whole of it is what --system prints

    def test_its_system_text_is_printed_as_it_went(self) -> None:
        system = run_here("show", "--system").out
        assert system.startswith(f"{INSTRUCTION}\n\nYou are max, a member of the team")
        assert objects(run_here("show", "--json"))[0]["system"] == system
        assert INSTRUCTION not in run_here("show", "--prompt").out


def test_redacted_secrets_are_counted_where_there_are_any(world: Path) -> None:
    key = "sk-ant-api03-" + "k3Y9" * 10
    crew(world, {"max": [f"It is {key}\n[NEXT: sarah]"], "sarah": ["Hm."]})
    ran = run_here("send", "--to", "max", "Find it")
    lines = [line for line in ran.err.splitlines() if line.startswith(("· max · ", "· sarah · "))]
    assert [line.endswith(" · 1 secret redacted") for line in lines] == [False, True]
    assert "  redacted  1 secret in what others said\n" in run_here("show", "2").out
    assert "redacted" not in run_here("show", "1").out
    (receipt,) = objects(run_here("show", "2", "--json"))
    assert isinstance(receipt["setup"], dict)
    assert receipt["setup"]["redacted"] == 1
    assert key in run_here("log").out  # the store keeps what was said


def test_what_a_dead_agent_said_on_stderr_can_not_repaint_the_terminal() -> None:
    actors({"max": ["err", "\x1b[2J\x1b]0;title\x07boom", "+", "reply", "\x1b[1mhalf\x1b[0m", "+", "exit-with", "1"]})
    assert run_here("send", "Hi").code == 1
    shown = run_here("show").out
    assert "\x1b" not in shown
    assert "  | half\n" in shown
    assert "boom" in shown


def test_diff_shows_what_a_member_is_given_that_differs_from_its_turn_before(world: Path) -> None:
    crew(world, {"max": ["One.", "Two."]})
    assert run_here("send", "First").code == 0
    assert run_here("send", "Second").code == 0
    first = run_here("show", "1", "--diff").out.splitlines()
    assert first[:2] == ["--- nothing before", "+++ turn 1"]
    assert "+First" in first
    second = run_here("show", "2", "--diff").out.splitlines()
    assert second[:2] == ["--- turn 1", "+++ turn 2"]
    assert {"+kailai: First", "+Second"} <= set(second)
    assert not any("You are max" in line for line in second), "what is the same is left out"


def test_a_tool_call_that_was_cut_short_is_shown_as_aborted() -> None:
    actors({"max": ["claude-init", "+", "claude-tool", "Bash", "+", "exit-with", "3"]}, like="claude")
    assert run_here("send", "Hi").code == 1
    shown = steady(run_here("show")).out
    assert "N.Ns  Bash make test\n      N.Ns  aborted\n" in shown


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_terminal_gets_a_receipt_that_is_wrapped_under_its_columns(columns: int) -> None:
    said = "word " * 60
    steps = ["claude-tool", "Bash", "+", "claude-tool-fail", "no such file " * 9, "+", "claude-delta", said]
    actors({"max": [*steps, "+", "exit", "1"]}, like="claude")
    assert run_here("send", "Go").code == 1
    piped = run_here("show").out
    with screen("show", columns=columns, rows=200) as seen:
        rows = seen.to_the_end()
    assert max(map(len, rows)) <= columns
    assert "".join("".join(rows).replace("  | ", "").split()) == "".join(piped.replace("  | ", "").split())
    assert not [row for row in rows[1:] if row and row[0] != " "], "what is continued is under its column"
    text = rows[max(at for at, row in enumerate(rows) if "prompt):" in row) + 1 :]
    assert len(text) > 1
    assert all(row.startswith("  | word ") and row.endswith(" word") for row in text), "no word is broken"


def test_a_command_of_a_receipt_is_not_broken() -> None:
    line = f"{TRY}teamchat resume --session a-session-with-a-rather-long-name"
    assert list(rows_of(line, 40)) == [line]
    assert list(rows_of("  note      it took a long while", 26)) == ["  note      it took a long", "            while"]
