"""The files whose content decides the effect of a team's trusted commands.

They are programs of the workspace; scripts that `command`, `args` or a value of `env` names, also inside a shell's
text or by a module's name; and programs in the folders of `env.PATH`. Files that such a script loads are unknown.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.team.team import AgentSpec, Member, Team
from teamchat.patterns import regex
from teamchat.runners.untrusted.regular_files import open_regular, read_regular

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
_HOME = regex(r"\$HOME(?:/|\b)|\$\{HOME\}/?|(?<![^\s'\"=:;|&(])~/")
_SHELL_TEXT = regex(r"-[A-Za-z]*c")  # the option before a shell's text
_WRITES = regex(
    r"""('[^']*'|"(?:\\.|[^"\\])*"|\\.)"""  # text in quotes may be run by another shell
    r"""|(?<![<=-])>>?\|?[ \t]*(?:'[^']*'|"[^"$`\\]*"|[\w./@%+,:~-]+)(?=[\s;&|()<>]|$)"""
)
_QUOTES = regex(r"['\"\\]")
_BETWEEN = regex(r"[\s;&|()<>{}'\"`$=,:]+")  # separates the words of a shell's text


def file_states(team: Team) -> dict[Path, str]:
    """Map each of the files to its digest; "none" for a program that is missing or no regular file."""
    # members with the same command have the same files: they are looked for once
    different = {_runs(team, member): member for member in team.ai_members}
    files = {file for member in different.values() for file in _files_of(team, member)}
    for hook in team.hooks.values():
        files |= files_of_hook(team, hook)
    return {file: _state(file) for file in files}


def files_of_hook(team: Team, command: tuple[str, ...]) -> set[Path]:
    """List the files named by the words of a hook, its program too, unless it is one of those on the PATH."""
    member = Member(HOOK, "ai", team.root, agent=HOOK)
    program = team.root / command[0]
    on_path = str(program.parent) in os.environ.get("PATH", os.defpath).split(os.pathsep)
    own = {program} if "/" in command[0] and not on_path and os.path.isfile(program) else set[Path]()  # noqa: PTH113
    return own | _files_of(replace(team, agents={HOOK: AgentSpec(HOOK, command)}), member)


def untrusted_copies(team: Team, member: Member, placed: Member) -> list[Path]:
    """List the files for `placed`, the member in its worktree, that differ from the user's work tree.

    Trust was given to the user's files, and in its worktree the member may have changed them.
    """
    here, there = Path(os.path.realpath(member.cwd)), placed.cwd
    while here.name == there.name and here != here.parent:
        here, there = here.parent, there.parent
    moved = replace(team, members=tuple(placed if other.name == member.name else other for other in team.members))
    copies = (file for file in _files_of(moved, placed) if file.is_relative_to(there))
    return sorted(file for file in copies if _state(file) != _state(here / file.relative_to(there)))


def _runs(team: Team, member: Member) -> tuple[object, ...]:
    """Return everything that decides which files a member uses."""
    spec = team.agent_of(member)
    placed = _with_row(team, member)
    return spec.command, spec.local, placed.args, tuple(placed.env.items()), member.cwd


def _with_row(team: Team, member: Member) -> Member:
    """Add to the member the words and variables that its agent's row gives the program."""
    if (row := team.agent_of(member).row) is None:
        return member
    bounds = row.access.get(member.access)
    words = (*(bounds.args if bounds else ()), *row.model, *row.resume, *row.last)
    env = {**member.env, **row.env, **(bounds.env if bounds else {})}
    return replace(member, args=(*member.args, *words), env=env)


def _files_of(team: Team, member: Member) -> set[Path]:
    """List one member's files, relative to its working folder and to workspace folders that its words name."""
    member = _with_row(team, member)
    program, *words = map(_without_here, (*team.agent_of(member).command, *member.args))
    values = [_without_here(value) for value in member.env.values()]
    folders = _folders(team, member.cwd, (*words, *values))
    of_env = (file for value in values for file in _scripts("", [value], folders))
    scripts = {*_scripts(program, words, folders), *(file for file in of_env if _in_workspace(team, file))}
    return {*scripts, *_program(team, member), *_on_path(team, member)}


def _without_here(word: str) -> str:
    if "$" in word or "`" in word:
        word = _HERE.sub("./", word)
    return _HOME.sub(lambda _: f"{Path.home()}/", word) if "~/" in word or "HOME" in word else word


def _folders(team: Team, cwd: Path, words: Iterable[str]) -> list[Path]:
    """List `cwd` and up to `MOST_FOLDERS` workspace folders that words name relative to it (`cd tools`, `-C sub`)."""
    parts = dict.fromkeys(part for word in words for part in (word, *_parts(word), *_unquoted(word)))
    named = [part.removeprefix("-C") for part in parts]
    by_real_path = {os.path.realpath(cwd): cwd}
    for folder in (waiting := [cwd]):
        for part in named:
            place = os.path.join(folder, part)  # noqa: PTH118 (each turn looks for all of them)
            if part and os.path.isdir(place) and (real := os.path.realpath(place)) not in by_real_path:  # noqa: PTH112
                if len(by_real_path) > MOST_FOLDERS:
                    return waiting
                if _in_workspace(team, Path(real)):
                    by_real_path[real] = Path(real)
                    waiting.append(by_real_path[real])
    return waiting


def _modules(words: Iterable[str]) -> Iterator[str]:
    """List the paths of the modules that `python -m` runs."""
    for option, word in pairwise(words):
        if option == "-m":
            yield word.replace(".", "/")


def _scripts(program: str, words: Sequence[str], folders: Sequence[Path]) -> Iterator[Path]:
    """List the files named by whole words, or by the parts after `=`; in a shell's text only files that it runs."""
    for word in (*words, *_modules(words)):
        for part in {word, word.partition("=")[2]}:
            yield from _named(part, folders[0])
    texts = [_without_written(word) if shell else word for word, shell in _marked(program, words)]
    read = (("", *parts) for text in texts for parts in (_parts(text), _unquoted(text)))
    for parts in ((program, *words), *read):
        for folder in folders:
            yield from _run(parts, folder)


def _marked(program: str, words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Pair each word with whether it is a shell's text."""
    shell = False
    for before, word in pairwise((program, *words)):
        shell = shell or before.rpartition("/")[2] in SHELLS
        yield word, shell and _SHELL_TEXT.fullmatch(before) is not None


def _without_written(text: str) -> str:
    """Remove from a shell's text the names of files that it only redirects output to."""
    return _WRITES.sub(lambda found: found[1] or " ", text) if ">" in text else text


def _parts(text: str) -> list[str]:
    return [part for part in _BETWEEN.split(text) if part]


def _unquoted(text: str) -> list[str]:
    """Read the words of a shell's text that has quotes, and of the texts in them; none where quotes do not match."""
    if not _QUOTES.search(text):
        return []
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        return []
    return [*words, *(inner for word in words if word != text for inner in _unquoted(word))]


def _run(parts: Sequence[str], folder: Path) -> Iterator[Path]:
    """List the files in `folder` that a command with these words runs."""
    named = (part for part in parts if not part.startswith("-"))
    for before, part in pairwise([*named, *_modules(parts)]):
        reads = before.rpartition("/")[2] in READS_A_SCRIPT
        yield from (file for file in _named(part, folder) if reads or _is_script(file))
    for part in parts:
        for name in BUILT_BY.get(part.rpartition("/")[2], ()):
            yield from _named(name, folder)


def _named(word: str, cwd: Path) -> Iterator[Path]:
    """List the files with that name.

    Most words name none, and each turn checks all of them: a `Path` is made only for an existing file.
    """
    if word:
        start = str(cwd / word)  # ignore a slash at its end
        places = (start, *(os.path.join(cwd, f"{word}{ending}") for ending in LEFT_OUT))  # noqa: PTH118
        yield from (Path(place) for place in places if os.path.isfile(place))  # noqa: PTH113


def _is_script(file: Path) -> bool:
    """Whether the file exists to be run: other files in a shell's text may be its input or output."""
    if file.suffix in ENDINGS or os.access(file, os.X_OK):
        return True
    try:
        with open_regular(file) as opened:
            return opened.read(2) == b"#!"
    except OSError:
        return False


def _program(team: Team, member: Member) -> Iterator[Path]:
    """Return the member's program if the team file names it relative to its own folder, or it is in the workspace."""
    spec = team.agent_of(member)
    program = Path(spec.command[0])
    if len(program.parts) == 1:
        search = os.pathsep.join(str(member.cwd / folder) for folder in _path(member, os.environ).split(os.pathsep))
        program = Path(shutil.which(spec.command[0], path=search) or "")
    if spec.local or (program.name and _in_workspace(team, program)):
        yield program


def _on_path(team: Team, member: Member) -> Iterator[Path]:
    """List the programs that the member's own PATH puts before the system's, for its CLI and the CLI's tools."""
    for folder in _path(member, {}).split(os.pathsep):
        place = member.cwd / folder
        if "PATH" in member.env and _in_workspace(team, place):
            # `Path.is_file` raises errors
            yield from (file for file in _entries(place) if os.path.isfile(file) and os.access(file, os.X_OK))  # noqa: PTH113


def _path(member: Member, inherited: Mapping[str, str]) -> str:
    return member.env.get("PATH", inherited.get("PATH", os.defpath))


def _in_workspace(team: Team, path: Path) -> bool:
    """Whether a member that may write, or the project, could have put it there."""
    folders = {team.root, *(member.cwd for member in team.ai_members), *([team.path.parent] if team.path else [])}
    places = Path(os.path.abspath(path)), Path(os.path.realpath(path))  # noqa: PTH100 (its own name, links as they are)
    return any(place.is_relative_to(os.path.realpath(folder)) for place in places for folder in folders)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _state(file: Path) -> str:
    """Return the digest of a file's content, or "none"; for a large file, its size and times.

    No program can set its change time back.
    """
    try:
        about = file.stat()
        if about.st_size <= LARGE:
            return sha256(read_regular(file, LARGE)).hexdigest()
    except ValueError:  # the file has grown
        pass
    except OSError:
        return "none"
    return f"{about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}"
