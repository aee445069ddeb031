from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from typing import Annotated

import typer
from msgspec import to_builtins
from rich.console import Console
from rich.table import Table
from rich.text import Text

from teamchat.cli.output.jsonl import write_line
from teamchat.cli.output.lines import note, turn_line
from teamchat.cli.output.long import as_shown
from teamchat.cli.output.patch import stat_lines, write_patch
from teamchat.cli.startup.complete import sessions
from teamchat.cli.startup.options import JsonOption, TeamOption, session_name
from teamchat.cli.startup.typed import placed_here
from teamchat.cli.startup.workspace import find_root, open_store
from teamchat.core.conversation.sessions.compare import SessionAnswer, Trees, compare_answers, compare_trees
from teamchat.core.errors import UsageError
from teamchat.core.messages import ConversationMessage, name_of
from teamchat.core.store.sessions import need_session
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import quote
from teamchat.core.turn.lines import message_fields, outcome_fields
from teamchat.runners.untrusted.json import one_line

WIDE = 100  # columns from which two texts fit side by side
LONGEST_ASKED = 200  # characters of what a person said


def compare(
    one: Annotated[
        str, typer.Argument(metavar="A", autocompletion=sessions, callback=session_name, help="A conversation.")
    ],
    other: Annotated[
        str, typer.Argument(metavar="B", autocompletion=sessions, callback=session_name, help="Another one.")
    ],
    message: Annotated[
        str | None,
        typer.Argument(metavar="MESSAGE", help="A message of A that was answered in both (default: the last shared)."),
    ] = None,
    stat: Annotated[bool, typer.Option("--stat", help="List the files that differ instead of a patch.")] = False,
    team: TeamOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what two conversations answered to the same message, and how the files differ."""
    if stat and as_json:
        raise UsageError("--stat and --json exclude each other")
    with open_store(find_root(team)) as db:
        answers = compare_answers(db, need_session(db, one), need_session(db, other), message)
        trees = compare_trees(db.path.parent, *answers)
        if as_json:
            write_json(answers, trees)
            return
        print_answers(answers)
        print_trees(answers, trees, stat=stat)


def print_answers(answers: tuple[SessionAnswer, SessionAnswer]) -> None:
    """Side by side at a terminal that is wide enough, else one below the other."""
    width = shutil.get_terminal_size().columns
    if not sys.stdout.isatty() or width < WIDE:
        for answer in answers:
            for text in blocks(answer):
                print(text)
        return

    table = Table.grid(expand=True, padding=(0, 2))
    for _ in answers:
        table.add_column(ratio=1, overflow="fold")
    table.add_row(*(Text("\n".join(blocks(answer))) for answer in answers))
    Console(width=width, highlight=False).print(table)


def blocks(answer: SessionAnswer) -> Iterator[str]:
    """Write everything after the message: the requests, the replies, and a line for each turn."""
    yield printable(f"{answer.session.name}, after {answer.to.id}")
    for said in answer.asked or (answer.to,):
        yield printable(f"{name_of(said)}: {one_line(said.content, LONGEST_ASKED)}")
    for reply in answer.replies:
        yield f"\n{printable(name_of(reply))}:\n{shown(answer, reply)}"
    yield ""
    for turn in answer.turns:
        if turn.outcome:
            failed = " · failed" if turn.outcome.failure else ""
            yield f"{printable(turn_line(turn.member, turn.setup, turn.outcome))}{failed}"
    yield ""


def shown(answer: SessionAnswer, reply: ConversationMessage) -> str:
    whole = placed_here(f"teamchat log --full {reply.id} --session {quote(answer.session.name)}")
    return as_shown(reply.content, whole).strip()


def print_trees(answers: tuple[SessionAnswer, SessionAnswer], trees: Trees, *, stat: bool) -> None:
    sys.stdout.flush()
    first, other = (answer.session.name for answer in answers)
    for difference in trees.differences:
        where = f" in {difference.repository.top}" if len(trees.differences) > 1 else ""
        if difference.old == difference.new:
            note(printable(f"the files{where} are the same after both"))
            continue
        note(printable(f"the files{where}, from {first} to {other}:"))
        if stat:
            print("\n".join(stat_lines(difference.files())), flush=True)
        else:
            write_patch(difference.patch())
    for line in trees.unknown:
        note(printable(f"the files cannot be compared: {line}"))


def write_json(answers: tuple[SessionAnswer, SessionAnswer], trees: Trees) -> None:
    for answer in answers:
        turns = [
            {"turn": turn.number, "member": turn.member, **outcome_fields(turn, turn.outcome)}
            for turn in answer.turns
            if turn.outcome
        ]
        write_line(
            "answer",
            session=answer.session.name,
            to=message_fields(answer.to),
            asked=[message_fields(message) for message in answer.asked],
            replies=[message_fields(message) for message in answer.replies],
            turns=turns,
        )
    for difference in trees.differences:
        files = [to_builtins(file) for file in difference.files()]
        top = str(difference.repository.top)
        write_line("trees", top=top, before=difference.old, after=difference.new, files=files)
    for reason in trees.unknown:
        write_line("trees", unknown=reason)
