"""A person continues the session of a Claude member beside its turn: what the session lost then is sent again, once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.cli.helpers import select
from tests.program import Result, run_here
from tests.scripted_team import Crew, crew

AGAIN = "Your session lost some of this history, your own messages too, so you are shown it once more."
TOLD = "max's session has lost its turn 2, beside which somebody continued it; it is shown the messages again"


@pytest.fixture
def made(world: Path) -> Crew:
    replies = ["One.", "Two.", "Three.", "Four."]
    return crew(world, {"max": replies}, like={"max": "claude"}, members={"max": {"memory": "resume"}})


def record(*rows: tuple[str, str | None], junk: Iterable[str] = ()) -> Path:
    """What Claude keeps of the member's session: rows, each with the one above it."""
    ((session,),) = select("SELECT DISTINCT vendor_session FROM turns")
    file = Path(os.environ["HOME"], ".claude/projects/-work", f"{session}.jsonl")
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"type": "user", "uuid": row, "parentUuid": above}) for row, above in rows]
    file.write_text("\n".join([*lines, *junk]) + "\n")
    return file


def sent(text: str) -> Result:
    ran = run_here("send", text)
    assert ran.code == 0, ran.err
    return ran


def setup(turn: int) -> dict[str, object]:
    ran = run_here("show", str(turn), "--json")
    found: dict[str, object] = json.loads(ran.out)["setup"]
    return found


BESIDE = (("row One.", None), ("row Two.", "row One."), ("by hand", "row One."))


def test_what_the_session_lost_is_shown_to_it_once_more(made: Crew) -> None:
    sent("First")
    sent("Second")
    record(*BESIDE)
    ran = sent("Third")
    assert TOLD in ran.err
    prompt = made.prompts("max")[-1]
    assert [prompt.count(text) for text in ("First", "One.", "Second", "Two.", "Third", AGAIN)] == [0, 0, 1, 1, 1, 1]
    assert setup(3)["lost"] == [2]
    shown = " ".join(run_here("show", "3").out.split())
    assert "it had lost turn 2, beside which somebody continued it, and is shown it again" in shown
    record(*BESIDE, ("row Three.", "by hand"))
    ran = sent("Fourth")
    prompt = made.prompts("max")[-1]
    assert [prompt.count(text) for text in ("Second", "Two.", "Third", "Three.", "Fourth", AGAIN)] == [0, 0, 0, 0, 1, 0]
    assert ("has lost" in ran.err, setup(4)["lost"]) == (False, [])


def test_a_session_that_has_lost_all_turns_is_left_for_a_fresh_one(made: Crew) -> None:
    sent("First")
    record(("by hand", None))
    assert "max begins a fresh session: its session has lost its turn 1" in sent("Second").err
    assert setup(2)["fresh_because"] == "its session has lost its turn 1: somebody continued it beside that"
    assert "First" in made.prompts("max")[-1]


@pytest.mark.parametrize(
    "rows",
    [
        (("row One.", None), ("row Two.", "row One.")),
        (("row One.", None), ("row Two.", "row One."), ("by hand", "row Two.")),  # a person went on after it
        (("row One.", None), ("by hand", "row One."), ("row Two.", "row One.")),  # the member ended last
    ],
)
def test_a_session_that_has_the_last_turn_gets_nothing_again(
    made: Crew, rows: tuple[tuple[str, str | None], ...]
) -> None:
    sent("First")
    sent("Second")
    record(*rows, junk=["half a ro", '{"type": "mode"}', '{"uuid": "of a subagent", "isSidechain": true}', "[]"])
    sent("Third")
    assert (setup(3)["lost"], "Second" in made.prompts("max")[-1]) == ([], False)


@pytest.mark.usefixtures("made")
def test_a_compaction_of_the_session_loses_no_turn() -> None:
    sent("First")
    sent("Second")
    file = record(("row One.", None), ("row Two.", "row One."))
    compacted = {"type": "system", "uuid": "compacted", "parentUuid": None, "logicalParentUuid": "row Two."}
    with file.open("a") as opened:
        opened.write(json.dumps(compacted) + "\n" + json.dumps({"uuid": "summary", "parentUuid": "compacted"}) + "\n")
    sent("Third")
    assert setup(3)["lost"] == []


@pytest.mark.usefixtures("made")
def test_a_record_that_is_gone_or_no_file_is_not_believed() -> None:
    sent("First")
    sent("Second")
    assert setup(2)["lost"] == []
    file = record()
    file.unlink()
    os.mkfifo(file)
    sent("Third")
    assert (setup(3)["lost"], setup(3)["fresh_because"]) == ([], None)
