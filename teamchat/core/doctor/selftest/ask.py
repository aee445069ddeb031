"""Asks each AI member one harmless question with the user's login, which may cost money."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.doctor.arguments import refused_arguments
from teamchat.core.doctor.checks import Check
from teamchat.core.doctor.selftest.watch import Observed, Watch, observe
from teamchat.core.errors import CODES, ExitCode
from teamchat.core.files.temporary import temporary_folder
from teamchat.core.team.programs import Unusable, find_program
from teamchat.core.team.team import Member, Team
from teamchat.runners.base import Job
from teamchat.runners.events import Usage
from teamchat.runners.process.supervisor import Clocks
from teamchat.runners.untrusted_json import one_line

QUESTION = "Reply with the one word OK. Use no tools."
CLOCKS = Clocks(first_byte_s=60.0, stall_s=120.0, total_s=120.0)


async def ask_members(team: Team, env: Mapping[str, str]) -> AsyncIterator[Check]:
    """Ask the members one after another, each in its own folder with read access; nothing is stored.

    Raises `StoreError` or OSError when no temporary folder can be made.
    """
    for member in team.ai_members:
        yield replace(await _ask(team, member, env), member=member.name)


async def _ask(team: Team, member: Member, inherited: Mapping[str, str]) -> Check:
    agent = team.agent_of(member)
    runner = agent.type.runner
    env = {**inherited, **member.env}
    if isinstance(found := find_program(agent.command[0], env), Unusable):
        text = f"{agent.command[0]!r} {found.why}"
        return Check(None, "program", "failed", text, hint=found.hint, code=ExitCode.AGENT_UNAVAILABLE)
    if not member.has_folder:
        return _failed(f"there is no {member.cwd}", ExitCode.AGENT_UNAVAILABLE)
    if refusal := runner.refusal("read", env):
        return _failed(refusal, ExitCode.AGENT_UNAVAILABLE)
    job = Job(agent.command, member.cwd, Path(), model=member.model, args=member.args, env=env)
    with temporary_folder("doctor") as folder:
        watch = Watch(runner, job, QUESTION.encode(), folder, CLOCKS, member.env_keep, member.env)
        return _answer(await observe(watch), member)


def _answer(turn: Observed, member: Member) -> Check:
    end = turn.end
    if end.failure:
        its_args = "its args are not taken: " if member.args and refused_arguments(end.failure.reason) else ""
        return _failed(its_args + end.failure.reason, CODES[end.failure.kind], end.failure.hint)
    text = f"{one_line(end.text, 40)!r} after {end.seconds:.1f} s, {_used(end.usage)}"
    return Check(None, "answer", "ok", text, one_line(end.text, 40))


def _failed(reason: str, code: ExitCode, hint: str | None = None) -> Check:
    return Check(None, "answer", "failed", reason, hint=hint, code=code)


def _used(usage: Usage | None) -> str:
    """Tokens and cost as the CLI reports them."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return "tokens unknown"
    cost = "" if usage.cost_usd is None else f", ${usage.cost_usd:.4f}"
    return f"{usage.input_tokens + usage.output_tokens:,} tokens{cost}"
