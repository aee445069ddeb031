"""What building one prompt of a long conversation takes, by the length of it.

The whole way is measured: messages from a store on disk, every layer asked of its source, the budget, the fence and
keys taken out. The floor is one regular expression that takes the prompt apart into words. `growth` is the slope of
time over length, both as logarithms, fitted to four lengths from 500 to 10,000 messages: 1 is linear.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.figure import Figure, Measures
from benchmarks.timing import TOKEN, best_ms
from teamchat.core.context.build import BuiltPrompt, build_prompt, exists
from teamchat.core.context.conversation_view import manager_of
from teamchat.core.context.layers.sources import collector_of
from teamchat.core.engine.state import Route
from teamchat.core.messages import NewMessage, Routing, Speaker
from teamchat.core.receipt import Setup
from teamchat.core.routing.todos import MOST_OPEN, Add
from teamchat.core.store.database import Database
from teamchat.core.store.lessons import add_lesson
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import create_session
from teamchat.core.store.summaries import Summary, add_summary
from teamchat.core.store.texts import pack
from teamchat.core.store.todos import note_todos
from teamchat.core.store.turns import NewTurn, begin_turn
from teamchat.core.team.team import Member, Team

MESSAGES = 2_000
NAME = f"{MESSAGES:,} messages"
COUNTS = (500, MESSAGES, 5_000, 10_000)
TURNS = 50
RUNS = 5
LARGEST = 10**9  # bytes or tokens of a prompt, so that nothing is left out
TEXTS = (  # so short that 10,000 fit into the default budget
    "Message {} is where? [NEXT: max]",
    "In `docs/part.md`, line {}.",
    "See src/parser.py:{}",
    "Größer als {}, in Zeile 7.",
)


def store_at(folder: Path, messages: int) -> tuple[Team, Database, int]:
    """A conversation of a person and an agent of another vendor than the reader's, and something in every layer."""
    docs = folder / "docs"
    docs.mkdir()
    for number in range(20):
        (docs / f"{number}.md").write_text(f"# Part {number}\n\n" + f"Where message {number} is. " * 200)
    members = (
        Member("kailai", "human", folder),
        Member("max", "ai", folder, agent="claude", knowledge={"docs": docs}),
        Member("sarah", "ai", folder, agent="codex"),
    )
    sizes: dict[str, Any] = {"max_bytes": LARGEST, "max_prompt_tokens": LARGEST}
    team = Team("bench", members, folder, context_window=messages, fence=True, task="Find it", **sizes)
    db = Database(folder / "teamchat.db")
    session = create_session(db, team.name, team.task).id
    log = SqliteLog(db, session)
    with db.transaction():
        for number in range(messages + 2):  # the first is summed up, the last is the one to answer
            log.append(said(number))
        for number in range(50):
            add_lesson(db, f"Lesson {number}: message {number} is where it was", None)
        note_todos(db, session, [Add(f"Look at message {number}") for number in range(MOST_OPEN)], "kailai")
        setup = Setup((), {}, str(folder), "read", "", "", "msg-1", "msg-1")
        new = NewTurn(session, None, "max", "claude", "claude", None, pack(b""), "msg-1", setup, folder)
        turn = begin_turn(db, new)
        told = "The first message asked where it was. " * 50
        add_summary(db, session, turn, Summary("max", "msg-1", (), told), pack(told.encode()))
    return team, db, session


def said(number: int) -> NewMessage:
    name, kind = ("kailai", "human") if number % 2 == 0 else ("sarah", "ai")
    speaker = Speaker(name, name, type=kind)  # type: ignore[arg-type]
    return NewMessage(TEXTS[number % len(TEXTS)].format(number), speaker, Routing(("max",)))


def build(team: Team, db: Database, session: int) -> BuiltPrompt:
    """The newest message's prompt, as a process builds it that has just started."""
    return building(team, db, session)()


def building(team: Team, db: Database, session: int) -> Callable[[], BuiltPrompt]:
    """Builds the newest message's prompt, in one process each time."""
    manager, collector = manager_of(team, db, session), collector_of(team, db, session)

    def build() -> BuiltPrompt:
        latest = manager.get_latest_message()
        assert latest is not None
        route = Route(latest.id, "kailai", latest.id, 1, "max")
        return build_prompt(team, team.member("max"), route, manager, exists, collector=collector)

    return build


def measures(quick: bool) -> Measures:
    runs = RUNS if quick else 2 * RUNS
    yield NAME, lambda: figures(runs)


@contextmanager
def conversation(messages: int) -> Iterator[tuple[Team, Database, int]]:
    with tempfile.TemporaryDirectory() as folder:
        team, db, session = store_at(Path(folder), messages)
        try:
            yield team, db, session
        finally:
            db.close()


def figures(runs: int) -> Iterator[Figure]:
    """Time and memory for the 2,000 messages, and the growth up to 10,000."""
    took: dict[int, float] = {}
    for count in COUNTS:
        with conversation(count) as stored:
            prompt = build(*stored)  # and the files are indexed from here on
            if prompt.assembled.trimmed:
                raise RuntimeError(f"the prompt of {count} messages is trimmed")
            took[count] = best_ms(partial(build, *stored), runs)
            if count == MESSAGES:
                text = prompt.assembled.prompt
                peak = peak_bytes(partial(build, *stored))
    words = best_ms(partial(TOKEN.findall, text), runs)
    size = len(text.encode())
    yield Figure(
        name=NAME, unit="ms", value=took[MESSAGES], floor=words, bound=20,
        floor_is=f"a regular expression over its {size >> 10} KiB",
    )  # fmt: skip
    slope = statistics.linear_regression([math.log(one) for one in took], [math.log(one) for one in took.values()])[0]
    yield Figure(name=f"{NAME}, growth", unit="", value=slope, bound=1.2)
    yield Figure(name=f"{NAME}, peak memory", unit="MB", value=peak / 1e6, floor=size / 1e6, floor_is="the prompt")


def peak_bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
