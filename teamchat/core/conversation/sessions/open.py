"""Opens a member's vendor session for a person: which session, and the command that runs it at a terminal.

The messages there are not part of the conversation. Only the member remembers them, and its next receipt says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec import Struct

from teamchat.core.errors import NotTrusted, UnknownName
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session
from teamchat.core.store.turns import Turn, sessions_with_undone, turns_of_member
from teamchat.core.team.programs import environment_of, find_program, in_worktree
from teamchat.core.team.team import AgentSpec, Member, Team
from teamchat.core.text.commands import saying
from teamchat.core.turn.machine import need_program
from teamchat.core.worktrees.make import place
from teamchat.runners.agent_events import FailureKind


class Opening(Struct, frozen=True):
    """The command to run in the foreground, started in `cwd`. `turn` is the turn that left the session."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    turn: Turn


def plan_opening(db: Database, session: Session, team: Team, name: str, inherited: Mapping[str, str]) -> Opening:
    """Find the command that opens the vendor session of member `name`: its CLI as a user runs it, in its folder.

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
    executable = need_program(member, program, find_program(program, env))
    argv = (executable, *words, *runner.sessions.open(turn.vendor_session, member.cwd), *model)
    return Opening(argv, env, runner.sessions.starts_in or member.cwd, turn)


def _left(turn: Turn, member: Member, agent: AgentSpec) -> bool:
    """Whether the turn left a vendor session that this member's CLI finds."""
    gone = turn.outcome and turn.outcome.failure and turn.outcome.failure.kind is FailureKind.GONE
    # Claude and Gemini find a session only in its own folder
    here = (turn.agent, turn.setup.cwd) == (agent.name, str(member.cwd))
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
