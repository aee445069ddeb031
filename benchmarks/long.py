"""What commands take in a conversation of 200,000 messages, over the same in one of two."""

from __future__ import annotations

from functools import partial

from benchmarks.figure import Measures
from benchmarks.filled_store import fill, large
from benchmarks.startup import ON_HOLD, TEAM
from benchmarks.timing import compared
from benchmarks.world import world

FEW = 2
BOUND = 1.3
COMMANDS = (
    ("status", ["status"], 0),
    ("log -n 20", ["log", "-n", "20"], 0),
    ("show", ["show"], 0),
    ("sessions", ["sessions"], 0),
    ("usage", ["usage"], 0),
    ("send", ["send", "--quiet", "--to", "max", "Hi"], 0),
    ("resume", ["resume", "--quiet", "--turns", "1"], ON_HOLD),
)


def measures(_quick: bool) -> Measures:
    many = large()
    with world(TEAM) as few:
        fill(few.enter(), FEW)
        for name, command, code in COMMANDS:
            if name == "resume":
                for at in (few, many):
                    at.teamchat("send", "--to", "sarah", "--turns", "1", "Hi", codes=[ON_HOLD])
            ours, floor = (partial(at.teamchat, *command, codes=[code]) for at in (many, few))
            yield name, partial(compared, name, ours, floor, "two messages", BOUND)
