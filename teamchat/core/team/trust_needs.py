"""The parts of a team that need a person's trust, each key by itself."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from teamchat.core.check import CHECK_TIMEOUT_S, Check
from teamchat.core.team.team import BUILTIN_AGENTS, AgentSpec, Limits, Member, Team
from teamchat.core.team.trusted_files import file_states
from teamchat.core.text.clean import printable
from teamchat.runners.agent_row import AgentRow
from teamchat.runners.base import Job
from teamchat.runners.environment import is_secret

_Outside = Callable[[Path, Path], Path | None]
WHOLE_TEAM = "the team"  # no member's name: a name has no space; so are "the check NAME" and "the process NAME"
_ALL_SERVERS = ("",)  # no server's name
CHECKS_NOTE = "runs checks: each runs files that a member has just written, with your rights and the network"
LONGEST_TURN_S = 86_400.0  # a longer `timeout` needs trust


class Need(Struct, frozen=True):
    """A key of a member, or of the team, that needs trust. A person sees `line`; `value` is trusted."""

    member: str
    key: str
    line: str
    value: tuple[str, ...]


def needs(team: Team) -> tuple[Need, ...]:
    """List the parts of the team that need trust, by member; empty for the installed CLIs without a team file."""
    if team.path is None:
        return ()
    outside = partial(_outside, cache(_real))  # members often share their folders
    return (
        *_weakened(team),
        *_hooks(team),
        *_checks(team),
        *(need for member in team.ai_members for need in _needs_of(team, member, outside)),
    )


def covered(team: Team) -> tuple[Need, ...]:
    """List everything that trust covers: the parts that need it, and parts that must not change afterwards."""
    if not (wanted := needs(team)):
        return ()
    fence = Need(WHOLE_TEAM, "fence", "on" if team.fence else "off", (str(team.fence),))
    asking = {need.member for need in wanted}
    trusted = (member for member in team.ai_members if member.name in asking)
    return (*wanted, fence, *(need for member in trusted for need in _kept_as_it_is(team, member)))


def fingerprint(team: Team, wanted: tuple[Need, ...]) -> str:
    """Compute a sha256 over the file's path, all that trust covers (`wanted`), and the files that its commands name."""
    asked = sorted([need.member, need.key, *need.value] for need in wanted)
    files = sorted([str(file), state] for file, state in file_states(team).items())
    return sha256(json.dumps([str(team.path), asked, files]).encode()).hexdigest()


def _kept_as_it_is(team: Team, member: Member) -> Iterator[Need]:
    """List the keys that need no trust alone, but whose change or removal could let a trusted member do more."""
    name = team.agent_of(member).name
    yield _need(member.name, "agent", f"is {name}", (name,))
    if row := team.agent_of(member).row:
        text = msgspec.json.encode(row).decode()
        yield _need(member.name, "row", f"has {name} with the row {text}", (text,))
    if member.mcp == ():
        yield _need(member.name, "mcp", "has no MCP server", ())
    if member.workspace is not None:
        where = "a worktree of its own" if member.workspace == "worktree" else "your files themselves"
        yield _need(member.name, "workspace", f"works in {where}", (member.workspace,))


def _weakened(team: Team) -> Iterator[Need]:
    """List the protections that the file switches off, and the limits that it raises."""
    if not team.redact:
        yield _need(WHOLE_TEAM, "redact", "sends other vendors' members well-known keys as they are", ())
    defaults = asdict(Limits())
    for name, value in asdict(team.limits).items():
        if value is not None and defaults[name] is not None and _is_weaker(name, value, defaults[name]):
            what = f"has {name} = {value:,} as a limit ({defaults[name]:,} by default)"
            yield _need(WHOLE_TEAM, f"limits.{name}", what, (str(value),))


def _hooks(team: Team) -> Iterator[Need]:
    for name, command in team.hooks.items():
        from teamchat.core.team.writers import writable_files

        files = " and ".join(os.path.relpath(file, team.root) for file in writable_files(team, command))
        waits = f", while no member works that may write {files}" if files else ""
        yield _need(WHOLE_TEAM, f"hooks.{name}", f"runs {shlex.join(command)} as the hook {name}{waits}", command)


def _checks(team: Team) -> Iterator[Need]:
    """List the checks, including commands in processes. The files that their commands read are not trusted with them.

    A member changes these all the time: a check is for that.
    """
    typed = {
        process.name: tuple(word for word in process.settings.check if word not in team.checks)
        for process in team.processes.values()
    }
    if team.checks or any(typed.values()):
        yield _need(WHOLE_TEAM, "checks", CHECKS_NOTE, ())
    for check in team.checks.values():
        yield from _needs_of_check(check)
    for name, words in typed.items():
        if words:
            yield _need(f"the process {name}", "check", f"runs {shlex.join(words)} as checks", words)


def _needs_of_check(check: Check) -> Iterator[Need]:
    name = f"the check {check.name}"
    if isinstance(check.command, str):
        yield _need(name, "command", f"runs {check.command}", ("shell", check.command))
    else:
        yield _need(name, "command", f"runs {shlex.join(check.command)}", ("program", *check.command))
    if check.timeout_s != CHECK_TIMEOUT_S:
        yield _need(name, "timeout", f"may take {check.timeout_s:,.15g} s", (str(check.timeout_s),))
    if check.folder:
        yield _need(name, "folder", f"works in {check.folder}", (check.folder,))
    yield from _env_needs(name, check.env, check.env_keep)
    if check.needs:
        yield _need(name, "needs", f"needs {', '.join(check.needs)}", check.needs)
    if check.protect:
        yield _need(name, "protect", f"protects {', '.join(check.protect)}", check.protect)
    if check.expect:
        fewer = ", and never fewer" if check.not_fewer else ""
        yield _need(name, "expect", f"expects {check.expect!r}{fewer}", (check.expect, str(check.not_fewer)))
    if check.tries > 1:
        yield _need(name, "tries", f"runs up to {check.tries} times", (str(check.tries),))
    if check.fresh:
        yield _need(name, "fresh", "runs in a new folder at last", ())


def _is_weaker(name: str, value: float, default: float) -> bool:
    """Whether the limit pauses later than the default one; a `similarity` of 0 never pauses."""
    return value > default or (name == "similarity" and not value)


def _needs_of(team: Team, member: Member, outside: _Outside) -> Iterator[Need]:
    spec = team.agent_of(member)
    if member.host:
        yield _host(member)
    elif spec not in BUILTIN_AGENTS.values() and not (spec.row and spec.row.is_proven(member.access)):
        yield _command(member, spec)
    if member.timeout_s > LONGEST_TURN_S:
        yield _need(member.name, "timeout", f"may take {member.timeout_s:,.15g} s for a turn", (str(member.timeout_s),))
    if member.args:
        yield _need(member.name, "args", f"runs {spec.name} with {shlex.join(member.args)}", member.args)
    yield from _env_needs(member.name, member.env, member.env_keep)
    if member.project_settings:
        yield _need(member.name, "project_settings", "runs the project's own hooks and MCP commands", ())
    if member.web:
        yield _need(member.name, "web", "searches the web and reads pages", ())
    if member.mcp:
        servers = sorted(member.mcp)
        yield _need(member.name, "mcp", f"calls the tools of your MCP servers {', '.join(servers)}", servers)
    elif member.mcp is None and member.access != "read" and spec.type.runner.vendor:
        yield _need(member.name, "mcp", "starts all your MCP servers", _ALL_SERVERS)
    if member.git:
        yield _need(member.name, "git", "reads the git repository and its history", ())
    if member.access == "edit":
        real = Path(os.path.realpath(member.cwd))
        apart = member.workspace == "worktree"
        place = f"a worktree of {real}" if apart else str(real)
        may = f"edits files in {place}" + (f" and runs {', '.join(member.allow)}" if member.allow else "")
        where = os.path.relpath(real, os.path.realpath(team.root))  # a named team's members work in many places
        yield _need(member.name, "access", may, ("edit", where, *sorted(member.allow)))
    if member.access == "full":
        yield _need(member.name, "access", "does anything you may do", ("full",))
    yield from _outside_needs(team, member, outside)


def _host(member: Member) -> Need:
    """Name the machines that get the member's prompts, and the files of its worktree.

    Which database carries them is the user's own setting.
    """
    hosts = "any host" if member.host == ("any",) else f"the host {' or '.join(member.host)}"
    address = _shown_address(os.environ.get("TEAMCHAT_DATABASE", ""))
    database = f"the database {address}" if address else "the database that TEAMCHAT_DATABASE names"
    rerun = ", and runs a turn again there whose host has gone" if member.rerun else ""
    files = ["files"] if member.workspace == "worktree" else []
    sent = "prompts and files" if files else "prompts"
    what = f"runs on {hosts}: {sent} of this project go there by {database}{rerun}"
    return _need(member.name, "host", what, (*sorted(member.host), *files, *(["rerun"] if member.rerun else [])))


def _shown_address(address: str) -> str:
    """Say where a database is, without user and password; empty if that cannot be told."""
    try:
        parts = urlsplit(address)
        places = [f"{name}={value}" for name, value in parse_qsl(parts.query) if name in ("host", "port")]
    except ValueError:
        return ""
    where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.scheme else ""
    return f"{where}?{'&'.join(places)}" if where and places else where


def _env_needs(whose: str, env: Mapping[str, str], keep: Sequence[str]) -> Iterator[Need]:
    if env:
        pairs = [f"{name}={'...' if is_secret(name, value) else value}" for name, value in env.items()]
        values = (f"{name}={value}" for name, value in sorted(env.items()))
        yield _need(whose, "env", f"runs with {shlex.join(pairs)}", values)
    if keep:
        yield _need(whose, "env_keep", f"sees the keys {', '.join(keep)}", sorted(keep))


def _outside_needs(team: Team, member: Member, outside: _Outside) -> Iterator[Need]:
    folder = team.path.parent if team.path else team.root
    if place := outside(member.cwd, team.root):
        yield _need(member.name, "cwd", f"works in {place}", (str(place),))
    if member.instruction_file and (place := outside(member.instruction_file, folder)):
        yield _need(member.name, "instruction_file", f"gets the text of {place}", (str(place),))
    for path in member.knowledge.values():
        if place := outside(path, folder):
            yield _need(member.name, "knowledge", f"gets what is in {place}", (str(place),))


def _command(member: Member, spec: AgentSpec) -> Need:
    """Describe the program; it has the options and the output of `like`, which also defines `access`.

    The text that ends a program on a terminal may also be a command of that program.
    """
    runner, what = spec.type.runner, f"runs {shlex.join(spec.command)}"
    if spec.row and spec.row.origin:
        command = runner.command(Job(spec.command, member.cwd, Path(), access=member.access))
        variables = (f"{key}={'...' if is_secret(key, value) else value}" for key, value in command.env.items())
        argument = ["PROMPT"] if spec.row.prompt == "argument" else []
        what = f"runs {shlex.join([*variables, *command.argv, *argument])} {whose(spec.row)}"
    value: tuple[str, ...] = (*spec.command, "like", spec.protocol)
    if spec.row:
        value += (msgspec.json.encode(spec.row).decode(),)
    if (terminal := spec.terminal) is not None:
        what += f" on a terminal, and types {terminal.exit!r} there" if terminal.exit else " on a terminal"
        value += ("pty", terminal.submit, terminal.exit or "")
    like = f" like {spec.protocol}, access {member.access}" if runner.vendor else "; its access"
    note = f": {spec.access_note(member.access)}" if runner.vendor else " is not enforced"
    if spec.row and spec.row.access:
        like, note = f", access {member.access}", f": {spec.access_note(member.access)}"
    return _need(member.name, "command", f"{what}{like}{note}", value)


def whose(row: AgentRow) -> str:
    """Say `by your row`, or whose row it is."""
    return "by your row" if row.origin == "you" else f"by the row of {row.origin}"


def _need(member: str, key: str, what: str, value: Iterable[str]) -> Need:
    return Need(member, key, printable(f"{member} {what}"), tuple(value))


def _outside(real: Callable[[Path], Path], path: Path, folder: Path) -> Path | None:
    """Return the real path of `path` if it is not in `folder`: a link may lead out of it."""
    return None if real(path).is_relative_to(real(folder)) else real(path)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # also of a link to itself
