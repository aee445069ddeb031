"""Asks each AI member one harmless question with the user's login, which may cost money."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from teamchat.core.doctor.checks import DoctorCheck
from teamchat.core.doctor.examine import refused_arguments
from teamchat.core.errors import CODES, ExitCode, StoreError
from teamchat.core.files.folders import WRITABLE
from teamchat.core.files.whole_files import temporary_folder
from teamchat.core.team.programs import Unusable, environment_of, find_program
from teamchat.core.team.team import Member, Team
from teamchat.runners.agent_events import Failure, FailureKind, Usage
from teamchat.runners.base import Job, Runner
from teamchat.runners.child.live import LiveAgent
from teamchat.runners.child.process import launch
from teamchat.runners.child.removal import remove
from teamchat.runners.child.running import Exit, Launch, Running, SpawnFailed
from teamchat.runners.child.supervisor import Clocks, Stopper, TurnEnd, run_turn
from teamchat.runners.homes.logins import login_variables, with_source
from teamchat.runners.untrusted.json import one_line

QUESTION = "Reply with the one word OK. Use no tools."
CLOCKS = Clocks(first_byte_s=60.0, stall_s=120.0, total_s=120.0)
PROBE = "probe.txt"
ORDER = f"Write the word OK into the file {PROBE} of this folder, with whatever tool you have. Then reply OK."
PATIENCE = {FailureKind.RATE_LIMIT: 1, FailureKind.OVERLOADED: 1}  # no CLI may spend minutes on retries


async def ask_members(team: Team, env: Mapping[str, str]) -> AsyncIterator[DoctorCheck]:
    """Ask the members one after another, each in its own folder with read access; nothing is stored.

    A program that is taken to be bounded as another CLI is also asked to write a file, in an empty folder.

    Raises `StoreError` or OSError when no temporary folder can be made.
    """
    for member in team.ai_members:
        if member.host:
            yield DoctorCheck(member.name, "answer", "unknown", f"not asked: it runs on {member.hosts}")
            continue
        answer = replace(await _ask(team, member, env), member=member.name)
        yield answer
        if answer.state == "ok" and team.agent_of(member).unproven:
            yield replace(await _try_to_write(team, member, env), member=member.name)


async def _try_to_write(team: Team, member: Member, inherited: Mapping[str, str]) -> DoctorCheck:
    """Ask a member with read access to write a file in an empty folder, and report what it does."""
    agent, env = team.agent_of(member), {**inherited, **member.env}
    with temporary_folder("doctor") as folder:
        (empty := folder / "empty").mkdir()
        job = Job(agent.command, empty, Path(), model=member.model, args=member.args, env=env)
        end = await run_alone(LoneTurn(agent.type.runner, job, ORDER.encode(), folder, member.env_keep, member.env))
        wrote = (empty / PROBE).exists()
    asked = "was asked with access read to write a file, and"
    if wrote:
        text = f"{asked} wrote it: access does not bound it as it bounds {agent.unproven}"
        return DoctorCheck(None, "access", "failed", text, "no", code=ExitCode.NOT_TRUSTED)
    if end.failure:
        return DoctorCheck(None, "access", "unknown", f"{asked} failed: {end.failure.reason}", "unknown")
    denied = f", and {len(end.denied)} calls were denied" if end.denied else ""
    return DoctorCheck(None, "access", "ok", f"{asked} wrote none{denied}", "yes")


async def _ask(team: Team, member: Member, inherited: Mapping[str, str]) -> DoctorCheck:
    agent = team.agent_of(member)
    runner = agent.type.runner
    env = {**inherited, **member.env}
    if isinstance(program := find_program(agent.command[0], env), Unusable):
        text = f"{agent.command[0]!r} {program.why}"
        return DoctorCheck(None, "program", "failed", text, hint=program.hint, code=ExitCode.AGENT_UNAVAILABLE)
    if not member.has_folder:
        return _failed(f"there is no {member.cwd}", ExitCode.AGENT_UNAVAILABLE)
    if refusal := runner.refusal("read", env):
        return _failed(refusal, ExitCode.AGENT_UNAVAILABLE)
    job = Job(agent.command, member.cwd, Path(), model=member.model, args=member.args, env=env, terminal=agent.terminal)
    with temporary_folder("doctor") as folder:
        question = LoneTurn(runner, job, QUESTION.encode(), folder, member.env_keep, member.env)
        return _answer(await run_alone(question), member)


def _answer(end: TurnEnd, member: Member) -> DoctorCheck:
    if end.failure:
        its_args = "its args are not taken: " if member.args and refused_arguments(end.failure.reason) else ""
        return _failed(its_args + end.failure.reason, CODES[end.failure.kind], end.failure.hint)
    text = f"{one_line(end.text, 40)!r} after {end.exit.seconds:.1f} s, {_used(end.usage)}"
    return DoctorCheck(None, "answer", "ok", text, one_line(end.text, 40))


def _failed(reason: str, code: ExitCode, hint: str | None = None) -> DoctorCheck:
    return DoctorCheck(None, "answer", "failed", reason, hint=hint, code=code)


def _used(usage: Usage | None) -> str:
    """Write tokens and cost as the CLI reports them."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return "tokens unknown"
    cost = "" if usage.cost_usd is None else f", ${usage.cost_usd:.4f}"
    return f"{usage.input_tokens + usage.output_tokens:,} tokens{cost}"


class LoneTurn(Struct, frozen=True):
    """A turn of an agent outside of any conversation, in `life` if its process is to stay."""

    runner: Runner
    job: Job
    stdin: bytes
    folder: Path
    keep: tuple[str, ...] = ()
    add: Mapping[str, str] = field(default_factory=dict)
    life: LiveAgent | None = None

    def start(self, scratch: Path) -> tuple[Running, Mapping[str, str]]:
        """Start its process with `scratch` as its private folder. Returns the process and its environment.

        Raises `SpawnFailed` or OSError.
        """
        job = replace(self.job, scratch=scratch)
        command = self.runner.command(job)
        env = environment_of(
            self.runner,
            job.env,
            keep=self.keep,
            add=self.add,
            command_env={**command.env, "PWD": str(job.cwd)},
            tmpdir=scratch,
        )
        program = shutil.which(command.argv[0], path=env.get("PATH", os.defpath)) or command.argv[0]
        what = Launch(
            (program, *command.argv[1:]),
            job.cwd,
            env,
            self.stdin,
            self.folder,
            scratch,
            command.write_files,
            self.runner.stop,
            stays=self.life,
            through=command.through,
            starts_in=command.starts_in,
        )
        return launch(what), env

    def with_login(self, end: TurnEnd, env: Mapping[str, str]) -> TurnEnd:
        """Name the variable of the login in a failure of it."""
        login = login_variables(self.runner, self.job.cwd, env, self.job.args)
        return replace(end, failure=with_source(end.failure, login))


def private_folder(parent: Path) -> Path:
    """Make the private folder of a turn. Raises `StoreError`."""
    try:
        return Path(tempfile.mkdtemp(prefix="teamchat-", dir=parent))
    except OSError as error:
        raise StoreError(f"no temporary folder can be made: {error.strerror}; {WRITABLE}") from error


async def run_alone(turn: LoneTurn) -> TurnEnd:
    """Run the turn to its end. If it cannot start, the end says why. Raises `StoreError`."""
    scratch = private_folder(turn.folder)
    try:
        process, env = turn.start(scratch)
        end = await run_turn(process, turn.runner.parser(), CLOCKS, Stopper(), lambda _events: None, PATIENCE)
        return turn.with_login(end, env)
    except (SpawnFailed, OSError) as error:
        return not_started(error)
    finally:
        remove(scratch)


def not_started(error: Exception) -> TurnEnd:
    """Build the end of a turn whose process could not be started."""
    return TurnEnd("", Failure(FailureKind.MISSING, f"could not be started: {error}"), Exit(-1))
