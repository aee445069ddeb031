"""Which message a member answers when several requests are under way: in `send`, chat's queue, groups and processes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from teamchat.core.errors import ExitCode
from tests.cli.test_chat import chat, leave, line
from tests.program import Started, ended, run_here, start
from tests.runners.processes import eventually
from tests.scripted_team import Crew, crew

ANSWERING = re.compile(r"You are answering (msg-\d+), from (\w+), below\.(.*)")


def waits(said: str, name: str = "held") -> dict[str, object]:
    """A reply that comes once the file `go-NAME` is there; the file NAME is there when its turn has begun."""
    return {"say": said, "touch": str(Path.cwd() / name), "wait": str(Path.cwd() / f"go-{name}")}


def answered(made: Crew, member: str, turn: int = -1) -> tuple[str, str]:
    """The id and the text of the message that a member was asked to answer."""
    prompt = made.prompts(member)[turn]
    [(message, _, _)] = ANSWERING.findall(prompt)
    return message, prompt.rpartition("\n\n")[2].strip()


@contextmanager
def held(*message: str) -> Iterator[Started]:
    """A process whose first member waits in its turn, and ends well."""
    with start(*message) as first:
        assert eventually(Path("held").exists)
        yield first
        Path("go-held").touch()
        assert ended(first).code == 0


def test_an_undone_call_answers_its_own_message_when_it_is_resumed(world: Path) -> None:
    made = crew(world, {"max": ["One", "Two", "One again"]})
    assert run_here("send", "QUESTION ONE").code == 0
    assert run_here("undo", "--yes").code == 0
    assert run_here("send", "QUESTION TWO").code == 0
    assert run_here("resume").code == 0
    assert answered(made, "max") == ("msg-1", "QUESTION ONE")
    prompt = made.prompts("max")[-1]
    assert prompt.index("QUESTION TWO") < prompt.index("Two") < prompt.index("You are answering msg-1")
    assert "answers   msg-1, for the request msg-1" in run_here("show").out


def test_a_call_that_was_on_hold_before_its_turn_began_answers_its_own_message(world: Path) -> None:
    made = crew(world, {"max": [{"exit": 1}], "sarah": ["One"], "carol": ["Two"]})
    assert run_here("send", "[NEXT: max, sarah] QUESTION ONE").code == ExitCode.MEMBER_FAILED
    assert run_here("send", "[NEXT: carol] QUESTION TWO").code == 0
    assert run_here("resume", "--skip").code == 0
    assert answered(made, "sarah") == ("msg-1", "QUESTION ONE")


def test_a_correction_from_a_second_terminal_is_what_the_next_member_reviews(world: Path) -> None:
    made = crew(world, {"max": [waits("A draft with tabs."), "The draft with spaces."], "sarah": ["Reviewed."]})
    with held("send", "[NEXT: max, sarah] Write it with tabs"), start("send", "[NEXT: max] No: use spaces") as second:
        assert eventually(lambda: "queued" in run_here("log").err)
        Path("go-held").touch()
        assert ended(second).code == 0
    assert answered(made, "sarah") == ("msg-4", "The draft with spaces.")
    prompt = made.prompts("sarah")[0]
    assert "It is part of the work on msg-1, from kailai. max wrote it for msg-3, from kailai, and it counts" in prompt
    assert "answers   msg-4, written for msg-3, for the request msg-1" in run_here("show").out


def test_other_work_from_a_second_terminal_is_not_reviewed(world: Path) -> None:
    made = crew(world, {"max": [waits("A draft.")], "sarah": ["Reviewed."], "carol": ["Something else."]})
    with held("send", "[NEXT: max, sarah] TASK"), start("send", "[NEXT: carol] OTHER") as second:
        assert eventually(lambda: "queued" in run_here("log").err)
        Path("go-held").touch()
        assert ended(second).code == 0
    assert answered(made, "sarah") == ("msg-2", "A draft.")
    prompt = made.prompts("sarah")[0]
    assert prompt.index("TASK") < prompt.index("OTHER") < prompt.index("Something else.") < prompt.index("A draft.")
    assert "It is not the newest message: the history goes on after it." in prompt


def test_what_is_typed_in_chat_meanwhile_is_other_work_as_well(world: Path) -> None:
    made = crew(world, {"max": [waits("A draft.")], "sarah": ["Reviewed."], "carol": ["Something else."]})
    with chat() as shown:
        line(shown, "[NEXT: max, sarah] TASK")
        shown.until(lambda _: Path("held").exists())
        line(shown, "[NEXT: carol] OTHER")
        shown.until(lambda text: "queued" in text)
        Path("go-held").touch()
        shown.until(lambda _: len(made.prompts("sarah")) == 1)
        shown.until(lambda text: "Reviewed." in text)
        assert leave(shown) == 0
    assert answered(made, "carol") == ("msg-3", "OTHER")
    assert answered(made, "sarah") == ("msg-2", "A draft.")


def test_a_correction_that_is_typed_in_chat_meanwhile_is_reviewed(world: Path) -> None:
    made = crew(world, {"max": [waits("A draft with tabs."), "The draft with spaces."], "sarah": ["Reviewed."]})
    with chat() as shown:
        line(shown, "[NEXT: max, sarah] Write it with tabs")
        shown.until(lambda _: Path("held").exists())
        line(shown, "[NEXT: max] No: use spaces")
        shown.until(lambda text: "queued" in text)
        Path("go-held").touch()
        shown.until(lambda text: "Reviewed." in text)
        assert leave(shown) == 0
    assert answered(made, "sarah") == ("msg-4", "The draft with spaces.")


def test_a_group_that_waits_answers_its_own_request(world: Path) -> None:
    made = crew(world, {"max": [waits("A draft.")], "sarah": ["Yes."], "bob": ["No."], "carol": ["Something else."]})
    with held("send", "[NEXT: max, sarah + bob] TASK"), start("send", "[NEXT: carol] OTHER") as second:
        assert eventually(lambda: "queued" in run_here("log").err)
        Path("go-held").touch()
        assert ended(second).code == 0
    assert answered(made, "sarah") == answered(made, "bob") == ("msg-2", "A draft.")


def test_a_sequential_process_goes_on_with_its_own_work(world: Path) -> None:
    made = crew(world, {"max": [waits("A draft.")], "sarah": ["Reviewed."], "carol": ["Something else."]})
    begin = ("run", "sequential", "--members", "max,sarah", "TASK")
    with held(*begin), start("send", "[NEXT: carol] OTHER") as second:
        assert eventually(lambda: "queued" in run_here("log").err)
        Path("go-held").touch()
        assert ended(second).code == 0
    assert answered(made, "carol") == ("msg-3", "OTHER")
    assert answered(made, "sarah") == ("msg-2", "A draft.")


@pytest.mark.parametrize(
    "begin",
    [("send", "[NEXT: max, sarah + bob] Write it"), ("run", "sequential", "--members", "max,sarah", "Write it")],
)
def test_a_correction_is_answered_by_a_group_and_in_a_process_as_well(world: Path, begin: tuple[str, ...]) -> None:
    made = crew(world, {"max": [waits("With tabs."), "With spaces."], "sarah": ["Yes."], "bob": ["No."]})
    with held(*begin), start("send", "[NEXT: max] No: use spaces") as second:
        assert eventually(lambda: "queued" in run_here("log").err)
        Path("go-held").touch()
        assert ended(second).code == 0
    assert answered(made, "sarah") == ("msg-4", "With spaces.")
    assert made.prompts("bob") == [] or answered(made, "bob") == ("msg-4", "With spaces.")


def test_a_call_of_a_killed_run_that_waited_answers_its_own_request(world: Path) -> None:
    made = crew(world, {"max": [waits("A draft."), "A draft."], "sarah": ["Reviewed."], "carol": ["Something else."]})
    with start("send", "[NEXT: max, sarah] TASK") as first:
        assert eventually(Path("held").exists)
        first.kill()
    Path("go-held").touch()
    assert run_here("send", "[NEXT: carol] OTHER").code == 0
    assert run_here("resume").code == 0
    assert answered(made, "max") == ("msg-1", "TASK")
    assert answered(made, "sarah") == ("msg-4", "A draft.")


def test_a_killed_turn_answers_the_same_when_it_is_resumed(world: Path) -> None:
    made = crew(world, {"max": [waits("One"), "One"], "sarah": ["Two"]})
    with start("send", "--to", "max", "QUESTION ONE") as first:
        assert eventually(Path("held").exists)
        first.kill()
    Path("go-held").touch()
    assert run_here("send", "--to", "sarah", "QUESTION TWO").code == 0
    assert run_here("resume").code == 0
    assert answered(made, "max") == ("msg-1", "QUESTION ONE")
