"""What building one prompt of a long conversation takes, by the length of it: `make bench`.

The whole way is measured: messages from a store on disk, every layer asked of its source, the budget, the fence and
keys taken out. The floor is one `"".join` of the prompt's own lines in the same run. Time in proportion to the history
shows as the same figure for each message, memory as the same multiple of the prompt.
"""

from __future__ import annotations

import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

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


def best_ms(work: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return 1000 * min(times)


def main() -> None:
    parts: list[str] = []
    print("messages   prompt       build   each message   x one join   peak memory")
    for count in COUNTS:
        with tempfile.TemporaryDirectory() as folder:
            team, db, session = store_at(Path(folder), count)
            try:
                prompt = build(team, db, session)  # and the files are indexed from here on
                took = best_ms(partial(build, team, db, session))
                tracemalloc.start()
                build(team, db, session)
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            finally:
                db.close()
        text = prompt.assembled.prompt
        size = len(text.encode())
        join = best_ms(partial("".join, text.splitlines(keepends=True)))
        print(
            f"{count:8,} {size >> 10:6} KiB {took:8.0f} ms {1000 * took / count:9.0f} us"
            f" {took / join:12.0f} {peak / size:8.1f} x prompt"
        )
        assert not prompt.assembled.trimmed, prompt.assembled.trimmed
        parts = [block.name for block in prompt.assembled.blocks]
    print(f"with {', '.join(parts)}")


if __name__ == "__main__":
    main()
