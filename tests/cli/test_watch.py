"""`teamchat watch` and `log -f`: a conversation that another process runs, seen from a second terminal."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import pytest

from teamchat.cli.startup.workspace import store_file
from teamchat.core.files.folders import state_dir
from tests.cli.checked import checked_crew, repository
from tests.cli.checked import until as run_until
from tests.cli.helpers import FILE, actors, notes, objects, refused
from tests.cli.test_full_disk import on_a_small_disk, own_mounts
from tests.cli.test_live_members import TEAM
from tests.cli.test_terminal import claude
from tests.cli.test_terminal_members import on_terminal
from tests.program import Result, Started, ended, run_here, start
from tests.runners.processes import Pids, agent, eventually
from tests.screens import screen
from tests.scripted_team import crew
from tests.trials import trials

IDLE = "waiting for the next message; Ctrl-C ends"
WORDS = [f"word-{number}" for number in range(60)]


@contextmanager
def watching(*args: str) -> Iterator[Started]:
    """The program, which follows a conversation that nobody runs at this moment."""
    with start(*args) as process:
        assert process.stderr
        assert any(IDLE in line.decode() for line in process.stderr)
        yield process
        if process.poll() is None:
            process.kill()
            ended(process)


def until(process: Started, kind: str) -> list[dict[str, object]]:
    """The objects that it prints up to the first one of that type."""
    assert process.stdout
    found: list[dict[str, object]] = []
    for line in process.stdout:
        found.append(json.loads(line))
        if found[-1]["type"] == kind:
            return found
    raise AssertionError(f"{kind} did not come after {found}")


def interrupted(process: Started) -> Result:
    process.send_signal(signal.SIGINT)
    return ended(process)


def streamed(lines: list[dict[str, object]], turn: int) -> str:
    return "".join(str(line["text"]) for line in lines if (line["type"], line.get("turn")) == ("text_delta", turn))


@pytest.fixture
def talk(world: Path) -> None:
    """A conversation with one reply, and a member that streams many words."""
    del world
    actors({"max": ["words", "0.01", " ".join(WORDS), "+", "reply", "[NEXT: sarah]"], "sarah": ["reply", "Hi"]})
    assert run_here("send", "--to", "sarah", "Hello").code == 0


def test_the_time_of_a_turn_counts_from_its_start_and_not_from_that_of_the_watcher(pids: Pids) -> None:
    actors({"max": ["hang"]})
    process = start("send", "[NEXT: max] Go")
    pids.await_count(1)
    with closing(sqlite3.connect(store_file(Path.cwd()))) as db, db:
        db.execute("UPDATE turns SET started_at = started_at - 600")
    with screen("watch") as seen:
        seen.until(lambda text: re.search(r"max +starting +10:\d\d", text))
    interrupted(process)


@pytest.mark.usefixtures("talk")
def test_several_watchers_are_told_each_piece_once_and_in_order() -> None:
    with watching("watch", "--json", "--stream") as one, watching("watch", "--json", "--stream", "--last", "0") as two:
        ran = objects(run_here("send", "--to", "max", "Go", "--json", "--stream"))
        first, second = until(one, "result"), until(two, "result")
        for process in (one, two):
            rest = interrupted(process)
            assert (rest.code, rest.out) == (0, "")
    assert [(line["from"], line["text"]) for line in first[:2]] == [("kailai", "Hello"), ("sarah", "Hi")]
    for told in (first[2:], second):
        kinds = [line["type"] for line in told]
        assert [kind for kind in kinds if kind != "text_delta"] == [
            line["type"] for line in ran if line["type"] != "text_delta"
        ]
        assert streamed(told, 2) == streamed(ran, 2) == "".join(f"{word}\n" for word in WORDS) + "[NEXT: sarah]\n"
        assert kinds.count("text_delta") > 5, "it comes while the member speaks"
        assert told[-1] == ran[-1]


def test_it_tells_of_checks_what_the_run_tells(world: Path) -> None:
    checked_crew(world, {"tests": "test -e done || { touch done; exit 1; }"})
    repository()
    assert run_here("send", "[TEAM_TASK: Build]").code == 0
    with watching("watch", "--json", "--last", "0") as process:
        ran = objects(run_until("tests", rounds=2, options=["--json"]))
        told = until(process, "result")
        interrupted(process)
    moves = "process"  # several at once are told as one
    assert [line for line in told if line["type"] != moves] == [line for line in ran if line["type"] != moves]
    assert [line["status"] for line in told if line["type"] == "check_finished"] == ["red", "green"]


def test_log_follows_checks_in_its_own_form(world: Path) -> None:
    checked_crew(world, {"tests": "test -e done || { touch done; exit 1; }"})
    repository()
    assert run_here("send", "[TEAM_TASK: Build]").code == 0
    with watching("log", "-f") as process, watching("log", "-f", "--json") as as_json:
        assert run_until("tests", rounds=2).code == 0
        for one in (process, as_json):
            assert one.stderr
            assert any(IDLE in line.decode() for line in one.stderr)
        assert interrupted(process).out == run_here("log").out
        assert objects(interrupted(as_json)) == objects(run_here("log", "--json"))


def test_a_check_that_was_killed_with_the_run_is_no_run_for_ever(world: Path, pids: Pids) -> None:
    checked_crew(world, {"tests": " ".join(agent("hang"))})
    repository()
    assert run_here("send", "[TEAM_TASK: Build]").code == 0
    with watching("watch") as process:
        run = start("run", "until", "--do", "max", "--check", "tests", "Build it")
        pids.await_count(1)
        run.kill()
        ended(run)
        assert process.stderr
        why = "check-1 was running when teamchat was killed"
        assert any(why in line.decode() for line in process.stderr)
        assert any(IDLE in line.decode() for line in process.stderr)
        interrupted(process)
    assert run_here("resume", "--drop").code == 0


@pytest.mark.usefixtures("talk")
def test_at_a_terminal_it_is_the_view_of_send() -> None:
    with screen("watch", "--last", "1", rows=100) as seen:
        seen.until(lambda text: IDLE in text)
        assert run_here("send", "--to", "max", "Go").code == 0
        rows = seen.until(lambda text: text.count(IDLE) == 2).split("\n")
        seen.child.sendintr()
        assert seen.to_the_end() == rows
        assert seen.child.exitstatus == 0
        assert seen.cursor_is_visible
    assert "▌ Hi" in rows[: rows.index(f"· {IDLE}")]
    assert "you → max   Go" in rows
    assert [row for row in rows if row.startswith("▌ word-")] == [f"▌ {word}" for word in WORDS]
    assert "▌ → sarah" in rows


@pytest.mark.usefixtures("talk")
def test_in_a_pipe_it_is_a_block_for_each_message_and_notes() -> None:
    with watching("watch") as process:
        assert run_here("send", "--to", "sarah", "And now?").code == 0
        assert process.stderr
        assert any(IDLE in line.decode() for line in process.stderr)
        seen = interrupted(process)
    assert (seen.code, seen.out) == (0, "kailai:\nHello\n\nsarah:\nHi\n\nkailai:\nAnd now?\n\nsarah:\nHi\n\n")


@pytest.mark.usefixtures("talk")
def test_log_follows_in_its_own_form() -> None:
    with watching("log", "-f", "-n", "1") as process, watching("log", "-f", "-n", "1", "--json") as as_json:
        assert run_here("send", "--to", "sarah", "And now?").code == 0
        for one in (process, as_json):
            assert one.stderr
            assert any(IDLE in line.decode() for line in one.stderr)
        assert interrupted(process).out == (
            "msg-2 sarah (turn 1):\nHi\n\nmsg-3 kailai -> sarah:\nAnd now?\n\nmsg-4 sarah (turn 2):\nHi\n\n"
        )
        assert objects(interrupted(as_json)) == objects(run_here("log", "-n", "3", "--json"))


@pytest.mark.usefixtures("talk")
def test_at_a_terminal_an_empty_line_stands_above_each_message_of_log() -> None:
    with screen("log", "-f", "-n", "1") as shown:
        shown.until(lambda text: IDLE in text)
        assert run_here("send", "--to", "sarah", "And now?").code == 0
        shown.until(lambda text: text.count(IDLE) == 2)
        rows = shown.rows
        shown.child.sendintr()
        shown.to_the_end()
    heads = [at for at, row in enumerate(rows) if "   msg-" in row]
    assert len(heads) == 3
    assert [rows[at - 1] for at in heads[1:]] == ["", ""]
    assert all(rows[at] or rows[at + 1] for at in range(len(rows) - 1))


def test_who_comes_in_the_middle_of_a_turn_has_its_text_from_the_beginning(pids: Pids) -> None:
    actors({"max": claude("claude-delta Ha", "claude-delta lf", "claude-tool Bash", "hang")}, like="claude")
    with start("send", "Go") as run:
        assert eventually(pids.hang)
        with start("watch", "--json", "--stream", "--last", "1", "--until-done") as process:
            begins = until(process, "tool_call")
            kinds = [line["type"] for line in begins if line["type"] != "queued"]
            assert kinds == ["message", "turn_started", "text_delta", "tool_call"], "text read at once is told at once"
            assert streamed(begins, 1) == "Half"
            run.terminate()
            assert ended(run).code == 143
            finished, result = objects(ended(process))
    assert (finished["type"], finished["partial"], finished["code"]) == ("turn_finished", "Half", 130)
    assert (result["code"], result["paused"]) == (143, "interrupted")
    assert result["reason"] == "max was interrupted"


def test_of_a_kept_process_only_the_turn_that_runs_is_told() -> None:
    FILE.write_text(TEAM)
    assert run_here("trust").code == 0
    with start("send", "[NEXT:max] [NEXT:sarah] say early") as run:
        begun = eventually(lambda: run_here("show", "--reply").out == "half")
        assert begun, (run.poll(), run_here("log"), run_here("show"))
        with start("watch", "--json", "--stream", "--last", "0") as process:
            seen = until(process, "text_delta")
            assert (seen[-1]["turn"], streamed(seen, 3)) == (3, "half")
            assert not any(line["type"] in ("text", "message") for line in seen)
            run.terminate()
            ended(run)
            rest = until(process, "result")
            assert [line["type"] for line in rest] == ["turn_finished", "result"]
            assert interrupted(process).code == 0


def test_the_turns_of_a_kept_process_are_told_apart(world: Path) -> None:
    del world
    FILE.write_text(TEAM.replace("[NEXT:max] hang", "[NEXT:max] unsaid-late 0"))
    assert run_here("trust").code == 0
    assert run_here("send", "--to", "max", "say before").code == 0
    with watching("watch", "--json", "--stream", "--last", "0") as process:
        ran = run_here("send", "[NEXT:max] [NEXT:sarah] say early", "--json", "--stream")
        seen = until(process, "result")
        interrupted(process)
    agent = ("text", "message", "turn_started")  # pieces of a turn that was over at once are not stored
    told = [(line["type"], line.get("turn"), line.get("text")) for line in seen if line["type"] in agent]
    assert told == [
        (line["type"], line.get("turn"), line.get("text")) for line in objects(ran) if line["type"] in agent
    ]


def test_a_program_on_a_terminal_is_followed_as_well(world: Path) -> None:
    del world
    on_terminal("upper")
    assert run_here("send", "Good day").code == 9
    with watching("watch", "--json", "--stream", "--last", "0") as process:
        assert run_here("send", "And you?").code == 9
        seen = until(process, "result")
        interrupted(process)
    (reply,) = [line["text"] for line in seen if line["type"] == "message" and line["from"] == "max"]
    assert "AND YOU?" in str(reply)
    assert (seen[-1]["code"], seen[-1]["waiting"]) == (9, "kailai")


def test_of_a_killed_run_it_says_so_and_follows_what_resumes_it(pids: Pids) -> None:
    actors({"max": claude("claude-delta Half", "hang"), "sarah": ["claude-like", "Hi"]}, like="claude")
    with start("send", "[NEXT: max, sarah] Go") as run:
        assert eventually(pids.hang)
        with start("watch", "--json", "--stream", "--last", "0") as process:
            until(process, "text_delta")
            run.kill()
            ended(run)
            (killed,) = until(process, "result")
            assert killed["reason"] == "max was running when teamchat was killed"
            assert (killed["code"], killed["hint"]) == (130, "teamchat resume")
            assert run_here("resume", "--skip").code == 0
            seen = until(process, "result")
            assert [line["text"] for line in seen if line["type"] == "message"] == ["Hi"]
            assert seen[-1]["code"] == 0
            assert interrupted(process).code == 0


@pytest.mark.parametrize(
    ("reply", "code", "says"),
    [
        ({"say": "Done"}, 0, ""),
        ({"say": "Which? [NEXT: kailai]"}, 9, "asked: kailai, called by max in msg-2"),
        ({"say": "half", "exit": 3}, 1, "held: max, called by kailai in msg-1"),
    ],
)
def test_until_done_ends_at_once_where_nothing_runs(
    world: Path, reply: dict[str, object], code: int, says: str
) -> None:
    crew(world, {"max": [reply]})
    assert run_here("send", "Go").code == code
    seen = run_here("watch", "--until-done", "--last", "0")
    assert (seen.code, seen.out, seen.err) == (code, "", notes(says) if says else "")


@pytest.mark.parametrize(
    ("replies", "code", "says"),
    [
        (["One", "Two"], 0, ""),
        (
            ["One", {"say": "half", "exit": 3}],
            1,
            "· failed: max ended with exit code 3; held: max\n· try: teamchat resume\n",
        ),
    ],
)
def test_until_done_has_the_exit_code_of_the_run(
    world: Path, replies: list[str | dict[str, object]], code: int, says: str
) -> None:
    go = world / "go"
    made = crew(world, {"max": replies})
    assert run_here("send", "First").code == 0
    second = replies[1] if isinstance(replies[1], dict) else {"say": replies[1]}
    made.say("max", "One", {**second, "wait": str(go), "touch": str(world / "asked")})
    with start("send", "Go") as run:
        assert eventually((world / "asked").exists)
        with start("watch", "--until-done", "--last", "1") as process:
            assert process.stderr
            assert process.stderr.readline() == b"\xc2\xb7 max begins (turn 2)\n"
            go.touch()
            assert ended(run).code == code
            seen = ended(process)
    assert seen.code == code
    assert seen.err.endswith(says)


@pytest.mark.usefixtures("talk")
def test_it_ends_with_its_reader_and_on_request() -> None:
    with watching("watch", "--last", "0") as process:
        assert process.stdout
        process.stdout.close()
        process.stdout = None
        assert ended(process).code == 130
    with watching("watch", "--last", "0") as process:
        process.terminate()
        assert ended(process).code == 143


@pytest.mark.usefixtures("talk")
def test_a_session_that_is_deleted_ends_it() -> None:
    with watching("watch", "--last", "0") as process:
        assert run_here("sessions", "delete", "s1", "--yes").code == 0
        seen = ended(process)
    assert (seen.code, refused(seen)) == (4, "session s1 was deleted meanwhile")


@pytest.mark.usefixtures("talk")
def test_a_broken_team_file_hides_nothing() -> None:
    FILE.write_text("[team")
    (one, two) = objects(run_here("watch", "--json", "--until-done"))
    assert (one["text"], two["text"]) == ("Hello", "Hi")


@pytest.mark.usefixtures("talk")
def test_what_cannot_be_asked_for_is_refused() -> None:
    assert run_here("watch", "--stream").code == 2
    assert run_here("log", "-f", "--full", "msg-1").code == 2
    assert run_here("watch", "--session", "none").code == 4


def without_pieces(lines: list[dict[str, object]]) -> list[dict[str, object]]:
    return [line for line in lines if line["type"] != "text_delta"]


@pytest.mark.usefixtures("talk")
def test_who_is_stopped_meanwhile_is_told_all_of_it_later() -> None:
    with watching("watch", "--json", "--stream", "--last", "0") as process:
        process.send_signal(signal.SIGSTOP)
        ran = objects(run_here("send", "--to", "max", "Go", "--json", "--stream"))
        process.send_signal(signal.SIGCONT)
        seen = until(process, "result")
        assert without_pieces(seen) == without_pieces(ran)
        process.send_signal(signal.SIGSTOP)
        for _ in range(3):
            assert run_here("send", "-q", "--to", "sarah", "Again").code == 0
        process.send_signal(signal.SIGCONT)
        missing, *rest = until(process, "result")
        assert missing["text"] == "2 runs are missing here: teamchat log has the messages"
        assert [line["type"] for line in rest] == [
            "message", "queued", "turn_started", "message", "turn_finished", "result",
        ]  # fmt: skip
        assert interrupted(process).code == 0


@pytest.mark.usefixtures("talk")
@pytest.mark.parametrize("seed", range(trials(4)))
def test_of_a_run_that_is_killed_at_any_moment_all_is_told_that_it_printed(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 (no secret)
    with watching("watch", "--json", "--stream", "--last", "0") as process:
        with start("send", "--to", "max", "Go", "--json", "--stream") as run:
            assert run.stdout
            printed = [json.loads(run.stdout.readline()) for _ in range(chance.randint(1, 40))]
            run.kill()
            printed += objects(ended(run))
        seen = until(process, "result")
        assert interrupted(process).code == 0
    assert (seen[-1]["code"], seen[-1]["hint"]) == (130, "teamchat resume")
    assert seen[: len(printed)] == printed
    assert run_here("resume", "--drop").code == 0


@own_mounts
def test_after_a_disk_that_was_almost_full_it_says_what_is_missing_and_the_run_is_right(world: Path) -> None:
    crew(world, {"sarah": ["Hi", {"say": "Fine", "wait": str(world / "go"), "touch": str(world / "asked")}]})
    runs = store_file(Path.cwd()).parent / "runs"
    ran = on_a_small_disk(
        world,
        f"mkdir -p '{runs}'; mount -t tmpfs -o size=20m tmpfs '{runs}' || exit 99",
        "teamchat trust > /dev/null; teamchat send -q Hello > /dev/null",
        "teamchat watch --json --last 0 > seen 2> noted & watch=$!",
        f"until grep -q '{IDLE}' noted; do sleep 0.1; done",
        f"dd if=/dev/zero of='{runs}/filler' bs=1M count=8 2> /dev/null",
        f"(until [ -e '{world}/asked' ]; do sleep 0.1; done; rm '{runs}/filler'; touch '{world}/go') &",
        "teamchat send --json Go > told",
        "until grep -q result seen; do sleep 0.1; done",
        "kill $watch",
    )
    assert "= 0" in ran.err
    told, (missing, *seen) = (lines_in(Path(name)) for name in ("told", "seen"))
    assert missing["text"] == "3 lines are missing here: teamchat log has the messages"
    assert seen == told[3:]
    assert (told[-1]["text"], told[-1]["code"]) == ("Fine", 0)


def lines_in(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.usefixtures("talk")
def test_the_file_of_a_run_goes_with_its_session_and_a_replay_and_a_dry_run_write_none(tmp_path: Path) -> None:
    runs, cassette = store_file(Path.cwd()).parent / "runs", tmp_path / "one.cassette"
    assert run_here("send", "-q", "--new", "--to", "sarah", "--record", str(cassette), "Hi").code == 0
    assert sorted(file.name for file in runs.iterdir()) == ["session-1.jsonl", "session-2.jsonl"]
    for name in ("s1", "s2"):
        assert run_here("sessions", "delete", name, "--yes").code == 0
    assert list(runs.iterdir()) == []
    assert run_here("replay", str(cassette)).code == 0
    assert run_here("send", "--dry-run", "Hi").code == 0
    assert list(runs.iterdir()) == []
    assert list(state_dir().rglob("*.jsonl")) == []


@pytest.mark.usefixtures("talk")
def test_what_commands_do_that_begin_no_turn_is_told_too() -> None:
    with watching("watch", "--json", "--last", "0") as process:
        assert run_here("todo", "add", "Check it").code == 0
        assert run_here("undo", "--yes").code == 0
        (added,), (undone,) = until(process, "todo_added"), until(process, "warning")
        assert run_here("redo", "--yes").code == 0
        (redone,) = until(process, "warning")
        assert interrupted(process).out == ""
    assert added["text"] == "Check it"
    assert undone["text"] == "turn 1 and all later ones were undone: teamchat log --all"
    assert redone["text"] == "the undo of turn 1 was reverted"
