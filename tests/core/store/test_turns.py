from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import convert, to_builtins
from msgspec.structs import replace

from teamchat.assemblers.parts import Trimmed
from teamchat.core.errors import DamagedStore
from teamchat.core.receipt import Outcome, Setup
from teamchat.core.store.checking import problems
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import create_session
from teamchat.core.store.texts import pack
from teamchat.core.store.turn_events import KINDS, StoredEvent, TimedEvent, stored_events
from teamchat.core.store.turns import (
    NewTurn,
    Turn,
    begin_turn,
    end_turn,
    find_turn,
    partial_of,
    prompt_of,
    running_turns,
    system_of,
    trace,
    turn_numbers,
    turns_of,
)
from teamchat.runners.agent_events import (
    AgentEvent,
    Denied,
    Done,
    Failure,
    FailureKind,
    Note,
    Retry,
    Started,
    Text,
    TextDelta,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UsedSoFar,
)

SETUP = Setup(
    argv=("claude", "-p", "--model", "opus"),
    env={"TMPDIR": "/tmp/x", "OPENAI_API_KEY": None},
    cwd="/work",
    access="edit",
    access_note="edits",
    why="kailai asked for max in msg-1",
    answers="msg-1",
    request="msg-1",
    attempt=2,
    model="opus",
    stdin_bytes=3,
    system_bytes=5,
    inert_mentions=1,
    trimmed=Trimmed(1, 2, 3),
)
OUTCOME = Outcome(
    exit_code=-9,
    seconds=1.5,
    failure=Failure(FailureKind.TIMEOUT, "took too long", "raise its timeout"),
    first_byte_s=0.25,
    model="opus",
    usage=Usage(1, 2, None, 0.5, cumulative=True),
    denied=(Denied("Bash", "rm -rf /"),),
    files=("a.py",),
    tools=3,
    left=("sleep",),
    notes=("note",),
    stderr_tail="oh no",
    reply="msg-2",
)
AWKWARD = ["\ud800", "a\udcffb", "nul \0 nul", "\x1b[31m", "水 🙂", "\u2028\r\n", '"\\']


def some_turn(
    db: Database, session: int, setup: Setup = SETUP, prompt: bytes = b"Hi\n", system: str | None = None
) -> Turn:
    packed = pack(system.encode()) if system else None
    new = NewTurn(session, 1, "max", "claude", "claude", packed, pack(prompt), "msg-1", setup, Path("/tmp/turn"))
    return begin_turn(db, new)


def test_a_turn_that_began_is_running_and_has_all_it_was_given(db: Database, session: int) -> None:
    turn = some_turn(db, session, system="You are Max")
    assert (turn.number, turn.status, turn.outcome, turn.setup) == (1, "running", None, SETUP)
    assert find_turn(db, session) == turn
    assert running_turns(db, session) == [turn]
    assert prompt_of(db, turn) == b"Hi\n"
    assert system_of(db, turn) == "You are Max"
    assert partial_of(db, turn) == ""


def test_a_turn_that_ended_has_all_that_came_of_it(db: Database, session: int) -> None:
    turn = some_turn(db, session)
    end_turn(db, turn, "failed", OUTCOME, trace("half", "v-1"))
    found = find_turn(db, session)
    assert found is not None
    assert (found.status, found.outcome, found.vendor_session) == ("failed", OUTCOME, "v-1")
    assert partial_of(db, found) == "half"
    assert system_of(db, found) is None
    assert running_turns(db, session) == []


@pytest.mark.parametrize("denied", [None, ()])
def test_unknown_and_none_stay_apart(db: Database, session: int, denied: tuple[Denied, ...] | None) -> None:
    end_turn(db, some_turn(db, session), "done", Outcome(0, 0.0, denied=denied, usage=None))
    found = find_turn(db, session)
    assert found is not None
    assert found.outcome == Outcome(0, 0.0, denied=denied, usage=None)


def test_turns_are_numbered_within_their_session(db: Database, session: int) -> None:
    other = create_session(db, "team", None).id
    turns = [some_turn(db, place) for place in (session, other, session)]
    assert [turn.number for turn in turns] == [1, 1, 2]
    assert turns_of(db, session) == [turns[0], turns[2]]
    assert turn_numbers(db, session) == {turns[0].id: 1, turns[2].id: 2}
    assert find_turn(db, session, 1) == turns[0]
    assert find_turn(db, session, 3) is None
    assert find_turn(db, session, 10**30) is None


def test_events_are_kept_with_their_times_and_without_those_that_are_only_shown(db: Database, session: int) -> None:
    turn = some_turn(db, session)
    events: list[AgentEvent] = [
        Started("opus"),
        TextDelta("a"),
        TextDelta("b"),
        UsedSoFar(Usage(5, 0, 1)),
        Text("ab"),
        ToolCall("t1", "Bash", "ls"),
        ToolResult("t1", "file", failed=False, paths=("a.py",)),
        Retry("rate limit", FailureKind.RATE_LIMIT, 1, 10, 0.5),
        Note("note"),
        Done(ok=True),
    ]
    timed = [TimedEvent(number + 0.12345, event) for number, event in enumerate(events)]
    end_turn(db, turn, "done", OUTCOME, trace(events=timed))
    kept = stored_events(db, turn.id)
    assert [event.type for event in kept] == ["Started", "Text", "ToolCall", "ToolResult", "Retry", "Note", "Done"]
    assert kept[1] == StoredEvent(4.123, "Text", {"text": "ab"})
    assert kept[3].data == {"id": "t1", "output": "file", "failed": False, "paths": ["a.py"], "exit_code": None}
    told = {"reason": "rate limit", "kind": "rate_limit", "attempt": 1, "most": 10, "delay_s": 0.5}
    assert kept[4].data == told


@pytest.mark.parametrize("text", AWKWARD)
def test_any_text_can_be_part_of_a_receipt(db: Database, session: int, text: str) -> None:
    setup = replace(SETUP, argv=(text,), cwd=text, env={text: text})
    turn = some_turn(db, session, setup)
    outcome = replace(OUTCOME, files=(text,), stderr_tail=text, notes=(text,))
    end_turn(db, turn, "failed", outcome, trace(events=[TimedEvent(0.0, Note(text))]))
    found = find_turn(db, session)
    assert found is not None
    assert (found.setup, found.outcome) == (setup, outcome)
    assert stored_events(db, found.id) == [StoredEvent(0.0, "Note", {"text": text})]


@pytest.mark.parametrize("text", AWKWARD)
def test_a_partial_text_is_kept_as_utf8_can_hold_it(db: Database, session: int, text: str) -> None:
    turn = some_turn(db, session)
    end_turn(db, turn, "failed", OUTCOME, trace(text))
    found = find_turn(db, session)
    assert found is not None
    assert partial_of(db, found) == text.encode("utf-8", "replace").decode()


def test_the_same_prompt_and_instructions_are_stored_once(db: Database, session: int) -> None:
    one, other = (some_turn(db, session, prompt=b"p", system="s") for _ in range(2))
    assert (one.prompt_key, one.system_key) == (other.prompt_key, other.system_key)
    assert db.rows("SELECT COUNT(*) FROM texts")[0][0] == 2


def test_ending_a_turn_is_part_of_the_callers_transaction(db: Database, session: int) -> None:
    turn = some_turn(db, session)

    def fail() -> None:
        with db.transaction():
            end_turn(db, turn, "failed", OUTCOME, trace("half", events=[TimedEvent(0.0, Note("note"))]))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert running_turns(db, session) == [turn]
    assert stored_events(db, turn.id) == []


@pytest.mark.parametrize("text", ["x" * 1_000_000, "水 and text\n" * 100_000, "a lone \ud800"])
def test_a_text_of_any_length_is_stored(db: Database, session: int, text: str) -> None:
    turn = some_turn(db, session)
    events: list[AgentEvent] = [Note("a"), Text(text), Text(text), Text("b"), ToolCall("1", "Bash", "ls")]
    events += [ToolResult("1", text, failed=True, exit_code=3), Thinking(text)]
    end_turn(db, turn, "done", OUTCOME, trace(events=[TimedEvent(1.0, event) for event in events]))
    stored = stored_events(db, turn.id)
    assert [convert(event.data, KINDS[event.type]) for event in stored] == events
    assert [event.data for event in stored_events(db, turn.id)] == [
        json.loads(json.dumps(to_builtins(event))) for event in events
    ]
    assert not [problem for problem in problems(db) if "event" in problem]


@pytest.mark.parametrize(("kind", "data"), [("Text", "[]"), ("Text", "{}"), ("Text", "["), ("Nothing", "{}")])
def test_what_is_no_event_is_damage(db: Database, session: int, kind: str, data: str) -> None:
    turn = some_turn(db, session)
    end_turn(db, turn, "done", OUTCOME, trace())
    db.execute("INSERT INTO turn_events VALUES (?, 0, 1.0, ?, ?)", turn.id, kind, data)
    with pytest.raises(DamagedStore, match="an event cannot be read"):
        stored_events(db, turn.id)
    assert [problem.partition(":")[0] for problem in problems(db)][1:] == ["an event cannot be read"]


def test_a_tool_call_that_was_cut_short_is_read_with_a_result(db: Database, session: int) -> None:
    turn = some_turn(db, session)
    events: list[AgentEvent] = [ToolResult("t0", "nobody asked"), ToolCall("t1", "Bash", "ls"), Note("stopped")]
    end_turn(db, turn, "interrupted", OUTCOME, trace(events=[TimedEvent(1.0, event) for event in events]))
    kept = stored_events(db, turn.id)
    assert [event.type for event in kept] == ["ToolCall", "ToolResult", "Note"]
    assert kept[1].data == {"id": "t1", "output": "aborted", "failed": True, "paths": []}


def test_an_event_takes_no_more_room_than_its_text(db: Database, session: int) -> None:
    end_turn(db, turn := some_turn(db, session), "done", OUTCOME, trace(events=[TimedEvent(0.0, Text("水" * 1000))]))
    assert db.rows("SELECT LENGTH(CAST(data AS BLOB)) FROM turn_events")[0][0] < 3100
    assert stored_events(db, turn.id)[0].data == {"text": "水" * 1000}
