"""Writes what docs/ holds of the program: `make pages`. A test compares the files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from generators import cli_page, team_file
from teamchat.core.cassette.format import schema as cassette_schema

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- made by `make pages` -->", "<!-- end of what is made -->"


def files() -> Mapping[Path, str]:
    """The text of every file that is made, whole or between two marks."""
    docs = ROOT / "docs"
    return {
        docs / "cli.md": cli_page.page(),
        docs / "team-file.md": between_marks(docs / "team-file.md", team_file.tables()),
        docs / "teamchat.schema.json": team_file.schema_text(),
        docs / "cassette.schema.json": cassette_schema(),
    }


def between_marks(page: Path, text: str) -> str:
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n\n{text}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
