"""Checks whether each member can run: its program, the program's version and login, its access and its folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.agents import HOMES, foreign_keys
from teamchat.core.checkpoint.find import why_none
from teamchat.core.doctor.arguments import check_arguments
from teamchat.core.doctor.checks import Check
from teamchat.core.doctor.versions import Ask, check_version
from teamchat.core.errors import ExitCode, TeamchatError
from teamchat.core.team.programs import Unusable, find_program
from teamchat.core.team.team import BUILTIN_AGENTS, AgentSpec, Member, Team
from teamchat.core.team.tools import job_of, may, need_tools
from teamchat.runners.base import Runner
from teamchat.runners.edits import in_words
from teamchat.runners.environment import environment

CANNOT_RUN = ExitCode.AGENT_UNAVAILABLE


class _Post(Struct, frozen=True):
    """A member and what would run it: its runner, its whole environment, and its program's path."""

    member: Member
    agent: AgentSpec
    runner: Runner
    env: Mapping[str, str]
    program: str | Unusable

    @property
    def is_builtin(self) -> bool:
        return self.agent in BUILTIN_AGENTS.values()


def check_members(team: Team, env: Mapping[str, str], ask: Ask, *, trusted: bool) -> Iterator[Check]:
    """The findings about every AI member, in order. All programs are asked for their versions at the same time."""
    posts = [_post(team, member, env) for member in team.ai_members]
    asked = [post for post in posts if trusted or not post.member.env]
    versions, arguments = _versions(asked, ask), _arguments(asked, ask)
    for post in posts:
        yield from _findings(post, versions, arguments)


def _post(team: Team, member: Member, inherited: Mapping[str, str]) -> _Post:
    agent = team.agent_of(member)
    runner = agent.type.runner
    tmpdir = Path(tempfile.gettempdir())
    env = environment(
        inherited,
        foreign=foreign_keys(runner.vendor),
        homes=HOMES,
        keep=member.env_keep,
        add=member.env,
        command_env={},
        tmpdir=tmpdir,
    )
    return _Post(member, agent, runner, env, find_program(agent.command[0], env))


def _findings(post: _Post, versions: Mapping[str, Check], arguments: Mapping[str, Check]) -> Iterator[Check]:
    member = post.member
    if isinstance(post.program, Unusable):
        text = f"{post.agent.command[0]!r} {post.program.why}"
        yield Check(member.name, "program", "failed", text, hint=post.program.hint, code=CANNOT_RUN)
    else:
        yield Check(member.name, "program", "ok", post.program, post.program)
    if isinstance(post.program, str) and post.is_builtin:
        not_asked = Check(None, "version", "unknown", "not checked: the team file sets variables and is not trusted")
        yield replace(versions.get(post.program, not_asked), member=member.name)
    if member.name in arguments:
        yield replace(arguments[member.name], member=member.name)
    if post.is_builtin:
        yield from _login(post)
        yield from _settings(post)
    yield _access(post)
    yield from _edits(post)
    yield from _tools(post)
    yield Check(member.name, "reads", "note", post.runner.reads_note(job_of(member, post.agent, post.env)))
    yield _folder(member)
    yield from _files(member)


def _settings(post: _Post) -> Iterator[Check]:
    """The settings files that keep a CLI from starting. Codex's configuration is checked with its login."""
    for file, why in post.runner.unreadable(job_of(post.member, post.agent, post.env)):
        text = f"{file} cannot be read: {why}"
        yield Check(post.member.name, "settings", "failed", text, str(file), code=CANNOT_RUN)


def _login(post: _Post) -> Iterator[Check]:
    login = post.runner.login(post.member.cwd, post.env)
    if login is None:
        return
    if login.there:
        yield Check(post.member.name, "login", "ok", login.reason, "yes")
    elif login.there is None or post.member.args:  # its arguments may contain one
        yield Check(post.member.name, "login", "unknown", login.reason, "unknown")
    else:
        yield Check(post.member.name, "login", "failed", login.reason, "no", login.hint, CANNOT_RUN)


def _access(post: _Post) -> Check:
    member = post.member
    if refusal := post.runner.refusal(member.access, post.env):
        return Check(member.name, "access", "failed", f"{member.access}: {refusal}", member.access, code=CANNOT_RUN)
    note = f"{member.access}: {may(member, post.runner)}"
    return Check(member.name, "access", "note", note, member.access)


def _edits(post: _Post) -> Iterator[Check]:
    """What its CLI allows and refuses to an `edit` member."""
    if post.runner.edits and post.member.access == "edit":
        for name, those in in_words(post.runner.edits):
            yield Check(post.member.name, name, "note", those)


def _tools(post: _Post) -> Iterator[Check]:
    """Checks whether the servers and the package that its keys name are installed."""
    member = post.member
    given = [*(member.mcp or ()), *(["git"] if member.git else [])]
    if not given:
        return
    try:
        need_tools(member, post.agent, post.runner, post.env)
    except TeamchatError as error:
        told = str(error).removeprefix(f"{member.name}: ")
        yield Check(member.name, "tools", "failed", told, hint=error.hint, code=CANNOT_RUN)
    else:
        yield Check(member.name, "tools", "ok", ", ".join(given), ", ".join(given))


def _folder(member: Member) -> Check:
    folder = str(member.cwd)
    if member.has_folder:
        return Check(member.name, "folder", "ok", folder, folder)
    return Check(member.name, "folder", "failed", f"there is no {folder}", folder, code=CANNOT_RUN)


def _files(member: Member) -> Iterator[Check]:
    """Warns where git does not read the repository in which the member works."""
    missing = why_none(member.cwd)
    if missing and missing.refused:
        text = f"what changes is not recorded, and undo cannot restore it: {missing.reason}"
        yield Check(member.name, "files", "warning", text, str(member.cwd), missing.hint)


def _arguments(posts: Iterable[_Post], ask: Ask) -> dict[str, Check]:
    """The findings about the arguments of each member that has some."""
    with_args = [post for post in posts if isinstance(post.program, str) and post.is_builtin and post.member.args]
    with ThreadPoolExecutor() as pool:

        def look(post: _Post) -> Check | None:
            return check_arguments(post.member.args, str(post.program), post.runner, post.env, ask)

        found = pool.map(look, with_args)
        return {post.member.name: check for post, check in zip(with_args, found, strict=True) if check}


def _versions(posts: Iterable[_Post], ask: Ask) -> dict[str, Check]:
    """The version of each program, by its path."""
    programs = {post.program: post for post in posts if isinstance(post.program, str) and post.is_builtin}
    with ThreadPoolExecutor() as pool:
        checks = {
            program: pool.submit(check_version, post.agent.name, program, post.runner, post.env, ask)
            for program, post in programs.items()
        }
        return {program: check.result() for program, check in checks.items()}
