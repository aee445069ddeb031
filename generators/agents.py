"""The tables of docs/clis.md about agents that a row describes: from the rows, and from what `make agents` recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from teamchat.core.team.agent_rows import shipped
from teamchat.runners.agent_row import AgentRow

CAPTURES = Path(__file__).parents[1] / "tests" / "captures" / "agents"


def tables() -> str:
    """What each row says, then what a team meets with the proven ones."""
    return "\n".join((*_rows(), "", *_met(), ""))


def _rows() -> Iterator[str]:
    yield "| `agent =` | installed by | versions | `read` | `edit` | `full` | what is lost |"
    yield "|---|---|---|---|---|---|---|"
    for name, row in shipped():
        versions = f"{', '.join(row.proven)} proven" if row.proven else f"observed {row.observed}, not proven"
        bounds = [_bounds(row, access) for access in ("read", "edit", "full")]
        yield f"| `{name}` | `{row.install_command}` | {versions} | {' | '.join(bounds)} | {row.lost} |"


def _bounds(row: AgentRow, access: str) -> str:
    if not row.access:
        return "not bounded"
    bounds = dict(row.access).get(access)  # type: ignore[call-overload]
    return bounds.note if bounds else "refused"


def _met() -> Iterator[str]:
    met = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(CAPTURES.glob("*.json"))}
    kinds = list(next(iter(met.values()))["met"])
    yield f"| agent | on | {' | '.join(kinds)} |"
    yield "|---" * (len(kinds) + 2) + "|"
    for name, found in met.items():
        cells = [found["met"][kind] for kind in kinds]
        yield f"| {name} {found['version']} | {found['date']} | {' | '.join(cells)} |"
