"""What stands on a person's screen while members work, and when they are done."""

from __future__ import annotations

import re
import signal
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from teamchat.runners.child.guardian import send_signal
from tests.cli.helpers import actors, objects
from tests.cli.test_terminal import claude
from tests.program import run_here
from tests.runners.processes import Pids
from tests.screens import Screen, screen
from tests.scripted_team import crew

WIDTHS = (40, 80, 120)
MOVING = re.compile("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]")
REPLY = """Here is **the plan**, which is long enough to be wrapped at the margin of every screen that is tried here:

- one
- two

| name | what |
|------|------|
| a    | adds |

```python
def slug(title):
    return title.lower()
```

[NEXT: sarah]"""


def unbarred(rows: list[str]) -> list[str]:
    return [row.removeprefix("▌").removeprefix(" ") for row in rows if row.startswith("▌")]


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_reply_is_rendered_and_wrapped_at_words_under_its_speakers_bar(world: Path, columns: int) -> None:
    crew(world, {"max": [REPLY], "sarah": ["Fine."]})
    with screen("send", "[NEXT: max] Plan it", columns=columns, rows=60) as seen:
        rows = seen.to_the_end()
    assert rows[:4] == ["· session s1 begins", "you → max   Plan it", "", "▌ max   max-agent · not bounded"]
    end = rows.index("▌ → sarah")
    body = unbarred(rows[4:end])
    assert len(body) == end - 4, "each line has its bar"
    text = " ".join(body)
    assert "Here is the plan, which is long enough to be wrapped at the margin of every screen that" in text
    assert [line for line in body if "•" in line] == [" • one", " • two"]
    assert "name  what" in body
    assert "a     adds" in body
    assert "  def slug(title):" in body
    assert "      return title.lower()" in body
    assert not set(text) & set("*`|[")
    assert "▌ sarah   sarah-agent · not bounded" in rows
    assert max(map(len, rows)) <= columns


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_line_says_who_works_and_moves_until_the_turn_ends(columns: int) -> None:
    actors({"max": claude("claude-tool Bash", "hang"), "sarah": ["claude-like", "Me."]}, like="claude")
    with screen("send", "[NEXT: max, sarah] Hi", columns=columns) as seen:
        first = status(seen, "max  running `make test`")
        assert re.fullmatch(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] max  running `make test`   0:0\d(   next: sarah)?", first)
        assert first.endswith("next: sarah") is (columns > 40)
        assert seen.until(lambda text: first not in text)
        seen.child.sendintr()
        rows = seen.to_the_end()
    assert not MOVING.search("\n".join(rows))
    assert "▌   ran     make test" in rows
    assert seen.cursor_is_visible


def status(seen: Screen, holds: str) -> str:
    """The row of the screen that has this text, once it is there."""
    rows = seen.until(lambda text: holds in text).split("\n")
    return next(row for row in rows if holds in row)


def test_every_member_of_a_group_has_a_line(world: Path) -> None:
    go = str(world / "go")
    crew(world, {"max": [{"say": "One"}], "sarah": [{"wait": go, "say": "Two"}], "carol": [{"wait": go, "say": "3"}]})
    with screen("send", "[NEXT: sarah + max + carol] Hi") as seen:
        text = seen.until(lambda text: re.search("✓ max ", text) and len(re.findall("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] ", text)) == 2)
        lines = text.split("\n")[-3:]
        assert [re.sub(r"\S ", "", line, count=1).split()[0] for line in lines] == ["sarah", "max", "carol"]
        Path(go).touch()
        rows = seen.to_the_end()
    assert [row for row in rows if "not bounded" in row] == [
        f"▌ {name}   {name}-agent · not bounded" for name in ("sarah", "max", "carol")
    ]
    assert not re.search("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏✓]", "\n".join(rows))


def test_the_last_words_of_each_member_of_a_group_are_beside_it() -> None:
    words = " ".join(f"word-{number}" for number in range(30))
    actors({name: ["words", "0.01", f"{name}-begins {words}", "+", "hang"] for name in ("max", "sarah")})
    with screen("send", "[NEXT: max + sarah] Hi") as seen:
        shown = seen.until(lambda text: text.count("word-29") == 2).split("\n")
        assert [row.split()[1:3] for row in shown[-2:]] == [["max", "writing"], ["sarah", "writing"]]
        assert all("word-29   0:0" in row for row in shown[-2:]), shown
        seen.child.sendintr()
        seen.to_the_end()


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_map_reduce_has_a_line_for_each_subtask(world: Path, columns: int) -> None:
    go = str(world / "go")
    plan = '["Port the lexer", "Port the parser", "Port the tests"]'
    wait: dict[str, object] = {"wait": go, "say": "Done"}
    crew(world, {"max": [plan, "All done."], "sarah": [{"say": "Done"}, wait], "carol": [wait]}, team={"lead": "max"})
    with screen("run", "mapreduce", "Port it", columns=columns) as seen:
        text = seen.until(lambda text: re.search("✓ 1 sarah", text) and len(MOVING.findall(text)) == 2)
        head, *subtasks, last = text.rstrip().split("\n")[-5:]
        assert head.startswith("✓ max planned 3 subtasks, 1 is done"[: columns - 2])
        assert [row.split()[1:3] for row in subtasks] == [["1", "sarah"], ["2", "carol"], ["3", "sarah"]]
        assert last == "· max merges the results"
        Path(go).touch()
        rows = seen.to_the_end()
    heads = [row for row in rows if "sarah-agent" in row]
    assert [row.endswith(("subtask 1 of 3", "subtask 3 of 3", "…")) for row in heads] == [True, True]
    assert "map-reduce: 3 of 3 subtasks are done" in rows
    assert not MOVING.search("\n".join(rows))
    assert max(map(len, rows)) <= columns


def test_a_resumed_map_reduce_shows_what_was_answered_before(world: Path) -> None:
    go = str(world / "go")
    plan = '["Port the lexer", "Port the parser"]'
    carol: dict[str, object] = {"wait": go, "say": "Done"}
    crew(world, {"max": [plan, "All done."], "sarah": ["Done"], "carol": [carol]}, team={"lead": "max"})
    assert run_here("run", "mapreduce", "--quiet", "--turns", "2", "Port it").code == 7
    with screen("resume") as seen:
        text = seen.until(lambda text: re.search("✓ 1 sarah", text) and MOVING.search(text))
        assert re.search("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] 2 carol  Port the parser", text)
        Path(go).touch()
        rows = seen.to_the_end()
    assert "map-reduce: 2 of 2 subtasks are done" in rows


def test_the_screen_never_stands_still_while_a_member_works() -> None:
    actors({"max": claude("hang")}, like="claude")
    with screen("send", "Hi") as seen:
        seen.until(lambda text: "thinking" in text)
        before, longest, since, until = seen.text, 0.0, time.monotonic(), time.monotonic() + 3
        while time.monotonic() < until:
            seen.read()
            if seen.text != before:
                longest = max(longest, time.monotonic() - since)
                before, since = seen.text, time.monotonic()
        assert max(longest, time.monotonic() - since) < 1
        seen.child.sendintr()
        seen.to_the_end()


def test_a_narrower_screen_loses_no_line_above_the_changing_ones(world: Path) -> None:
    go = str(world / "go")
    crew(world, {"max": [{"say": "One."}], "sarah": [{"wait": go, "say": "Two."}]})
    with screen("send", "[NEXT: max, sarah] Hi") as seen:
        seen.until(lambda text: "sarah  " in text and "One." in text)
        for columns in (50, 44, 90):
            seen.resize(columns, 24)
            seen.read(0.3)
        Path(go).touch()
        rows = seen.to_the_end()
    assert "▌ One." in rows
    assert "▌ Two." in rows
    assert rows[1] == "you → max, sarah   Hi"
    assert not MOVING.search("\n".join(rows))


def test_what_is_typed_meanwhile_hides_nothing(world: Path) -> None:
    go = str(world / "go")
    crew(world, {"max": [{"wait": go, "say": "One."}]})
    with screen("send", "Hi", echo=True) as seen:
        seen.until(lambda text: "max  " in text and "0:0" in text)
        for _ in range(3):
            seen.child.send("hm\r")
            seen.read(0.3)
        Path(go).touch()
        rows = seen.to_the_end()
    assert "▌ max   max-agent · not bounded" in rows
    assert "▌ One." in rows


def test_the_wait_for_a_retry_of_the_model_is_counted_down() -> None:
    actors({"max": claude("claude-retry 429", "hang")}, like="claude")
    with screen("send", "Hi") as seen:
        first, second = (seconds_to_wait(seen, "waiting for the model: retry 1 of 10") for _ in range(2))
        assert 60 >= first > second > 50
        seen.child.sendintr()
        seen.to_the_end()


def test_the_wait_for_a_members_next_attempt_is_counted_down(world: Path) -> None:
    limited = {"err": "rate limit reached, try again later\n", "exit": 1}
    crew(world, {"max": [limited, "Hello."]}, like={"max": "codex"}, members={"max": {"retries": 2}})
    with screen("send", "Hi") as seen:
        assert 1 <= seconds_to_wait(seen, "waiting to try again: retry 1 of 2") <= 3
        assert "▌ Hello." in seen.to_the_end()


def seconds_to_wait(seen: Screen, what: str) -> int:
    """The seconds that the line of a member counts down, once they have changed on the screen."""
    row = re.compile(rf"{re.escape(what)} in (\d+) s")
    before = row.search(seen.text)
    seen.until(lambda text: (now := row.search(text)) and (before is None or now[1] != before[1]))
    return int(row.findall(seen.text)[-1])


def test_the_line_has_the_tokens_that_the_turn_has_used_by_now() -> None:
    actors({"max": claude("claude-request 17999", "hang")}, like="claude")
    with screen("send", "Hi") as seen:
        assert re.search(r"max  thinking   0:0\d   18k tokens$", status(seen, "tokens"))
        seen.child.sendintr()
        seen.to_the_end()


def stop(_: Screen, __: Pids) -> None:
    assert run_here("stop").code == 0


def kill(_: Screen, pids: Pids) -> None:
    for pid in pids.alive():
        send_signal(pid, signal.SIGKILL)


ENDS: dict[str, Callable[[Screen, Pids], object]] = {
    "Ctrl-C": lambda seen, _: seen.child.sendintr(),
    "SIGTERM": lambda seen, _: seen.child.kill(signal.SIGTERM),
    "a closed terminal": lambda seen, _: seen.child.kill(signal.SIGHUP),
    "SIGKILL of the agent": kill,
    "SIGKILL": lambda seen, _: seen.child.kill(signal.SIGKILL),
    "stop": stop,
}


@pytest.mark.parametrize("end", ENDS)
def test_whatever_ends_it_the_terminal_is_as_it_was(pids: Pids, end: str) -> None:
    actors({"max": claude("tool", "hang")}, like="claude")
    with screen("send", "Hi") as seen:
        before = termios.tcgetattr(seen.child.child_fd)
        seen.until(lambda text: "thinking" in text)
        pids.await_count(4)
        ENDS[end](seen, pids)
        rows = seen.to_the_end()
        assert termios.tcgetattr(seen.child.child_fd) == before
    assert seen.cursor_is_visible
    assert MOVING.search("\n".join(rows)) is None or end == "SIGKILL"


def test_scripts_are_not_told_the_tokens_so_far() -> None:
    def lines(*steps: str) -> list[object]:
        actors({"max": claude(*steps, "claude-like Hi.")}, like="claude")
        told = objects(run_here("send", "--new", "--json", "--stream", "Hi"))
        return [line["type"] for line in told]

    assert lines("claude-request 17999") == lines()


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_log_is_rendered_under_the_bars_of_its_speakers(world: Path, columns: int) -> None:
    crew(world, {"max": [REPLY], "sarah": ["Fine."]})
    run_here("send", "[NEXT: max] Plan it")
    with screen("log", columns=columns, rows=60) as seen:
        rows = seen.to_the_end()
    assert rows[:6] == ["▌ kailai   msg-1", "▌ Plan it", "▌ → max", "", "▌ max   msg-2 · turn 1", rows[5]]
    assert "▌ name  what" in rows
    assert rows[-4:] == ["▌ → sarah", "", "▌ sarah   msg-3 · turn 2", "▌ Fine."]
    assert [row for row in rows if row and not row.startswith("▌")] == []
    assert max(map(len, rows)) <= columns
