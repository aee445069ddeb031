"""The one place that turns errors into exits: a line on stderr says what is wrong, and one each what to type."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Callable, Sequence

import typer
from typer.exceptions import TyperException

from teamchat.cli.retyped import behind_dashes, commands, placed, retyped
from teamchat.cli.streams import OutputLost, silence
from teamchat.core.errors import ExitCode, TeamchatError, UnknownPerson
from teamchat.core.printable import printable
from teamchat.core.typed import saying

HINTS = {errno.EMFILE: "ulimit -n 1024"}
NO_THREAD = "can't start new thread"  # what Python says
IN_OUR_WORDS = (  # what Typer says for programmers
    (re.compile(r"\(Possible options: (.*)\)"), r"(perhaps \1)"),
    (re.compile(r"No such command (.*)"), r"there is no command \1"),
    (re.compile(r"is not a valid int( range)?"), "is not a whole number"),
    (re.compile(r"is not a valid float( range)?"), "is not a number"),
    (
        re.compile(r"Got unexpected extra argument\(s\) \((.*)\)"),
        r"too many arguments: \1 (a text with spaces needs quotes)",
    ),
)


def report(command: Callable[[], object], args: Sequence[str] = ()) -> int:  # noqa: PLR0911 (a line per kind of ending)
    """Run `command`, for which a person typed `args`; its exit code. A traceback is a bug of teamchat, never theirs."""
    try:
        result = command()
        sys.stdout.flush()
    except TeamchatError as error:
        return complain(str(error), _hint(error, args), error.code)
    except TyperException as error:
        return misused(error, args)
    except (KeyboardInterrupt, typer.Abort):
        silence(sys.stdout)  # what nobody has read by now would be waited for again
        return ExitCode.INTERRUPTED
    except typer.Exit as error:
        return error.exit_code
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        silence(sys.stdout)  # nobody reads it any more, which Typer turns into a SystemExit
        return ExitCode.INTERRUPTED
    except OutputLost as error:
        return output_lost(error)
    except (MemoryError, RuntimeError, OSError) as error:
        return denied(error)
    return result if isinstance(result, int) else ExitCode.DONE


def _hint(error: TeamchatError, args: Sequence[str]) -> str | None:
    """What to type, for the team, the session and, where another one was typed, the person."""
    if isinstance(error, UnknownPerson):
        return retyped("--as", error.person, args) or placed(saying("--as", error.person), args)
    return error.hint and placed(error.hint, args)


def misused(error: TyperException, args: Sequence[str]) -> int:
    """Say which option or argument is wrong, in one line like all others."""
    message = error.format_message() or str(error)
    if not message:  # no arguments at all: the help was the answer
        return ExitCode.USAGE
    message = printable(message).rstrip(".")
    for pattern, ours in IN_OUR_WORDS:
        message = pattern.sub(ours, message)
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "teamchat"
    option = getattr(error, "option_name", None)
    if option and " " in option:  # a list's dash, say
        text = "a text that begins with - is read as an option; put -- before it"
        return complain(text, behind_dashes(args), ExitCode.USAGE)
    return complain(message[:1].lower() + message[1:], f"{command} --help", ExitCode.USAGE)


def denied(error: MemoryError | RuntimeError | OSError) -> int:
    """The system does not give what is needed. Raises any `RuntimeError` that is of another kind."""
    if isinstance(error, MemoryError):
        return complain("there is not enough memory", None, ExitCode.STORE)
    if isinstance(error, OSError):
        place = f": {error.filename}" if error.filename else ""
        return complain(f"{error.strerror or error}{place}", HINTS.get(error.errno or 0), ExitCode.STORE)
    if str(error) != NO_THREAD:
        raise error
    return complain("the system starts no more threads and processes for you", None, ExitCode.STORE)


def output_lost(error: OSError) -> int:
    """Standard output cannot be written, such as on a full disk."""
    silence(sys.stdout)
    return complain(f"the output cannot be written: {error.strerror}", None, ExitCode.STORE)


def complain(message: str, hint: str | None, code: int) -> int:
    """Say what is wrong, and what to type about it."""
    print(f"teamchat: {message}", file=sys.stderr)
    for command in commands(hint) if hint else ():
        print("  try: " + "\n".join(map(printable, command.split("\n"))), file=sys.stderr)
    return code
