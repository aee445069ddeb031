"""Writes the generated parts of docs/: `make pages`. A test compares the files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from generators import agents, cli_page, json_lines, performance, team_file
from teamchat.core.agents import CLIS
from teamchat.core.cassette.format import schema as cassette_schema
from teamchat.runners.edits import KINDS, Edits

ROOT = Path(__file__).parents[1]
EDITS = {row.name: row.runner.edits for row in CLIS if row.runner.edits}
BEGIN, END = "<!-- made by `make pages` -->", "<!-- end of what is made -->"


def files() -> Mapping[Path, str]:
    """The text of every generated file, whole or between two marks."""
    docs = ROOT / "docs"
    return {
        docs / "cli.md": cli_page.page(),
        docs / "clis.md": between_marks(docs / "clis.md", agents.tables()),
        docs / "team-file.md": between_marks(docs / "team-file.md", team_file.tables()),
        docs / "security.md": between_marks(docs / "security.md", table(EDITS)),
        ROOT / "README.md": performance.with_figure((ROOT / "README.md").read_text(encoding="utf-8")),
        docs / "performance.md": between_marks(docs / "performance.md", performance.sections()),
        docs / "teamchat.schema.json": team_file.schema_text(),
        docs / "cassette.schema.json": cassette_schema(),
        docs / "json.md": between_marks(docs / "json.md", json_lines.table()),
        docs / "json.schema.json": json_lines.schema_text(),
    }


def between_marks(page: Path, text: str) -> str:
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n\n{text}\n{END}{rest.split(END)[1]}"


def table(rows: Mapping[str, Edits]) -> str:
    """All rows by their CLI, as a table in Markdown."""
    cells = {"lets": "yes", "refuses": "no", "fails": "no*"}
    lines = [("", *rows), ("---",) * (len(rows) + 1)]
    lines += [(words, *(cells[row[kind]] for row in rows.values())) for kind, words in KINDS.items()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
