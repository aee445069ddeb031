"""Trust: a team file comes with a project and can make teamchat run whatever its author likes.

Trust is given once, and remembered by the file's absolute path and by what needs trust. An edited instruction never
asks again. A changed command, or a changed script that a command names, asks again and says what changed.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace

from teamchat.core.check import CHECK_TIMEOUT_S, Check
from teamchat.core.errors import NotTrusted, StoreError
from teamchat.core.files.folders import WRITABLE
from teamchat.core.files.whole_files import locked_beside, put_in_place, write_private
from teamchat.core.team.team import BUILTIN_AGENTS, AgentSpec, Limits, Member, Team
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import quote
from teamchat.patterns import regex
from teamchat.runners.environment import is_secret
from teamchat.runners.untrusted.regular_files import open_regular, read_regular

# The files whose content decides what a team's trusted commands do.
#
# They are programs of the workspace; scripts that `command`, `args` or a value of `env` names, also inside a shell's
# text or by a module's name; and programs in the folders of `env.PATH`. What such a script loads is not known.

LARGE = 16 * 1024 * 1024  # bytes; a model file named by an argument is not read before each turn
BUILT_BY: Mapping[str, tuple[str, ...]] = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", ".justfile"),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun"), ("package.json",)),
}
"""The files that a program reads by itself."""
LEFT_OUT = (".py", "/__main__.py", "/__init__.py", ".js", ".cjs", ".mjs", "/index.js", "/package.json")
"""The parts of a script's name that Python and Node.js let a command omit."""
SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh", "fish"})
READS_A_SCRIPT = SHELLS | frozenset({".", "source", "python", "python3", "node", "ruby", "perl", "php", "lua"})
ENDINGS = frozenset(
    {".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".cjs", ".mjs", ".ts", ".rb", ".pl", ".php", ".lua"}
)
HOOK = "hook"
MOST_FOLDERS = 8  # folders, besides the member's own, that its words may name
_HERE = regex(r"\$PWD\b|\$\{PWD\}|\$\( *pwd *\)|` *pwd *`")
_SHELL_TEXT = regex(r"-[A-Za-z]*c")  # the option before a shell's text
_WRITES = regex(
    r"""('[^']*'|"(?:\\.|[^"\\])*"|\\.)"""  # text in quotes may be run by another shell
    r"""|(?<![<=-])>>?\|?[ \t]*(?:'[^']*'|"[^"$`\\]*"|[\w./@%+,:~-]+)(?=[\s;&|()<>]|$)"""
)
_PASSWORD = regex(r"://[^/@]*@")  # who connects to a database, with the password
_BETWEEN = regex(r"[\s;&|()<>{}'\"`$=,:]+")  # separates the words of a shell's text


def file_states(team: Team) -> dict[Path, str]:
    """Each of the files with its digest; "none" for a program that is missing or no regular file."""
    # members with the same command have the same files, which are looked for once
    different = {_runs(team, member): member for member in team.ai_members}
    files = {file for one in different.values() for file in _files_of(team, one)}
    for hook in team.hooks.values():
        files |= _files_of(
            replace(team, agents={HOOK: AgentSpec(HOOK, hook)}), Member(HOOK, "ai", team.root, agent=HOOK)
        )
    return {file: _state(file) for file in files}


def untrusted_copies(team: Team, member: Member, placed: Member) -> list[Path]:
    """The files for `placed`, the member in its worktree, that are not as those of the user's work tree.

    Trust was given to those, and in its worktree the member may have changed them.
    """
    here, there = Path(os.path.realpath(member.cwd)), placed.cwd
    while here.name == there.name and here != here.parent:
        here, there = here.parent, there.parent
    moved = replace(team, members=tuple(placed if one.name == member.name else one for one in team.members))
    copies = (file for file in _files_of(moved, placed) if file.is_relative_to(there))
    return sorted(file for file in copies if _state(file) != _state(here / file.relative_to(there)))


def _runs(team: Team, member: Member) -> tuple[object, ...]:
    """What decides which files are a member's."""
    spec = team.agent_of(member)
    return spec.command, spec.local, member.args, tuple(member.env.items()), member.cwd


def _files_of(team: Team, member: Member) -> set[Path]:
    """The files of one member, relative to its working folder and to the workspace's folders that its words name."""
    program, *words = map(_without_here, (*team.agent_of(member).command, *member.args))
    values = [_without_here(value) for value in member.env.values()]
    folders = _folders(team, member.cwd, (*words, *values))
    of_env = (file for value in values for file in _scripts("", [value], folders))
    scripts = {*_scripts(program, words, folders), *(file for file in of_env if _in_workspace(team, file))}
    return {*scripts, *_program(team, member), *_on_path(team, member)}


def _without_here(word: str) -> str:
    return _HERE.sub("./", word) if "$" in word or "`" in word else word


def _folders(team: Team, cwd: Path, words: Iterable[str]) -> list[Path]:
    """`cwd`, and up to `MOST_FOLDERS` of the workspace that words name relative to these (`cd tools`, `-C sub`)."""
    parts = dict.fromkeys(part for word in words for part in (word, *_parts(word)))
    named = [part.removeprefix("-C") for part in parts]
    found = {os.path.realpath(cwd): cwd}
    for folder in (waiting := [cwd]):
        for part in named:
            place = os.path.join(folder, part)  # noqa: PTH118 (each turn looks for all of them)
            if part and os.path.isdir(place) and (real := os.path.realpath(place)) not in found:  # noqa: PTH112
                if len(found) > MOST_FOLDERS:
                    return waiting
                if _in_workspace(team, Path(real)):
                    found[real] = Path(real)
                    waiting.append(found[real])
    return waiting


def _modules(words: Iterable[str]) -> Iterator[str]:
    """The paths of the modules that `python -m` runs."""
    for option, word in pairwise(words):
        if option == "-m":
            yield word.replace(".", "/")


def _scripts(program: str, words: Sequence[str], folders: Sequence[Path]) -> Iterator[Path]:
    """The files that whole words, or the parts after their `=`, name. In a shell's text only those that it runs."""
    for word in (*words, *_modules(words)):
        for part in {word, word.partition("=")[2]}:
            yield from _named(part, folders[0])
    texts = (_without_written(word) if shell else word for word, shell in _marked(program, words))
    for parts in ((program, *words), *(("", *_parts(text)) for text in texts)):
        for folder in folders:
            yield from _run(parts, folder)


def _marked(program: str, words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each word, and whether it is a shell's text."""
    shell = False
    for before, word in pairwise((program, *words)):
        shell = shell or before.rpartition("/")[2] in SHELLS
        yield word, shell and _SHELL_TEXT.fullmatch(before) is not None


def _without_written(text: str) -> str:
    """A shell's text without the names of files that it only redirects output to."""
    return _WRITES.sub(lambda found: found[1] or " ", text) if ">" in text else text


def _parts(text: str) -> list[str]:
    return [part for part in _BETWEEN.split(text) if part]


def _run(parts: Sequence[str], folder: Path) -> Iterator[Path]:
    """The files in `folder` that a command of these words runs."""
    named = (part for part in parts if not part.startswith("-"))
    for before, part in pairwise([*named, *_modules(parts)]):
        reads = before.rpartition("/")[2] in READS_A_SCRIPT
        yield from (file for file in _named(part, folder) if reads or _is_script(file))
    for part in parts:
        for name in BUILT_BY.get(part.rpartition("/")[2], ()):
            yield from _named(name, folder)


def _named(word: str, cwd: Path) -> Iterator[Path]:
    """The files of that name.

    Most words name none, and each turn checks all of them: a `Path` is made only for an existing file.
    """
    if word:
        start = str(cwd / word)  # ignore a slash at its end
        places = (start, *(os.path.join(cwd, f"{word}{ending}") for ending in LEFT_OUT))  # noqa: PTH118
        yield from (Path(place) for place in places if os.path.isfile(place))  # noqa: PTH113


def _is_script(file: Path) -> bool:
    """True if the file exists to be run: other files that a shell's text names may be its input or output."""
    if file.suffix in ENDINGS or os.access(file, os.X_OK):
        return True
    try:
        with open_regular(file) as opened:
            return opened.read(2) == b"#!"
    except OSError:
        return False


def _program(team: Team, member: Member) -> Iterator[Path]:
    """The member's program, if the team file names it relative to its own folder, or it is in the workspace."""
    spec = team.agent_of(member)
    found = Path(spec.command[0])
    if len(found.parts) == 1:
        search = os.pathsep.join(str(member.cwd / folder) for folder in _path(member, os.environ).split(os.pathsep))
        found = Path(shutil.which(spec.command[0], path=search) or "")
    if spec.local or (found.name and _in_workspace(team, found)):
        yield found


def _on_path(team: Team, member: Member) -> Iterator[Path]:
    """The programs that the member's own PATH puts before the system's, for its CLI and the tools of its CLI."""
    for folder in _path(member, {}).split(os.pathsep):
        place = member.cwd / folder
        if "PATH" in member.env and _in_workspace(team, place):
            yield from (file for file in _entries(place) if _is_file(file) and os.access(file, os.X_OK))


def _path(member: Member, inherited: Mapping[str, str]) -> str:
    return member.env.get("PATH", inherited.get("PATH", os.defpath))


def _in_workspace(team: Team, path: Path) -> bool:
    """True if a member that may write, or the project, could have put it there."""
    folders = {team.root, *(member.cwd for member in team.ai_members), *([team.path.parent] if team.path else [])}
    places = Path(os.path.abspath(path)), Path(os.path.realpath(path))  # noqa: PTH100 (its own name, links as they are)
    return any(place.is_relative_to(os.path.realpath(folder)) for place in places for folder in folders)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a long argument names no file
        return False


def _state(file: Path) -> str:
    """The digest of a file's content; for a large file its size and times. No program can set its change time back."""
    try:
        about = file.stat()
        if about.st_size <= LARGE:
            return sha256(read_regular(file, LARGE)).hexdigest()
    except ValueError:  # the file has grown
        pass
    except OSError:
        return "none"
    return f"{about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}"


_Outside = Callable[[Path, Path], Path | None]
WHOLE_TEAM = "the team"  # no member's name: a name has no space; so are "the check NAME" and "the process NAME"
_ALL_SERVERS = ("",)  # no server's name
CHECKS_NOTE = "runs checks: each runs files that a member has just written, with your rights and the network"
LONGEST_TURN_S = 86_400.0  # a longer `timeout` needs trust


class Need(Struct, frozen=True):
    """A key of a member, or of the team, that needs trust. `line` shows it to a person, `value` is what is trusted."""

    member: str
    key: str
    line: str
    value: tuple[str, ...]


def needs(team: Team) -> tuple[Need, ...]:
    """The parts of the team that need trust, member by member; empty for the installed CLIs without a team file."""
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
    """All that trust covers: what needs it, and what must not change afterwards."""
    if not (wanted := needs(team)):
        return ()
    fence = Need(WHOLE_TEAM, "fence", "on" if team.fence else "off", (str(team.fence),))
    asking = {need.member for need in wanted}
    trusted = (member for member in team.ai_members if member.name in asking)
    return (*wanted, fence, *(need for member in trusted for need in _kept_as_it_is(team, member)))


def fingerprint(team: Team, wanted: tuple[Need, ...]) -> str:
    """sha256 over the file's path, all that trust covers (`wanted`), and the files that its commands name."""
    asked = sorted([need.member, need.key, *need.value] for need in wanted)
    files = sorted([str(file), state] for file, state in file_states(team).items())
    return sha256(json.dumps([str(team.path), asked, files]).encode()).hexdigest()


def _kept_as_it_is(team: Team, member: Member) -> Iterator[Need]:
    """The keys that ask nothing alone, but whose change or removal could let a trusted member do more."""
    name = team.agent_of(member).name
    yield _need(member.name, "agent", f"is {name}", (name,))
    if member.mcp == ():
        yield _need(member.name, "mcp", "has no MCP server", ())
    if member.workspace is not None:
        where = "a worktree of its own" if member.workspace == "worktree" else "your files themselves"
        yield _need(member.name, "workspace", f"works in {where}", (member.workspace,))


def _weakened(team: Team) -> Iterator[Need]:
    """The protections that the file switches off, and the limits that it raises."""
    if not team.redact:
        yield _need(WHOLE_TEAM, "redact", "sends other vendors' members well-known keys as they are", ())
    defaults = asdict(Limits())
    for name, value in asdict(team.limits).items():
        if value is not None and defaults[name] is not None and _is_weaker(name, value, defaults[name]):
            what = f"has {name} = {value:,} as a limit ({defaults[name]:,} by default)"
            yield _need(WHOLE_TEAM, f"limits.{name}", what, (str(value),))


def _hooks(team: Team) -> Iterator[Need]:
    for name, command in team.hooks.items():
        yield _need(WHOLE_TEAM, f"hooks.{name}", f"runs {shlex.join(command)} as the hook {name}", command)


def _checks(team: Team) -> Iterator[Need]:
    """The checks, also those that a process has as commands. What their commands read is not trusted with them.

    A member changes it all the time: that is what a check is for.
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


def _is_weaker(name: str, value: float, default: float) -> bool:
    """True if the limit pauses later than the default one; a `similarity` of 0 never pauses."""
    return value > default or (name == "similarity" and not value)


def _needs_of(team: Team, member: Member, outside: _Outside) -> Iterator[Need]:
    spec = team.agent_of(member)
    if member.host:
        yield _host(member)
    elif spec not in BUILTIN_AGENTS.values():
        yield _command(member, spec)
    if member.timeout_s > LONGEST_TURN_S:
        yield _need(member.name, "timeout", f"may take {member.timeout_s:,.15g} s for a turn", (str(member.timeout_s),))
    if member.args:
        yield _need(member.name, "args", f"runs {spec.name} with {shlex.join(member.args)}", member.args)
    yield from _env_needs(member.name, member.env, member.env_keep)
    if member.project_settings:
        yield _need(member.name, "project_settings", "runs the project's own hooks and MCP commands", ())
    yield from _tool_needs(member, spec)
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
    """The machines that get the member's prompts. Which database carries them is the user's own setting."""
    hosts = "any host" if member.host == ("any",) else f"the host {' or '.join(member.host)}"
    address = _PASSWORD.sub("://", os.environ.get("TEAMCHAT_DATABASE", ""))
    database = f"the database {address}" if address else "the database that TEAMCHAT_DATABASE names"
    rerun = ", and runs a turn again there whose host has gone" if member.rerun else ""
    what = f"runs on {hosts}: prompts of this project go there by {database}{rerun}"
    return _need(member.name, "host", what, (*sorted(member.host), *(["rerun"] if member.rerun else [])))


def _env_needs(whose: str, env: Mapping[str, str], keep: Sequence[str]) -> Iterator[Need]:
    if env:
        pairs = [f"{name}={'...' if is_secret(name, value) else value}" for name, value in env.items()]
        values = (f"{name}={value}" for name, value in sorted(env.items()))
        yield _need(whose, "env", f"runs with {shlex.join(pairs)}", values)
    if keep:
        yield _need(whose, "env_keep", f"sees the keys {', '.join(keep)}", sorted(keep))


def _tool_needs(member: Member, spec: AgentSpec) -> Iterator[Need]:
    if member.web:
        yield _need(member.name, "web", "searches the web and reads pages", ())
    if member.mcp:
        servers = sorted(member.mcp)
        yield _need(member.name, "mcp", f"calls the tools of your MCP servers {', '.join(servers)}", servers)
    elif member.mcp is None and member.access != "read" and spec.type.runner.vendor:
        yield _need(member.name, "mcp", "starts all your MCP servers", _ALL_SERVERS)
    if member.git:
        yield _need(member.name, "git", "reads the git repository and its history", ())


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
    """The program, whose options and output are those of `like`, which also decides what `access` means.

    The text that ends a program on a terminal may also be a command of that program.
    """
    runner, what = spec.type.runner, f"runs {shlex.join(spec.command)}"
    value: tuple[str, ...] = (*spec.command, "like", spec.protocol)
    if (terminal := spec.terminal) is not None:
        what += f" on a terminal, and types {terminal.exit!r} there" if terminal.exit else " on a terminal"
        value += ("pty", terminal.submit, terminal.exit or "")
    like = f" like {spec.protocol}, access {member.access}" if runner.vendor else "; its access"
    note = f": {runner.access_notes[member.access]}" if runner.vendor else " is not enforced"
    return _need(member.name, "command", f"{what}{like}{note}", value)


def _need(member: str, key: str, what: str, value: Iterable[str]) -> Need:
    return Need(member, key, printable(f"{member} {what}"), tuple(value))


def _outside(real: Callable[[Path], Path], path: Path, folder: Path) -> Path | None:
    """The real path of `path`, if that is not in `folder`: a link may lead out of it."""
    return None if real(path).is_relative_to(real(folder)) else real(path)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # also of a link to itself


__all__ = ["Need", "Standing", "TrustStore", "covered", "fingerprint", "needs", "require", "trust_command"]
LARGEST = 1 << 24  # bytes; enough for thousands of team files
REMEMBERED = 100  # team files, the last ones trusted, of which more than the fingerprint is kept
FIRST = 3  # changes named in an error


class Standing(Struct, frozen=True):
    """Whether a team is trusted. If not: whether it was (`before`), and each change since then, if known."""

    trusted: bool
    before: bool = False
    changes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The words after the path of the team file."""
        if self.trusted:
            return "is trusted"
        return "has changed since you trusted it" if self.before else "is not trusted yet"


def require(team: Team, store: TrustStore) -> None:
    """Raises `NotTrusted`, with what changed or what would have run, unless the team is trusted."""
    standing = store.standing(team)
    if not standing.trusted:
        raise not_trusted(team, standing)


def not_trusted(team: Team, standing: Standing) -> NotTrusted:
    """The error of a team with that standing."""
    why = f"{printable(str(team.path))} {standing.text}"
    lines = "\n".join(f"  {need.line}" for need in needs(team))
    told = f"{why}: {_first(team, standing.changes)}" if standing.changes else f"{why}; with it\n{lines}"
    return NotTrusted(told, trust_command(team))


def _first(team: Team, found: tuple[str, ...]) -> str:
    more = len(found) - FIRST
    rest = (f"and {more} more, which `teamchat doctor{team.typed}` shows",) if more > 0 else ()
    return "; ".join((*found[:FIRST], *rest))


def trust_command(team: Team) -> str:
    """The command that trusts the team."""
    return f"teamchat trust{team.typed}"


class TrustStore:
    """The trusted contents of every team file, by its path. One file may have several, as a project has branches.

    Each is a fingerprint. For the one trusted last, its lines and files are also kept, to tell what changed.
    Several processes may use it at once: a writer holds a lock beside the file and replaces the whole file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def standing(self, team: Team) -> Standing:
        """Whether the team is trusted, and what changed since it was last trusted. Raises `StoreError`."""
        team = team.as_written or team  # what a person types needs no further trust
        if not (wanted := covered(team)):
            return Standing(trusted=True)
        known = self._read().get(str(team.path), [])
        now = fingerprint(team, wanted)
        if any(given.fingerprint == now for given in known):
            return Standing(trusted=True)
        return Standing(trusted=False, before=bool(known), changes=trust_changes(known[-1], team) if known else ())

    def grant(self, team: Team) -> None:
        """Remember that the user trusts the team as it is now, on the disk when this returns. Raises `StoreError`."""
        if not needs(team):
            return
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked_beside(self.file) as new:
                old = self._read()
                trusted = _with(old, str(team.path), Trusted.of(team))
                if _kept(trusted) != _kept(old):
                    write_private(new, json.dumps(_kept(trusted), indent=1).encode())
                    put_in_place(new, self.file)
        except OSError as error:
            raise StoreError(f"{self.file} cannot be written: {error.strerror}; {WRITABLE}") from error

    def _read(self) -> dict[str, list[Trusted]]:
        try:
            content = json.loads(read_regular(self.file, LARGEST))
            return {path: [Trusted.read(kept) for kept in known] for path, known in _object(content).items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StoreError(f"{self.file} cannot be read: {error.strerror}; {WRITABLE}") from error
        except (ValueError, TypeError, RecursionError) as error:
            raise StoreError(
                f"{self.file} is damaged; without it every team file asks for trust once more",
                f"rm {quote(str(self.file))}",
            ) from error


def _with(trusted: dict[str, list[Trusted]], path: str, now: Trusted) -> dict[str, list[Trusted]]:
    """The file's entry with `now` as the content trusted last."""
    others = {other: known for other, known in trusted.items() if other != path}
    return others | {path: [*(given for given in trusted.get(path, []) if given.fingerprint != now.fingerprint), now]}


def _kept(trusted: dict[str, list[Trusted]]) -> dict[str, list[object]]:
    lasting = [*trusted][-REMEMBERED:]
    return {
        path: [
            *(given.fingerprint for given in known[:-1]),
            *(given.kept() if path in lasting else given.fingerprint for given in known[-1:]),
        ]
        for path, known in trusted.items()
    }


def _object(content: object) -> dict[str, list[object]]:
    if not isinstance(content, dict) or not all(isinstance(known, list) for known in content.values()):
        raise ValueError(content)
    return content


# What changed in a team file since it was trusted, in lines for a person.
#
# A digest of every value decides whether it changed. The line beside the digest only shows a person what it was: it
# may be cut, and it is not kept for a variable of `env`.

LONGEST_LINE = 1_000  # characters kept of a line
LARGEST_KEPT = 1 << 15  # bytes kept of one team file

_Name: TypeAlias = tuple[str, str, str]
"""Member, key, and the variable of `env` or the path of `knowledge`."""


class _Value(Struct, frozen=True):
    line: str
    digest: str


class Trusted(Struct, frozen=True):
    """A trusted content. `values` and `files` are empty if only its fingerprint is known."""

    fingerprint: str
    values: Mapping[_Name, _Value]
    files: Mapping[str, str]

    @classmethod
    def of(cls, team: Team) -> Self:
        """The team as it is now."""
        files = {str(file): state for file, state in file_states(team).items() if state != "none"}
        return cls(fingerprint(team, covered(team)), dict(_values(team)), files)

    @classmethod
    def read(cls, kept: object) -> Self:
        """What `kept()` returned, read back from JSON. Raises `ValueError` or `TypeError` for anything else."""
        match kept:
            case str():
                return cls(kept, {}, {})
            case {"fingerprint": str() as given, "values": list() as rows, "files": dict() as files}:
                texts = [[_text(part) for part in row] for row in rows]
                values = {(member, key, which): _Value(line, digest) for member, key, which, line, digest in texts}
                return cls(given, values, {file: _text(state) for file, state in files.items()})
        raise ValueError(kept)

    def kept(self) -> str | dict[str, Any]:
        """What is remembered, for JSON. For a content that is too large, only the fingerprint."""
        rows = [[*name, _kept_line(name, value.line), value.digest] for name, value in self.values.items()]
        whole = {"fingerprint": self.fingerprint, "values": rows, "files": dict(self.files)}
        return whole if len(json.dumps(whole)) <= LARGEST_KEPT else self.fingerprint


def trust_changes(before: Trusted, team: Team) -> tuple[str, ...]:
    """A line for each key and each file that changed; empty if the trusted content is unknown."""
    if not before.values:
        return ()
    after = Trusted.of(team)
    folder = team.path.parent if team.path else team.root
    lines = (*_changed_values(before.values, after.values), *_changed_files(before.files, after.files, folder))
    return tuple(map(printable, lines))


def _changed_values(before: Mapping[_Name, _Value], after: Mapping[_Name, _Value]) -> Iterator[str]:
    for name in dict.fromkeys((*after, *before)):
        old, new = before.get(name), after.get(name)
        if new is None:
            yield f"removed {_titled(name, before[name].line)}"
        elif old is None:
            yield f"added {_titled(name, new.line)}"
        elif old.digest != new.digest:
            yield _titled(name, _from_to(old.line, new.line))


def _titled(name: _Name, line: str) -> str:
    member, key, which = name
    title = f"env {which} of {member}" if key == "env" else f"{key} of {member}"
    return f"{title}: {line}" if line else title


def _from_to(old: str, new: str) -> str:
    if not new:
        return "another value"
    if not old:
        return f"now {new}"
    return f"{old} → {new}" if old != new else f"{new}, in a part that is not shown"


def _changed_files(before: Mapping[str, str], after: Mapping[str, str], folder: Path) -> Iterator[str]:
    for file in dict.fromkeys((*after, *before)):
        shown = Path(file).relative_to(folder) if Path(file).is_relative_to(folder) else file
        if file not in after:
            yield f"removed file {shown}"
        elif file not in before:
            yield f"added file {shown}"
        elif before[file] != after[file]:
            yield f"{shown} has changed"


def _values(team: Team) -> Iterator[tuple[_Name, _Value]]:
    for need in covered(team):
        for which, line, value in _need_parts(need):
            yield (need.member, need.key, which), _Value(line, _digest([str(team.path), need.member, need.key, *value]))


def _need_parts(need: Need) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The parts of a need that change separately: the name, line and value of each."""
    if need.key == "env":
        for pair in need.value:
            variable, _, value = pair.partition("=")
            yield variable, "" if is_secret(variable, value) else printable(value), (pair,)
        return
    which = need.value[0] if need.key == "knowledge" else ""
    yield which, need.line.removeprefix(f"{printable(need.member)} "), need.value


def _kept_line(name: _Name, line: str) -> str:
    if name[1] == "env":
        return ""
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"


def _digest(parts: Iterable[str]) -> str:
    return sha256(json.dumps([*parts]).encode()).hexdigest()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
