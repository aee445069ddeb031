"""What a search of 200,000 messages takes, over one in an empty store.

The searches are of rare, common and many words, of a phrase, and of a word that no message has.
"""

from __future__ import annotations

from functools import partial

from benchmarks.figure import Measures
from benchmarks.filled_store import large
from benchmarks.timing import compared
from benchmarks.world import world

SEARCHES = (
    ["w4e1f"], ["wff"], ["w0"], ["w0", "w1"], ["w1", "w2", "w3", "w4"], ['"w0 w1"'], ["w2f*"], ["nothing"],
    ["--session", "s1", "w0"], ["--member", "max", "w0"], ["--from", "2033-05-17", "w0"],
)  # fmt: skip


def measures(_quick: bool) -> Measures:
    full = large()
    with world() as empty:
        nothing = partial(empty.teamchat, "search", "nothing")
        for words in SEARCHES:
            name, search = " ".join(words), partial(full.teamchat, "search", *words)
            yield name, partial(compared, name, search, nothing, "empty store", 100.0, "difference")
