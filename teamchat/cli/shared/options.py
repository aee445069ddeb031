"""Options that several commands share, each defined once."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

import typer

from teamchat.cli.shared.complete import sessions, teams

MOST_MESSAGES = 10**9  # of a window
LONGEST_SESSION = 100  # characters; notes and lists repeat it


def session_name(name: str | None) -> str | None:
    if name is not None and len(name) > LONGEST_SESSION:
        raise typer.BadParameter(f"expected at most {LONGEST_SESSION} characters, got {len(name):,}.")
    if name is not None and not (name.strip() and name.isprintable()):
        raise typer.BadParameter(f"expected a name of printable characters, got {name!r}.")
    return name


def session_title(title: str | None) -> str | None:
    if title is None:
        return None
    from teamchat.core.routing.markers import LONGEST_TITLE

    line = " ".join(title.split())
    if not (line and line.isprintable()):
        raise typer.BadParameter(f"expected a title of printable characters, got {title!r}.")
    if len(line) > LONGEST_TITLE:
        raise typer.BadParameter(f"expected at most {LONGEST_TITLE} characters, got {len(line):,}.")
    return line


MOST_COUNTED = 1_000_000_000
"""The largest number of an option that counts messages, turns or hits."""


def finite(speed: float) -> float:
    if math.isnan(speed):
        raise typer.BadParameter("nan is not a number.")
    return speed


def words_of(verdict: str | None) -> tuple[str, ...]:
    """The words of `--verdict`, () without it. Raises `UsageError`."""
    if verdict is None:
        return ()
    from teamchat.cli.shared.verdict import verdict_words

    return verdict_words(verdict)


def asks(ask: bool, no_input: bool) -> bool:
    """Whether `--ask` was given. Raises `UsageError` if `--no-input` was, too."""
    if ask and no_input:
        from teamchat.core.errors import UsageError

        raise UsageError("--ask and --no-input exclude each other")
    return ask


def cassette_file(path: Path | None) -> Path | None:
    """Refuse anything but a file: opening a pipe would wait for its reader."""
    try:
        fits = path is None or path.is_file() or (path.parent.is_dir() and not path.exists())
    except (OSError, ValueError):
        fits = False
    if not fits:
        raise typer.BadParameter(f"expected a file in an existing folder, got {str(path)!r}.")
    return path


FormatName = Literal["md", "html", "json", "jsonl", "cast", "svg", "snapshot"]
TeamOption = Annotated[
    str | None,
    typer.Option(
        "--team",
        metavar="FILE|NAME",
        autocompletion=teams,
        help="The team file, or a name in your teams folder.",
    ),
]
SessionOption = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="NAME",
        envvar="TEAMCHAT_SESSION",
        autocompletion=sessions,
        callback=session_name,
        help="The conversation (default: your last one; in a script the scripts' last one).",
    ),
]
TitleOption = Annotated[
    str | None,
    typer.Option(
        "--title", metavar="TITLE", callback=session_title, help="With --new: its title (default: its first words)."
    ),
]
TurnsOption = Annotated[
    int | None,
    typer.Option(
        "--turns", metavar="N", min=1, max=MOST_COUNTED, help="At most N turns in this run; what then waits is on hold."
    ),
]
WindowOption = Annotated[
    int | None,
    typer.Option(
        "--window",
        metavar="N",
        min=0,
        max=MOST_MESSAGES,
        help="Quote at most N earlier messages in this run's prompts.",
    ),
]
OnlyOption = Annotated[
    bool, typer.Option("--only", help="Only the called members answer: their own calls of members are not followed.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line: teamchat help json.")]
StreamOption = Annotated[bool, typer.Option("--stream", help="With --json: print text as it arrives, too.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the last reply, without its markers.")]
TimeoutOption = Annotated[
    str | None, typer.Option("--timeout", metavar="TIME", help="Time limit of a turn, such as 90s or 5m.")
]
TrustOption = Annotated[bool, typer.Option("--trust", help="Trust the team file as it is now.")]
SpeedOption = Annotated[
    float, typer.Option("--speed", min=0, callback=finite, help="Playback speed; 0 plays without pauses.")
]
RecordOption = Annotated[
    Path | None,
    typer.Option(
        "--record", metavar="FILE", callback=cassette_file, help="Record the run into a cassette, for teamchat replay."
    ),
]
NoWaitOption = Annotated[
    bool, typer.Option("--no-wait", help="Fail instead of waiting while another process runs the conversation.")
]
NotifyOption = Annotated[
    str | None,
    typer.Option(
        "--notify", metavar="CMD", help="At the end run this shell command, with the result of --json on its stdin."
    ),
]
AskOption = Annotated[
    bool, typer.Option("--ask", help="At a terminal ask a member's question in place; an empty line leaves it open.")
]
NoInputOption = Annotated[
    bool, typer.Option("--no-input", help="Leave a member's question open, also at a terminal (the default).")
]
VerdictOption = Annotated[
    str | None,
    typer.Option(
        "--verdict",
        metavar="WORDS",
        help="Such as PASS,FAIL: exit with 0 if the last word is the first of them, 14 another one, 15 none.",
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite files that somebody else changed since, too.")]
