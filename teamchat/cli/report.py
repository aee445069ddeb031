"""The one place that turns errors into exits: one line on stderr that says what is wrong, one that says what to do."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer
from typer.exceptions import TyperException

from teamchat.cli.streams import silence
from teamchat.core.errors import ExitCode, TeamchatError


def report(command: Callable[[], object]) -> int:  # noqa: PLR0911 (one line per kind of ending)
    """Run `command`; its exit code. A traceback is a bug of teamchat, never the user's."""
    try:
        result = command()
        sys.stdout.flush()
    except TeamchatError as error:
        return complain(str(error), error.hint, error.code)
    except TyperException as error:
        message = error.format_message() or str(error)
        if not message:  # no arguments at all: the help was the answer
            return ExitCode.USAGE
        return complain(message.rstrip("."), "teamchat --help", ExitCode.USAGE)
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except typer.Exit as error:
        return error.exit_code
    except BrokenPipeError:
        silence(sys.stdout)
        return ExitCode.INTERRUPTED
    except OSError as error:  # such as a full disk behind stdout
        silence(sys.stdout)
        place = f": {error.filename}" if error.filename else ""
        return complain(f"{error.strerror or error}{place}", None, ExitCode.STORE)
    return result if isinstance(result, int) else ExitCode.DONE


def complain(message: str, hint: str | None, code: int) -> int:
    """Say what is wrong, and what to do about it."""
    try:
        print(f"teamchat: {message}", file=sys.stderr)
        if hint:
            print(f"  try: {hint}", file=sys.stderr)
    except OSError:
        silence(sys.stderr)  # nobody reads it; the code still tells
    return code
