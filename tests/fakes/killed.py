"""`killed.py STEPS ARGS...`: teamchat with these arguments, killed by SIGKILL before its nth access to the store."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys

from teamchat.cli.app import run
from teamchat.core.store.database import Database

steps_left = int(sys.argv[1])
execute = Database.execute


def mortal(self: Database, sql: str, *values: object) -> sqlite3.Cursor:
    global steps_left  # noqa: PLW0603 (a program of one page)
    steps_left -= 1
    if steps_left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return execute(self, sql, *values)


Database.execute = mortal  # type: ignore[method-assign]
sys.exit(run(sys.argv[2:]))
