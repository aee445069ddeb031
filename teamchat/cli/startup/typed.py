"""The command line as a person typed it, and the next commands, which hints propose."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from teamchat.core.errors import NearMiss, NoRoom
from teamchat.core.text.commands import EXAMPLE, command_of, quote

if TYPE_CHECKING:
    from teamchat.core.conversation.inputs import Message

LONGEST = 1000  # characters; nobody would paste a longer command
LONGEST_TEXT = 200  # characters of a repeated text
IN_SESSION = (
    "adopt", "branch", "chat", "check", "clear", "compact", "diff", "export", "learn", "log", "merge", "open", "redo",
    "report", "resume", "retry", "run", "search", "send", "show", "stop", "task", "todo", "undo", "until", "usage",
    "watch", "worktrees",
)  # fmt: skip
TAKERS = {"--team": (*IN_SESSION, "compare", "doctor", "sessions", "team", "trust"), "--session": IN_SESSION}
"""The commands that take the options for team and session."""
BEGINNERS = ("run", "send")
"""Commands that take `--new`."""
CONVERSATION = ("--new", "--session")
ELSEWHERE = (*CONVERSATION, "--record", "--to")
"""The options of a hint that sends a refused message elsewhere, or to another member."""
TYPED: ContextVar[Sequence[str]] = ContextVar("TYPED", default=())
PROGRAM: ContextVar[str] = ContextVar("PROGRAM", default="teamchat")
"""The program's name in a shell: its path, if the shell would find another program under its name, or none."""
TYPED_HERE: ContextVar[Callable[[str], str]] = ContextVar("TYPED_HERE", default=str)
"""Converts a command of the command line to the one that a person types here instead: `/undo 2` in chat."""


def name_program(script: Path) -> None:
    """Set `PROGRAM` for a program that was started as this script."""
    with contextlib.suppress(OSError):  # it is gone
        installed = shutil.which("teamchat")
        if script.name == "teamchat" and not (installed and script.samefile(installed)):
            PROGRAM.set(quote(str(script.absolute())))


def typed_with(*options: str) -> str | None:
    """Return the command with these options before its others; None if it is too long to paste."""
    command, *rest = TYPED.get() or [""]
    return line_of(command, *options, *rest)


@contextlib.contextmanager
def saying_what_to_type(message: Message) -> Iterator[None]:
    """Add the command that would have worked to a refusal. A piped text cannot be repeated."""
    try:
        yield
    except NearMiss as error:
        error.hint = _sent_to(error.names) if error.names else "teamchat team"
        raise
    except NoRoom as error:
        error.hint = typed_with("--cut") if len(message.text) == message.typed_through else None
        raise


def _sent_to(names: str) -> str | None:
    """Return the command with these names for `--to`; None if it is too long to paste."""
    return retyped("--to", names, TYPED.get()) or typed_with("--to", names)


def placed_here(command: str) -> str:
    """Write the command for the team and the session that were typed, as a person types it here."""
    return TYPED_HERE.get()(placed(command, TYPED.get()))


def named(text: str, command: Callable[[str], str] = placed_here) -> str:
    """Rewrite each command in a warning such as `1 file changed: teamchat diff 2, teamchat undo 2` as typed here."""
    return re.sub(r"(?<=[:,;] )teamchat \w+(?: \d+)?(?!.*&&)", lambda found: command(found[0]), text)


def placed(hint: str, args: Sequence[str]) -> str:
    """Add the team and the session from the typed `args` to the hint's commands."""
    lines = (" && ".join(_placed(command, args) for command in commands(line, " && ")) for line in commands(hint))
    return "\n".join(filter(None, lines))


def commands(text: str, between: str = "\n") -> Iterator[str]:
    """Split a text into its commands at each `between`. Inside a quotation it is part of a command."""
    begun = ""
    for part in text.split(between):
        begun = f"{begun}{between}{part}" if begun else part
        with contextlib.suppress(ValueError):  # inside an open quotation
            shlex.split(begun)
            yield begun
            begun = ""


def _placed(command: str, args: Sequence[str]) -> str:
    program, *words = shlex.split(command)
    if program != "teamchat":
        return command
    if words[-1] == EXAMPLE and args[:1] == words[:1] == ["send"] and _leads_elsewhere(words[1:-1]):
        return _sent_again(words[1:-1], args[1:])
    wanted = [option for option, takers in TAKERS.items() if words[0] in takers and not has(option, words)]
    if "--new" in words and "--session" in wanted:
        wanted.remove("--session")  # a new conversation was requested
    given = [(option, _value(option, args)) for option in wanted]
    begins = words[0] == "send" and "--new" in args and not (has("--new", words) or has("--session", words))
    options = [f"{option} {quote(value)}" for option, value in given if value is not None]
    command = f"{PROGRAM.get()}{command.removeprefix(program)}"
    return " ".join([command, *(["--new"] if begins else []), *options])


def _leads_elsewhere(options: Sequence[str]) -> bool:
    """Whether the options only say where a message goes."""
    return bool(options) and not list(_without(ELSEWHERE, options))


def _sent_again(options: Sequence[str], typed: Sequence[str]) -> str:
    """Return the typed `send` command, with these options instead of its own; empty if it is too long for a line."""
    replaced = {option for option in ELSEWHERE if has(option, options)}
    if replaced & {*CONVERSATION}:
        replaced |= {*CONVERSATION}
    return line_of("send", *options, *_without(replaced, typed)) or ""


def _without(options: Collection[str], words: Sequence[str]) -> Iterator[str]:
    """Yield the words without these options and their values. Words behind `--` are text."""
    left = iter(words)
    for word in left:
        if word == "--":
            yield from (word, *left)
        elif word in options:
            if word != "--new":  # the only option without a value
                next(left, None)
        elif word.partition("=")[0] not in options:
            yield word


def line_of(*words: str) -> str | None:
    """Write the teamchat command with these words; None if it is too long or has control characters.

    A shell accepts the line breaks of a quoted text.
    """
    line = command_of("teamchat", *words)
    return line if len(line) <= LONGEST and line.replace("\n", "").isprintable() else None


def has(option: str, words: Sequence[str]) -> bool:
    """Whether the option is in a command."""
    return any(word == option or word.startswith(f"{option}=") for word in words)


def _value(option: str, args: Sequence[str]) -> str | None:
    """Return the typed value of an option."""
    for word, following in pairwise([*args, ""]):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word.removeprefix(f"{option}=")
    return None


def retyped(option: str, value: str, args: Sequence[str]) -> str | None:
    """Return the typed command with this `value` of `option`; None without the option, or if it is too long."""
    words = list(args)
    for place, word in enumerate(args):
        if word == option:
            words[place + 1 : place + 2] = [value]
        elif word.startswith(f"{option}="):
            words[place] = f"{option}={value}"
    return line_of(*words) if has(option, args) else None


def behind_dashes(args: Sequence[str]) -> str:
    """Put the text that was read as an option behind `--`; give an example if the line is too long."""
    texts = [word for word in args if word.startswith("-") and " " in word]
    others = [word for word in args if word not in texts]
    fits = all(len(text) <= LONGEST_TEXT and text.isprintable() for text in texts)
    return command_of("teamchat", *others, "--", *(texts if fits else ["- Your message"]))
