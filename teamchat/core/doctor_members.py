"""Whether each member can run: its program, that program's version and login, its access and its folder."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from teamchat.core.agents import AGENT_TYPES
from teamchat.core.checks import Check
from teamchat.core.errors import ExitCode
from teamchat.core.team import BUILTIN_AGENTS, INSTALL, AgentSpec, Member, Team
from teamchat.runners.base import Runner
from teamchat.runners.environment import environment
from teamchat.runners.failures import ending
from teamchat.runners.process import SpawnFailed

Ask = Callable[[Sequence[str], Mapping[str, str], Path, float], tuple[int | None, bytes]]
"""How a program is asked for its version, as `runners.process.capture` does."""

ANSWER_S = 10.0  # Gemini takes one and a half
CAN_NOT_RUN = ExitCode.AGENT_UNAVAILABLE
_VERSION = re.compile(rb"\d{1,9}(?:\.\d{1,9})+[0-9A-Za-z.+-]*")
_NOT_STARTED = (126, 127)  # what shells and `env` end with when there is no interpreter for a script


@dataclass(frozen=True, slots=True)
class _Post:
    """A member and what would run it: its runner, its whole environment, and where its program was found."""

    member: Member
    agent: AgentSpec
    runner: Runner
    env: Mapping[str, str]
    program: str | None

    @property
    def is_builtin(self) -> bool:
        return self.agent in BUILTIN_AGENTS.values()


def check_members(team: Team, env: Mapping[str, str], ask: Ask, *, trusted: bool) -> Iterator[Check]:
    """The findings about every AI member, in order. Programs are asked for their versions all at once."""
    posts = [_post(team, member, env) for member in team.ai_members]
    versions = _versions([post for post in posts if trusted or not post.member.env], ask)
    for post in posts:
        yield from _findings(post, versions)


def _post(team: Team, member: Member, inherited: Mapping[str, str]) -> _Post:
    agent = team.agent_of(member)
    runner = AGENT_TYPES[agent.like].runner
    tmpdir = Path(tempfile.gettempdir())
    env = environment(inherited, runner.vendor, keep=member.env_keep, add=member.env, command_env={}, tmpdir=tmpdir)
    return _Post(member, agent, runner, env, shutil.which(agent.command[0], path=env.get("PATH")))


def _findings(post: _Post, versions: Mapping[str, Check]) -> Iterator[Check]:
    member = post.member
    if post.program is None:
        hint = INSTALL.get(Path(post.agent.command[0]).name, "install it, or mend its command in the team file")
        text = f"{post.agent.command[0]!r} is not installed"
        yield Check(member.name, "program", "failed", text, hint=hint, code=CAN_NOT_RUN)
    else:
        yield Check(member.name, "program", "ok", post.program, post.program)
    if post.program and post.is_builtin:
        not_asked = Check(None, "version", "unknown", "not asked: the team file, which is not trusted, sets variables")
        yield replace(versions.get(post.program, not_asked), member=member.name)
    if post.is_builtin:
        yield from _login(post)
    yield _access(post)
    yield Check(member.name, "reads", "note", post.runner.reads_note(project_settings=member.project_settings))
    yield _folder(member)


def _login(post: _Post) -> Iterator[Check]:
    login = post.runner.login(post.member.cwd, post.env)
    if login is None:
        return
    if login.there:
        yield Check(post.member.name, "login", "ok", login.reason, "yes")
    elif login.there is None or post.member.args:  # its arguments may bring one
        yield Check(post.member.name, "login", "unknown", login.reason, "unknown")
    else:
        yield Check(post.member.name, "login", "failed", login.reason, "no", login.hint, CAN_NOT_RUN)


def _access(post: _Post) -> Check:
    member = post.member
    if refusal := post.runner.refusal(member.access, post.env):
        return Check(member.name, "access", "failed", f"{member.access}: {refusal}", member.access, code=CAN_NOT_RUN)
    note = f"{member.access}: {post.runner.access_note(member.access)}"
    return Check(member.name, "access", "note", note, member.access)


def _folder(member: Member) -> Check:
    folder = str(member.cwd)
    if member.cwd.is_dir():
        return Check(member.name, "folder", "ok", folder, folder)
    return Check(member.name, "folder", "failed", f"there is no {folder}", folder, code=CAN_NOT_RUN)


def _versions(posts: Iterable[_Post], ask: Ask) -> dict[str, Check]:
    """What each program says of its version, by its path; in a folder of its own, where no project can have a say."""
    programs = {post.program: post for post in posts if post.program and post.is_builtin}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        checks = pool.map(lambda post: _version(post, ask, Path(folder)), programs.values())
        return dict(zip(programs, checks, strict=True))


def _version(post: _Post, ask: Ask, folder: Path) -> Check:
    assert post.program
    try:
        code, said = ask((str(Path(post.program).absolute()), "--version"), post.env, folder, ANSWER_S)
    except SpawnFailed as error:
        return _broken(f"can not be started: {error}")
    if code in _NOT_STARTED:
        return _broken(f"--version {ending(code)}: what it needs to run is missing")
    if code is None:
        return Check(None, "version", "warning", f"--version gave no answer in {ANSWER_S:g} s")
    version = _VERSION.search(said)
    if code or version is None:
        return Check(None, "version", "warning", f"--version {ending(code)}, and told no version")
    return _compared(version[0].decode(), post.runner.tested_version or "", INSTALL[post.agent.name])


def _broken(text: str) -> Check:
    return Check(None, "version", "failed", text, code=CAN_NOT_RUN)


def _compared(version: str, tested: str, upgrade: str) -> Check:
    """A version held against the tested one; an early form of a version (1.2.0-rc1) comes before it."""
    if version == tested:
        return Check(None, "version", "ok", f"{version}, the tested one", version)
    if _numbers(version) <= _numbers(tested):
        return Check(None, "version", "warning", f"{version}, older than the tested {tested}", version, upgrade)
    return Check(None, "version", "warning", f"{version}, newer than the tested {tested}", version)


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"[\d.]*\d", version)
    return tuple(int(number) for number in found[0].split(".") if number) if found else ()
