"""`log`, `show`, `sessions` and `task`: looking at what was said, and at every receipt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.helpers import FILE, notes, objects, refused, rows, steady
from tests.program import Result, cli, fake, run_here
from tests.scripted_team import SCRIPTED, Crew, crew

LOOKING = [["log"], ["show"], ["task"], ["show", "--prompt"], ["log", "--json"]]


@pytest.fixture
def made(world: Path) -> Crew:
    """`max` has spoken and `sarah` has failed."""
    made = crew(
        world,
        {
            "max": ["Plan:\n\n  think\n[NEXT: sarah]"],
            "sarah": [{"say": "half a \x1b[31mrep\n", "exit": 3, "err": "broke\n"}],
        },
        like={"max": "claude"},
        members={"max": {"model": "opus", "system_instruction": "Be Max."}},
    )
    assert run_here("send", "--to", "max", "Go  on\n").code == 1
    return made


said = pytest.mark.usefixtures("made")


# --- log


@said
def test_the_log_has_every_message_as_it_was_said_and_what_waits() -> None:
    assert run_here("log") == Result(
        0,
        "msg-1 kailai -> max:\nGo  on\n\nmsg-2 max -> sarah (turn 1):\nPlan:\n\n  think\n[NEXT: sarah]\n\n",
        notes("held: sarah, called by max in msg-2"),
    )


@said
@pytest.mark.parametrize(
    ("number", "heads"),
    [("1", ["msg-2 max"]), ("2", ["msg-1 kailai", "msg-2 max"]), ("0", ["msg-1 kailai", "msg-2 max"])],
)
def test_the_log_can_be_cut_to_the_last_messages(number: str, heads: list[str]) -> None:
    ran = run_here("log", "-n", number)
    assert [line.split(" -> ")[0] for line in ran.out.splitlines() if " -> " in line] == heads
    assert run_here("log", "-n", "999999999").out == run_here("log").out


@said
def test_the_log_as_json_has_the_text_untouched() -> None:
    one, two = objects(run_here("log", "--json"))
    time = one.pop("time_ms")
    assert isinstance(time, int)
    assert one == {
        "v": 1, "type": "message", "id": "msg-1", "from": "kailai", "kind": "human", "stands_for": None,
        "to": ["max"], "text": "Go  on\n", "turn": None, "hidden": False,
    }  # fmt: skip
    assert (two["text"], two["turn"], two["kind"]) == ("Plan:\n\n  think\n[NEXT: sarah]", 1, "ai")


def test_escape_sequences_are_shown_to_nobody_and_kept_in_json(world: Path) -> None:
    crew(world, {"max": ["a\x1b[31mred\x1b]0;title\x07b"]})
    run_here("send", "Hi\x1b[2J")
    assert "\x1b" not in run_here("log").out
    assert [line["text"] for line in objects(run_here("log", "--json"))] == [
        "Hi\x1b[2J",
        "a\x1b[31mred\x1b]0;title\x07b",
    ]


# --- show


@said
def test_the_receipt_of_a_failed_turn_says_why_and_what_there_was_of_it(made: Crew, world: Path) -> None:
    ran = steady(run_here("show"))
    command = next(line for line in ran.out.splitlines() if line.startswith("  ran "))
    assert command.endswith(f" {fake(SCRIPTED)[-1]} {made.scripts} sarah")
    size = len(made.prompts("sarah")[0].encode())
    assert ran == Result(
        0,
        f"""\
turn 2 · sarah (sarah-agent) · failed
  why       max asked for sarah in msg-2
  answers   msg-2, for the request msg-1
  started   WHEN
  access    read: not enforced: teamchat cannot bound what another program does
  sent      {size} bytes on stdin (--prompt)
{command}
  in        {world}/work
  env       PWD={world}/work
  env       TMPDIR={world}/tmp/teamchat-SCRATCH
  failed    ended with exit code 3: broke [exit code 1]
  took      N.Ns, first byte after N.Ns
  tokens    unknown
  tools     used unknown, denied unknown
  files     none (as its CLI reports: no git repository)
  stderr    broke
  partial text (never a message, never in a prompt):
  | half a rep
""",
        "",
    )


@said
def test_the_receipt_of_a_finished_turn_says_what_it_used(made: Crew) -> None:
    lines = steady(run_here("show", "1")).out.splitlines()
    assert lines[0] == "turn 1 · max (max-agent) · done"
    system = "Be Max."
    assert "  reply     msg-2" in lines
    assert "  model     scripted" in lines
    assert "  tokens    in 100, cached unknown, out 20, $0.2500" in lines
    assert "  tools     0 used, 0 denied" in lines
    sent = next(line for line in lines if line.startswith("  sent "))
    size = len(made.prompts("max")[0].encode())
    assert sent.startswith(f"  sent      {size} bytes on stdin (--prompt) and ")
    assert run_here("show", "1", "--system").out.startswith(system)


@said
def test_the_prompt_is_shown_byte_for_byte(made: Crew) -> None:
    for turn, member in (("1", "max"), ("2", "sarah")):
        shown = run_here("show", turn, "--prompt")
        assert (shown.code, shown.out) == (0, made.prompts(member)[0])
        assert "its own instructions, and how to hand over" in shown.err
    assert cli("show", "1", "--prompt").raw == made.prompts("max")[0].encode()


@said
def test_the_system_text_is_shown_byte_for_byte() -> None:
    (turn,) = objects(run_here("show", "1", "--json"))
    argv = turn["setup"]["argv"]  # type: ignore[index]
    shown = run_here("show", "1", "--system")
    assert shown == Result(0, argv[argv.index("--append-system-prompt") + 1], "")
    assert run_here("show", "2", "--system") == Result(0, "", "")


@said
def test_the_receipt_as_json_is_whole(made: Crew) -> None:
    (turn,) = objects(run_here("show", "2", "--json"))
    assert sorted(turn) == [
        "abandoned", "agent", "member", "outcome", "partial", "prompt", "route", "setup", "shown_through", "started_at",
        "status", "summary", "system", "turn", "type", "undone", "v", "vendor_session",
    ]  # fmt: skip
    assert turn["prompt"] == made.prompts("sarah")[0]
    assert turn["partial"] == "half a \x1b[31mrep"
    outcome = turn["outcome"]
    assert isinstance(outcome, dict)
    assert outcome["failure"] == {"kind": "agent", "reason": "ended with exit code 3: broke", "hint": None}
    assert (outcome["ok"], outcome["code"], outcome["exit_code"]) == (False, 1, 3)
    assert (outcome["denied"], outcome["usage"], outcome["reply"]) == (None, None, None)


@said
@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        (["3"], 4, "session s1 has no turn 3"),
        (["0"], 4, "session s1 has no turn 0"),
        (["9" * 5000], 2, f"expected the number of a turn or a reply such as msg-2, got '{'9' * 60}…'"),
        (["9" * 40], 4, f"session s1 has no turn {'9' * 40}"),
        (["one"], 2, "expected the number of a turn or a reply such as msg-2, got 'one'"),
        (["-1"], 2, "no such option: -1"),
        (["--prompt", "msg-1"], 4, "msg-1 is from kailai, and no turn wrote it"),
        (["msg-99"], 4, "session s1 has no message 'msg-99'"),
        (["--prompt", "--system"], 2, "--prompt, --system, --diff, --reply and --json exclude each other"),
        (["--session", "x"], 4, "there is no session 'x' (sessions: s1)"),
    ],
)
def test_what_can_not_be_shown_is_one_line(args: list[str], code: int, error: str) -> None:
    ran = run_here("show", *args)
    assert (ran.code, refused(ran)) == (code, error)


# --- sessions


def test_where_nothing_was_said_there_are_no_sessions(world: Path) -> None:
    crew(world, {"max": []})
    assert run_here("sessions") == Result(0, "", notes("there is no conversation here yet"))
    assert run_here("sessions", "--json") == Result(0, "", "")


# --- task


NO_TASK = notes("session s1 has no task; set one: teamchat task 'Build the login page'")


@said
def test_the_task_is_set_shown_and_taken_away() -> None:
    assert run_here("task") == Result(0, "", NO_TASK)
    assert run_here("task", "Design\nit \x1b[31m") == Result(0, "", notes("the task of session s1 is set"))
    assert run_here("task") == Result(0, "Design\nit \n", "")
    assert run_here("task", "--clear") == Result(0, "", notes("session s1 no longer has a task"))
    assert run_here("task") == Result(0, "", NO_TASK)


@said
def test_the_task_is_what_the_next_member_is_told(made: Crew) -> None:
    run_here("task", "Design it")
    made.say("sarah", {"exit": 1}, "Hi.")
    assert run_here("resume").code == 0
    assert "\n\nDesign it\n\n" in made.prompts("sarah")[1]


@said
@pytest.mark.parametrize("args", [["x", "--clear"], [""], ["  \n"]])
def test_what_is_no_task_is_one_line(args: list[str]) -> None:
    before = rows()
    ran = run_here("task", *args)
    assert ran.code == 2
    refused(ran)
    assert rows() == before


# --- all of them


@pytest.mark.parametrize("command", LOOKING)
def test_where_nothing_was_said_there_is_nothing_to_look_at(world: Path, command: list[str]) -> None:
    crew(world, {"max": []})
    ran = run_here(*command)
    assert (ran.code, refused(ran)) == (4, "there is no conversation here yet")
    assert ran.err.endswith("\n  try: teamchat send 'Your message'\n")


@said
@pytest.mark.parametrize("command", [*LOOKING, ["sessions"]])
def test_looking_changes_nothing_and_needs_neither_trust_nor_a_team_that_can_be_read(
    world: Path, command: list[str]
) -> None:
    (world / "state" / "trust.json").unlink()
    FILE.write_text("nonsense [")
    before = rows()
    assert run_here(*command).code == 0
    assert rows() == before


@said
@pytest.mark.parametrize("command", [*LOOKING, ["sessions"]])
def test_looking_goes_on_while_the_conversation_runs(command: list[str]) -> None:
    from teamchat.cli.startup.workspace import store_file
    from teamchat.core.files.session_lock import session_lock
    from teamchat.core.store.database import Database

    db = Database(store_file(Path.cwd()))
    with session_lock(store_file(Path.cwd()).parent / "session-1.lock", "another"), db.transaction():
        db.execute("UPDATE sessions SET turns = 99")
        assert run_here(*command).code == 0
    db.close()


def test_json_lines_are_each_one_object_whatever_was_said(world: Path) -> None:
    crew(world, {"max": ["\u2028 \u0085 \n \r\n \x00 \x1b 水 🙂"]})
    run_here("send", "a\nb\u2029c")
    lines = cli("log", "--json").out.removesuffix("\n").split("\n")
    assert [json.loads(line)["text"] for line in lines] == ["a\nb\u2029c", "\u2028 \u0085 \n \r\n \x00 \x1b 水 🙂"]
