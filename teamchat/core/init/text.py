"""The text of a first team file: its comments say what each key means and how to go on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from teamchat.core.team import INSTALL
from teamchat.runners.base import Access


@dataclass(frozen=True, slots=True)
class Seat:
    """A member before it is known which agent speaks for it."""

    name: str
    instruction: str | None = None
    access: Access = "read"
    title: str | None = None


CREW = (
    Seat("architect", "You are the architect. Weigh the options briefly, decide, and tell the writer what to build."),
    Seat(
        "writer",
        "You write the code, in small steps. Say which files you changed, and hand over to the reviewer.",
        access="edit",
    ),
    Seat(
        "reviewer",
        "You review what was written: read the files, and name the worst problem first. "
        "Hand back to the writer while something must be mended, else say so and name nobody.",
    ),
)
MAX = Seat("max", "You are Max, a software architect. Weigh options briefly and recommend one.", title="Architect")
SARAH = Seat("sarah", "You are Sarah, a backend engineer. Focus on security and scalability.", title="Backend engineer")
CAROL = Seat(
    "carol", "You are Carol, a reviewer. Name the weakest point of what was said, and how to test it.", title="Reviewer"
)
PANEL = ((MAX, "claude"), (SARAH, "codex"), (CAROL, "gemini"))
OFFLINE = (Seat("planner"), Seat("builder"), Seat("checker"))

HEAD = """\
# The team of this folder. Look at it with `teamchat team`; docs/team-file.md has every key.
# A key behind a # is off: it shows what else there is."""
Row = tuple[str, str | None]
WIDTH = 29  # where comments begin
ACCESS_WORDS = "read: looks at files; edit: changes files here, too; full: whatever you may do"


def team_text(
    folder: str,
    human: str,
    seats: Sequence[Seat],
    agents: Sequence[str],
    commands: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """A team file for the seats, each with its agent; `commands` are agents of the file's own, by name."""
    first, *others = zip(seats, agents, strict=True)
    tables = [
        HEAD,
        _team(folder, seats[0].name),
        _limits(),
        _human(human),
        _first(*first),
        *(_member(*other) for other in others),
        *(_agent(name, command, taught=index == 0) for index, (name, command) in enumerate((commands or {}).items())),
    ]
    return "\n\n".join(tables) + "\n"


def _team(folder: str, lead: str) -> str:
    return _lines(
        ("[team]", None),
        (_key("name", folder if folder.strip() and folder.isprintable() else "team"), None),
        (_key("lead", lead), "answers a message of yours that names nobody"),
        ('# task = "..."', "what the team is for: every member is told"),
        ("fence = true", "nothing that is said can pass for another speaker's words"),
    )


def _limits() -> str:
    return _lines(
        ("[team.limits]", "these pause the conversation, and lose nothing of it"),
        ("turns = 12", "replies to one message of yours"),
        ("minutes = 60", "for one message of yours"),
    )


def _human(name: str) -> str:
    return _lines(
        ("[[members]]", f"you: a member asks you something with [NEXT: {name}]"),
        (_key("name", name), None),
        ('type = "human"', None),
    )


def _first(seat: Seat, agent: str) -> str:
    """The first member, whose keys are explained."""
    return _lines(
        ("[[members]]", None),
        (_key("name", seat.name), f"[NEXT: {seat.name}] in a message lets it speak"),
        *_title(seat),
        (_key("agent", agent), "claude, codex, gemini, or a name under [agents]"),
        *_access(seat, agent, ACCESS_WORDS),
        ('# model = "..."', "as its CLI calls it; without it the CLI's own default"),
        ('# timeout = "30m"', "of one reply"),
        *_instruction(seat),
    )


def _member(seat: Seat, agent: str) -> str:
    return _lines(
        ("[[members]]", None),
        (_key("name", seat.name), None),
        *_title(seat),
        (_key("agent", agent), None),
        *_access(seat, agent),
        *_instruction(seat),
    )


def _title(seat: Seat) -> list[Row]:
    return [(_key("title", seat.title), None)] if seat.title else []


def _access(seat: Seat, agent: str, taught: str | None = None) -> list[Row]:
    """Nothing where it could not be enforced. Codex needs no `allow`: it runs any command, in its sandbox."""
    if agent not in INSTALL:
        return []
    allow = seat.access == "edit" and agent != "codex"
    more = [('# allow = ["pytest"]', "commands that it may run; then: teamchat trust")] if allow else []
    return [(_key("access", seat.access), taught), *more]


def _instruction(seat: Seat) -> list[Row]:
    if seat.instruction is None:
        return [('# system_instruction = "..."', "who it is, and what it should do")]
    return [(_key("system_instruction", seat.instruction), None)]


def _agent(name: str, command: Sequence[str], *, taught: bool) -> str:
    words = "any program: the prompt on its standard input, the answer on its output"
    return _lines((f"[agents.{name}]", words if taught else None), (_key("command", command), None))


def _key(name: str, value: str | Sequence[str]) -> str:
    # JSON's strings and lists of strings are TOML's, too
    return f"{name} = {json.dumps(value, ensure_ascii=False)}"


def _lines(*rows: Row) -> str:
    return "\n".join(f"{text:<{WIDTH}} # {comment}" if comment else text for text, comment in rows)
