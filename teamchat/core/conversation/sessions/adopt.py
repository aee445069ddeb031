"""Letting a member continue a session that a person began in the member's CLI.

The member's next turn continues a copy of it and gets the whole conversation besides; the person's own session stays
as it is. A message tells the others, who have not seen the words of that session.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from teamchat.core.errors import UnknownName, UsageError
from teamchat.core.messages import NewMessage, Speaker
from teamchat.core.routing.titles import first_words
from teamchat.core.store.database import Database
from teamchat.core.store.turns import last_turn_of
from teamchat.core.store.vendor_sessions import (
    Adoption,
    adopt,
    adopted_by,
    adoption_of,
    forget_adoption,
    vendor_sessions,
)
from teamchat.core.team.programs import environment_of
from teamchat.core.team.team import Member, Team
from teamchat.core.text.commands import command_of
from teamchat.core.text.redact import redact_shapes
from teamchat.core.turn.run import Run
from teamchat.runners.base import KeptSession
from teamchat.runners.homes.records import MOST
from teamchat.runners.untrusted.regular_files import LARGEST

TEAMCHAT = Speaker("teamchat", "teamchat", type="system")


class Candidates(Struct, frozen=True):
    """The sessions of a member's CLI in its folder, the newest first, without sessions that members began. `kept` are
    the listed ones, `older` finds the others.
    """

    member: Member
    agent: str
    kept: Sequence[KeptSession]
    older: Iterator[KeptSession]


def candidates(db: Database, team: Team, member: Member, inherited: Mapping[str, str]) -> Candidates:
    """List the sessions that the member could continue in its folder.

    Raises `UnknownName` for a person, and `UsageError` if the member continues no sessions or its CLI lists none.
    """
    if member.type == "human":
        raise UnknownName(f"{member.name} is a person, who has no session to continue", "teamchat team")
    agent = team.agent_of(member)
    runner = agent.type.runner
    if runner.sessions is None or runner.sessions.kept is None:
        raise UsageError(f"{member.name}'s program ({agent.name}) has no sessions that could be adopted")
    if member.memory == "fresh":
        raise UsageError(
            f"{member.name}'s memory is fresh: each of its turns begins a session of its own;"
            ' give it memory = "resume" in the team file'
        )
    if member.workspace == "worktree" and not runner.sessions.any_folder:
        raise UsageError(f"{member.name} works in a worktree of its own, where {agent.name} finds no session of yours")
    env = environment_of(runner, inherited, keep=member.env_keep, add=member.env)
    own, sessions = vendor_sessions(db), runner.sessions.kept(env, member.cwd)
    others = (session for session in sessions if session.id not in own and not _is_option(session.id))
    return Candidates(member, agent.name, list(islice(others, MOST)), others)


def _is_option(name: str) -> bool:
    """Whether a CLI would take a session's name for an option."""
    return name.startswith("-")


def chosen(found: Candidates, name: str | None) -> KeptSession:
    """Choose the session whose name is, or begins with, that name, else the newest.

    One that is not listed has to be named in full. Raises `UnknownName`, and `UsageError` for one that is too large.
    """
    session = _named(found, name)
    if session.too_large:
        raise UsageError(
            f"session {session.id} has a record of more than {LARGEST:,} bytes, which is too large to copy",
            command_of("teamchat", "adopt", found.member.name),
        )
    return session


def _named(found: Candidates, name: str | None) -> KeptSession:
    fits = [session for session in found.kept if name is None or session.id == name or session.id.startswith(name)]
    exact = [session for session in fits if session.id == name]
    who = found.member.name
    if name is None and fits:
        return fits[0]
    if len(exact or fits) == 1:
        return (exact or fits)[0]
    if not fits and name is not None and (older := next((one for one in found.older if one.id == name), None)):
        return older
    hint = command_of("teamchat", "adopt", who) if found.kept else None
    if name is not None and _is_option(name):
        raise UnknownName(f"the name {name!r} begins with '-', which {found.agent} would take for an option", hint)
    if fits:
        raise UnknownName(f"{len(fits)} sessions of {found.agent} begin with {name!r}", hint)
    which = f" {name!r}" if name is not None else ""
    raise UnknownName(f"there is no session{which} of {found.agent} in {found.member.cwd}", hint)


def carry_out(run: Run, found: Candidates, kept: KeptSession) -> str:
    """Store that the member continues the session, and the message that tells of it. Returns its text.

    Raises `UsageError` while members wait: they would answer that message.
    """
    if run.state.queue:
        waiting = ", ".join(route.target for route in run.state.queue)
        raise UsageError(f"this conversation waits for {waiting}; continue it first", "teamchat resume")
    day = time.strftime("%Y-%m-%d", time.localtime(kept.at))
    words = f": {first_words(redact_shapes(kept.first)[0])}" if kept.first else ""
    text = (
        f"{found.member.name} continues a session begun in {found.agent} and last used on {day},"
        f" whose words the others do not see{words}"
    )
    with run.transaction():
        stored = run.manager.add_message(NewMessage(text, TEAMCHAT))
        adopt(run.db, run.session, Adoption(found.member.name, found.agent, kept.id, stored.id))
    return text


def cancel(run: Run, member: Member) -> None:
    """Let the member begin sessions of its own again. Raises `UsageError` if a turn has continued the session."""
    if adoption_of(run.db, run.session, member.name) is None:
        last = last_turn_of(run.db, run.session, member.name)
        if last and adopted_by(run.db, run.session, member.name):
            raise UsageError(
                f"{member.name} has continued it in turn {last.number} or before",
                command_of("teamchat", "undo", str(last.number), "--conversation"),
            )
        raise UsageError(f"{member.name} adopts no session", command_of("teamchat", "adopt", member.name))
    with run.transaction():
        forget_adoption(run.db, run.session, member.name)
        run.manager.add_message(NewMessage(f"{member.name} continues no session from elsewhere", TEAMCHAT))
