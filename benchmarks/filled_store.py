"""A store of as many messages as a benchmark wants, with what conversations leave in one.

Kai asks, a member answers, and so on. Each answer has its turn: receipt, events, prompt, route. One turn in a thousand
was undone with its question, and the first session has a branch from its middle on. Equal counts give equal stores.
"""

from __future__ import annotations

import atexit
import itertools
import json
import random
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from benchmarks.startup import TEAM
from benchmarks.world import World, world
from teamchat.core.engine.state import Route, RouteStatus
from teamchat.core.receipt import Outcome, Setup
from teamchat.core.store.counting import COUNT
from teamchat.core.store.database import Database
from teamchat.core.store.lineage import share_messages
from teamchat.core.store.message_index import index_messages
from teamchat.core.store.rows import dump
from teamchat.core.store.schema import RECOUNT
from teamchat.core.store.turns import Before
from teamchat.runners.agent_events import Started, Text, Usage

LARGE = 200_000
WORDS = 12  # in a message
VOCABULARY = [f"w{number:x}" for number in range(20_000)]
WEIGHTS = list(itertools.accumulate(1 / (place + 1) for place in range(len(VOCABULARY))))  # as in languages
PERSON, MEMBERS = "kai", ("max", "sarah", "carol")
BEGAN = 2_000_000_000  # when the last message was said: 2033-05-18
UNDONE = 1000  # one turn of so many
BRANCH = "branch"


class Exchange(NamedTuple):
    """A question of Kai's and its answer: the messages `2 * number - 1` and `2 * number` of a session.

    `place` counts the exchanges of all sessions from 0; the ids of rows follow from it.
    """

    session: int
    number: int
    place: int
    question: str
    answer: str

    @property
    def member(self) -> str:
        return MEMBERS[self.place % len(MEMBERS)]

    @property
    def turn(self) -> int:
        return self.place + 1

    @property
    def asked(self) -> str:
        return f"msg-{2 * self.number - 1}"

    @property
    def reply(self) -> str:
        return f"msg-{2 * self.number}"


def fill(file: Path, messages: int, sessions: int = 1) -> None:
    """Make the store `file` of so many messages in all, spread over sessions `s1`, `s2`, ...; the last was used last.

    An even number for each session. 200,000 take 12 seconds and 300 MB.
    """
    pairs = messages // sessions // 2
    with closing(Database(file)) as db:
        db.execute("PRAGMA journal_mode = OFF")  # else all of it is written twice
        db.execute("PRAGMA synchronous = OFF")
        with db.transaction():
            db.executemany(
                """INSERT INTO sessions (id, name, team, fence_key, created_at, used_at, used, used_typed,
                    used_by_scripts, next_route, turns, last_ai)
                VALUES (?, ?, 'bench', '', 1, 1, ?, ?, ?, ?, 1, 'max')""",
                ((at, f"s{at}", at, at, at, pairs + 1) for at in range(1, sessions + 1)),
            )
            exchanges = _exchanges(pairs, sessions)
            while some := list(itertools.islice(exchanges, 10_000)):
                _insert(db, some, BEGAN - sessions * pairs)
            for sql in (COUNT, *RECOUNT):
                db.execute(sql)
            index_messages(db)
            _undo(db, pairs, sessions)
            _branch(db, pairs)


def _exchanges(pairs: int, sessions: int) -> Iterator[Exchange]:
    chance = random.Random(1)  # noqa: S311 (the same store in every run)
    say = partial(chance.choices, VOCABULARY, cum_weights=WEIGHTS, k=WORDS)
    for place in range(pairs * sessions):
        session, number = divmod(place, pairs)
        yield Exchange(session + 1, number + 1, place, " ".join(say()), " ".join(say()))


def _insert(db: Database, exchanges: list[Exchange], began: float) -> None:
    prompts = [f"{one.question} (turn {one.turn})".encode() for one in exchanges]
    keys = [sha256(prompt).hexdigest() for prompt in prompts]
    db.executemany(
        "INSERT INTO texts (hash, bytes, compressed, body) VALUES (?, ?, 0, ?)",
        ((key, len(prompt), prompt) for key, prompt in zip(keys, prompts, strict=True)),
    )
    db.executemany(
        """INSERT INTO turns (id, session, number, route, member, agent, "like", status, started_at, prompt,
            shown_through, setup, folder, outcome, before_state)
        VALUES (?, ?, ?, ?, ?, 'claude', 'claude', 'done', ?, ?, ?, ?, '"/tmp/turn"', ?, ?)""",
        (_turn(one, key, began) for one, key in zip(exchanges, keys, strict=True)),
    )
    db.executemany("INSERT INTO turn_events VALUES (?, ?, ?, ?, ?)", _events(exchanges))
    db.executemany(
        """INSERT INTO messages (id, session, message, number, content, speaker_id, speaker_name, speaker_type,
            routing, turn, timestamp, typed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        _messages(exchanges, began),
    )
    db.executemany(
        """INSERT INTO routes (session, number, target, priority, parent, "by", request, as_of, status, attempt)
        VALUES (?, ?, ?, 2, ?, ?, ?, ?, 'done', 1)""",
        ((one.session, one.number, one.member, one.asked, PERSON, one.asked, one.asked) for one in exchanges),
    )


def _messages(exchanges: Iterable[Exchange], began: float) -> Iterator[tuple[object, ...]]:
    for one in exchanges:
        at, number = 1000 * int(began + one.place), 2 * one.number
        yield (
            2 * one.place + 1, one.session, one.asked, number - 1, one.question, PERSON, PERSON, "human",
            f'[["{one.member}"], []]', None, at, len(one.question),
        )  # fmt: skip
        yield (
            2 * one.place + 2, one.session, one.reply, number, one.answer, one.member, one.member, "ai",
            "[[], []]", one.turn, at + 500, 0,
        )  # fmt: skip


def _turn(one: Exchange, prompt: str, began: float) -> tuple[object, ...]:
    """Its JSON is that of a real turn, with the names of its messages put in."""
    setup = SETUP.replace("msg-0", one.asked)
    outcome = OUTCOME.replace("msg-0", one.reply)
    before = BEFORE.replace("-1", str(2 * one.place + 1)).replace("-2", str(one.number)).replace("msg-0", one.asked)
    at = began + one.place
    return one.turn, one.session, one.number, one.number, one.member, at, prompt, one.asked, setup, outcome, before


SETUP = dump(
    Setup(
        ("claude", "-p", "--output-format", "stream-json"), {"TMPDIR": "/tmp/turn"}, "/tmp/work", "read",  # noqa: S108
        "enforced by its CLI", "kai asked for max in msg-0", "msg-0", "msg-0", stdin_bytes=400, fresh_bytes=400,
        shown_from="msg-0", thread_key="7beffdd4b7ad2d7f", fresh_because="its memory is fresh",
    )
)  # fmt: skip
OUTCOME = dump(Outcome(0, 1.5, model="opus", version="2.1.0", usage=Usage(400, 300, 60, 0.01), reply="msg-0"))
BEFORE = dump(
    Before(
        (Route("msg-0", PERSON, "msg-0", -2, "max", status=RouteStatus.RUNNING),),
        turns=0, since=float(BEGAN), last_ai="max", stale=0, task=None, through=-1, first=-2,
    )
)  # fmt: skip
STARTED = dump(Started("opus", "2.1.0"))


def _events(exchanges: Iterable[Exchange]) -> Iterator[tuple[object, ...]]:
    for one in exchanges:
        yield one.turn, 0, 0.1, Started.__name__, STARTED
        yield one.turn, 1, 1.2, Text.__name__, json.dumps({"text": one.answer})


def _undo(db: Database, pairs: int, sessions: int) -> None:
    undone = range(UNDONE, pairs * sessions, UNDONE)  # ids of turns; the newest is never one of them
    db.executemany(
        """INSERT INTO undos (id, session, number, scope, status, at, turn, through, before_state, trees)
        SELECT id, session, number, 'both', 'done', 1, number, 2 * id - 2, before_state, '{}'
        FROM turns WHERE id = ?""",
        ((turn,) for turn in undone),
    )
    db.executemany("UPDATE turns SET undone = id WHERE id = ?", ((turn,) for turn in undone))
    db.executemany(
        "INSERT INTO hides (session, message, undo) SELECT session, ?2, id FROM turns WHERE id = ?1",
        ((turn, message) for turn in undone for message in (2 * turn - 1, 2 * turn)),
    )


def _branch(db: Database, pairs: int) -> None:
    branch = db.execute(
        "INSERT INTO sessions (name, team, fence_key, created_at, used_at) VALUES (?, 'bench', '', 1, 1)", BRANCH
    )
    share_messages(db, 1, branch.lastrowid or 0, pairs // 2 * 2)


@cache
def large() -> World:
    """A world with a conversation of 200,000 messages, made once for all benchmarks, removed when the program ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    made = stack.enter_context(world(TEAM))
    fill(made.enter(), LARGE)
    return made
