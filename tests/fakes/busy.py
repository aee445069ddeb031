"""teamchat, but one call of C code reads a reply, which lets no signal handler run and never ends.

A file `busy` in the working folder says that it has begun.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from teamchat.cli.app import main
from teamchat.core.conversation.addressing import Prompts
from teamchat.core.conversation.posting import Parsed, Posting
from teamchat.core.engine.workflow import Part
from teamchat.core.team.team import Member

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


def parse(self: Posting, *replies: tuple[Member, str, Part | None, Prompts]) -> list[Parsed]:
    del self, replies
    Path("busy").touch()
    sqlite3.connect(":memory:").execute(ENDLESS).fetchone()
    raise AssertionError(ENDLESS)


if __name__ == "__main__":
    Posting.parse = parse  # type: ignore[method-assign]
    main()
