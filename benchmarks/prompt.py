"""What building one prompt of a long conversation takes, by the length of it.

The whole way is measured: messages from a store on disk, every layer asked of its source, the budget, the fence and
keys taken out. The floor is one `"".join` of the prompt's own lines. `growth` is the slope of time over length, both as
logarithms: 1 is linear.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import tracemalloc
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.figure import Figure, Measures
from benchmarks.timing import best_ms
from teamchat.core.context.build import BuiltPrompt, build_prompt, exists
from teamchat.core.context.context_manager import manager_of
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

COUNTS = (2_500, 5_000, 10_000)
RUNS = 5
TEXT = "Message {} is where? [NEXT: max]"  # so short that all of it fits into the default budget


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
    team = Team("bench", members, folder, context_window=messages, max_prompt_tokens=10**9, fence=True, task="Find it")
    db = Database(folder / "teamchat.db")
    session = create_session(db, team.name, team.task).id
    log = SqliteLog(db, session)
    with db.transaction():
        for number in range(messages + 2):  # the first is summed up, the last is the one to answer
            name, kind = ("kailai", "human") if number % 2 == 0 else ("sarah", "ai")
            speaker = Speaker(name, name, type=kind)  # type: ignore[arg-type]
            log.append(NewMessage(TEXT.format(number), speaker, Routing(("max",))))
        for number in range(50):
            add_lesson(db, f"Lesson {number}: message {number} is where it was", None)
        note_todos(db, session, [Add(f"Look at message {number}") for number in range(MOST_OPEN)], "kailai")
        setup = Setup((), {}, str(folder), "read", "", "", "msg-1", "msg-1")
        new = NewTurn(session, None, "max", "claude", "claude", None, pack(b""), "msg-1", setup, folder)
        turn = begin_turn(db, new)
        told = "The first message asked where it was. " * 50
        add_summary(db, session, turn, Summary("max", "msg-1", (), told), pack(told.encode()))
    return team, db, session


def build(team: Team, db: Database, session: int) -> BuiltPrompt:
    """The newest message's prompt, as a process builds it that has just started."""
    manager = manager_of(team, db, session)
    latest = manager.get_latest_message()
    assert latest is not None
    route = Route(latest.id, "kailai", latest.id, 1, "max")
    return build_prompt(team, team.member("max"), route, manager, exists, collector=collector_of(team, db, session))


def measures(quick: bool) -> Measures:
    yield "10,000 messages", lambda: figures(COUNTS, RUNS if quick else 2 * RUNS)


def figures(counts: Sequence[int], runs: int) -> Iterator[Figure]:
    """Those of the longest conversation, and the growth up to it."""
    took = []
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            team, db, session = store_at(Path(folder), count)
            try:
                prompt = build(team, db, session)  # and the files are indexed from here on
                took.append(best_ms(partial(build, team, db, session), runs))
                tracemalloc.start()
                build(team, db, session)
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            finally:
                db.close()
        if prompt.assembled.trimmed:
            raise RuntimeError(f"the prompt of {count} messages is trimmed")
    text = prompt.assembled.prompt
    join = best_ms(partial("".join, text.splitlines(keepends=True)), runs)
    size = len(text.encode())
    name = f"{count:,} messages"
    yield Figure(
        name=name, unit="ms", value=took[-1], floor=join, floor_is=f"one join of its {size >> 10} KiB", bound=100,
        by="value",
    )  # fmt: skip
    yield Figure(
        name=f"{name}, growth",
        unit="",
        value=statistics.linear_regression(
            [math.log(count) for count in counts], [math.log(one) for one in took]
        ).slope,
        bound=1.1,
    )
    yield Figure(name=f"{name}, peak memory", unit="MB", value=peak / 1e6, floor=size / 1e6, floor_is="the prompt")
