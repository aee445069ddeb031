"""Runs a step of `core/checkpoint` and dies right before its Nth change to the disk, as by `kill -9`.

`mortal.py N take TOP STATE REF` or `mortal.py N restore TOP STATE OLD NEW`, which makes the files those of OLD.
N is 0 for a run that does not die.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from teamchat.core.checkpoint.compare import changes
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.restore import Restore, restore
from teamchat.core.checkpoint.take import take
from teamchat.core.checkpoint.values import GitRepository

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.chmod", "subprocess.Popen")
seen = 0


def die_at(number: int) -> None:
    def look(event: str, given: tuple[object, ...]) -> None:
        global seen  # noqa: PLW0603
        opens = event == "open" and isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if event in CHANGES or opens:
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)


def main(number: int, what: str, top: Path, state: Path, *rest: str) -> None:
    found = find_repository(top, state)
    assert isinstance(found, GitRepository)
    if what == "take":
        die_at(number)
        print(take(found, state, rest[0]).tree)
    else:
        made = changes(found, *rest)
        known, back = ({change.path: getattr(change, side) for change in made} for side in ("new", "old"))
        die_at(number)
        restore(state, [Restore(found, known, back)])


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), *sys.argv[5:])
