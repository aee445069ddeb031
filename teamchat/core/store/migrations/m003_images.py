from __future__ import annotations

import sqlite3


def m003_images(db: sqlite3.Connection) -> None:
    for statement in IMAGES:
        db.execute(statement)


IMAGES: tuple[str, ...] = (
    """CREATE TABLE images (
        session INTEGER NOT NULL,
        message TEXT NOT NULL,
        number INTEGER NOT NULL, -- of those of its message, in order
        name TEXT NOT NULL,      -- what the person called it
        kind TEXT NOT NULL,      -- png, jpg, gif, webp
        body TEXT NOT NULL REFERENCES texts,
        PRIMARY KEY (session, message, number),
        FOREIGN KEY (session, message) REFERENCES messages (session, message)
    ) STRICT""",
    "CREATE INDEX images_by_body ON images (body)",
)
