"""What `search` and `sessions` take in a store of a million messages, as ratios to a start of the program.

`make bench` runs it. The floor is a search in an empty store. The searches are of rare, common and many words, of a
phrase, and of a word that no message has. Making the store takes a minute.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from benchmarks.filled_store import fill
from benchmarks.startup import median_ms
from teamchat.cli.shared.workspace import store_file

MESSAGES, SESSIONS = 1_000_000, 200
SEARCHES = (
    ["w4e1f"], ["wff"], ["w0"], ["w0", "w1"], ["w1", "w2", "w3", "w4"], ['"w0 w1"'], ["w2f*"], ["nothing"],
    ["--session", "s3", "w0"], ["--member", "max", "w0"], ["--from", "2033-05-17", "w0"],
)  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cwd = Path(folder)
        os.environ["TEAMCHAT_HOME"] = str(cwd / "state")
        env = {**os.environ, "HOME": folder}
        teamchat = [sys.executable, "-m", "teamchat"]
        start = median_ms([*teamchat, "search", "nothing"], cwd, env)
        fill(store_file(cwd), MESSAGES, SESSIONS)
        print(f"{'of ' + format(MESSAGES, ',') + ' messages':40} {'ms':>8} {'above':>8} {'ratio':>6}")
        for args in (["sessions"], *(["search", *words] for words in SEARCHES)):
            took = median_ms([*teamchat, *args], cwd, env)
            print(f"teamchat {' '.join(args):31} {took:8.0f} {took - start:8.0f} {took / start:6.2f}", flush=True)


if __name__ == "__main__":
    main()
