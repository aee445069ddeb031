"""What `search` and `sessions` take in a store of a million messages, as ratios to a start of the program.

`make bench` runs it. The floor is a search in an empty store. The searches are of rare, common and many words, of a
phrase, and of a word that no message has. Making the store takes a minute.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from benchmarks.startup import median_ms
from teamchat.cli.shared.workspace import store_file
from teamchat.core.store.database import Database

MESSAGES, SESSIONS, WORDS = 1_000_000, 200, 12
VOCABULARY = [f"w{number:x}" for number in range(20_000)]
WEIGHTS = list(itertools.accumulate(1 / (place + 1) for place in range(len(VOCABULARY))))  # as in languages
MEMBERS = ("kai", "max", "sarah", "carol")
SEARCHES = (
    ["w4e1f"], ["wff"], ["w0"], ["w0", "w1"], ["w1", "w2", "w3", "w4"], ['"w0 w1"'], ["w2f*"], ["nothing"],
    ["--session", "s3", "w0"], ["--member", "max", "w0"], ["--from", "2033-05-17", "w0"],
)  # fmt: skip
BEGAN = 2_000_000_000  # 2033-05-18


def messages() -> Iterator[tuple[object, ...]]:
    chance = random.Random(1)  # noqa: S311 (the same store in every run)
    for at in range(MESSAGES):
        session, number = divmod(at, MESSAGES // SESSIONS)
        text = " ".join(chance.choices(VOCABULARY, cum_weights=WEIGHTS, k=WORDS))
        who = MEMBERS[at % len(MEMBERS)]
        kind = "human" if who == "kai" else "ai"
        yield (
            session + 1,
            f"msg-{number + 1}",
            number + 1,
            text,
            who,
            who,
            kind,
            "[[],[]]",
            1000 * (BEGAN - MESSAGES + at),
        )


def fill(file: Path) -> None:
    with closing(Database(file)) as db, db.transaction():
        db.executemany(
            """INSERT INTO sessions (id, name, team, fence_key, created_at, used_at, used)
            VALUES (?, ?, 'bench', '', 1, 1, ?)""",
            ((number, f"s{number}", number) for number in range(1, SESSIONS + 1)),
        )
        db.executemany(
            """INSERT INTO messages (session, message, number, content, speaker_id, speaker_name, speaker_type, routing,
            timestamp) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            messages(),
        )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cwd = Path(folder)
        os.environ["TEAMCHAT_HOME"] = str(cwd / "state")
        env = {**os.environ, "HOME": folder}
        teamchat = [sys.executable, "-m", "teamchat"]
        start = median_ms([*teamchat, "search", "nothing"], cwd, env)
        fill(store_file(cwd))
        print(f"{'of ' + format(MESSAGES, ',') + ' messages':40} {'ms':>8} {'above':>8} {'ratio':>6}")
        for args in (["sessions"], *(["search", *words] for words in SEARCHES)):
            took = median_ms([*teamchat, *args], cwd, env)
            print(f"teamchat {' '.join(args):31} {took:8.0f} {took - start:8.0f} {took / start:6.2f}", flush=True)


if __name__ == "__main__":
    main()
