"""Options that several commands share, each defined once, and the groups of them that a command takes whole.

A command names a group as a parameter, and `spread` makes an option of each of the group's fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_type_hints

import typer
from msgspec import Struct
from msgspec.structs import replace

from teamchat.cli.startup.complete import members, people, sessions, teams
from teamchat.core.errors import UsageError

if TYPE_CHECKING:
    from teamchat.core.engine.state import Bounds

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
    from teamchat.core.routing.titles import LONGEST_TITLE

    line = " ".join(title.split())
    if not (line and line.isprintable()):
        raise typer.BadParameter(f"expected a title of printable characters, got {title!r}.")
    if len(line) > LONGEST_TITLE:
        raise typer.BadParameter(f"expected at most {LONGEST_TITLE} characters, got {len(line):,}.")
    return line


MOST_COUNTED = 1_000_000_000
"""The largest number of an option that counts messages, turns or hits."""


def at_least(least: int) -> Callable[[int | None], int | None]:
    """Return what refuses a smaller count, and one that no column of a store holds."""

    def checked(count: int | None) -> int | None:
        if count is not None and not least <= count <= MOST_COUNTED:
            bound = f"{least} or more" if count < least else f"at most {MOST_COUNTED:,}"
            raise typer.BadParameter(f"expected {bound}, got {count:,}.")
        return count

    return checked


def finite(number: float | None) -> float | None:
    """Return a number that is not negative. Raises `BadParameter`."""
    if number is not None and not number >= 0:  # nor is nan
        raise typer.BadParameter(f"expected 0 or more, got {number:g}.")
    return number


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
PatchesName = Literal["all", "none"]
TeamOption = Annotated[
    str | None,
    typer.Option(
        "--team", metavar="FILE|NAME", autocompletion=teams, help="The team file, or a name in your teams folder."
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
    int | None, typer.Option("--turns", metavar="N", callback=at_least(1), help="Pause this run after N turns.")
]
WindowOption = Annotated[
    int | None,
    typer.Option("--window", metavar="N", callback=at_least(0), help="Quote at most N earlier messages in a prompt."),
]
OnlyOption = Annotated[bool, typer.Option("--only", help="Ignore hand-overs in replies.")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line: teamchat help json.")]
StreamOption = Annotated[bool, typer.Option("--stream", help="With --json: also print text as it arrives.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the last reply, without its markers.")]
TimeoutOption = Annotated[
    str | None,
    typer.Option("--timeout", metavar="TIME", help="Time limit of a turn, such as 90s or 5m; also of reading a pipe."),
]
TrustOption = Annotated[bool, typer.Option("--trust", help="Trust the team file as it is now.")]
SPEED = typer.Option("--speed", callback=finite, help="Playback speed; 0 plays without pauses.")
SpeedOption = Annotated[float, SPEED]
RecordOption = Annotated[
    Path | None,
    typer.Option(
        "--record", metavar="FILE", callback=cassette_file, help="Record the run into FILE, for teamchat replay."
    ),
]
NoWaitOption = Annotated[bool, typer.Option("--no-wait", help="Fail if another process runs the conversation.")]
NotifyOption = Annotated[
    str | None,
    typer.Option(
        "--notify",
        metavar="CMD",
        help="Run a shell command when this run ends, with its result as JSON on stdin (for every run: hooks).",
    ),
]
AskOption = Annotated[
    bool, typer.Option("--ask", help="At a terminal, ask you what members ask; an empty line leaves it open.")
]
NoInputOption = Annotated[bool, typer.Option("--no-input", help="Never ask you what members ask (the default).")]
VerdictOption = Annotated[
    str | None,
    typer.Option(
        "--verdict",
        metavar="WORDS",
        help="Exit by the reply's last line: with PASS,FAIL, 0 for PASS, 14 for FAIL, 15 for neither.",
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Also overwrite files that were changed since.")]
ToOption = Annotated[
    list[str] | None,
    typer.Option(
        "--to",
        metavar="NAMES",
        autocompletion=members,
        help="Who answers: max, or max,sarah in turn, or max+sarah at once.",
    ),
]
AsOption = Annotated[
    str | None, typer.Option("--as", metavar="NAME", autocompletion=people, help="The person you speak as.")
]
NewOption = Annotated[bool, typer.Option("--new", help="Start a new conversation, named by --session if given.")]
AnywayOption = Annotated[bool, typer.Option("--anyway", help="Send a text that looks like a call and calls nobody.")]
CutOption = Annotated[
    bool, typer.Option("--cut", help="Send a text over the prompt limit; prompts leave out its middle.")
]
FileOption = Annotated[list[str] | None, typer.Option("--file", metavar="PATH", help="Attach a text file or an image.")]
ExpandOption = Annotated[bool, typer.Option("--expand", help="Also expand @paths in piped text and files.")]
FollowOption = Annotated[
    bool, typer.Option("--follow", help="Wait for the replies that another process is running, also at a terminal.")
]
ExplainOption = Annotated[
    bool, typer.Option("--dry-run", help="Show the routing, prompts and commands without running anything.")
]


class OptionGroup(Struct, frozen=True):
    """A group of options: each field is declared like a parameter of a command. `panel` is its heading in a long help.

    Options that exclude each other raise `UsageError` when the group is made.
    """

    panel: ClassVar[str] = ""
    own_first: ClassVar[bool] = False  # lists the group's own options first in a help

    @classmethod
    def fields(cls) -> tuple[str, ...]:
        """Return the names of the options in the order of the help."""
        inherited = cls.__mro__[1].fields() if issubclass(cls.__mro__[1], OptionGroup) else ()
        own = tuple(name for name in cls.__struct_fields__ if name not in inherited)
        return (*own, *inherited) if cls.own_first else (*inherited, *own)


class PlaceOptions(OptionGroup, frozen=True):
    """The team and the conversation of a command."""

    panel = "Which conversation"
    team: TeamOption = None
    session: SessionOption = None


class NewPlace(PlaceOptions, frozen=True):
    """A conversation that may begin with the command."""

    new: NewOption = False
    title: TitleOption = None


class Attached(OptionGroup, frozen=True):
    """The speaker of a message, and what goes with its words."""

    panel = "The message"
    as_: AsOption = None
    cut: CutOption = False
    file: FileOption = None
    expand: ExpandOption = False


class MessageOptions(Attached, frozen=True):
    """The speaker and the addressees of a message, and what goes with its words."""

    own_first = True
    to: ToOption = None
    anyway: AnywayOption = False


class ShownOptions(OptionGroup, frozen=True):
    """How a run is shown."""

    panel = "What is printed"
    as_json: JsonOption = False
    stream: StreamOption = False
    quiet: QuietOption = False

    def __post_init__(self) -> None:
        if self.stream and not self.as_json:
            raise UsageError("--stream needs --json; without both, a terminal shows text as it arrives")
        if self.quiet and self.as_json:
            raise UsageError("--json and --quiet exclude each other; the last line of --json has the last reply")

    @property
    def talks(self) -> bool:
        """True if a person reads the output as it comes."""
        return not (self.as_json or self.quiet)


class RunOutput(ShownOptions, frozen=True):
    """How a run is shown, told, recorded and judged."""

    notify: NotifyOption = None
    record: RecordOption = None
    verdict: VerdictOption = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.verdicts  # raises for an invalid --verdict

    @property
    def verdicts(self) -> tuple[str, ...]:
        """The words of `--verdict`, () without it."""
        if self.verdict is None:
            return ()
        from teamchat.cli.startup.verdict import verdict_words

        return verdict_words(self.verdict)


class SendOutput(RunOutput, frozen=True):
    """The output of a run that may be explained instead."""

    dry_run: ExplainOption = False


class LimitOptions(OptionGroup, frozen=True):
    """The limits of a turn, and whether it may run at all."""

    panel = "Limits and permission"
    timeout: TimeoutOption = None
    trust: TrustOption = False
    no_wait: NoWaitOption = False


class RunLimits(LimitOptions, frozen=True):
    """The limits of a turn and of the whole run."""

    own_first = True
    turns: TurnsOption = None
    window: WindowOption = None

    @property
    def bounds(self) -> Bounds:
        from teamchat.core.engine.state import Bounds

        return Bounds(self.turns, window=self.window)


class SendLimits(RunLimits, frozen=True):
    """The limits of a run that may ignore hand-overs."""

    only: OnlyOption = False

    @property
    def bounds(self) -> Bounds:
        return replace(super().bounds, only=self.only)


class Asking(OptionGroup, frozen=True):
    """Whether a member's question is asked at the terminal."""

    ask: AskOption = False
    no_input: NoInputOption = False

    def __post_init__(self) -> None:
        if self.ask and self.no_input:
            raise UsageError("--ask and --no-input exclude each other")


class Following(Asking, frozen=True):
    """Adds whether a message to a session of another process waits for its replies."""

    follow: FollowOption = False


class Confirm(OptionGroup, frozen=True):
    """Options to act without asking."""

    yes: YesOption = False
    force: ForceOption = False


class ConfirmOrShow(Confirm, frozen=True):
    """Options to act without asking, or only to show the effect."""

    dry_run: DryRunOption = False


def groups_of(command: Callable[..., Any]) -> Mapping[str, type[OptionGroup]]:
    """Return the parameters of a command that are groups of options."""
    hints = get_type_hints(command, include_extras=True)
    return {name: kind for name, kind in hints.items() if isinstance(kind, type) and issubclass(kind, OptionGroup)}


def spread(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adapt a command for Typer: with an option for each field of the groups that are its parameters."""
    groups = groups_of(command)
    if not groups:
        return command
    hints = get_type_hints(command, include_extras=True)

    def parameters() -> Iterator[Parameter]:
        for name, parameter in signature(command).parameters.items():
            if kind := groups.get(name):
                types = get_type_hints(kind, include_extras=True)
                defaults = dict(zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True))
                for field in kind.fields():
                    yield Parameter(field, Parameter.KEYWORD_ONLY, default=defaults[field], annotation=types[field])
            else:
                yield parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)

    def called(**given: Any) -> Any:
        for name, kind in groups.items():
            given[name] = kind(**{field: given.pop(field) for field in kind.__struct_fields__})
        return command(**given)

    options = Signature([*parameters()])
    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__signature__ = options  # type: ignore[attr-defined]
    called.__annotations__ = {name: each.annotation for name, each in options.parameters.items()}
    return called


def panels(command: Callable[..., Any]) -> Mapping[str, str]:
    """Return the heading of each option that is in a group."""
    return {field: kind.panel for kind in groups_of(command).values() for field in kind.__struct_fields__ if kind.panel}
