from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import typer
from rich.cells import cell_len, set_cell_size

from teamchat.cli.output.jsonl import write_line
from teamchat.cli.output.lines import short_number, size
from teamchat.cli.startup.options import JsonOption, PlaceOptions
from teamchat.cli.startup.workspace import find_root, open_store
from teamchat.core.errors import UsageError
from teamchat.core.receipt import QUANTITIES, Child
from teamchat.core.store.sessions import need_session
from teamchat.core.store.usage import Sum, Used, children_in, total_used, used
from teamchat.core.text.clean import printable


def aligned(rows: Sequence[Sequence[str]], left: int) -> Iterator[str]:
    """Align the rows, each column as wide as its widest cell; the first `left` are text, the others numbers."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        pads = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = [cell + pad if at < left else pad + cell for at, (cell, pad) in enumerate(zip(row, pads, strict=True))]
        yield "  ".join(cells).rstrip()


TEXTS = 3  # the columns that are no numbers
HEAD = ("member", "model", "memory", "turns", "input", "cached", "output", "cost", "sent", "fresh", "saved")


def usage(
    ctx: typer.Context,
    place: PlaceOptions,
    everything: Annotated[bool, typer.Option("--all", help="Add up all conversations of this workspace.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show tokens, cost and bytes by member, model and memory, and what memory saved."""
    source = ctx.get_parameter_source("session")
    if everything and source and source.name == "COMMANDLINE":  # TEAMCHAT_SESSION is set for other commands, too
        raise UsageError("--all and --session exclude each other")
    with open_store(find_root(place.team)) as db:
        chosen = None if everything else need_session(db, place.session)
        rows = used(db, chosen.id if chosen else None)
        children = children_in(db, chosen.id) if chosen else []
    where = chosen.name if chosen else None
    total = sum((_used(child) for _, child in children), total_used(rows))
    if as_json:
        for row in rows:
            write_line(
                "usage", session=where, member=row.member, model=row.model, memory=row.memory, **_usage_fields(row.used)
            )
        for member, child in children:
            write_line("child", session=where, member=member, child=child.session, **_usage_fields(_used(child)))
        write_line("total", session=where, **_usage_fields(total))
        return
    named = [[row.member, row.model or "unknown", row.memory, *cells(row.used)] for row in rows]
    named += [[f"{member} in {child.session}", "", "", *cells(_used(child))] for member, child in children]
    for line in layout([*named, ["in all", "", "", *cells(total)]], shutil.get_terminal_size().columns):
        print(line)


def _used(child: Child) -> Used:
    """Return the usage of a conversation run by an agent, as far as it counts for the agent's own conversation."""

    def summed(name: str) -> Sum:
        unknown: int = getattr(child, f"no_{name}")
        return Sum(getattr(child, name) if unknown < child.turns else None, unknown)

    return Used(child.turns, **{name: summed(name) for name in QUANTITIES}, sent_bytes=0)  # type: ignore[arg-type]


def layout(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Tabulate the rows under their heads; in a table wider than `width` columns, names stand above numbers."""
    wide = list(aligned([HEAD, *rows], left=TEXTS))
    if all(cell_len(line) <= width for line in wide):
        yield from wide
        return
    head, *numbers = aligned([HEAD[TEXTS:], *(row[TEXTS:] for row in rows)], left=0)
    yield f"  {head}"
    for row, line in zip(rows, numbers, strict=True):
        name = printable(" · ".join(filter(None, row[:TEXTS])))
        yield name if cell_len(name) <= width else f"{set_cell_size(name, width - 1)}…"
        yield f"  {line}"


def cells(used: Used) -> list[str]:
    """List tokens and US dollars, then bytes: sent, needed if every turn were fresh, and the share saved."""

    def shown(part: Sum, words: Callable[[float], str]) -> str:
        if part.known is None and part.unknown:
            return "unknown"
        return f"{'≥' if part.unknown else ''}{words(part.known or 0)}"

    tokens = (shown(part, short_number) for part in (used.input_tokens, used.cached_tokens, used.output_tokens))
    cost = shown(used.cost_usd, "${:.2f}".format)
    return [f"{used.turns}", *tokens, cost, size(used.sent_bytes), size(used.fresh_bytes), f"{used.saving:.0%}"]


def _usage_fields(used: Used) -> dict[str, object]:
    sums: dict[str, Sum] = {name: getattr(used, name) for name in QUANTITIES}
    return {
        "turns": used.turns,
        **{name: part.exact for name, part in sums.items()},
        "at_least": {name: part.known for name, part in sums.items()},
        "sent_bytes": used.sent_bytes,
        "fresh_bytes": used.fresh_bytes,
        "saving": round(used.saving, 4),
    }
