"""`usage`: what was used and sent, and what is not known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from teamchat.cli.usage import layout
from tests.cli.helpers import objects, refused, rows
from tests.program import run_here
from tests.scripted_team import crew

RESUME = {"memory": "resume"}


@pytest.fixture
def spoken(world: Path) -> None:
    """max (claude) remembers and has spoken twice, sarah (codex) does not, al is a program that reports nothing."""
    crew(
        world,
        {"max": ["One", "Two", "Three"], "sarah": ["Me"], "al": ["Al", {"exit": 1}]},
        like={"max": "claude", "sarah": "codex"},
        members={"max": {**RESUME, "model": "opus"}, "sarah": {"model": "gpt"}},
    )
    for who in ("max", "max", "sarah", "al"):
        assert run_here("send", "--to", who, f"{who} " * 200).code == 0


def by_member(*args: str) -> dict[object, dict[str, object]]:
    return {line.get("member", "total"): line for line in objects(run_here("usage", "--json", *args))}


@pytest.mark.usefixtures("spoken")
def test_tokens_cost_and_bytes_are_summed_by_member_and_nothing_unknown_is_zero() -> None:
    used = by_member()
    assert list(used) == ["max", "sarah", "al", "total"]
    assert {name: used["max"][name] for name in ("session", "model", "memory", "turns")} == {
        "session": "s1", "model": "scripted", "memory": "resume", "turns": 2,
    }  # fmt: skip
    tokens = ("input_tokens", "output_tokens", "cached_tokens", "cost_usd")
    assert [[used[who][name] for name in tokens] for who in used] == [
        [200, 40, None, 0.5], [100, 20, None, None], [None, None, None, None], [None, None, None, None],
    ]  # fmt: skip
    assert used["total"]["at_least"] == {
        "input_tokens": 300, "cached_tokens": None, "output_tokens": 60, "cost_usd": 0.5,
    }  # fmt: skip
    assert (used["sarah"]["model"], used["al"]["model"]) == ("gpt", None)


@pytest.mark.usefixtures("spoken")
def test_the_bytes_sent_are_those_of_the_receipts_and_memory_saves_some() -> None:
    used = by_member()
    setups = [objects(run_here("show", turn, "--json"))[0]["setup"] for turn in "1234"]
    sent = [setup["stdin_bytes"] + setup["system_bytes"] for setup in setups]  # type: ignore[index]
    assert used["max"]["sent_bytes"] == sent[0] + sent[1]
    assert used["max"]["fresh_bytes"] == sent[0] + setups[1]["fresh_bytes"]  # type: ignore[index]
    assert used["total"]["sent_bytes"] == sum(sent)
    for who in ("sarah", "al"):
        assert (used[who]["fresh_bytes"], used[who]["saving"]) == (used[who]["sent_bytes"], 0.0)
    saving = used["max"]["saving"]
    assert isinstance(saving, float)
    assert 0.2 < saving < 0.8


@pytest.mark.usefixtures("spoken")
def test_a_person_reads_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_here("send", "--to", "al", "Once more").code == 1
    monkeypatch.setenv("COLUMNS", "120")
    lines = run_here("usage").out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["member", "model"], ["max", "scripted"], ["sarah", "gpt"], ["al", "unknown"], ["in", "all"],
    ]  # fmt: skip
    assert len({len(line) for line in lines}) == 1, "every column ends where its head does"
    assert "  resume      2      200  unknown       40    $0.50  " in lines[1]
    assert "  fresh       2  unknown  unknown  unknown  unknown  " in lines[3]
    assert "     ≥300  unknown      ≥60   ≥$0.50  " in lines[4]
    assert lines[3].endswith("  0%")
    assert re.search(r"  [\d,]+ (bytes|KB)  +[\d,]+ (bytes|KB)  +0%$", lines[3])
    monkeypatch.setenv("COLUMNS", "80")
    assert [line.strip() for line in run_here("usage").out.splitlines()[1::2]] == [
        "max · scripted · resume", "sarah · gpt · fresh", "al · unknown · fresh", "in all",
    ]  # fmt: skip


ROWS = [
    ["max", "claude-sonnet-4-5-20250929", "resume", "12", "≥182k", "170k", "4k", "≥$12.41", "812 KB", "2.1 MB", "61%"],
    ["a" * 40, "m" * 60, "fresh", "1", "unknown", "unknown", "unknown", "unknown", "4,000 bytes", "4,000 bytes", "0%"],
    ["in all", "", "", "13", "≥182k", "≥170k", "≥4k", "≥$12.41", "816 KB", "2.1 MB", "61%"],
]


def test_in_120_columns_a_member_has_a_line() -> None:
    assert list(layout([ROWS[0], ROWS[2]], 120)) == [
        "member  model                       memory  turns  input  cached  output     cost    sent   fresh  saved",
        "max     claude-sonnet-4-5-20250929  resume     12  ≥182k    170k      4k  ≥$12.41  812 KB  2.1 MB    61%",
        "in all                                         13  ≥182k   ≥170k     ≥4k  ≥$12.41  816 KB  2.1 MB    61%",
    ]


def test_in_80_columns_names_stand_above_numbers_and_long_ones_are_cut() -> None:
    lines = list(layout(ROWS, 80))
    assert lines == [
        "  turns    input   cached   output     cost         sent        fresh  saved",
        "max · claude-sonnet-4-5-20250929 · resume",
        "     12    ≥182k     170k       4k  ≥$12.41       812 KB       2.1 MB    61%",
        f"{'a' * 40} · {'m' * 36}…",
        "      1  unknown  unknown  unknown  unknown  4,000 bytes  4,000 bytes     0%",
        "in all",
        "     13    ≥182k    ≥170k      ≥4k  ≥$12.41       816 KB       2.1 MB    61%",
    ]
    assert max(map(len, lines)) == 80


@pytest.mark.usefixtures("spoken")
def test_all_conversations_are_summed_together_or_one_is_named() -> None:
    assert run_here("send", "--new", "--session", "other", "--to", "max", "Hi").code == 0
    assert (by_member()["max"]["turns"], by_member()["max"]["session"]) == (1, "other")
    assert by_member("--session", "s1")["max"]["turns"] == 2
    everything = by_member("--all")
    assert (everything["max"]["turns"], everything["max"]["session"]) == (3, None)
    assert everything["total"]["turns"] == 5


@pytest.mark.usefixtures("spoken")
def test_all_and_one_exclude_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run_here("usage", "--all", "--session", "s1")
    assert (ran.code, refused(ran)) == (2, "--all and --session exclude each other")
    monkeypatch.setenv("TEAMCHAT_SESSION", "s1")
    assert run_here("usage", "--all").code == 0


@pytest.mark.usefixtures("spoken")
def test_looking_at_it_changes_nothing() -> None:
    before = rows()
    run_here("usage", "--all")
    assert rows() == before


def test_where_nothing_was_said_nothing_was_used(world: Path) -> None:
    crew(world, {"max": []})
    ran = run_here("usage")
    assert (ran.code, refused(ran)) == (4, "there is no conversation here yet")
    (nothing,) = objects(run_here("usage", "--all", "--json"))
    assert (nothing["type"], nothing["turns"], nothing["cost_usd"]) == ("total", 0, 0)
