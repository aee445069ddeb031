"""A member's program: its environment, and whether it can run with its tools, as far as one sees without running it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from teamchat.core.agents import HOMES, foreign_keys
from teamchat.core.errors import AgentMissing, UsageError
from teamchat.core.files.folders import state_path
from teamchat.core.made import made_of
from teamchat.core.team.problems import TeamFileProblem
from teamchat.core.team.team import INSTALL, AgentSpec, Member
from teamchat.core.text.commands import quote
from teamchat.runners import git_server
from teamchat.runners.base import Job, Runner
from teamchat.runners.environment import GIT_LOCAL, environment
from teamchat.runners.untrusted.regular_files import open_regular

LONGEST_FIRST_LINE = 256  # Bytes of a first line that Linux reads.
ELF = b"\x7fELF"
BINARY = (ELF, b"\xfe\xed\xfa", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")  # ELF and Mach-O
SMALLER = {b"\x3e\0": b"\x03\0", b"\xb7\0": b"\x28\0"}  # x86-64 also runs programs for i386, AArch64 programs for Arm
FORMATS = Path("/proc/sys/fs/binfmt_misc")  # The folder in which Linux lists its binfmt handlers.
NO_FORMAT = {"register", "status"}  # The files there that are not handlers.
OTHERWISE = "install it, or change its command in the team file"


class Unusable(Struct, frozen=True):
    """The reason why a program cannot run, in words that follow its name, and the command that repairs it, if any."""

    why: str
    hint: str | None = None


def environment_of(
    runner: Runner,
    inherited: Mapping[str, str],
    *,
    keep: Collection[str],
    add: Mapping[str, str],
    command_env: Mapping[str, str] = MappingProxyType({}),
    tmpdir: Path | None = None,
) -> dict[str, str]:
    """Build the environment of a program that `runner` runs. `environment` says what the parameters do."""
    foreign = foreign_keys(runner.vendor)
    return environment(
        inherited, foreign=foreign, homes=HOMES, keep=keep, add=add, command_env=command_env, tmpdir=tmpdir
    )


def find_program(program: str, env: Mapping[str, str]) -> str | Unusable:
    """Find the path of a program, or say why it cannot run with the variables `env`."""
    search = env.get("PATH", os.defpath)
    if path := shutil.which(program, path=search):
        if not Path(path).is_file():
            return Unusable(f"is not a file; {OTHERWISE}")
        wrong = _wrong_beginning(path, search)
        return Unusable(wrong) if wrong else path
    there = _at(program, search)
    if there is None:
        install = INSTALL.get(Path(program).name) or _install_by_row(Path(program).name)
        return Unusable("is not installed" if install else f"is not installed; {OTHERWISE}", install)
    if there.is_dir():
        return Unusable(f"is a folder; {OTHERWISE}")
    if not there.exists():
        return Unusable(f"is a link to nothing: {there}; {OTHERWISE}")
    return Unusable("is not executable", f"chmod +x {quote(str(there))}")


def _install_by_row(name: str) -> str | None:
    """Return the command that installs the program by a row; None if no row has one."""
    from teamchat.core.team.agent_rows import all_rows

    with contextlib.suppress(TeamFileProblem):  # another command says what is wrong with a row
        return next((row.install_command or None for _, row in all_rows() if row.command[0] == name), None)
    return None


def _at(program: str, search: str) -> Path | None:
    """Return the path itself, or the file with that name in a folder of PATH."""
    if os.path.dirname(program):  # noqa: PTH120 (a slash counts, also in ./name)
        return Path(program) if os.path.lexists(program) else None
    paths = (Path(folder) / program for folder in search.split(os.pathsep) if folder)
    return next((path for path in paths if os.path.lexists(path) and not path.is_dir()), None)


def _wrong_beginning(program: str, search: str) -> str | None:
    """Say why a file with this beginning cannot run; None if it can."""
    try:
        with open_regular(Path(program)) as file:
            beginning = file.read(LONGEST_FIRST_LINE)
    except OSError:  # executable without read permission
        return None
    if beginning.startswith(b"#!"):
        missing = _missing_interpreter(beginning.partition(b"\n")[0], search)
        change = "install that, or change the line"
        return f"cannot run: its first line names {missing!r}, which is not there; {change}" if missing else None
    if b"\0" not in beginning and not beginning.startswith(BINARY):
        return "has no #! line; begin the file with one, such as #!/bin/sh"
    return f"is for another kind of machine; {OTHERWISE}" if _is_foreign(beginning) else None


def _is_foreign(beginning: bytes) -> bool:
    """Whether no program of this kind can run. That is certain only on Linux without other binfmt handlers."""
    if sys.platform != "linux" or _was_taught():
        return False
    with Path(sys.executable).open("rb") as file:
        own = _machine(file.read(LONGEST_FIRST_LINE))
    return own is not None and _machine(beginning) not in (own, SMALLER.get(own))


def _was_taught() -> bool:
    try:
        return not {path.name for path in FORMATS.iterdir()} <= NO_FORMAT
    except OSError as error:
        return not isinstance(error, FileNotFoundError)


def _machine(beginning: bytes) -> bytes | None:
    """Return the kind of machine that an ELF program is for; None for other files."""
    return beginning[18:20] if beginning.startswith(ELF) else None


def _missing_interpreter(line: bytes, search: str) -> str | None:
    """Return the interpreter in a script's `#!` line, if it does not exist."""
    interpreter, *words = [*re.split(r"[ \t]+", os.fsdecode(line[2:]).strip(" \t")), ""]
    if Path(interpreter).is_absolute() and not os.access(interpreter, os.X_OK):
        return interpreter
    wanted = next((word for word in words if word and not word.startswith("-") and "=" not in word), None)
    by_name = Path(interpreter).name == "env" and wanted
    return wanted if by_name and not shutil.which(by_name, path=search) else None


def may(member: Member, agent: AgentSpec) -> str:
    """Describe the member's access and tools, by `access`, `web`, `mcp` and `git`."""
    tools = ", ".join(_tools(member)) if agent.type.runner.vendor else ""
    return "; ".join(filter(None, (agent.access_note(member.access), tools)))


def _tools(member: Member) -> Iterator[str]:
    if member.access != "full":
        yield "web" if member.web else "no web"
    if member.mcp:
        yield f"MCP servers {', '.join(member.mcp)}"
    elif member.mcp is not None or member.access == "read":
        yield "no MCP server"
    elif member.access == "edit":
        yield "your MCP servers"
    if member.git:
        yield "git"


def need_tools(member: Member, agent: AgentSpec, runner: Runner, env: Mapping[str, str]) -> None:
    """Raise `UsageError` for an MCP server that the user has not set up, `AgentMissing` if git lacks something."""
    if member.mcp:
        _need_servers(member, agent, sorted(runner.servers(member.cwd, env)))
    if member.git and (lacks := git_server.missing(env)):
        why, hint = lacks
        raise AgentMissing(f"{member.name} has git = true, but {why}", hint)


def _need_servers(member: Member, agent: AgentSpec, there: list[str]) -> None:
    unknown = next((name for name in member.mcp or () if name not in there), None)
    if unknown is not None:
        mends = "change mcp in the team file" if there else "set it up there, or take it out of mcp in the team file"
        known = f"there are: {', '.join(there)}" if there else "there is none"
        raise UsageError(
            f"{member.name}: mcp: you have set up no server {unknown!r} in {agent.name}; {mends} ({known})"
        )


SCRATCH = Path("$TMPDIR")  # the name of a turn's own folder when no turn runs


def job_of(member: Member, agent: AgentSpec, inherited: Mapping[str, str], scratch: Path = SCRATCH) -> Job:
    """Collect the team file's settings for any turn of `member`."""
    return made_of(
        Job,
        member,
        program=agent.command,
        scratch=scratch,
        git=state_path() / "git" if member.git else None,
        env={**inherited, **member_env(member)},
        terminal=agent.terminal,
        first_byte_s=agent.type.runner.first_byte_s if member.first_byte_s is None else member.first_byte_s,
    )


def in_worktree(member: Member, cwd: Path) -> Member:
    """Move the member to that folder of its worktree, without the team file's variables that point git elsewhere."""
    return replace(member, cwd=cwd, env={name: value for name, value in member.env.items() if name not in GIT_LOCAL})


def member_env(member: Member) -> Mapping[str, str]:
    """Return the team file's variables for the member. Relative folders of its PATH start at its working folder."""
    if "PATH" not in member.env:
        return member.env
    folders = member.env["PATH"].split(os.pathsep)
    return {**member.env, "PATH": os.pathsep.join(str(member.cwd / folder) for folder in folders)}
