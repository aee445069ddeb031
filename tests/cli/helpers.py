"""What the tests of the command line share: outputs without what changes from run to run, and misbehaving teams."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from teamchat.cli.startup.workspace import store_file
from teamchat.core.conversation.permission import trust_store
from teamchat.core.team.find import load
from teamchat.core.text.words import spaced
from tests.program import Result, run_here
from tests.runners.processes import agent

FILE = Path("teamchat.toml")
VOLATILE = (
    (re.compile(r"\b\d+\.\d+s\b"), "N.Ns"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b"), "WHEN"),
    (re.compile(r"\bteamchat-[0-9a-f]{16}\b"), "teamchat-SCRATCH"),
    (re.compile(r"\bprocess \d+\b"), "process PID"),
)
HINT = "  try: "
UNREPORTED = re.compile(r"^· not reported by .*\n", re.MULTILINE)


def steady(ran: Result) -> Result:
    """What was printed, with the same word for every duration, moment, private folder and process number.

    It is without the note that a conversation's first run has at its end: what the members' programs do not report.
    """
    out, err = ran.out, UNREPORTED.sub("", ran.err)
    for pattern, word in VOLATILE:
        out, err = pattern.sub(word, out), pattern.sub(word, err)
    return Result(ran.code, out, err)


def notes(*lines: str) -> str:
    """Standard error of a command that only tells how it goes."""
    return "".join(f"· {line}\n" for line in lines)


def turn(member: str, number: int) -> tuple[str, str]:
    """The notes on a turn of an agent that reports neither tokens nor refusals."""
    return f"{member} begins (turn {number})", f"{member} · N.Ns"


def refused(ran: Result) -> str:
    """The sentence of an error: nothing on stdout, one line on stderr, and more only for what to type."""
    assert "Traceback" not in ran.err
    assert ran.out == ""
    lines = ran.err.removesuffix("\n").split("\n")
    assert lines[0].startswith("teamchat: "), ran.err
    assert all(line.startswith(HINT) for line in lines[1:]), ran.err
    return lines[0].removeprefix("teamchat: ")


def mistake(ran: Result, file: Path) -> str:
    """What is wrong with the team file, without the file and the line."""
    where, _, said = refused(ran).removeprefix(f"{file}:").partition(" ")
    assert where.removesuffix(":").isdigit() or where == ""
    return said


def objects(ran: Result) -> list[dict[str, object]]:
    """The lines of `--json`."""
    return [json.loads(line) for line in ran.out.split("\n") if line]


def actors(
    steps: Mapping[str, Sequence[str]],
    *,
    like: str = "plain",
    members: Mapping[str, Mapping[str, object]] | None = None,
    team: str = "",
    trusted: bool = True,
) -> None:
    """A team of kailai and of programs that do the steps of `tests/fakes/agent.py`."""
    parts = [team, '[[members]]\nname = "kailai"\ntype = "human"']
    for name, words in steps.items():
        keys = {"name": name, "agent": f"{name}-agent", **(members or {}).get(name, {})}
        parts += ["[[members]]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
        command = agent(*words)
        parts.append(f'[agents.{name}-agent]\ncommand = {json.dumps(command)}\nlike = "{like}"')
    FILE.write_text("\n".join(parts) + "\n")
    if trusted:
        trust_store().grant(load(FILE))


def rows() -> dict[str, list[tuple[object, ...]]]:
    """Everything that the store of this workspace holds, table by table."""
    with contextlib.closing(_opened()) as db:
        tables = [str(name) for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()]
        return {name: db.execute(f'SELECT * FROM "{name}"').fetchall() for name in tables}  # noqa: S608 (our own names)


def queue() -> list[tuple[object, ...]]:
    """Who waits and how (waiting, running, held, ...), in the order of speaking."""
    return select("SELECT target, status FROM routes WHERE place IS NOT NULL ORDER BY session, place")


def select(sql: str) -> list[tuple[object, ...]]:
    """What the store of this workspace answers."""
    with contextlib.closing(_opened()) as db:
        return db.execute(sql).fetchall()


def _opened() -> sqlite3.Connection:
    db = sqlite3.connect(f"file:{store_file(Path.cwd())}?mode=ro", uri=True)
    db.create_function("spaced", 1, spaced)
    return db


def said() -> list[tuple[object, object]]:
    """Who said what in the last session."""
    lines = objects(run_here("log", "--json"))
    return [(line["from"], line["text"]) for line in lines if line["type"] == "message"]
