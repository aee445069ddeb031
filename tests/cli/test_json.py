"""`--json`: every object that docs/json.md names, with exactly the fields that it names."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from teamchat.cli.startup.workspace import store_file
from tests.cli.helpers import FILE, actors, objects, steady
from tests.program import ROOT, Result, argv, run_here
from tests.scripted_team import crew

DOCS = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
NOTHING_USED = {"input_tokens": None, "cached_tokens": None, "output_tokens": None, "cost_usd": None}
VOLATILE = {"time_ms": int, "seconds": float, "first_byte_s": float}


def documented() -> Iterator[tuple[str, set[str]]]:
    """The types of the table, each with its fields; what stands in parentheses explains a field."""
    for row in re.findall(r"^\| (`.*) \|$", DOCS, re.MULTILINE):
        kinds, _, fields = row.split(" | ")
        names = set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", fields)))
        for kind in re.findall(r"`(\w+)`", kinds):
            yield kind, names | {"v", "type"}


FIELDS = dict(documented())
ONLY = {"result": {"verdict"}, "message": {"turn"}}  # the fields that a line may lack


def as_documented(line: dict[str, object]) -> bool:
    """Whether a line has the fields that its row names; a person's message has no `turn`."""
    kind = str(line["type"])
    lacks = FIELDS[kind] - set(line)
    return line["v"] == 1 and set(line) <= FIELDS[kind] and lacks <= ONLY.get(kind, set())


def settled(ran: Result) -> list[dict[str, object]]:
    """The lines, each checked against the documentation, without what changes from run to run."""
    lines = objects(ran)
    for line in lines:
        assert as_documented(line), (line, FIELDS[str(line["type"])])
        for name, kind in VOLATILE.items():
            if line.get(name) is not None:
                assert isinstance(line.pop(name), kind)
        line.pop(next((name for name in VOLATILE if name in line), ""), None)
        del line["v"]
    return lines


def test_the_documentation_has_a_row_for_every_type() -> None:
    assert set(FIELDS) == {
        "message", "task", "queued", "dropped", "refused", "turn_started", "text_delta", "text", "thinking",
        "tool_call", "tool_result", "denied", "question", "retry", "note", "compacted", "lessons", "lesson",
        "turn_finished", "todo_added", "todo_done", "group_compared", "process", "check_started",
        "check_finished", "warning", "result",
    }  # fmt: skip


def test_a_whole_conversation(world: Path) -> None:
    crew(world, {"max": ["Plan.\n[NEXT: sarah]"], "sarah": ["Done."]}, like={"max": "claude"})
    ran = run_here("send", "--json", "[NEXT: max, bob] Go")
    assert steady(ran).err == "· session s1 begins\n"
    route = {"priority": 2, "group": None, "status": "waiting", "attempt": 0, "part": None}
    used = {"input_tokens": 100, "cached_tokens": None, "output_tokens": 20, "cost_usd": 0.25}
    message = {"type": "message", "stands_for": None}
    lists: dict[str, object] = {
        "files": [],
        "changes": {"unknown": "no git repository"},
        "reported": [],
        "files_that_run": [],
        "not_all_looked_at": False,
        "left": [],
        "children": [],
    }
    ended = {"type": "turn_finished", "host": None, "place": None, "ok": True, "code": 0, "failure": None,
             "exit_code": 0, "tools": None, "failed_tools": 0, "partial": "", "part": None, "redacted": 0,
             "trimmed": None, **lists}  # fmt: skip
    assert settled(ran) == [
        {"type": "warning", "text": "nobody is called 'bob'"},
        {**message, "id": "msg-1", "from": "kailai", "kind": "human", "to": ["max"], "text": "[NEXT: max, bob] Go"},
        {"type": "queued", "number": 1, "target": "max", "parent": "msg-1", "by": "kailai", **route},
        {"type": "turn_started", "turn": 1, "member": "max", "agent": "max-agent", "agent_type": "claude", "route": 1,
         "host": None, "place": None, "part": None, "attempt": 1},
        {**message, "id": "msg-2", "from": "max", "kind": "ai", "to": ["sarah"], "text": "Plan.\n[NEXT: sarah]",
         "turn": 1},
        {**ended, "turn": 1, "member": "max", "reply": "msg-2", "model": "scripted", "version": "2.1.197",
         "usage": used, "denied": [], "tools": 0},
        {"type": "queued", "number": 2, "target": "sarah", "parent": "msg-2", "by": "max", **route},
        {"type": "turn_started", "turn": 2, "member": "sarah", "agent": "sarah-agent", "agent_type": "plain",
         "host": None, "place": None, "route": 2, "part": None, "attempt": 1},
        {**message, "id": "msg-3", "from": "sarah", "kind": "ai", "to": [], "text": "Done.", "turn": 2},
        {**ended, "turn": 2, "member": "sarah", "reply": "msg-3", "model": None, "version": None, "usage": None,
         "denied": None},
        {"type": "result", "session": "s1", "code": 0, "outcome": "done", "text": "Done.", "reason": None,
         "hint": None, "waiting": None, "paused": None, "held": [], "turns": 2, "denied": None, "usage": NOTHING_USED,
         "process": None},
    ]  # fmt: skip


def test_what_is_noted_to_do(world: Path) -> None:
    crew(world, {"max": ["Ok. [DONE: 1]"]})
    lines = settled(run_here("send", "--json", "Go [TODO: write it]"))
    todos = [line for line in lines if str(line["type"]).startswith("todo_")]
    item = {"number": 1, "text": "write it"}
    assert todos == [
        {"type": "todo_added", **item, "by": "kailai", "message": "msg-1"},
        {"type": "todo_done", **item, "by": "max", "message": "msg-2"},
    ]
    assert [lines[lines.index(todo) - 1]["type"] for todo in todos] == ["message", "message"]


def kinds(lines: list[dict[str, object]]) -> list[object]:
    return [line["type"] for line in lines]


class TestAnAgentThatTellsMuch:
    STEPS = (
        "claude-init + claude-retry 429 + claude-delta Look + claude-text Looking. + claude-tool Bash"
        " + claude-tool-end ok + err noise + claude-like {text}"
    )

    @pytest.fixture(autouse=True)
    def team(self) -> None:
        steps = [step.replace("{text}", "Dön\x1b[1me\u2028") for step in self.STEPS.split(" ")]
        actors({"max": steps}, like="claude")

    def test_without_stream_there_is_no_text_as_it_comes(self) -> None:
        lines = settled(run_here("send", "--json", "Hi"))
        assert kinds(lines) == [
            "message", "queued", "turn_started", "retry", "tool_call", "tool_result", "message", "turn_finished",
            "result",
        ]  # fmt: skip
        assert lines[4] == {"type": "tool_call", "turn": 1, "member": "max", "id": "toolu_1", "name": "Bash",
                            "summary": "make test"}  # fmt: skip
        assert lines[5] == {"type": "tool_result", "turn": 1, "member": "max", "id": "toolu_1", "failed": False,
                            "paths": []}  # fmt: skip
        assert (lines[3]["failure"], lines[3]["attempt"]) == ("rate_limit", 1)
        assert lines[-1]["text"] == "Dön\x1b[1me\u2028"

    def test_with_stream_a_finished_block_replaces_its_deltas(self) -> None:
        lines = settled(run_here("send", "--json", "--stream", "Hi"))
        streamed = [line for line in lines if str(line["type"]).startswith("text")]
        assert [(line["type"], line["text"]) for line in streamed][:2] == [("text_delta", "Look"), ("text", "Looking.")]
        deltas = [str(line["text"]) for line in streamed[2:-1]]
        assert "".join(deltas) == streamed[-1]["text"] == "Dön\x1b[1me\u2028"
        assert {line["member"] for line in streamed} == {"max"}

    def test_each_object_is_one_line_whatever_is_in_it(self) -> None:
        ran = run_here("send", "--json", "--stream", "a\nb\u2028c\x85d")
        assert [json.loads(line)["v"] for line in ran.out.removesuffix("\n").split("\n")]


def write(lines: list[dict[str, object]]) -> str:
    """A program that speaks as Claude Code does."""
    Path("events.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return "cat > /dev/null; cat events.jsonl"


def test_thinking_and_refusals() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": "a.txt"}}
    script = write(
        [
            {"type": "assistant", "message": {"content": [{"type": "thinking", "thinking": "Hm."}, call]}},
            {
                "type": "result", "subtype": "success", "is_error": False, "result": "I may not.",
                "permission_denials": [{"tool_name": "Write", "tool_use_id": "t1", "tool_input": call["input"]}],
            },
        ]
    )  # fmt: skip
    FILE.write_text(
        '[[members]]\nname = "max"\nagent = "own"\n[agents.own]\nlike = "claude"\n'
        f"command = {json.dumps(['sh', '-c', script])}\n"
    )
    lines = settled(run_here("send", "--json", "--stream", "--trust", "Hi"))
    assert {"type": "thinking", "turn": 1, "member": "max", "text": "Hm."} in lines
    assert {"type": "denied", "turn": 1, "member": "max", "tool": "Write", "detail": "a.txt"} in lines
    (finished,) = (line for line in lines if line["type"] == "turn_finished")
    assert finished["denied"] == [{"tool": "Write", "detail": "a.txt"}]
    assert lines[-1]["denied"] == 1


def test_a_failure_keeps_the_partial_text_apart(world: Path) -> None:
    crew(world, {"max": [{"say": "half", "err": "no ideas", "exit": 3}], "sarah": []})
    lines = settled(run_here("send", "--json", "[NEXT: max, sarah] Hi"))
    assert kinds(lines) == ["message", "queued", "queued", "turn_started", "turn_finished", "result"]
    assert lines[-2]["partial"] == "half"
    assert lines[-2]["failure"] == {"kind": "agent", "reason": "ended with exit code 3: no ideas", "hint": None}
    held = lines[-1].pop("held")
    assert isinstance(held, list)
    assert [(route["target"], route["status"], route["attempt"]) for route in held] == [
        ("max", "held", 1),
        ("sarah", "held", 0),
    ]
    assert lines[-1] == {
        "type": "result", "session": "s1", "code": 1, "outcome": "member_failed", "text": "",
        "reason": "max ended with exit code 3: no ideas", "hint": "teamchat resume", "waiting": None, "paused": None,
        "turns": 1, "denied": None, "usage": NOTHING_USED, "process": None,
    }  # fmt: skip


def test_a_line_has_a_space_behind_each_colon_and_comma_for_scripts_that_look_for_words(world: Path) -> None:
    crew(world, {"max": ['One:two,three "four":5\n']})
    ran = run_here("send", "--json", "[NEXT: max] Hi")
    assert ran.out == "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in objects(ran))
    assert '"usage": {' in ran.out


@pytest.mark.parametrize(
    ("replies", "limits", "clock", "code", "expected"),
    [
        (["May I? [NEXT: kailai]"], {}, "1m", 9, {"outcome": "human_asked", "waiting": "kailai", "paused": None}),
        (["Ping [NEXT: sarah]"], {"turns": 1}, "1m", 7, {"outcome": "guard", "waiting": None, "paused": "turns"}),
        ([{"hang": 600}], {}, "0.3s", 3, {"outcome": "timeout", "waiting": None, "paused": None}),
    ],
)
def test_the_result_says_how_it_ended(
    world: Path, replies: list[str], limits: dict[str, object], clock: str, code: int, expected: dict[str, object]
) -> None:
    crew(world, {"max": replies, "sarah": []}, limits=limits)
    ran = run_here("send", "--json", "--timeout", clock, "[NEXT: max] Hi")
    result = settled(ran)[-1]
    assert (ran.code, result["code"]) == (code, code)
    assert {name: result[name] for name in expected} == expected


def test_drops_and_notes(world: Path) -> None:
    crew(world, {"max": ["[NEXT: carol] Both?"], "sarah": ["[DROP: ALL] Alone."], "carol": []})
    lines = settled(run_here("send", "--json", "[NEXT: max, sarah, carol] Hi"))
    (dropped,) = (line for line in lines if line["type"] == "dropped")
    assert (dropped["target"], dropped["by"]) == ("carol", "max")
    (kept,) = (line["text"] for line in lines if line["type"] == "warning")
    assert kept == "sarah cannot drop carol, whom kailai called in msg-1"
    actors({"max": ["junk", "1", "+", "claude-like", "Done."]}, like="claude")
    lines = settled(run_here("send", "--json", "Hi"))
    assert [line["member"] for line in lines if line["type"] == "note"] == ["max"]
    assert lines[-1]["outcome"] == "done"


def test_near_misses_of_markers_are_warnings(world: Path) -> None:
    crew(world, {"max": ["Done.\nNEXT: sarah"], "sarah": []})
    lines = objects(run_here("send", "--json", "-", stdin="@max look"))
    assert [line["text"] for line in lines if line["type"] == "warning"] == [
        "'@max' is not a marker and does nothing: did you mean [NEXT: max]?",
        "max: 'NEXT: sarah' is not a marker and does nothing: did you mean [NEXT: sarah]?",
    ]
    assert [line["member"] for line in lines if line["type"] == "turn_started"] == ["max"]


def test_a_store_that_fails_on_the_way_ends_in_a_result_too(world: Path) -> None:
    crew(world, {"max": ["Hi."]})
    assert run_here("send", "[TEAM_TASK: Build]").code == 0
    with contextlib.closing(sqlite3.connect(store_file(Path.cwd()))) as db:
        db.execute(
            """CREATE TRIGGER no_more BEFORE INSERT ON routes WHEN EXISTS (SELECT 1 FROM turns)
            BEGIN SELECT RAISE(ABORT, 'no more'); END"""
        )
    ran = run_here("send", "--json", "Go")
    result = objects(ran)[-1]
    assert (ran.code, result["type"], result["code"], result["outcome"]) == (13, "result", 13, "store")
    assert " is damaged: no more; the end of turn 1 (max) is kept" in str(result["reason"])
    assert [route["target"] for route in result["held"]] == ["max"]  # type: ignore[attr-defined]


def test_what_finds_no_room_in_the_queue_is_refused(world: Path) -> None:
    names = [f"m{number}" for number in range(52)]
    crew(world, {name: [{"exit": 1}] for name in names})
    lines = settled(run_here("send", "--json", f"[NEXT: {', '.join(names)}] Hi"))
    refused = [line for line in lines if line["type"] == "refused"]
    assert [(line["target"], line["limit"], line["by"]) for line in refused] == [
        ("m50", 50, "kailai"),
        ("m51", 50, "kailai"),
    ]


def test_the_replies_of_a_group_come_together_after_its_turns(world: Path) -> None:
    crew(world, {"max": ["One."], "sarah": ["Two."]})
    lines = settled(run_here("send", "--json", "[NEXT: max + sarah] Hi"))
    assert [line["group"] for line in lines if line["type"] == "queued"] == [0, 0]
    assert sorted(map(str, kinds(lines)[3:7])) == ["turn_finished"] * 2 + ["turn_started"] * 2
    assert kinds(lines)[7:] == ["message", "message", "result"]


def test_who_answers_in_anothers_place_says_so(world: Path) -> None:
    crew(world, {"max": [], "sarah": ["Two."]}, members={"max": {"agent": "claude", "fallback": ["sarah"]}})
    lines = settled(run_here("send", "--json", "--to", "max", "Hi"))
    (reply,) = (line for line in lines if line["type"] == "message" and line["kind"] == "ai")
    assert (reply["from"], reply["stands_for"]) == ("sarah", "max")


@pytest.mark.parametrize("args", [["--to", "bob", "Hi"], [""], ["--frob", "Hi"], ["--as", "max", "Hi"]])
def test_what_is_refused_before_it_begins_prints_no_object(world: Path, args: list[str]) -> None:
    crew(world, {"max": []})
    ran = run_here("send", "--json", *args)
    assert ran.code in (2, 4)
    assert ran.out == ""
    assert ran.err.startswith("teamchat: ")


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_pipeline_of_the_documentation_works(world: Path) -> None:
    (command,) = re.findall(r"^\$ (teamchat send --json .*)$", DOCS, re.MULTILINE)
    (printed,) = re.findall(r"^\$ teamchat .*\n(.*)$", DOCS, re.MULTILINE)
    crew(world, {"max": [printed]})
    script = command.replace("teamchat", " ".join(argv()), 1)
    done = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    assert done.stdout == f"{printed}\n"


def test_the_exit_codes_of_the_documentation_are_those_of_the_program() -> None:
    from teamchat.core.errors import ExitCode

    table = DOCS[DOCS.index("## Exit codes") :]
    cells = (row.strip("| ").split(" | ") for row in table.splitlines() if row.startswith("| "))
    numbers = re.findall(r"\d+", " ".join(cell for row in cells for cell in row[::2]))
    assert {int(number) for number in numbers} == {int(code) for code in ExitCode}
