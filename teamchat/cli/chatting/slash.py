"""The commands of chat: the command line's own words after a `/`, run in the same process with the same session."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from difflib import get_close_matches
from shutil import get_terminal_size

import typer

from teamchat.cli.app import COMMANDS, meant, program
from teamchat.cli.output.terminal.wrap import wrapped
from teamchat.cli.shared.report import report
from teamchat.cli.shared.typed import TAKERS, TYPED, has
from teamchat.core.errors import ExitCode, UsageError

WORDS = {
    "help": ("help",),
    "log": ("log",),
    "show": ("show",),
    "diff": ("diff",),
    "search": ("search",),
    "sessions": ("sessions",),
    "team": ("team",),
    "task": ("task",),
    "todo": ("todo",),
    "usage": ("usage",),
    "resume": ("resume",),
    "retry": ("retry",),
    "undo": ("undo",),
    "redo": ("redo",),
    "summary": ("compact",),
    "clear": ("clear",),
    "learn": ("learn",),
    "merge": ("merge",),
    "worktrees": ("worktrees",),
    "open": ("open",),
    "adopt": ("adopt",),
    "export": ("export",),
    "doctor": ("doctor",),
    "send": ("send",),
    "run": ("run",),
}
"""What is typed after `/`, and the words of the command line that it means."""
PRINTS = frozenset({"help", "log", "show", "diff", "search", "team", "task", "usage"})
"""Of those, the commands that only print: the prompt stays while they run. The others may ask something."""
WAITS = frozenset({"resume", "retry", "summary", "clear", "learn", "merge", "open", "doctor", "send", "run"})
"""Those that run members, or look at what members are changing: not while members work."""
BEGINS = frozenset({"send", "run"})
"""Those that begin a conversation if there is none yet."""
WORKING = "members are working; wait for them, or stop them with Ctrl-C"


def known() -> dict[str, tuple[str, ...]]:
    """The commands of `WORDS` that this program has."""
    return {word: means for word, means in WORDS.items() if means[0] in COMMANDS}


def command_of(line: str) -> list[str] | None:
    """The words of a command; None for a line that is a message.

    A member's CLI may have custom commands, and a path begins with `/` too, so other lines are messages. Raises
    `UsageError` for a misspelt command and for a quote that is not closed.
    """
    first = line.split(maxsplit=1)[0] if line.startswith("/") else ""
    word = first.removeprefix("/")
    if not word:
        return None
    if word not in known():
        close = get_close_matches(word, known(), n=1)
        if close:
            raise UsageError(f"there is no command {first}: did you mean /{close[0]}? (a space before it sends it)")
        return None
    try:
        return shlex.split(line.removeprefix("/"))
    except ValueError as error:
        raise UsageError(f"{first}: {str(error).lower()}") from None


def here(words: Iterable[str], session: str | None, team: str | None) -> list[str]:
    """The arguments of the program for a typed command: with chat's session and team unless others were typed."""
    word, *rest = words
    args = [*known()[word], *rest]
    for option, value in (("--session", session), ("--team", team)):
        if value and args[0] in TAKERS[option] and not has(option, args):
            args[1:1] = [option, value]
    return args


def run_command(args: list[str]) -> int:
    """Run the command as the program itself would. Its errors are one line, and it never ends chat."""

    def command() -> object:
        try:
            return program()(meant(args), prog_name="teamchat", standalone_mode=False)
        except (KeyboardInterrupt, typer.Abort):
            print()
            return ExitCode.INTERRUPTED

    TYPED.set(args)
    try:
        return report(command, args, hints=False)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else ExitCode.USAGE


NARROWEST = 20  # columns of an explanation
KEYS = (
    ("Enter", "sends; while members work, the message is queued and goes out before the next turn"),
    ("Esc Enter", "begins a new line (Alt-Enter, too)"),
    ("↑", "moves the last queued message into the prompt, or goes through what you typed before"),
    ("Tab", "completes members after @ and [NEXT: and commands after /"),
    ("Ctrl-C", "stops the turn that runs; a second one stops what is queued, too"),
    ("Ctrl-X Ctrl-E", "opens the text in $EDITOR"),
    ("Ctrl-D", "leaves; teamchat chat continues"),
)


def print_help() -> None:
    """Print the commands and the keys of chat, wrapped for the terminal."""
    commands = [(f"/{word}", program().get_command(None, means[0])) for word, means in known().items()]
    rows = [(word, command.get_short_help_str(limit=200)) for word, command in commands]
    rows += [("@NAME", "at the beginning of a line sends it to that member; @max+sarah to both at once"), *KEYS]
    column = max(len(label) for label, _ in rows) + 2
    width = max(get_terminal_size().columns - column - 3, NARROWEST)
    for label, does in rows:
        first, *more = wrapped(does, width)
        print(f"  {label:{column}}{first}", *(f"  {'':{column}}{line}" for line in more), sep="\n")


def in_chat(commands: str) -> str:
    """Commands of the command line as they are typed in chat, where there is one; the others stay as they are."""
    typed = {" ".join(means): word for word, means in known().items()}
    lines: list[str] = []
    for line in commands.splitlines():
        program_name, _, rest = line.partition(" ")
        word, _, options = rest.partition(" ")
        fits = program_name == "teamchat" and word in typed and "&&" not in line
        lines.append(f"/{typed[word]} {options}".rstrip() if fits else line)
    return "\n".join(lines)


def named_in_chat(text: str) -> str:
    """A warning such as `1 file changed: teamchat diff 2, teamchat undo 2`, with its commands as typed in chat."""
    return re.sub(r"(?<=[:,;] )teamchat \w+(?!.*&&)", lambda found: in_chat(found[0]), text)
