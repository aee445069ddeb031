from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from teamchat.cli.output.jsonl import write_line
from teamchat.cli.output.lines import exact, note
from teamchat.cli.output.long import MARGIN, as_shown, as_stored, in_margin, write_text
from teamchat.cli.output.receipt import SUMMARY_HEAD, block_lines, partial_head, receipt_fields, receipt_lines
from teamchat.cli.running.showing import wrap_width
from teamchat.cli.startup.options import JsonOption, PlaceOptions
from teamchat.cli.startup.turn_called import check_called, check_name, names_check, said_by_a_person, turn_called
from teamchat.cli.startup.typed import TYPED, placed, placed_here
from teamchat.cli.startup.workspace import abandoned, find_root, open_store
from teamchat.core.errors import UsageError
from teamchat.core.store.checks import CheckRecord, output_of, running_checks
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import Session, need_session
from teamchat.core.store.summaries import summary_of
from teamchat.core.store.turn_events import each_event
from teamchat.core.store.turns import Turn, partial_of, previous_turn, prompt_of, running_turns, session_of, system_of
from teamchat.core.text.clean import visible
from teamchat.runners.failures import is_blank

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def prompt_diff(db: Database, turn: Turn) -> Iterator[str]:
    """Write a unified diff of system text and prompt against the member's previous turn. In a first one, all is new."""
    from teamchat.core.text.line_diff import unified_diff

    before = previous_turn(db, turn)
    name = f"turn {before.number}" if before else "nothing before"
    old = _given(db, before) if before else []
    changed = False
    for line in unified_diff(old, _given(db, turn), name, f"turn {turn.number}", 2):
        changed = True
        yield visible(line)
    if not changed:
        yield f"turn {turn.number} got the same as {name}"


def _given(db: Database, turn: Turn) -> list[str]:
    return f"{system_of(db, turn) or ''}\n{prompt_of(db, turn).decode(errors='replace')}".split("\n")


INVISIBLE = "(only invisible characters)"


def show(
    turn: Annotated[
        str | None,
        typer.Argument(
            metavar="TURN",
            help="The turn's number, or its reply such as msg-2 (default: the last turn), or a person's message; "
            "or a check such as check-1.",
        ),
    ] = None,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Print the exact bytes that the agent read from standard input.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show what differs from the member's previous turn.")] = False,
    reply: Annotated[
        bool, typer.Option("--reply", help="Print its whole reply, or as much as there was; of a check, its output.")
    ] = False,
    system: Annotated[
        bool, typer.Option("--system", help="Print the exact system text that the agent got by a flag.")
    ] = False,
    *,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Show the receipt of a turn: its input, permissions and result.

    check-1 in place of a turn shows what a check ran, its result and its output.
    """
    if prompt + system + diff + reply + as_json > 1:
        raise UsageError("--prompt, --system, --diff, --reply and --json exclude each other")
    if turn is not None and names_check(turn):
        if prompt or system or diff:
            raise UsageError("a check has no prompt: --prompt, --system and --diff are for a turn")
        show_check(place, turn, reply=reply, as_json=as_json)
        return
    check_name(turn)
    root = find_root(place.team)
    with open_store(root) as db:
        chosen = need_session(db, place.session)
        if not (prompt or system or diff or reply or as_json) and (said := said_by_a_person(db, chosen, turn)):
            write_text(as_stored(said))
            return
        chosen_turn = turn_called(db, chosen, turn)
        left = chosen_turn in abandoned(root, chosen.id, lambda: running_turns(db, chosen.id))
        if as_json:
            given = prompt_of(db, chosen_turn), system_of(db, chosen_turn)
            partial = text_now(db, chosen_turn) if chosen_turn.status == "running" else partial_of(db, chosen_turn)
            fields = receipt_fields(chosen_turn, *given, partial, summary_of(db, chosen_turn), abandoned=left)
            write_line("turn", **fields)
        elif diff:
            for line in prompt_diff(db, chosen_turn):
                print(line)
        elif reply:
            write_text(as_stored(reply_of(db, chosen.id, chosen_turn)))
        elif prompt or system:
            write_exact(prompt_of(db, chosen_turn) if prompt else (system_of(db, chosen_turn) or "").encode())
            for line in block_lines(chosen_turn.setup) if prompt else ():  # on stderr
                note(line)
        else:
            print_receipt(db, chosen_turn, chosen, abandoned=left)


def show_check(place: PlaceOptions, name: str, *, reply: bool, as_json: bool) -> None:
    """Show the receipt of the check of that name, or only its output."""
    from teamchat.cli.output.checks import check_receipt_fields, in_lines
    from teamchat.core.conversation.recovery import output_folder, written_by_check

    root = find_root(place.team)
    with open_store(root) as db:
        chosen = need_session(db, place.session)
        check = check_called(db, chosen, name)
        running = check.status == "running"
        left = running and check in abandoned(root, chosen.id, lambda: running_checks(db, chosen.id))
        folder = output_folder(db, check) if running else None
        output = written_by_check(folder) if folder else output_of(db, check)
    if as_json:
        write_line("check", **check_receipt_fields(check, output, abandoned=left))
    elif reply:
        write_exact(in_lines(output.decode("latin-1")).encode("latin-1") if sys.stdout.isatty() else output)
    else:
        print_check(check, output, abandoned=left)


def print_check(check: CheckRecord, output: bytes, *, abandoned: bool) -> None:
    from teamchat.cli.output.checks import in_lines, receipt_lines

    width = wrap_width()
    for line in receipt_lines(check, abandoned=abandoned):
        for row in fitted(line, width):
            print(row)
    if output:
        shown = as_shown(in_lines(output.decode(errors="replace")), placed_here(f"teamchat show {check.label} --reply"))
        head = "its output" if check.result else "its output so far"
        write_text(margined(f"  {head}:", shown, width))


def write_exact(text: bytes) -> None:
    """Print bytes as they are stored, harmless at a terminal."""
    sys.stdout.flush()
    sys.stdout.buffer.write(exact(text))
    if sys.stdout.isatty():  # few texts end their own line
        sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


def print_receipt(db: Database, turn: Turn, chosen: Session, *, abandoned: bool) -> None:
    session = session_of(db, turn)
    elsewhere = [] if session == chosen.name else ["--session", session]
    place = partial(placed, args=[*elsewhere, *TYPED.get()])

    left = None
    if abandoned:
        from teamchat.core.conversation.recovery import how_left

        left = how_left(db, turn)
    width = wrap_width()
    for line in receipt_lines(turn, each_event(db, turn.id), place, left=left):
        for row in fitted(line, width):
            print(row)
    left_by_turn = list(texts_of(db, turn))
    if (now := text_now(db, turn)).strip():
        left_by_turn.append((partial_head(turn), now))
    for head, text in left_by_turn:
        shown = as_shown(text, placed_here(f"teamchat show {turn.number} --reply"))
        write_text(margined(head, INVISIBLE if is_blank(text) else shown, width))


def fitted(line: str, width: int | None) -> Iterable[str]:
    """Wrap a line of a receipt into rows of at most `width` columns if there is a width."""
    if width is None:
        return (line,)
    from teamchat.cli.output.terminal.receipt_rows import rows_of

    return rows_of(line, width)


def margined(head: str, text: str, width: int | None) -> str:
    """Write a heading and the text in a margin, wrapped if there is a width."""
    if width is None:
        return f"{head}\n{in_margin(text)}"
    from teamchat.cli.output.terminal.wrap import wrapped

    rows = "\n".join(wrapped(text, max(width - len(MARGIN), 1)))
    return "".join(f"{line}\n" for line in wrapped(head, width)) + in_margin(rows)


def text_now(db: Database, turn: Turn) -> str:
    """Return the text so far of a turn that runs, or whose process was killed; "" for a turn that is over."""
    if turn.status != "running":
        return ""
    from teamchat.core.conversation.recovery import output_folder
    from teamchat.core.conversation.turn_output import text_so_far

    folder = output_folder(db, turn)
    return text_so_far(turn, folder) if folder else ""


def texts_of(db: Database, turn: Turn) -> Iterator[tuple[str, str]]:
    """List the texts of a turn that are not messages, with headings."""
    if (partial := partial_of(db, turn)).strip():
        yield partial_head(turn), partial
    if (summary := summary_of(db, turn)) is not None:
        yield SUMMARY_HEAD, summary


def reply_of(db: Database, session: int, turn: Turn) -> str:
    """Return the whole reply of a turn. Raises `UsageError` if there is none."""
    if turn.outcome and turn.outcome.reply:
        return SqliteLog(db, session).get(turn.outcome.reply).content
    for _, text in texts_of(db, turn):
        return text
    if (now := text_now(db, turn)).strip():
        return now
    raise UsageError(f"turn {turn.number} wrote no reply", f"teamchat show {turn.number}")
