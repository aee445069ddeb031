"""docs/cli.md: every command with its arguments and options, read from the program itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from teamchat.cli.app import program

HEAD = """\
# Commands

This page is made from the program (`make pages`). `teamchat COMMAND --help` prints the same, and
`teamchat help commands` this list. `teamchat status` is `teamchat log -n 1`: the last message, and what is waiting.

| command | what it does |
|---|---|
"""


def page() -> str:
    """The text of docs/cli.md."""
    group = program()
    commands = [(name, group.get_command(None, name)) for name in group.list_commands(None)]
    rows = "".join(f"| [`{name}`](#teamchat-{name}) | {cell(summary(command))} |\n" for name, command in commands)
    sections = (text for name, command in commands for text in sections_of(f"teamchat {name}", command))
    return HEAD + rows + options("teamchat", group) + "".join(sections)


def sections_of(path: str, command: Any) -> Iterator[str]:
    """The section of a command, then those of its subcommands."""
    example = f"\n{command.epilog.replace(': ', ': `', 1)}`\n" if command.epilog else ""
    yield f"\n## `{path}`\n\n{paragraphs(command)}\n" + usage(path, command) + options(path, command) + example
    for name, child in getattr(command, "commands", {}).items():
        yield from sections_of(f"{path} {name}", child)


def summary(command: Any) -> str:
    return paragraphs(command).split("\n\n")[0].strip()


def paragraphs(command: Any) -> str:
    """The help of a command, with command lines as code."""
    parts = (command.help or "").strip().split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in parts) + "\n"


def usage(path: str, command: Any) -> str:
    return f"```\n{path} {' '.join(command.collect_usage_pieces(context_of(path, command)))}\n```\n"


def options(path: str, command: Any) -> str:
    context = context_of(path, command)
    shown = [one for one in command.get_params(context) if not one.hidden and one.name != "help"]
    rows = "".join(f"| {name_of(one, context)} | {cell(one.help or '')} |\n" for one in shown)
    return f"\n| | |\n|---|---|\n{rows}" if rows else ""


def context_of(path: str, command: Any) -> Any:
    """A command's context below the program's own, which defines `-h`."""
    group = program()
    root = group.make_context("teamchat", [], resilient_parsing=True)
    return root if command is group else command.make_context(path, [], parent=root, resilient_parsing=True)


def name_of(parameter: Any, context: Any) -> str:
    """`--to NAMES` of an option, `TEXT` of an argument."""
    value = cell(parameter.make_metavar(context).strip("<>"))
    if parameter.param_type_name == "argument":
        return f"`{value}`"
    names = "`, `".join((*parameter.opts, *parameter.secondary_opts))
    return f"`{names}`" if parameter.is_flag else f"`{names} {value}`"


def cell(text: str) -> str:
    """A text for a table, where `|` ends a column."""
    return " ".join(text.split()).replace("|", "/")
