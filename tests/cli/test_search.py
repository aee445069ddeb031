"""`search`: plain in a pipe, highlighted at a terminal, as JSON; and any characters as words."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pexpect
import pytest

from teamchat.cli.search import moment_of
from teamchat.core.errors import UsageError
from tests.cli.helpers import notes, objects, refused, steady
from tests.program import TIMEOUT_S, Result, argv, run_here
from tests.scripted_team import crew
from tests.terminals import Terminal


@pytest.fixture(autouse=True)
def _made(world: Path) -> None:
    crew(world, {"max": ["The version\noption is done.", "Slugs"]}, humans=("kai",))
    assert run_here("send", "[NEXT: max] Add a version option").code == 0
    assert run_here("send", "--new", "--session", "my slugs", "--title", "Addresses", "Which \x1b[31m slugs?").code == 0


def test_in_a_pipe_each_hit_says_where_it_is_and_how_to_read_all_of_it() -> None:
    assert steady(run_here("search", "version", "opt*")) == Result(
        0,
        "s1  msg-2 max  WHEN  Add a version option\n"
        "  The version option is done.\n"
        "  teamchat log --full msg-2 --session s1\n"
        "\n"
        "s1  msg-1 kai  WHEN  Add a version option\n"
        "  [NEXT: max] Add a version option\n"
        "  teamchat log --full msg-1 --session s1\n"
        "\n",
        "",
    )
    assert run_here("log", "--full", "msg-2", "--session", "s1").out == "The version\noption is done."


def test_at_a_terminal_what_was_found_is_highlighted_and_nothing_can_repaint_it() -> None:
    env = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": ""}
    program, *rest = argv("search", "slugs")
    child = Terminal(program, rest, env=env, timeout=TIMEOUT_S, encoding="utf-8")
    child.expect(pexpect.EOF)
    child.close()
    shown = str(child.before).replace("\r\n", "\n")
    assert "\x1b[1mmy slugs  msg-2 max  just now  Addresses\x1b[0m\n  \x1b[1;33mSlugs\x1b[0m\n" in shown
    assert "\x1b[31m" not in shown
    assert "teamchat log --full msg-1 --session 'my slugs'" in shown


def test_as_json_each_hit_is_one_object() -> None:
    (hit,) = objects(run_here("search", "--json", "--member", "max", "slugs"))
    assert isinstance(hit.pop("at"), float)
    assert hit == {
        "v": 1, "type": "hit", "session": "my slugs", "title": "Addresses", "message": "msg-2", "from": "max",
        "undone": False, "snippet": "Slugs", "found": ["Slugs"],
        "show": "teamchat log --full msg-2 --session 'my slugs'",
    }  # fmt: skip


def test_a_search_is_narrowed_and_says_how_many_more_there_are() -> None:
    assert len(objects(run_here("search", "--json", "--session", "s1", "version"))) == 2
    assert run_here("search", "--session", "my slugs", "version") == Result(
        0, "", notes("no message has all these words")
    )
    assert run_here("search", "--limit", "1", "version").err == notes("1 more (--limit 0 prints all)")
    assert objects(run_here("search", "--json", "--from", "2999-01-01", "version")) == []
    assert len(objects(run_here("search", "--json", "--from", "1h", "version"))) == 2
    ran = run_here("search", "--session", "x", "version")
    assert (ran.code, refused(ran)) == (4, "there is no session 'x' (sessions: my slugs, s1)")


def test_an_undone_message_is_only_found_with_all() -> None:
    assert run_here("undo", "--session", "s1", "--yes", "--conversation").code == 0
    assert [hit["message"] for hit in objects(run_here("search", "--json", "version"))] == ["msg-1"]
    undone, _ = objects(run_here("search", "--json", "--all", "version"))
    assert (undone["message"], undone["undone"]) == ("msg-2", True)
    assert undone["show"] == "teamchat log --all --full msg-2 --session s1"
    assert "msg-2 max, undone" in run_here("search", "--all", "done").out
    assert run_here("log", "--all", "--full", "msg-2", "--session", "s1").code == 0


ODD = ('"', "*", "NEAR(", "a AND", "content:", "^x", "--", "\udcff", "(", "-", "''", "{a b}:")


@pytest.mark.parametrize("query", ODD)
def test_a_query_of_any_characters_never_fails(query: str) -> None:
    ran = run_here("search", "--", query)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err in (notes("no message has all these words"), notes("there is no letter and no digit to search for"))


def test_a_search_of_too_many_words_is_refused() -> None:
    assert run_here("search", *["version"] * 32).code == 0
    ran = run_here("search", *["version"] * 33)
    assert (ran.code, refused(ran)) == (2, "a search has at most 32 words and phrases, and these are 33")


def test_a_member_that_nobody_is_called_is_refused() -> None:
    ran = run_here("search", "--member", "nobody", "version")
    assert (ran.code, refused(ran)) == (4, "nobody is called 'nobody' (there are: kai, max)")
    assert run_here("search", "--member", "nobody", "--json", "version").code == 4
    assert run_here("search", "--member", "KAI", "slugs").code == 0
    assert run_here("search", "--member", "max", "absent") == Result(0, "", notes("no message has all these words"))


def test_a_member_is_known_without_a_message_and_without_a_team_file(world: Path) -> None:
    crew(world, {"sarah": []}, humans=("kai",))
    nothing = Result(0, "", notes("no message has all these words"))
    assert run_here("search", "--member", "sarah", "version") == nothing
    assert run_here("search", "--member", "max", "absent") == nothing
    (world / "teamchat.toml").write_text("broken")
    assert run_here("search", "--member", "max", "absent") == nothing
    assert run_here("search", "--member", "nobody", "absent").code == 4


NOW = time.mktime((2026, 3, 10, 12, 0, 0, 0, 0, -1))


@pytest.mark.parametrize(
    ("text", "hours"),
    [("today", 12), ("yesterday", 36), ("2026-03-10T11:00", 1), ("2026-03-10", 12), ("90m", 1.5), ("2d", 48)],
)
def test_a_time_is_a_date_or_how_long_ago(text: str, hours: float) -> None:
    assert NOW - moment_of(text, NOW) == pytest.approx(hours * 3600)


@pytest.mark.parametrize("text", ["", "x", "2026-13-01", "-", "0m", "9" * 400])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--from .*: expected a date"):
        moment_of(text, NOW)
