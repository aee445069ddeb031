from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated

import typer

from teamchat.cli.app import COMMANDS, every_command, guess, meant, program
from teamchat.core.errors import ExitCode, UsageError


def help(  # noqa: A001 (the command's name)
    topic: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC]...", show_default=False, help="A page or a command; all are listed without it."
        ),
    ] = None,
) -> int:
    """Print a page of the manual, or list the pages."""
    words, manual = topic or [], pages()
    name = " ".join(words)
    page = manual.get(name)
    command = meant(words) if words else []
    if name == "commands":
        print(every_command())
    elif not words or command[0] in COMMANDS:
        program()([*command, "--help"], prog_name="teamchat", standalone_mode=False)
    elif page is None:
        raise UsageError(
            f"there is no command or page {name!r}{guess(name, (*COMMANDS, *manual, 'commands'))}", "teamchat help"
        )
    if page is not None:
        print_page(page.read_text(encoding="utf-8"))
    elif not words:
        width = max(map(len, manual))
        print("\nPages (teamchat help PAGE):")
        for name, page in manual.items():
            print(f"  {name:{width}}  {title(page)}")
    return ExitCode.DONE


def pages() -> Mapping[str, Traversable]:
    """List the pages that ship with the program: `json` for `json.md`, schemas by their full file names."""
    docs = files("teamchat").joinpath("docs")
    listed = sorted((*docs.iterdir(), *docs.joinpath("howto").iterdir()), key=lambda file: file.name)
    return {file.name.removesuffix(".md"): file for file in listed if file.name.endswith((".md", ".json"))}


def title(page: Traversable) -> str:
    """Return the first heading of a page, without its code marks; the title of a schema."""
    with page.open(encoding="utf-8") as file:
        first = file.readline().rstrip("\n")
    return first.removeprefix("# ").replace("`", "") if first.startswith("# ") else "JSON Schema, for editors"


def print_page(text: str) -> None:
    """Print a page: formatted for a person at a terminal, else unchanged."""
    if not sys.stdout.isatty():
        print(text, end="")
        return
    from rich.console import Console  # a script reads pages as they are
    from rich.markdown import Markdown

    Console().print(Markdown(text, hyperlinks=False))
