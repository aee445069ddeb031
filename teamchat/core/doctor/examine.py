"""Checks everything that a team needs. It calls no model and creates nothing.

It runs only the built-in CLIs: with `--version`, and with `--help` if the member has `args`.
"""

from __future__ import annotations

import platform
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.agents import AGENT_TYPES
from teamchat.core.checkpoint.find import why_none
from teamchat.core.doctor.checks import DoctorCheck, failed, not_installed
from teamchat.core.doctor.versions import ANSWER_S, NEUTRAL, Ask, check_row, check_version
from teamchat.core.errors import (
    AgentMissing,
    DamagedStore,
    ExitCode,
    NotTrusted,
    StoreError,
    TeamchatError,
    TeamFileError,
)
from teamchat.core.files.folders import STORE_NAME, TRUST_NAME, WRITABLE, state_path, workspace_path
from teamchat.core.store.database import CHECK, GONE, Database, was_there
from teamchat.core.store.origin import has_sessions, told_of_moved
from teamchat.core.store.schema import create
from teamchat.core.team.agent_rows import all_rows, shipped
from teamchat.core.team.find import resolve_team
from teamchat.core.team.problems import TeamFileProblem
from teamchat.core.team.programs import Unusable, environment_of, find_program, job_of, may, need_tools
from teamchat.core.team.team import BUILTIN_AGENTS, INSTALL, AgentSpec, Member, Team
from teamchat.core.team.trust import TrustStore, trust_command
from teamchat.core.team.trust_needs import needs
from teamchat.core.text.secret_words import masked
from teamchat.patterns import regex
from teamchat.runners.agent_row import AgentRow
from teamchat.runners.base import Runner
from teamchat.runners.child.running import SpawnFailed
from teamchat.runners.edits import in_words

_OPTION = regex(r"--[A-Za-z][\w-]*|-[A-Za-z]")
_REFUSED = regex(
    r"unknown (?:option|argument)|unexpected argument|invalid (?:value|choice|values)|argument '.*' is invalid|"
    r"argument missing|required for '?--|Not enough arguments",
    re.IGNORECASE,
)


def check_arguments(
    args: Iterable[str], program: str, runner: Runner, env: Mapping[str, str], ask: Ask
) -> DoctorCheck | None:
    """Check the options in `args` against the program's help; None if there are none. Blocks.

    A CLI may take an option that its help leaves out, so an option that the help lacks is only a warning.
    """
    options = list(dict.fromkeys(_options(args)))
    if not options or runner.vendor is None:
        return None
    words = AGENT_TYPES[runner.vendor].help
    typed = " ".join((Path(program).name, *words))
    try:
        code, said = ask((str(Path(program).absolute()), *words), env, NEUTRAL, ANSWER_S)
    except SpawnFailed:
        return None  # the check of the version reports it
    if code or not said:
        return DoctorCheck(None, "args", "unknown", f"`{typed}` did not answer")
    strange = [option for option in options if not _named(option, said.decode(errors="replace"))]
    if strange:
        named = ", ".join(masked(strange, ()))
        return DoctorCheck(
            None, "args", "warning", f"`{typed}` does not name {named}: a misspelt option fails every turn", named
        )
    return DoctorCheck(None, "args", "ok", f"named by `{typed}`: {', '.join(options)}", ", ".join(options))


def refused_arguments(reason: str) -> bool:
    """Whether a turn failed because its CLI refused an argument, by its error text (2.1.330, 0.169.0 and 0.61.0)."""
    return bool(_REFUSED.search(reason))


def _options(args: Iterable[str]) -> Iterator[str]:
    for word in takewhile(lambda word: word != "--", args):
        if option := _OPTION.fullmatch(word.partition("=")[0]):
            yield option[0]


def _named(option: str, help_text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", help_text) is not None


CANNOT_RUN = ExitCode.AGENT_UNAVAILABLE


LookForHosts = Callable[[Sequence[Member], Mapping[str, str]], Iterator[DoctorCheck]]


def look_for_none(_members: Sequence[Member], _env: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """Find nothing about hosts."""
    return iter(())


class _Post(Struct, frozen=True):
    """A member with its runner, its whole environment, and its program's path."""

    member: Member
    agent: AgentSpec
    runner: Runner
    env: Mapping[str, str]
    program: str | Unusable

    @property
    def is_builtin(self) -> bool:
        return self.agent in BUILTIN_AGENTS.values()

    @property
    def row(self) -> AgentRow | None:
        """The row of its agent, unless an `[agents]` table defines it."""
        return self.agent.row if self.agent.row and self.agent.row.origin else None


def check_members(
    team: Team, env: Mapping[str, str], ask: Ask, *, trusted: bool, hosts: LookForHosts = look_for_none
) -> Iterator[DoctorCheck]:
    """Check every AI member, in order. All programs are asked for their versions at the same time."""
    posts = [_post(team, member, env) for member in team.ai_members]
    asked = [post for post in posts if not post.member.host and (trusted or not post.member.env)]
    versions, arguments = _versions(asked, ask), _arguments(asked, ask)
    for post in posts:
        yield from _on_host(post.member) if post.member.host else _findings(post, versions, arguments)
    if hosted := [post.member for post in posts if post.member.host]:
        yield from hosts(hosted, env)


def _on_host(member: Member) -> Iterator[DoctorCheck]:
    """Report the facts known here of a member that runs on a host."""
    text = f"runs on {member.hosts}, whose program, version and login are not looked for here"
    yield DoctorCheck(member.name, "program", "note", text)
    yield _folder(member)


def _post(team: Team, member: Member, inherited: Mapping[str, str]) -> _Post:
    agent = team.agent_of(member)
    runner = agent.type.runner
    tmpdir = Path(tempfile.gettempdir())
    env = environment_of(runner, inherited, keep=member.env_keep, add=member.env, tmpdir=tmpdir)
    return _Post(member, agent, runner, env, find_program(agent.command[0], env))


def _findings(
    post: _Post, versions: Mapping[str, DoctorCheck], arguments: Mapping[str, DoctorCheck]
) -> Iterator[DoctorCheck]:
    member = post.member
    if isinstance(post.program, Unusable):
        text = f"{post.agent.command[0]!r} {post.program.why}"
        yield DoctorCheck(member.name, "program", "failed", text, hint=post.program.hint, code=CANNOT_RUN)
    else:
        yield DoctorCheck(member.name, "program", "ok", post.program, post.program)
    if isinstance(post.program, str) and (post.is_builtin or post.row):
        not_asked = DoctorCheck(
            None, "version", "unknown", "not checked: the team file sets variables and is not trusted"
        )
        yield replace(versions.get(post.program, not_asked), member=member.name)
    if member.name in arguments:
        yield replace(arguments[member.name], member=member.name)
    if post.is_builtin:
        yield from _login(post)
        yield from _settings(post)
    yield _access(post)
    if post.runner.edits and member.access == "edit":
        for name, those in in_words(post.runner.edits):
            yield DoctorCheck(member.name, name, "note", those)
    yield from _tools(post)
    yield DoctorCheck(member.name, "reads", "note", post.runner.reads_note(job_of(member, post.agent, post.env)))
    yield _folder(member)
    yield from _files(member)


def _settings(post: _Post) -> Iterator[DoctorCheck]:
    """Report the settings files that keep a CLI from starting. Codex's configuration is checked with its login."""
    for file, why in post.runner.unreadable(job_of(post.member, post.agent, post.env)):
        text = f"{file} cannot be read: {why}"
        yield DoctorCheck(post.member.name, "settings", "failed", text, str(file), code=CANNOT_RUN)


def _login(post: _Post) -> Iterator[DoctorCheck]:
    login = post.runner.login(post.member.cwd, post.env)
    if login is None:
        return
    if login.there:
        yield DoctorCheck(post.member.name, "login", "ok", login.reason, "yes")
    elif login.there is None or post.member.args:  # its arguments may contain one
        yield DoctorCheck(post.member.name, "login", "unknown", login.reason, "unknown")
    else:
        yield DoctorCheck(post.member.name, "login", "failed", login.reason, "no", login.hint, CANNOT_RUN)


def _access(post: _Post) -> DoctorCheck:
    member = post.member
    if refusal := post.runner.refusal(member.access, post.env):
        return DoctorCheck(
            member.name, "access", "failed", f"{member.access}: {refusal}", member.access, code=CANNOT_RUN
        )
    note = f"{member.access}: {may(member, post.agent)}"
    return DoctorCheck(member.name, "access", "note", note, member.access)


def _tools(post: _Post) -> Iterator[DoctorCheck]:
    """Check whether the servers and the package that its keys name are installed."""
    member = post.member
    given = [*(member.mcp or ()), *(["git"] if member.git else [])]
    if not given:
        return
    try:
        need_tools(member, post.agent, post.runner, post.env)
    except TeamchatError as error:
        reason = str(error).removeprefix(f"{member.name}: ")
        yield DoctorCheck(member.name, "tools", "failed", reason, hint=error.hint, code=CANNOT_RUN)
    else:
        yield DoctorCheck(member.name, "tools", "ok", ", ".join(given), ", ".join(given))


def _folder(member: Member) -> DoctorCheck:
    folder = str(member.cwd)
    if member.has_folder:
        return DoctorCheck(member.name, "folder", "ok", folder, folder)
    return DoctorCheck(member.name, "folder", "failed", f"there is no {folder}", folder, code=CANNOT_RUN)


def _files(member: Member) -> Iterator[DoctorCheck]:
    """Warn if git does not read the member's repository."""
    missing = why_none(member.cwd)
    if missing and missing.refused:
        text = f"what changes is not recorded, and undo cannot restore it: {missing.reason}"
        yield DoctorCheck(member.name, "files", "warning", text, str(member.cwd), missing.hint)


def _arguments(posts: Iterable[_Post], ask: Ask) -> dict[str, DoctorCheck]:
    """Check the arguments of each member that has some."""
    with_args = [post for post in posts if isinstance(post.program, str) and post.is_builtin and post.member.args]
    with ThreadPoolExecutor() as pool:

        def look(post: _Post) -> DoctorCheck | None:
            return check_arguments(post.member.args, str(post.program), post.runner, post.env, ask)

        checks = pool.map(look, with_args)
        return {post.member.name: check for post, check in zip(with_args, checks, strict=True) if check}


def _versions(posts: Iterable[_Post], ask: Ask) -> dict[str, DoctorCheck]:
    """Find the version of each program, by its path."""
    programs = {post.program: post for post in posts if isinstance(post.program, str) and (post.is_builtin or post.row)}
    with ThreadPoolExecutor() as pool:
        checks = {
            program: pool.submit(check_row, post.row, program, post.env, ask)
            if post.row
            else pool.submit(check_version, post.agent.name, program, post.runner, post.env, ask)
            for program, post in programs.items()
        }
        return {program: check.result() for program, check in checks.items()}


def examine(
    option: str | None,
    cwd: Path,
    config_dir: Path,
    env: Mapping[str, str],
    ask: Ask,
    hosts: LookForHosts = look_for_none,
) -> Iterator[DoctorCheck]:
    """Check the team of `--team`, or of this folder: its members, the store, its file, Python.

    `hosts` looks for the hosts of members that run on one.

    Raises `UnknownName` when `option` names no team.
    """
    try:
        team = resolve_team(option, cwd, config_dir)
    except (TeamFileError, NotTrusted) as error:
        yield failed("team", error)
    except AgentMissing:
        yield from _absent(needed=True)
        yield from _by_rows(env, ask)
        yield from _stored(cwd)
    else:
        file = _file(team)
        yield from check_members(team, env, ask, trusted=file.state in {"ok", "note"}, hosts=hosts)
        if team.path is None:
            yield from _absent(needed=False)
            yield from _by_rows(env, ask)
        yield from _stored(team.root)
        yield file
    yield DoctorCheck(None, "python", "ok", f"{platform.python_version()}, {sys.executable}", platform.python_version())
    yield _sqlite()


def _absent(*, needed: bool) -> Iterator[DoctorCheck]:
    """Report the built-in agents that are not installed, if no team file says which ones are needed."""
    for spec in BUILTIN_AGENTS.values():
        if not shutil.which(spec.command[0]):
            yield replace(not_installed(INSTALL[spec.name], needed=needed), member=spec.name)


def _by_rows(env: Mapping[str, str], ask: Ask) -> Iterator[DoctorCheck]:
    """Report the version of each installed agent that a row describes."""
    try:
        rows = dict(all_rows())
    except TeamFileProblem as problem:
        yield DoctorCheck(None, "agents", "warning", str(problem))
        rows = dict(shipped())
    with ThreadPoolExecutor() as pool:
        checks = {
            name: pool.submit(check_row, row, program, env, ask)
            for name, row in rows.items()
            if shutil.which(row.command[0], path=env.get("PATH"))
            and isinstance(program := find_program(row.command[0], env), str)
        }
    for name, check in checks.items():
        yield replace(check.result(), member=name)


def _file(team: Team) -> DoctorCheck:
    if team.path is None:
        text = "no team file: the installed CLIs are the team, and only read"
        return DoctorCheck(None, "team", "note", text, hint="teamchat init")
    path = str(team.path)
    try:
        standing = TrustStore(state_path() / TRUST_NAME).standing(team)
    except StoreError as error:
        return failed("team", error)
    wanted = [need.line for need in needs(team)]
    if standing.trusted:
        return DoctorCheck(None, "team", "ok", f"{path}, {'trusted' if wanted else 'needs no trust'}", path)
    text = f"{path} {standing.text}: {'; '.join(standing.changes or wanted)}"
    return DoctorCheck(None, "team", "warning", text, path, trust_command(team))


def _stored(root: Path) -> Iterator[DoctorCheck]:
    """Report the store; without a conversation in it, also conversations the folder may have had by another name."""
    yield _store(root)
    if not has_sessions(workspace_path(root)) and (moved := told_of_moved(root)):
        yield DoctorCheck(None, "moved", "warning", moved[0], hint=moved[1])


def _store(root: Path) -> DoctorCheck:
    """Check whether the workspace's store can be written, or created."""
    file = workspace_path(root) / STORE_NAME
    try:
        if file.exists():
            db = Database(file)
            try:
                with db.taken_back():
                    return DoctorCheck(None, "store", "ok", str(file), str(file))
            finally:
                db.close()
        if was_there(file):
            return failed("store", DamagedStore(f"the store {file} is damaged: {GONE}", CHECK))
        tempfile.TemporaryFile(dir=next(folder for folder in file.parents if folder.exists())).close()
    except StoreError as error:
        return failed("store", error)
    except OSError as error:
        return failed("store", StoreError(f"{file} cannot be made: {error.strerror}; {WRITABLE}"))
    return DoctorCheck(None, "store", "ok", f"{file}, made by the first message", str(file))


def _sqlite() -> DoctorCheck:
    """Check whether Python's SQLite has the features that the store needs."""
    version = sqlite3.sqlite_version
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        create(connection)
    except sqlite3.Error as error:
        text = f"{version} cannot hold the store (3.37 or newer with FTS5 can): {error}"
        return DoctorCheck(None, "sqlite", "failed", text, version, code=ExitCode.STORE)
    finally:
        connection.close()
    return DoctorCheck(None, "sqlite", "ok", version, version)
