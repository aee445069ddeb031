"""Members that are called twice, and calls in an earlier message of a turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from tests.cli.helpers import notes, objects
from tests.cli.inner import errors, select, team
from tests.program import cli, run_here

CALLS = "printf 'Done. [NEXT: bob]\\n'; exit 0"
JOINED = "one turn of bob answers max's call in msg-2, too"


def speakers() -> list[object]:
    return [line["from"] for line in objects(run_here("log", "--json"))]


def test_a_member_with_two_waiting_calls_speaks_once_and_its_prompt_names_both_callers() -> None:
    team(max=CALLS, bob="true")
    ran = cli("send", "[NEXT: max] [NEXT: bob] Go")
    assert ran.code == 0
    assert speakers() == ["kailai", "max", "bob"]
    assert notes(JOINED) in ran.err
    assert "from max, below" in run_here("show", "2", "--prompt").out
    assert "max calls you in msg-2, too." in run_here("show", "2", "--prompt").out
    (shown,) = objects(run_here("show", "2", "--json"))
    assert "kailai asked for bob in msg-1, max in msg-2" in json.dumps(shown)


def test_json_says_what_became_of_the_second_call() -> None:
    team(max=CALLS, bob="true")
    lines = objects(cli("send", "--json", "[NEXT: max] [NEXT: bob] Go"))
    queued = [line["number"] for line in lines if line["type"] == "queued"]
    (gone,) = [line for line in lines if line["type"] == "dropped"]
    assert (gone["number"], gone["status"], gone["by"]) == (queued[-1], "joined", "max")


def test_an_urgent_call_of_an_agent_joins_the_call_of_a_person() -> None:
    team(max="printf 'Done. [NEXT: bob !P1]\\n'; exit 0", bob="true")
    assert cli("send", "[NEXT: max] [NEXT: bob] Go").code == 0
    assert speakers() == ["kailai", "max", "bob"]
    assert "kailai calls you in msg-1, too." in run_here("show", "2", "--prompt").out


def test_a_member_speaks_again_if_others_speak_between_its_calls() -> None:
    team(max="printf 'Done. [NEXT: ann, bob]\\n'; exit 0", bob="true", ann="true")
    assert cli("send", "[NEXT: max] [NEXT: bob] Go").code == 0
    assert speakers() == ["kailai", "max", "bob", "ann", "bob"]


def test_an_undo_puts_the_joined_call_on_hold() -> None:
    world = team(max=CALLS, bob="echo turn >> ../turns")
    assert cli("send", "[NEXT: max] [NEXT: bob] Go").code == 0
    assert run_here("undo", "--yes").code == 0
    assert run_here("resume").code == 0
    assert speakers() == ["kailai", "max", "bob"]
    assert "max calls you in msg-2, too." in run_here("show", "3", "--prompt").out
    assert (world / "turns").read_text() == "turn\n" * 2


def test_a_retry_of_a_failed_turn_names_both_callers() -> None:
    team(max=CALLS, bob="test -e ../once || { touch ../once; exit 1; }")
    assert cli("send", "[NEXT: max] [NEXT: bob] Go").code == 1
    assert cli("resume").code == 0
    assert speakers() == ["kailai", "max", "bob"]
    assert "max calls you in msg-2, too." in run_here("show", "3", "--prompt").out


def test_two_requests_of_people_get_two_turns() -> None:
    team(max="true", bob="test -e ../hold && exit 1; echo")
    (Path.cwd().parent / "hold").touch()
    assert cli("send", "--to", "bob", "One").code == 1
    (Path.cwd().parent / "hold").unlink()
    assert cli("send", "--to", "bob", "Two").code == 0
    assert cli("resume").code == 0
    assert speakers() == ["kailai", "kailai", "bob", "bob"]


def codex(*texts: str) -> None:
    """A team whose member `max` reports these texts as a Codex does, one message after the other."""
    world = team(bob="true", max="true")
    messages = [{"type": "item.completed", "item": {"type": "agent_message", "text": text}} for text in texts]
    used = {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1}
    events = [{"type": "thread.started", "thread_id": "t"}, *messages, {"type": "turn.completed", "usage": used}]
    (world / "max.sh").write_text(
        "cat > /dev/null\ncat <<'EVENTS'\n" + "\n".join(map(json.dumps, events)) + "\nEVENTS\n"
    )
    file = Path("teamchat.toml")
    file.write_text(file.read_text().replace("[agents.max-agent]\n", '[agents.max-agent]\nlike = "codex"\n'))
    trust_store().grant(load(file.absolute()))


TOLD = "max calls bob in an earlier message of its turn, and not in its reply: nobody was called by that"


def test_a_call_in_an_earlier_codex_message_gets_a_warning() -> None:
    codex("First I look. [NEXT: bob]", "It is done.")
    ran = cli("send", "--to", "max", "Go")
    assert notes(TOLD) in ran.err
    assert speakers() == ["kailai", "max"]


@pytest.mark.parametrize(
    "texts", [("[NEXT: bob] I look.", "Done. [NEXT: bob]"), ("`[NEXT: bob]`", "Done."), ("Done.",)]
)
def test_a_repeated_call_and_a_quoted_call_get_no_warning(texts: tuple[str, ...]) -> None:
    codex(*texts)
    ran = cli("send", "--to", "max", "Go")
    assert ran.code == 0, errors(Path.cwd().parent)
    assert "earlier message" not in ran.err
    assert select("SELECT COUNT(*) FROM messages") == [(2 + ("[NEXT" in texts[-1]),)]
