"""`sessions`: titles, states, ages and costs, as a table at a terminal and as lines in a pipe."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pexpect
import pyte
import pytest

from teamchat.cli.output.listing import age, clock
from teamchat.cli.startup.workspace import store_file
from teamchat.core.store import listing
from teamchat.core.store.database import Database
from tests.cli.helpers import notes, objects, refused, steady
from tests.program import TIMEOUT_S, Result, argv, run_here, start
from tests.runners.processes import eventually
from tests.scripted_team import Reply, crew
from tests.terminals import Terminal

TEXT = "[NEXT: max] Add a --version option\n\n```\ndef main():\n```\n\n[TODO: document it]"


@pytest.fixture
def made(world: Path) -> None:
    """Three sessions: one is done, one asks, one is on hold."""
    replies: list[Reply] = ["Done.", "Which one?\n[NEXT: kai]", {"say": "half", "exit": 3}]
    crew(world, {"max": replies, "sarah": []}, humans=("kai",), like={"max": "claude"}, team={"name": "notes"})
    assert run_here("send", TEXT).code == 0
    assert run_here("send", "--new", "--session", "slugs", "--title", "Addresses of  pages", "Slugs?").code == 9
    assert run_here("send", "--new", "--to", "max", "Go").code == 1


def screen(*args: str, width: int = 80, height: int = 24) -> list[str]:
    """What stands on a terminal of that size after a command."""
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(width)}
    program, *rest = argv(*args)
    child = Terminal(program, rest, env=env, dimensions=(height, width), timeout=TIMEOUT_S, encoding="utf-8")
    child.expect(pexpect.EOF)
    child.close()
    shown = pyte.Screen(width, height)
    pyte.Stream(shown).feed(str(child.before))
    return [line.rstrip() for line in shown.display if line.strip()]


@pytest.mark.usefixtures("made")
def test_in_a_pipe_every_session_is_one_line_with_the_last_one_first() -> None:
    assert steady(run_here("sessions")) == Result(
        0,
        "s3  WHEN  on hold: max  1 message, 1 turn  $0.25  notes  Go\n"
        "slugs  WHEN  max asks kai  2 messages, 1 turn  $0.25  notes  Addresses of pages\n"
        "s1  WHEN  done (max)  2 messages, 1 turn  $0.25  notes  Add a --version option\n",
        "",
    )


@pytest.mark.usefixtures("made")
def test_at_a_terminal_they_are_a_table() -> None:
    assert screen("sessions") == [
        "▸ s3     Go                      just now  on hold: max  1 message   $0.25",
        "  slugs  Addresses of pages      just now  max asks kai  2 messages  $0.25",
        "  s1     Add a --version option  just now  done (max)    2 messages  $0.25",
    ]


@pytest.mark.usefixtures("made")
def test_on_a_narrow_terminal_nothing_is_cut() -> None:
    assert screen("sessions", width=40) == [
        "▸ s3     Go",
        "    just now  on hold: max  1 message",
        "    $0.25",
        "  slugs  Addresses of pages",
        "    just now  max asks kai  2 messages",
        "    $0.25",
        "  s1     Add a --version option",
        "    just now  done (max)  2 messages",
        "    $0.25",
    ]


def test_a_long_title_is_cut_to_the_width_and_wide_characters_keep_the_columns(world: Path) -> None:
    crew(world, {"max": ["Yes."] * 3}, humans=("kai",))
    for text in (
        "日本語の題名はとても長いので途中で切られるはずです、そうでしょう",
        "Go on " * 30,
        "\x1b[31mred\u202e",
    ):
        run_here("send", "--new", text)
    assert screen("sessions") == [
        "▸ s3  red\\u202e                                 just now  done (max)  2 messages",
        "  s2  Go on Go on Go on Go on Go on Go on Go …  just now  done (max)  2 messages",
        "  s1  日本語の題名はとても長いので途中で切ら …  just now  done (max)  2 messages",
    ]


@pytest.mark.usefixtures("made")
def test_as_json_each_has_everything() -> None:
    held, asks, done = objects(run_here("sessions", "--json"))
    assert {name: asks[name] for name in ("name", "title", "state", "messages", "turns", "cost_usd", "current")} == {
        "name": "slugs", "title": "Addresses of pages", "state": "asks", "messages": 2, "turns": 1, "cost_usd": 0.25,
        "current": False,
    }  # fmt: skip
    assert (held["state"], held["title"], held["turns_with_cost"], held["current"]) == ("on hold", "Go", 1, True)
    assert [(route["target"], route["status"]) for route in held["queue"]] == [("max", "held")]  # type: ignore[attr-defined]
    assert (done["state"], done["queue"], done["running"]) == ("done", [], [])
    assert (done["last"]["message"], done["last"]["from"]) == ("msg-2", "max")  # type: ignore[index]


def test_a_running_session_says_who_runs_and_for_how_long(world: Path) -> None:
    crew(world, {"max": [{"say": "Half", "hang": 600}]}, humans=("kai",))
    with start("send", "--to", "max", "Go") as first:
        assert eventually(lambda: bool(objects(run_here("sessions", "--json"))))
        assert eventually(lambda: bool(objects(run_here("sessions", "--json"))[0]["running"]))
        (line,) = objects(run_here("sessions", "--json"))
        assert line["state"] == "running"
        (shown,) = screen("sessions")
        assert re.fullmatch(r"▸ s1  Go  running  max, 0:\d\d  1 message", shown), shown
        first.kill()
    assert "  interrupted: max  1 message, 1 turn  " in run_here("sessions").out


@pytest.mark.usefixtures("made")
def test_rename_changes_the_title_and_not_the_name() -> None:
    assert run_here("sessions", "rename", "s1", "A", "version option") == Result(
        0, "", notes("session s1 is titled: A version option")
    )
    assert run_here("sessions").out.splitlines()[-1].endswith("  A version option")
    assert run_here("log", "--session", "s1").code == 0
    assert run_here("sessions", "rename", "s1").err == notes("session s1 is titled: Add a --version option")


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        (["rename", "slug", "x"], 4, "there is no session 'slug': did you mean slugs?"),
        (["rename", "s1", "x" * 101], 2, "expected at most 100 characters, got 101"),
        (["rename", "s1", " "], 2, "expected a title of printable characters, got ' '"),
        (["rename"], 2, "missing argument 'NAME'"),
    ],
)
def test_what_can_not_be_renamed_is_one_line(args: list[str], code: int, error: str) -> None:
    ran = run_here("sessions", *args)
    assert ran.code == code
    assert error in refused(ran)


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_a_title_for_a_session_that_continues_is_refused_with_the_command_that_changes_it(options: list[str]) -> None:
    ran = run_here("send", *options, "--session", "s1", "--title", "New title", "Hi")
    assert (ran.code, refused(ran)) == (2, "--title is for a new session, and s1 continues")
    assert ran.err.splitlines()[1] == "  try: teamchat sessions rename s1 'New title'"


def test_a_branch_has_a_title_of_its_own_once_something_was_said_in_it(world: Path) -> None:
    crew(world, {"max": ["Yes."] * 3})
    run_here("send", "Fix it well")
    assert run_here("branch", "other").code == 0
    assert [line["title"] for line in objects(run_here("sessions", "--json"))] == ["Fix it well", "Fix it well"]
    run_here("send", "--session", "other", "Try asyncio")
    assert [line["title"] for line in objects(run_here("sessions", "--json"))] == ["Try asyncio", "Fix it well"]


def test_a_name_that_is_not_there_is_refused_unless_it_is_new(world: Path) -> None:
    crew(world, {"max": ["Yes."] * 3})
    run_here("send", "--new", "--session", "login", "Hi")
    ran = run_here("send", "--session", "logon", "Hi")
    assert (ran.code, refused(ran)) == (4, "there is no session 'logon': did you mean login?")
    assert ran.err.splitlines()[1] == "  try: teamchat send --new --session logon Hi"
    assert [line["name"] for line in objects(run_here("sessions", "--json"))] == ["login"]
    assert run_here("send", "--new", "--session", "logon", "Hi").code == 0


@pytest.mark.usefixtures("made")
def test_no_query_of_the_list_reads_a_whole_table() -> None:
    db = Database(store_file(Path.cwd()))
    queries = (listing.QUEUES, listing.RUNNING, listing.LAST, listing.OWN_FIRST, listing.SHARED_FIRST)
    plans = [db.rows(f"EXPLAIN QUERY PLAN {sql}", *[1] * ("?1" in sql)) for sql in queries]
    db.close()
    steps = [str(row["detail"]) for plan in plans for row in plan]
    scans = [step for step in steps if step.startswith("SCAN")]
    assert all("USING INDEX routes_in_queue" in step or "USING INDEX turns_running" in step for step in scans), scans
    assert not [step for step in steps if "TEMP B-TREE" in step and "RIGHT PART" not in step], steps


NOW = time.mktime((2026, 3, 10, 12, 0, 0, 0, 0, -1))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (59, "just now"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (3600, "1 h ago"),
        (12 * 3600, "12 h ago"),
        (12 * 3600 + 1, "yesterday"),
        (6 * 86_400, "6 days ago"),
        (7 * 86_400, "2026-03-03"),
        (-30, "just now"),
        (-3600, "2026-03-10"),
    ],
)
def test_an_age_is_in_words(seconds: float, words: str) -> None:
    assert age(NOW - seconds, NOW) == words


@pytest.mark.parametrize(("seconds", "shown"), [(0.9, "0:00"), (42, "0:42"), (725, "12:05"), (3605, "1:00:05")])
def test_a_time_is_as_on_a_clock(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown
