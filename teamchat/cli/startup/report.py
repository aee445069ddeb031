"""The one place that turns errors into exits. One line on stderr says what is wrong, the others give what to type."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import typer
from typer.exceptions import TyperException

from teamchat.cli.startup.typed import behind_dashes, commands, placed, retyped
from teamchat.core.errors import ExitCode, TeamchatError, UnknownPerson
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import quote, saying
from teamchat.patterns import regex


class OutputLost(OSError):
    """Standard output cannot be written; `strerror` says why. A closed pipe remains a `BrokenPipeError`."""


class _Stream(io.FileIO):
    """The file of a standard stream. It never closes the caller's descriptor."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)

    def write(self, data: Any, /) -> int:
        written: Any
        while (written := super().write(data)) is None:
            select.select([], [self], [])  # another program has made the terminal non-blocking
        return int(written)


class _Out(_Stream):
    """Standard output. Its errors are distinct from errors of other files."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.errno, error.strerror) from error


class _Err(_Stream):
    """Standard error. It never fails: if nobody reads it, the exit code still tells."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            silence(self)
            return memoryview(data).nbytes


def prepare() -> None:
    """Open the streams that the caller has closed (`<&-`, `>&-`), and let every text be written.

    The number of a closed stream would go to the next file that is opened, which could then be read or written by
    mistake.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 (open as long as the program runs)
    sys.stdout, sys.stderr = _text(_Out(1)), _text(_Err(2))


def standard_output() -> io.RawIOBase:
    """Return standard output without a buffer, with the errors of `sys.stdout`."""
    return _Out(1)


def _text(raw: _Stream) -> TextIO:
    """Let any text be written: agents use every script, whatever this locale supports."""
    by_lines = raw.isatty() or isinstance(raw, _Err)
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=by_lines)


def silence(stream: TextIO | io.FileIO) -> None:
    """Send the rest of this stream nowhere when the interpreter ends: nobody reads it, or its disk is full."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


HINTS = {errno.EMFILE: "ulimit -n 1024"}
NO_THREAD = "can't start new thread"  # Python's own warnings
IN_OUR_WORDS = (  # Typer's messages to programmers
    (regex(r"\(Possible options: (.*)\)"), r"(perhaps \1)"),
    (regex(r"No such command (.*)"), r"there is no command \1"),
    (regex(r"is not a valid int( range)?"), "is not a whole number"),
    (regex(r"is not a valid float( range)?"), "is not a number"),
    (
        regex(r"Got unexpected extra argument\(s\) \((.*)\)"),
        r"too many arguments: \1 (a text with spaces needs quotes)",
    ),
)


class CommandExit:
    """The exit code of a command."""

    code: int = ExitCode.DONE

    def take(self, result: object) -> None:
        """Take the command's return value: its exit code, or anything else."""
        self.code = result if isinstance(result, int) else ExitCode.DONE


@contextlib.contextmanager
def reported(args: Sequence[str] = (), *, hints: bool = True) -> Iterator[CommandExit]:
    """Turn an error of a command into its exit code. A person typed `args`. Without `hints` an error is one line.

    A traceback is a bug of teamchat, never the user's.
    """
    ending = CommandExit()
    try:
        yield ending
        sys.stdout.flush()
    except TeamchatError as error:
        ending.code = complain(str(error), _hint(error, args) if hints else None, error.code)
    except TyperException as error:
        ending.code = misused(error, args, hints=hints)
    except (KeyboardInterrupt, typer.Abort):
        silence(sys.stdout)  # or the exit would wait for a reader again
        ending.code = ExitCode.INTERRUPTED
    except typer.Exit as error:
        ending.code = error.exit_code
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        silence(sys.stdout)  # Typer turns a closed pipe into a SystemExit
        ending.code = ExitCode.INTERRUPTED
    except OutputLost as error:
        ending.code = output_lost(error)
    except (MemoryError, RuntimeError, OSError) as error:
        ending.code = denied(error)


def _hint(error: TeamchatError, args: Sequence[str]) -> str | None:
    """Return the commands to type, with the team, the session and the person that were typed."""
    if isinstance(error, UnknownPerson):
        if list(args[:1]) in ([], ["chat"]):
            return placed(f"teamchat chat --as {quote(error.person)}", args)
        return retyped("--as", error.person, args) or placed(saying("--as", error.person), args)
    return error.hint and placed(error.hint, args)


_LONG = regex(r"(?P<begin>\S{60})\S{140,}")


def misused(error: TyperException, args: Sequence[str], *, hints: bool = True) -> int:
    """Say which option or argument is wrong, in one line like any other error, and with `hints` what to type."""
    message = error.format_message() or str(error)
    if not message:  # without arguments the help is the answer
        return ExitCode.USAGE
    message = _LONG.sub(r"\g<begin>…", printable(message).rstrip("."))
    for pattern, ours in IN_OUR_WORDS:
        message = pattern.sub(ours, message)
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "teamchat"
    option = getattr(error, "option_name", None)
    if option and any(_is_text(word, option) for word in args):
        text = "a text that begins with - is read as an option; put -- before it"
        return complain(text, behind_dashes(args) if hints else None, ExitCode.USAGE)
    return complain(message[:1].lower() + message[1:], f"{command} --help" if hints else None, ExitCode.USAGE)


def _is_text(word: str, option: str) -> bool:
    """Whether the word was read as that option and is a text, such as one that begins with a list's dash or `-1`."""
    return " " in word and word.startswith(option) and not word.startswith(f"{option}=")


def denied(error: MemoryError | RuntimeError | OSError) -> int:
    """Report that the system refuses a resource. Raises any `RuntimeError` of another kind again."""
    if isinstance(error, MemoryError):
        return complain("there is not enough memory", None, ExitCode.STORE)
    if isinstance(error, OSError):
        place = f": {error.filename}" if error.filename else ""
        return complain(f"{error.strerror or error}{place}", HINTS.get(error.errno or 0), ExitCode.STORE)
    if str(error) != NO_THREAD:
        raise error
    return complain("the system allows no more threads or processes", None, ExitCode.STORE)


def output_lost(error: OSError) -> int:
    """Report that standard output cannot be written, such as on a full disk."""
    silence(sys.stdout)
    return complain(f"the output cannot be written: {error.strerror}", None, ExitCode.STORE)


def complain(message: str, hint: str | None, code: int) -> int:
    """Say what is wrong, and what to type about it."""
    print(f"teamchat: {message}", file=sys.stderr)
    for command in commands(hint) if hint else ():
        print("  try: " + "\n".join(map(printable, command.split("\n"))), file=sys.stderr)
    return code
