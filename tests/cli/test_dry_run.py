"""`send --dry-run`: what would happen, without running, storing or disturbing anything."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from teamchat.cli.startup.workspace import store_file
from tests.cli.helpers import FILE, actors, queue, refused, rows
from tests.program import TIMEOUT_S, Result, ended, fake, run_here, start
from tests.runners.processes import eventually
from tests.scripted_team import SCRIPTED, Crew, crew


@pytest.fixture
def made(world: Path) -> Crew:
    return crew(world, {"max": ["Here.", "Again."], "sarah": ["Me."]}, team={"task": "Build"})


def test_it_shows_the_routing_the_command_and_the_prompt(world: Path, made: Crew) -> None:
    ran = run_here("send", "--dry-run", "[NEXT: max, sarah] Hi")
    head, _, rest = ran.out.partition("its parts:\n")
    parts, _, stdin = rest.partition("\nits standard input (")
    assert (ran.code, ran.err) == (0, "")
    assert head == (
        "[NEXT: max, sarah] at 0: counts\n"
        "speaking: max, then sarah\n"
        "guards: 12 turns and 60 minutes for this message\n"
        "guards: 2,000,000 of 2,000,000 tokens are left in this session\n"
        "\n"
        f"max would run: {' '.join(fake(SCRIPTED))} {world}/scripts max\n"
        f"in {world}/work, access read: not enforced: teamchat cannot bound what another program does\n"
        f"with PWD={world}/work\n"
        "with TMPDIR=$TMPDIR\n"
        "\n"
    )
    assert [line.split()[0] for line in parts.splitlines()] == ["system", "task", "turn", "message"]
    assert run_here("send", "[NEXT: max, sarah] Hi").code == 0
    (sent,) = made.prompts("max")
    assert stdin == f"{len(sent.encode()):,} bytes):\n{sent}\n"


def test_every_marker_is_explained() -> None:
    actors({"max": [], "sarah": []})
    ran = run_here(
        "send", "--dry-run", "[NEXT: max] `[NEXT: max]` \\[NEXT: sarah] [DROP: bob]\n> [FROM: x]\nNEXT: sarah"
    )
    assert ran.out.splitlines()[:8] == [
        "[NEXT: max] at 0: counts",
        "[NEXT: max] at 13: text, it is in inline code",
        "[NEXT: sarah] at 27: text, it is escaped",
        "[DROP: bob] at 41: counts",
        "[FROM: x] at 55: text, it is in a quote",
        "problem: nobody is called 'bob'",
        "problem: 'NEXT: sarah' is not a marker and does nothing: did you mean [NEXT: sarah]?",
        "speaking: max",
    ]


def test_markers_of_a_message_that_is_refused_are_explained_too() -> None:
    actors({"max": []})
    ran = run_here("send", "--dry-run", "[NEXT: [max]] `[NEXT: max]` Hi")
    assert ran == Result(
        4,
        "[NEXT: [max] at 0: counts\n[NEXT: max] at 15: text, it is in inline code\n",
        "teamchat: nobody is called '[max': did you mean max?\n  try: teamchat team\n",
    )


def test_what_finds_no_room_and_what_is_taken_out_of_the_queue_is_told(world: Path) -> None:
    names = [f"m{number}" for number in range(51)]
    crew(world, {"max": [{"exit": 1}], **{name: [] for name in names}})
    assert run_here("send", "--to", "max", "Hi").code == 1
    out = run_here("send", "--dry-run", f"[DROP: max] [NEXT: {', '.join(names)}] Hi").out
    told = ["dropped: max, called by kailai in msg-1", "problem: m50 was not queued: 50 are waiting already"]
    assert [line for line in out.splitlines() if line.startswith(("dropped", "problem"))] == told


def test_a_guard_that_would_let_nobody_speak_is_told(world: Path) -> None:
    crew(world, {"max": ["One."]}, like={"max": "codex"}, limits={"tokens": 100})
    assert run_here("send", "Hi").code == 0
    told = "paused: 120 tokens are spent (limits.tokens)\nspeaking: nobody\non hold until teamchat resume: max\n"
    ran = run_here("send", "--dry-run", "Hi")
    assert ran.out.startswith(told)
    assert "would run" not in ran.out
    assert run_here("send", "--quiet", "Hi").code == 8


def test_the_one_that_would_answer_while_an_agent_cools_down_is_shown(world: Path) -> None:
    limited = {"err": "Error: 429 too many requests", "exit": 1}
    crew(world, {"max": [limited], "sarah": ["Me."]}, like={"max": "codex"}, members={"max": {"fallback": ["sarah"]}})
    assert "\n\nmax would run: " in run_here("send", "--dry-run", "Hi").out
    assert run_here("send", "--quiet", "Hi").out == "Me.\n"
    out = run_here("send", "--dry-run", "--to", "max", "Hi").out
    assert "speaking: max\n" in out
    assert "\n\nmax's agent cools down after a rate limit; sarah answers as its fallback\nsarah would run: " in out


def test_the_share_of_the_budget_is_in_the_command(world: Path) -> None:
    crew(world, {"max": [], "sarah": []}, like={"max": "claude", "sarah": "claude"}, limits={"cost_usd": 3.0})
    assert " --max-budget-usd 3.0000\n" in run_here("send", "--dry-run", "--to", "max", "Hi").out
    assert " --max-budget-usd 1.5000\n" in run_here("send", "--dry-run", "--to", "max+sarah", "Hi").out


def test_markers_of_the_todo_list_are_explained_with_what_they_would_do(made: Crew) -> None:
    assert run_here("send", "Hi [TODO: old]").code == 0
    before = rows()
    text = "[TODO: new] `[DONE: 1]` [DONE: 1, 9]\n> [TODO: no]\n\n【TODO: x】 \\[DONE: 2] [TODO: ...] [DONE: x"
    assert run_here("send", "--dry-run", text).out.splitlines()[:13] == [
        "[TODO: new] at 0: counts",
        "[DONE: 1] at 13: text, it is in inline code",
        "[DONE: 1, 9] at 24: counts",
        "[TODO: no] at 39: text, it is in a quote",
        "[DONE: 2] at 62: text, it is escaped",
        "[TODO: ...] at 72: counts",
        "[DONE: x at 84: text, it is not closed on its line",
        "problem: [TODO: ...] is empty: ignored",
        "problem: '【TODO: x】' is not a marker and does nothing: did you mean [TODO: x]?",
        "problem: '[DONE: x' is not a marker and does nothing: did you mean [DONE: ...]?",
        "problem: there is no todo 9 (open: 2)",
        "todo 2 added by kailai: new",
        "todo 1 done by kailai: old",
    ]
    assert rows() == before
    assert len(made.prompts("max")) == 1


def test_it_stores_nothing_and_begins_no_session(made: Crew) -> None:
    assert run_here("send", "--dry-run", "Hi").code == 0
    assert run_here("send", "--dry-run", "--new", "--session", "new", "Hi").code == 0
    stored = rows()
    assert not any(stored[table] for table in ("sessions", "messages", "routes", "turns", "turn_events", "texts"))
    assert run_here("send", "[TEAM_TASK: Other] [NEXT: max] Hi").code == 0
    before = rows()
    for options in ([], ["--new"], ["--new", "--session", "new"], ["--session", "s1"], ["--to", "sarah"]):
        assert run_here("send", "--dry-run", *options, "[TEAM_TASK: Third] [DROP: ALL] Hi").code == 0
    assert rows() == before
    assert len(made.prompts("max")) == 1
    assert made.prompts("sarah") == []


def test_what_is_held_stays_held_and_is_told(world: Path) -> None:
    crew(world, {"max": [{"exit": 1}], "sarah": []})
    assert run_here("send", "[NEXT: max, sarah] Hi").code == 1
    before = rows()
    ran = run_here("send", "--dry-run", "--to", "sarah", "Hi")
    assert "speaking: sarah\non hold until teamchat resume: max, sarah\n" in ran.out
    assert rows() == before


def test_a_message_to_a_person_or_to_nobody(world: Path) -> None:
    crew(world, {"max": []}, humans=("kailai", "mia"))
    assert run_here("send", "--dry-run", "--as", "kailai", "[NEXT: mia] Hi").out == (
        "[NEXT: mia] at 0: counts\nspeaking: mia\nguards: 12 turns and 60 minutes for this message\n"
        "guards: 2,000,000 of 2,000,000 tokens are left in this session\n"
    )
    assert "speaking: nobody\n" in run_here("send", "--dry-run", "--as", "mia", "[TEAM_TASK: x]").out


@pytest.mark.parametrize(
    ("args", "code"), [(["--to", "bob", "x"], 4), ([""], 2), (["--as", "max", "x"], 4), (["--timeout", "x", "x"], 2)]
)
@pytest.mark.usefixtures("made")
def test_what_would_be_refused_is_refused(args: list[str], code: int) -> None:
    ran, real = run_here("send", "--dry-run", *args), run_here("send", *args)
    assert ran.err.replace("send --dry-run ", "send ") == real.err  # a hint repeats what was typed
    assert (ran.code, real.code) == (code, code)


def test_too_large_is_told(world: Path) -> None:
    crew(world, {"max": []}, team={"max_bytes": 2000, "task": "x" * 3000})
    ran = run_here("send", "--dry-run", "Hi")
    assert ran.code == 12
    assert refused(replace(ran, out="")).startswith("max: system text, task and turn note take ")
    assert ran.out.startswith("speaking: max\nguards: ")


def test_a_program_that_is_not_installed_is_no_reason_not_to_look() -> None:
    FILE.write_text('[[members]]\nname = "max"\nagent = "claude"\nsystem_instruction = "You are Max."\n')
    ran = run_here("send", "--dry-run", "Hi")
    assert ran.code == 0
    assert "\nmax would run: claude -p " in ran.out
    assert "\nits system text (" in ran.out
    assert " bytes):\nYou are Max.\n\nYou are max, a member of the team" in ran.out


def test_keys_that_the_agent_would_not_see_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-own")
    FILE.write_text('[[members]]\nname = "max"\nagent = "claude"\n')
    shown = run_here("send", "--dry-run", "Hi").out
    assert "without OPENAI_API_KEY\n" in shown
    assert "sk-" not in shown
    assert "ANTHROPIC_API_KEY" not in shown


def test_a_team_file_can_not_repaint_what_is_shown_of_it() -> None:
    FILE.write_text(
        '[[members]]\nname = "max"\nagent = "own"\nsystem_instruction = "Be\\u001b[2K brief"\n'
        '[agents.own]\ncommand = ["sh", "-c", "evil\\u001b[2K\\u202e"]\nlike = "claude"\n'
    )
    shown = run_here("send", "--dry-run", "Hi").out
    assert "\x1b" not in shown
    assert "evil\\x1b[2K\\u202e" in shown
    assert "\nBe brief\n" in shown


def test_a_session_that_another_process_runs_is_looked_at_and_not_disturbed(world: Path) -> None:
    began, looked = world / "began", world / "looked"
    crew(world, {"max": [{"touch": str(began), "wait": str(looked), "say": "Whole."}]})
    running = start("send", "--quiet", "Hi")
    assert eventually(began.exists)
    assert queue() == [("max", "running")]
    before = rows()
    ran = run_here("send", "--dry-run", "More")
    assert ran.code == 0
    assert rows() == before
    looked.touch()
    assert ended(running) == Result(0, "Whole.\n", "")


def test_a_pager_does_not_keep_the_store_locked(made: Crew) -> None:
    """The reader of a large explanation stops reading: others can still write."""
    assert run_here("send", "--to", "sarah", "Hi").code == 0
    looking = start("send", "--dry-run", "--to", "max", "x" * 120_000)
    assert looking.stdout is not None
    assert looking.stdout.read(1)
    with sqlite3.connect(store_file(Path.cwd()), timeout=10) as db:
        db.execute("UPDATE sessions SET used_at = used_at")
    db.close()
    assert looking.poll() is None, "its output must be too large for the pipe, or this shows nothing"
    reader = threading.Thread(target=looking.stdout.read)
    reader.start()
    assert looking.wait(TIMEOUT_S) == 0
    reader.join()
    for stream in (looking.stdout, looking.stderr):
        assert stream is not None
        stream.close()
    assert made.prompts("max") == []


@pytest.mark.usefixtures("made")
def test_the_prompt_is_exact_where_it_is_piped() -> None:
    ran = run_here("send", "--dry-run", "-", stdin="bell \x07 and \ufffd byte\n")
    assert ran.raw.endswith("bell \x07 and \ufffd byte\n".encode())
