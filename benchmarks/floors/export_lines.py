"""A bare script that writes the messages of a store, with their turns and events, as lines of JSON.

It checks nothing, looks for no secret and shortens nothing.
"""

from __future__ import annotations

import json
import sqlite3
import sys

ROWS = """SELECT message, content, speaker_name, routing, timestamp, turns.id AS turn, setup, outcome
    FROM messages LEFT JOIN turns ON turns.id = messages.turn WHERE messages.session = 1 ORDER BY messages.id"""
EVENTS = "SELECT at, type, data FROM turn_events WHERE turn = ? ORDER BY number"

db = sqlite3.connect(sys.argv[1])
db.row_factory = sqlite3.Row
with open(sys.argv[2], "w", encoding="utf-8") as file:  # noqa: PTH123 (a bare script)
    for row in db.execute(ROWS):
        line = dict(row)
        for name in ("routing", "setup", "outcome"):
            line[name] = json.loads(line[name]) if line[name] else None
        if line["turn"]:
            events = db.execute(EVENTS, (line["turn"],))
            line["events"] = [{"at": at, "type": kind, **json.loads(data)} for at, kind, data in events]
        print(json.dumps(line, ensure_ascii=False), file=file)
