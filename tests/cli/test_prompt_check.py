"""`teamchat test`: what members are told now, against what they were told in recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import objects, refused
from tests.images import png
from tests.program import Result, cli, run_here
from tests.scripted_team import crew

REPLIES = {"max": ["Plan.\n[NEXT: sarah]", "Thanks."], "sarah": ["Done.\n[NEXT: max]"]}
TAPE = Path("tapes/deep/talk.cassette")
NOW = ("--team", "./teamchat.toml")


def team(world: Path, sarah: str = "You are Sarah", **changes: object) -> None:
    crew(
        world,
        REPLIES,
        like={"max": "claude"},
        team={"lead": "max", "name": "crew", **changes},
        members={"max": {"system_instruction": "You are Max"}, "sarah": {"system_instruction": sarah}},
    )


@pytest.fixture(scope="module")
def tape() -> dict[str, str]:
    """What was recorded once, for all tests that only look at it."""
    return {}


@pytest.fixture(autouse=True)
def recorded(world: Path, tape: dict[str, str]) -> None:
    TAPE.parent.mkdir(parents=True)
    team(world)
    if not tape:
        assert cli("send", "--record", TAPE, "[NEXT:max] Go").code == 0
        tape["text"] = TAPE.read_text()
    TAPE.write_text(tape["text"])


def test_unchanged_prompts_are_one_line_and_no_agent_runs() -> None:
    Path("teamchat.toml").unlink()
    ran = run_here("test", "tapes")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"{TAPE}: as recorded (3 turns)\n1 cassette, 0 changed\n"


def test_a_changed_instruction_is_told_by_member_and_the_replies_go_on(world: Path, tape: dict[str, str]) -> None:
    team(world, sarah="You are picky")
    ran = run_here("test", "tapes", *NOW)
    assert ran.code == 1
    assert ran.out.splitlines()[:2] == [f"{TAPE}: changed", "  sarah, prompt of turn 2"]
    assert "    -You are Sarah\n    +You are picky\n" in ran.out
    assert "max" not in ran.out.replace("max (", "").partition("@@")[0]  # what max is told has not changed
    assert ran.out.endswith("1 cassette, 1 changed\n")
    assert TAPE.read_text() == tape["text"]


def test_the_same_change_in_several_turns_is_told_once(world: Path) -> None:
    team(world, name="band")
    (line, result) = objects(run_here("test", "tapes", "--json", *NOW))
    assert (line["type"], line["ok"], line["turns"], line["problem"]) == ("cassette", False, 3, None)
    changes = line["changes"]
    assert isinstance(changes, list)
    assert [(change["member"], change["what"], change["turns"]) for change in changes] == [
        ("max", "system text", [1, 3]),
        ("sarah", "prompt", [2]),
    ]
    assert result == {"v": 1, "type": "result", "code": 1, "cassettes": 1, "changed": 1}


def test_updating_accepts_the_prompts_as_they_are_now(world: Path, tape: dict[str, str]) -> None:
    team(world, sarah="You are picky")
    ran = run_here("test", "tapes", "--update", *NOW)
    assert ran.code == 0
    assert f"{TAPE}: updated (3 turns)" in ran.out
    assert run_here("test", "tapes", *NOW).out == f"{TAPE}: as recorded (3 turns)\n1 cassette, 0 changed\n"
    assert run_here("replay", "--speed", "0", "--verify", TAPE).code == 0
    assert [path.name for path in TAPE.parent.iterdir()] == [TAPE.name]
    team(world)
    assert run_here("test", "tapes", "--update", *NOW).code == 0
    there, back = (text.partition("\n")[2] for text in (tape["text"], TAPE.read_text()))  # the team's folder differs
    assert there == back


def test_updating_keeps_the_images_of_a_message_and_how_much_of_it_was_typed(world: Path) -> None:
    crew(world, {"max": ["Nice."] * 4}, like={"max": "claude"})
    Path("a.png").write_bytes(png())
    assert run_here("send", "--new", "--record", "shot.cassette", "Look", "--file", "a.png").code == 0
    before = Path("shot.cassette").read_text().split("\n")[1]
    crew(world, {"max": ["Nice."] * 4}, like={"max": "claude"}, members={"max": {"system_instruction": "Be kind"}})
    assert run_here("test", "shot.cassette", "--update", *NOW).code == 0
    assert Path("shot.cassette").read_text().split("\n")[1] == before
    assert '"images": [{"name": "a.png", "kind": "png"}], "typed": 4' in before


def test_a_cassette_that_can_not_be_played_does_not_hide_the_others(world: Path) -> None:
    Path("tapes/a.cassette").write_text("{}\n")
    crew(world, {"max": ["Hi"]}, team={"lead": "max"})
    ran = run_here("test", "tapes", *NOW)
    assert ran.code == 1
    first, second, total = [line for line in ran.out.splitlines() if not line.startswith(" ")]
    assert first.startswith(
        "tapes/a.cassette: cannot be played: tapes/a.cassette is not a cassette of this version: line 1:"
    )
    assert second.startswith(f"{TAPE}: cannot be played: the cassette has no recording of this turn of max")
    assert total == "2 cassettes, 2 changed"


def test_a_turn_that_nobody_asks_for_now_is_a_change(world: Path) -> None:
    team(world)
    text = Path("teamchat.toml").read_text()
    Path("teamchat.toml").write_text(text.replace('name = "sarah"', 'name = "sahra"'))
    ran = run_here("test", "tapes", *NOW)
    assert ran.code == 1
    assert "recorded turns that nobody asks for now: sarah, max" in ran.out


def test_a_folder_without_cassettes_is_an_error() -> None:
    Path("empty").mkdir()
    assert run_here("test", "empty") == Result(
        2,
        "",
        "teamchat: there is no *.cassette in empty\n"
        "  try: teamchat send --new --record empty/session.cassette 'Your message'\n",
    )


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("nowhere", "there is no folder nowhere"),
        ("no.cassette", "the cassette no.cassette cannot be read: No such file or directory"),
        ("/dev/null", "the cassette /dev/null cannot be read: it is not a file"),
    ],
)
def test_what_is_neither_a_folder_nor_a_cassette_is_told_in_one_line(where: str, error: str) -> None:
    assert run_here("test", where) == Result(2, "", f"teamchat: {error}\n")


def test_a_single_file_may_be_named_whatever_it_is() -> None:
    TAPE.rename("other.jsonl")
    assert run_here("test", "other.jsonl").code == 0


def test_a_file_that_is_named_and_is_no_cassette_is_a_usage_error() -> None:
    Path("tapes/a.cassette").write_text("{}\n")
    ran = run_here("test", "tapes/a.cassette")
    assert ran.code == 2
    assert refused(ran).startswith("tapes/a.cassette is not a cassette of this version: line 1: ")
