"""Sessions that agent CLIs keep for members: opened for a person, adopted from one, and found when one is deleted."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from teamchat.core.agents import AGENT_TYPES
from teamchat.core.checkpoint.find import find_repository
from teamchat.core.checkpoint.refs import prune
from teamchat.core.checkpoint.values import NoRepository
from teamchat.core.conversation.differences import known_changes
from teamchat.core.errors import CheckpointFailed, NotTrusted, UnknownName, UsageError
from teamchat.core.messages import NewMessage, Speaker
from teamchat.core.routing.markers import first_words
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, fence_key, remove_session
from teamchat.core.store.turns import Turn, last_turn_of, sessions_with_undone, turns_of, turns_of_member
from teamchat.core.store.vendor_sessions import (
    Adoption,
    adopt,
    adopted_by,
    adoption_of,
    forget_adoption,
    vendor_sessions,
)
from teamchat.core.team.programs import environment_of, find_program, in_worktree
from teamchat.core.team.team import AgentSpec, Member, Team
from teamchat.core.text.commands import command_of, saying
from teamchat.core.text.redact import redact_shapes
from teamchat.core.turn.machine import need_program
from teamchat.core.turn.run import Run
from teamchat.core.turn.work_trees import refs_of
from teamchat.core.worktrees.make import place
from teamchat.runners.base import KeptSession
from teamchat.runners.events import FailureKind

# Opening a member's vendor session for a person: which session, and the command that runs it at a terminal.
#
# What is said there is no part of the conversation. Only the member remembers it, and its next receipt says so.


class Opening(Struct, frozen=True):
    """What to run in the foreground, started in `cwd`. `turn` is the turn that left the session."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    turn: Turn


def plan_opening(db: Database, session: Session, team: Team, name: str, inherited: Mapping[str, str]) -> Opening:
    """The command that opens the vendor session of the member called `name`: its CLI as a user runs it, in its folder.

    The CLI of a member with a worktree runs in that worktree. It gets the member's model and environment, but not what
    only turns get (access, args). A session that remembers what was undone does not count.

    Raises `UnknownName` when there is no member or no session, `NotTrusted` where the project would run its own code,
    `UsageError` (no such folder) and `AgentMissing`.
    """
    member = team.member(name)
    if member.type == "human":
        raise UnknownName(f"{member.name} is a person, who has no session to open")
    if member.workspace == "worktree":
        member = in_worktree(member, place(db.path.parent, session.id, member.name, member.cwd) or member.cwd)
    agent = team.agent_of(member)
    runner = agent.type.runner
    if runner.sessions is None:
        raise UnknownName(f"{member.name}'s program has no sessions to open", "teamchat log")
    undone = sessions_with_undone(db, session.id, member.name)
    left = (turn for turn in turns_of_member(db, session.id, member.name) if _left(turn, member, agent))
    turn = next((turn for turn in left if turn.vendor_session not in undone), None)
    if turn is None or turn.vendor_session is None:
        raise _none(member, session, undone)
    command_env = {"PWD": str(member.cwd)}
    env = environment_of(runner, inherited, keep=member.env_keep, add=member.env, command_env=command_env)
    if not member.project_settings and (why := runner.sessions.refused(env)):
        raise NotTrusted(f"{member.name}'s session is not opened: {why}")
    program, *words = agent.command
    model = ("--model", member.model) if member.model else ()  # every built-in CLI calls it so
    found = need_program(member, program, find_program(program, env))
    argv = (found, *words, *runner.sessions.open(turn.vendor_session, member.cwd), *model)
    return Opening(argv, env, runner.sessions.starts_in or member.cwd, turn)


def _left(turn: Turn, member: Member, agent: AgentSpec) -> bool:
    """True when the turn left a vendor session that this member's CLI finds."""
    gone = turn.outcome and turn.outcome.failure and turn.outcome.failure.kind is FailureKind.GONE
    here = (turn.agent, turn.setup.cwd) == (
        agent.name,
        str(member.cwd),
    )  # Claude and Gemini find a session only in its own folder
    return bool(turn.vendor_session) and turn.setup.memory != "fresh" and here and not gone


def _none(member: Member, session: Session, undone: Collection[str]) -> UnknownName:
    if member.memory == "fresh":
        return UnknownName(
            f"{member.name}'s memory is fresh: its turns leave no session; "
            'give it memory = "resume" in the team file, and a turn'
        )
    if undone:
        return UnknownName(
            f"{member.name}'s session remembers what was undone; its next turn begins another one",
            saying("--to", member.name),
        )
    return UnknownName(f"{member.name} has no session in conversation {session.name} yet", saying("--to", member.name))


# Letting a member continue a session that a person began in the member's CLI.
#
# The member's next turn continues a copy of it and gets the whole conversation besides; the person's own session stays
# as it is. A message tells the others, who have not seen the words of that session.

TEAMCHAT = Speaker("teamchat", "teamchat", type="system")


class Candidates(Struct, frozen=True):
    """The sessions of a member's CLI in its folder, the newest first, without those that members began."""

    member: Member
    agent: str
    kept: Sequence[KeptSession]


def candidates(db: Database, team: Team, member: Member, inherited: Mapping[str, str]) -> Candidates:
    """What the member could continue, in the folder in which it works.

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
    if member.workspace == "worktree":
        raise UsageError(f"{member.name} works in a worktree of its own, where {agent.name} finds no session of yours")
    env = environment_of(runner, inherited, keep=member.env_keep, add=member.env)
    own, kept = vendor_sessions(db), runner.sessions.kept(env, member.cwd)
    return Candidates(member, agent.name, [one for one in kept if one.id not in own])


def chosen(found: Candidates, name: str | None) -> KeptSession:
    """The session of that name or of a name that begins so, or the newest. Raises `UnknownName`."""
    fits = [kept for kept in found.kept if name is None or kept.id == name or kept.id.startswith(name)]
    exact = [kept for kept in fits if kept.id == name]
    who = found.member.name
    if name is None and fits:
        return fits[0]
    if len(exact or fits) == 1:
        return (exact or fits)[0]
    hint = command_of("teamchat", "adopt", who) if found.kept else None
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
    text = (
        f"{found.member.name} continues a session begun in {found.agent} and last used on {day},"
        f" whose words the others do not see: {first_words(redact_shapes(kept.first)[0])}"
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


# Deleting a session, and finding the vendor sessions that the agents' CLIs keep of it.


class VendorSessions(Struct, frozen=True):
    """Sessions that an agent's CLI keeps in its own `folder`. teamchat does not touch them."""

    agent: str
    folder: str
    sessions: tuple[str, ...]


def delete_session(db: Database, session: Session) -> tuple[list[VendorSessions], list[str]]:
    """Delete the session with all its rows, and its checkpoints. The caller holds the session's lock.

    Returns what its CLIs keep, and a sentence for each work tree whose checkpoints stay.
    """
    turns = turns_of(db, session.id)
    kept, tops = _kept(turns), {found.top for turn in turns if (found := known_changes(turn))}
    refs = refs_of(fence_key(db, session.id)).removeprefix("refs/teamchat/")
    remove_session(db, session.id)
    return kept, [problem for top in sorted(tops) if (problem := _forget(Path(top), db.path.parent, refs))]


def _forget(top: Path, state_folder: Path, refs: str) -> str | None:
    """Remove the session's checkpoints from a work tree; why they stay, if they do."""
    repository = find_repository(top, state_folder)
    if isinstance(repository, NoRepository):
        return f"checkpoints in {top} stay: {repository.reason}" if top.is_dir() else None
    try:
        prune(repository, state_folder, refs)
    except CheckpointFailed as failed:
        return f"checkpoints in {top} stay: {failed}"
    return None


def _kept(turns: list[Turn]) -> list[VendorSessions]:
    found: dict[tuple[str, str], dict[str, None]] = {}
    for turn in turns:
        sessions = AGENT_TYPES[turn.protocol].runner.sessions
        if sessions and turn.vendor_session and (sessions.keeps_all or turn.setup.memory != "fresh"):
            found.setdefault((turn.agent, sessions.stays_in), {})[turn.vendor_session] = None
    return [VendorSessions(agent, folder, tuple(names)) for (agent, folder), names in found.items()]
