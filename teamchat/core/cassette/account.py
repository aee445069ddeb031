"""The account of a run: all that it stored, except for time and machine. It is recorded, and compared by a replay.

Two accounts of the same inputs and the same agents are equal, whenever and wherever they are made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from teamchat.core.check import CheckResult
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.engine.state import Route
from teamchat.core.messages import ConversationMessage, well_formed
from teamchat.core.receipt import Outcome, Setup
from teamchat.core.routing.todos import Todo
from teamchat.core.store.checks import CheckRecord, checks_of, find_check
from teamchat.core.store.database import Database
from teamchat.core.store.routes import all_routes
from teamchat.core.store.summaries import last_clear
from teamchat.core.store.todos import todos_of
from teamchat.core.store.turn_events import stored_events
from teamchat.core.store.turns import Turn, partial_of, turn_numbers, turns_of
from teamchat.core.text.clean import visible
from teamchat.core.text.line_diff import unified_diff
from teamchat.runners.agent_events import NOTHING_YET
from teamchat.runners.child.supervisor import SILENT, UNSAID
from teamchat.runners.untrusted.file_changes import FileChanges

SETUP = (
    "access", "access_note", "why", "answers", "request", "attempt", "model", "inert_mentions", "trimmed", "memory",
    "resumes", "fresh_because", "opened", "host",
)  # fmt: skip
OUTCOME = ("failure", "exit_code", "model", "usage", "denied", "files", "tools", "left", "notes", "reply")
ROUTE = ("number", "target", "priority", "group", "parent", "by", "request", "as_of", "status", "attempt")


class Mark(Struct, frozen=True):
    """The state of a conversation: how many messages, turns and checks it had, and which routes were finished."""

    messages: int
    turns: int
    checks: int
    over: frozenset[int]


def progress_mark(coordinator: ConversationCoordinator) -> Mark:
    db, session = coordinator.run.db, coordinator.session
    waiting = {route.number for route in coordinator.state.queue}
    over = frozenset(route.number for route in all_routes(db, session)) - waiting
    last = find_check(db, session)
    messages, turns = len(coordinator.manager.get_messages()), len(turn_numbers(db, session))
    return Mark(messages, turns, last.number if last else 0, over)


def account(coordinator: ConversationCoordinator, since: Mark) -> dict[str, Any]:
    """Collect the messages, turns, routes and checks since then."""
    db, session = coordinator.run.db, coordinator.session
    numbers = turn_numbers(db, session)
    messages = coordinator.manager.get_messages()[since.messages :]
    stored: dict[str, Any] = {
        "messages": [_message(message, numbers) for message in messages],
        "turns": [_turn(db, turn) for turn in turns_of(db, session)[since.turns :]],
        "routes": [_route(route) for route in all_routes(db, session) if route.number not in since.over],
        "checks": [_check(check) for check in checks_of(db, session, since.checks)],
        "task": coordinator.manager.get_team_task(),
        "todos": [_todo(item) for item in todos_of(db, session).items.values()],
    }
    if clear := last_clear(db, session):
        stored["cleared"] = clear.through
    return {name: well_formed_json(values) for name, values in stored.items()}


def standing(coordinator: ConversationCoordinator) -> dict[str, Any]:
    """Describe the state of a conversation, from its store.

    If all its runs were recorded, `standing_of` gives an equal value.
    """
    db, session, now = coordinator.run.db, coordinator.session, progress_mark(coordinator)
    stored = account(coordinator, now)
    return {
        "messages": [well_formed(message.content) for message in coordinator.manager.get_messages()],
        "turns": now.turns,
        "checks": now.checks,
        "routes": {str(route.number): route.status.value for route in all_routes(db, session)},
        "task": stored["task"],
        "todos": stored["todos"],
        "cleared": stored.get("cleared"),
    }


def standing_of(ends: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Describe the state of a conversation after runs with these accounts."""
    last = ends[-1] if ends else {}
    return {
        "messages": [message["text"] for end in ends for message in end["messages"]],
        "turns": sum(len(end["turns"]) for end in ends),
        "checks": sum(len(end.get("checks", ())) for end in ends),
        "routes": {str(route["number"]): route["status"] for end in ends for route in end["routes"]},
        "task": last.get("task"),
        "todos": last.get("todos") or [],
        "cleared": last.get("cleared"),
    }


def well_formed_json(value: Any) -> Any:
    """Return the value as JSON represents it, in text that a file can hold."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {well_formed(key): well_formed_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [well_formed_json(item) for item in value]
    return value


def _message(message: ConversationMessage, numbers: dict[int, int]) -> dict[str, Any]:
    return {
        "id": message.id,
        "speaker": message.speaker.role_name,
        "kind": message.speaker.type,
        "to": message.routing.resolved_addressees,
        "markers": message.routing.raw_next_markers,
        "text": message.content,
        "turn": None if message.turn_id is None else numbers[message.turn_id],
        "stands_for": message.stands_for,
    }


def _turn(db: Database, turn: Turn) -> dict[str, Any]:
    facts = ("number", "member", "agent", "status", "route", "shown_through", "vendor_session")
    return {name: getattr(turn, name) for name in facts} | {
        "setup": _facts(turn.setup, SETUP),
        "outcome": _facts(turn.outcome, OUTCOME) if turn.outcome else None,
        "partial": partial_of(db, turn),
        "events": [
            (event.type, event.data) for event in stored_events(db, turn.id) if not _silent(event.data.get("text"))
        ],
    }


def _facts(of: Setup | Outcome, names: tuple[str, ...]) -> dict[str, Any]:
    facts = json.loads(json.dumps(to_builtins(of), default=list))
    notes = {"notes": [note for note in facts["notes"] if not _silent(note)]} if "notes" in facts else {}
    return {name: facts[name] for name in names} | notes


def _silent(text: object) -> bool:
    """Whether it is a note on silence, which only reports time."""
    return isinstance(text, str) and text.startswith((SILENT, NOTHING_YET, UNSAID))


def _check(check: CheckRecord) -> dict[str, Any]:
    result, changes = check.result or CheckResult("not_run"), check.changes
    facts = {name: getattr(check, name) for name in ("number", "route", "name", "command", "after", "status")}
    names = ("reason", "exit_code", "not_run", "output_bytes", "left", "count", "attempt", "fresh")
    facts |= {name: getattr(result, name) for name in names} | {"touched": [one.path for one in result.touched]}
    return facts | {"files": [file.path for file in changes.files] if isinstance(changes, FileChanges) else []}


def _todo(item: Todo) -> dict[str, Any]:
    return {"number": item.number, "by": item.added.by, "text": item.added.text, "done": item.done is not None}


def _route(route: Route) -> dict[str, Any]:
    part = {"part": {"role": route.part.role, "number": route.part.number}} if route.part else {}
    return {name: getattr(route, name) for name in ROUTE} | {"status": route.status.value} | part


CONTEXT_LINES = 2
LONGEST = 200  # characters shown of a value


def differences(then: Any, now: Any, where: str = "") -> Iterator[str]:
    """List each difference with its place, a unified diff for texts; nothing if they are equal."""
    if then == now:
        return
    match then, now:
        case dict(), dict():
            for key, value in then.items():  # a newer version may have more keys
                yield from differences(value, now.get(key), f"{where} {key}".strip())
        case list(), list() if _texts(then) and _texts(now):
            yield from text_difference(then, now, where)
        case list(), list():
            yield from _items(then, now, where)
        case str(), str() if "\n" in then + now:
            yield from text_difference(then.split("\n"), now.split("\n"), where)
        case _:
            yield f"{where}: {_short(now)} instead of {_short(then)}"


def _texts(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _items(then: list[Any], now: list[Any], where: str) -> Iterator[str]:
    where = where.removesuffix("s")
    for number, (recorded, other) in enumerate(zip(then, now, strict=False), 1):
        yield from differences(recorded, other, f"{where} {number}")
    both = min(len(then), len(now))
    yield from (f"{where} {number}: only recorded: {_short(gone)}" for number, gone in enumerate(then[both:], both + 1))
    yield from (f"{where} {number}: only now: {_short(fresh)}" for number, fresh in enumerate(now[both:], both + 1))


def text_difference(then: list[str], now: list[str], where: str) -> Iterator[str]:
    """Write a unified diff: the recorded lines (-) and the present ones (+)."""
    lines = unified_diff(then, now, f"{where} recorded", f"{where} now", CONTEXT_LINES)
    yield from (visible(line).replace("\n", " ") for line in lines)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return visible(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")
