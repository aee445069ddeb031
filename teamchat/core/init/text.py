"""The text of a first team file: its comments say what each key means and how to go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from teamchat.core.team import INSTALL
from teamchat.runners.base import Access
from teamchat.runners.toml import in_toml


@dataclass(frozen=True, slots=True)
class Seat:
    """A member before it is known which agent speaks for it. `git`: it is to see what changed."""

    name: str
    instruction: str | None = None
    access: Access = "read"
    title: str | None = None
    git: bool = False


CREW = (
    Seat(
        "architect",
        "You are the architect. Weigh the options briefly, decide, and tell the writer what to build.",
        title="Software architect",
    ),
    Seat(
        "writer",
        "You write the code, in small steps. Say which files you changed, and hand over to the reviewer.",
        access="edit",
        title="Developer",
    ),
    Seat(
        "reviewer",
        "You review what was written: read the files, and name the worst problem first. "
        "Hand back to the writer while something must be fixed, else say so and name nobody.",
        title="Code reviewer",
        git=True,
    ),
)
MAX = Seat("max", "You are Max, a software architect. Weigh options briefly and recommend one.", title="Architect")
SARAH = Seat("sarah", "You are Sarah, a backend engineer. Focus on security and scalability.", title="Backend engineer")
CAROL = Seat(
    "carol", "You are Carol, a reviewer. Name the weakest point of what was said, and how to test it.", title="Reviewer"
)
PANEL = ((MAX, "claude"), (SARAH, "codex"), (CAROL, "gemini"))
OFFLINE = (Seat("planner"), Seat("builder"), Seat("checker"))

HEAD = "# The team of this folder; docs/team-file.md explains every key."
Row = tuple[str, str | None]
WIDTH = 30  # where comments begin


def team_text(
    folder: str,
    human: str,
    seats: Sequence[Seat],
    agents: Sequence[str],
    commands: Mapping[str, Sequence[str]] | None = None,
    *,
    git: bool = False,
) -> str:
    """A team file for the seats, each with its agent; `commands` are agents of the file's own, by name.

    `git` says that teamchat's git works here: where it does not, the key is there as a comment.
    """
    tables = [
        HEAD,
        _team(folder, seats, compactor=commands is None),
        _limits(),
        _human(human),
        *(_member(seat, agent, first=seat is seats[0], git=git) for seat, agent in zip(seats, agents, strict=True)),
        *(_agent(name, command, first=index == 0) for index, (name, command) in enumerate((commands or {}).items())),
    ]
    return "\n\n".join(tables) + "\n"


def _team(folder: str, seats: Sequence[Seat], *, compactor: bool) -> str:
    """A small script can sum up nothing; of others, one that only reads does."""
    reader = next((seat.name for seat in seats if seat.access == "read"), None) if compactor else None
    return _lines(
        ("[team]", None),
        (_key("name", folder if folder.strip() and folder.isprintable() else "team"), None),
        (_key("lead", seats[0].name), "answers when you name nobody"),
        *([(_key("compactor", reader), "summarises long conversations")] if reader else []),
        ("fence = true", "no message can pass for another's"),
        ('# task = "Add a login page"', "every member is told"),
    )


def _limits() -> str:
    return _lines(
        ("[team.limits]", "for each message of yours"),
        ("turns = 12", None),
        ("minutes = 60", None),
    )


def _human(name: str) -> str:
    return _lines(("[[members]]", None), (_key("name", name), None), ('type = "human"', None))


def _member(seat: Seat, agent: str, *, first: bool, git: bool) -> str:
    """A member; the keys of the `first` one are explained."""
    return _lines(
        ("[[members]]", None),
        (_key("name", seat.name), f"called by [NEXT: {seat.name}]" if first else None),
        *([(_key("title", seat.title), None)] if seat.title else []),
        (_key("agent", agent), None),
        *_access(seat, agent, "read, edit or full" if first else None),
        *([_git(works=git)] if seat.git else []),
        *([(_key("system_instruction", seat.instruction), None)] if seat.instruction else []),
    )


def _access(seat: Seat, agent: str, taught: str | None) -> list[Row]:
    """Nothing where it could not be enforced. Codex needs no `allow`: it runs any command, in its sandbox."""
    if agent not in INSTALL:
        return []
    allow = seat.access == "edit" and agent != "codex"
    more = [('# allow = ["pytest"]', "commands it may run; then: teamchat trust")] if allow else []
    return [(_key("access", seat.access), taught), *more]


def _git(*, works: bool) -> Row:
    sees = "sees what changed: log, diff, show, blame"
    return ("git = true", sees) if works else ("# git = true", f"{sees}; needs the package mcp")


def _agent(name: str, command: Sequence[str], *, first: bool) -> str:
    words = "any program: reads the prompt, prints the answer"
    return _lines((f"[agents.{name}]", words if first else None), (_key("command", command), None))


def _key(name: str, value: str | Sequence[str]) -> str:
    return f"{name} = {in_toml(value)}"


def _lines(*rows: Row) -> str:
    return "\n".join(f"{text:<{WIDTH}} # {comment}" if comment else text for text, comment in rows)
