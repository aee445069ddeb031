"""Gemini CLI (observed at 0.61.0): everything in the prompt on stdin, system text included; text in deltas."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec.structs import replace

from teamchat.patterns import regex
from teamchat.runners.base import (
    Access,
    Command,
    EventParser,
    Images,
    Job,
    KeptSession,
    Limit,
    Login,
    Prepared,
    Runner,
    Sessions,
    Slash,
    SlashRule,
    StopRule,
)
from teamchat.runners.edits import edits
from teamchat.runners.gemini.events import GeminiEvents
from teamchat.runners.gemini.settings import other_files, policy, settings_files, started, system_defaults, trusts
from teamchat.runners.gemini.settings import servers as users_servers
from teamchat.runners.homes.folders import gemini_folder
from teamchat.runners.homes.logins import elsewhere, is_there, stored, variables_login
from teamchat.runners.homes.records import MOST, first_lines, text_of, used_at
from teamchat.runners.mentions import escaped_mention, inert, mention
from teamchat.runners.slash_commands import LARGEST, command_name, first_file
from teamchat.runners.untrusted.json import listed
from teamchat.runners.untrusted.regular_files import read_regular, read_regular_text
from teamchat.runners.untrusted.settings_json import broken
from teamchat.runners.untrusted.toml import loads

# Gemini's custom commands that a person calls by `/name` (observed at 0.61.0).
#
# Gemini expands a command at the beginning of its whole input alone, and takes all that follows for its arguments. So
# teamchat puts behind the prompt what Gemini would make of the command: the text of its file with the arguments in it.

RUNS = "!{"  # Gemini runs what follows as a shell command
_FILE = regex(r"@\{([^{}\n]*)\}")
DEEPEST = 80  # parts of a key


def find(typed: str, job: Job) -> Slash | None:
    """The command with its expanded text; one that would run a shell command has none."""
    name = command_name(typed)
    file = first_file(_files(name, job)) if name else None
    template = _prompt(file) if file else None
    if file is None or template is None:
        return None
    if RUNS in template:
        return Slash(typed, str(file), refused="it runs shell commands")
    return Slash(typed, str(file), _expanded(template, typed))


def _files(name: str, job: Job) -> Iterator[Path]:
    """A command of the project comes before one of the same name of the user's."""
    parts = f"{name.replace(':', '/')}.toml"
    if job.project_settings or trusts(job.cwd, job.env):
        yield job.cwd / ".gemini" / "commands" / parts
    yield gemini_folder(job.env) / "commands" / parts


def _prompt(file: Path) -> str | None:
    try:
        prompt = loads(read_regular_text(file, most=LARGEST), DEEPEST).get("prompt")
    except (OSError, ValueError):
        return None
    return prompt if isinstance(prompt, str) else None


def _expanded(template: str, typed: str) -> str:
    """As Gemini expands it: the arguments in place of `{{args}}`, or the whole command behind the text."""
    arguments = typed.split(maxsplit=1)[1:]
    text = _FILE.sub(lambda found: "@" + found[1].strip().replace(" ", "\\ "), template)
    if "{{args}}" in template:
        return text.replace("{{args}}", "".join(arguments))
    return f"{text}\n\n{typed}" if arguments else text


def with_command(stdin: bytes, slash: Slash) -> bytes:
    name = slash.typed.split()[0]
    return stdin + f"\n\nThe command {name} says:\n\n{slash.text}".encode()


# Whether Gemini CLI has a login, as far as that shows without running it (observed at 0.61.0).

GEMINI_SWITCHES = ("GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI")  # each before any key, if it is "true"
GEMINI_OTHERS = ("GOOGLE_GEMINI_BASE_URL", "CLOUD_SHELL")
GEMINI_FILES = ("oauth_creds.json", "gemini-credentials.json")


def gemini_login(cwd: Path, env: Mapping[str, str]) -> Login:
    """It takes GOOGLE_API_KEY for Vertex AI only. With a key and a stored login its settings choose between them."""
    folder = gemini_folder(env)
    found = next((file for name in GEMINI_FILES if is_there(file := folder / name)), None)
    if login := _of_gemini_variables(env):
        return replace(login, variables=None) if found else login
    if found:
        return stored(found)
    for file in (folder / ".env", folder.parent / ".env", folder / "settings.json"):
        if is_there(file):
            return Login(None, f"no GEMINI_API_KEY is set, but {file} may name a login")
    of_project = (path for folder in (cwd, *cwd.parents) for path in (folder / ".gemini" / ".env", folder / ".env"))
    if unread := next(filter(is_there, of_project), None):
        return Login(None, f"no GEMINI_API_KEY is set, and {unread} is read only with project_settings = true")
    hidden = " (GOOGLE_API_KEY counts for Vertex AI only)" if env.get("GOOGLE_API_KEY") else ""
    return Login(False, f"no GEMINI_API_KEY is set{hidden}, and no login is in {folder}", "gemini")


def _of_gemini_variables(env: Mapping[str, str]) -> Login | None:
    switch = next((name for name in GEMINI_SWITCHES if env.get(name) == "true"), None)
    if switch == "GOOGLE_GENAI_USE_VERTEXAI" and env.get("GOOGLE_API_KEY"):
        return Login(True, "GOOGLE_API_KEY is set, for Vertex AI", variables=("GOOGLE_API_KEY",))
    if switch:
        return elsewhere(env, (switch,))
    return variables_login(env, "GEMINI_API_KEY") or elsewhere(env, GEMINI_OTHERS)


# Gemini's sessions of a folder, from its own records (observed at 0.61.0).
#
# Gemini has no option that forks a session. It accepts a copy of the record under another name.

_LONGEST_PATH = 1 << 16  # bytes of the file that names a project's folder


def kept_in(env: Mapping[str, str], cwd: Path) -> Iterator[KeptSession]:
    """The sessions that Gemini finds in that folder, the newest first."""
    for file in sorted(_records(env, cwd), key=used_at, reverse=True)[:MOST]:
        session, first = _head(file)
        if session and first:
            yield KeptSession(session, used_at(file), first)


def forked(env: Mapping[str, str], cwd: Path, session: str) -> tuple[str, Mapping[Path, bytes]]:
    """The name of a copy of the session, and its record, which is to be written. No record if the session is gone."""
    name = str(uuid.uuid4())
    for file in _records(env, cwd):
        if _head(file)[0] == session:
            try:
                record = read_regular(file)
            except (OSError, ValueError):
                break
            copy = file.with_name(f"{file.stem.rpartition('-')[0]}-{name[:8]}.jsonl")
            return name, {copy: record.replace(session.encode(), name.encode())}
    return name, {}


def _records(env: Mapping[str, str], cwd: Path) -> Iterator[Path]:
    here = os.path.realpath(cwd)
    for root in gemini_folder(env).glob("tmp/*/.project_root"):
        try:
            project = read_regular_text(root, errors="replace", most=_LONGEST_PATH).strip()
        except (OSError, ValueError):
            continue
        if os.path.realpath(project) == here:
            yield from root.parent.glob("chats/session-*.jsonl")


def _head(file: Path) -> tuple[str | None, str | None]:
    """The name of the session, and its first prompt."""
    session = None
    for line in first_lines(file):
        match line:
            case {"sessionId": str(name), "kind": "main"}:
                session = name
            case {"type": "user", "content": content}:
                said = text_of(content).strip()
                if said and not said.startswith("<session_context>"):
                    return session, said
    return session, None


ACCESS: Mapping[Access, tuple[str, ...]] = MappingProxyType(
    {
        "read": ("--approval-mode", "default"),
        "edit": ("--approval-mode", "auto_edit"),
        "full": ("--approval-mode", "yolo"),
    }
)
ACCESS_NOTES: Mapping[Access, str] = MappingProxyType(
    {
        "read": "reads files of the workspace; may not write or run anything (--admin-policy)",
        "edit": "edits the workspace, runs what `allow` names, without a sandbox; your policies and folders widen it",
        "full": "may do everything (--approval-mode yolo)",
    }
)
SYSTEM_POLICIES = (Path("/etc/gemini-cli/policies"), Path("/Library/Application Support/GeminiCli/policies"))
_ENDS_A_PATH = regex(r"[\s\\,;!?()\[\]{}]")  # where no backslash stands before it
_MENTION = regex(mention(r"[^\s,;!?()\[\]{}]"), re.ASCII)  # an `@` right before one of these was seen to stay text
READS = "GEMINI.md of its folder and of the user, the user's "


class GeminiRunner(Runner):
    vendor = "gemini"
    limit = Limit(
        4_000_000
    )  # from 4,194,304 on it asks no model and ends well: a quarter of the characters are tokens to it
    stop = StopRule()  # the parent process ignores every soft signal; the group does not
    reports_denials = True
    reads_mentions = True
    images = Images(lambda path: "@" + _ENDS_A_PATH.sub(r"\\\g<0>", path))
    slash = SlashRule(find, with_command)
    edits = edits(lets=("files", ".claude", ".codex", ".gemini", "allowed"))
    access_notes = ACCESS_NOTES
    sessions = Sessions(
        system_each_time=False,
        live=False,
        open=lambda session, _cwd: ("--resume", session),
        stays_in="~/.gemini/tmp",
        keeps_all=True,
        kept=kept_in,
    )

    def prepare(self, prompt: str, *, typed: range, exists: Callable[[str], bool]) -> Prepared:  # noqa: ARG002
        """Every `@token` becomes inert: it may name a file, a part of a file's path, an agent or what a server has."""
        return inert(prompt, typed, _MENTION, lambda mention: escaped_mention(mention[0]))

    def command(self, job: Job) -> Command:
        argv = [*job.program, "--output-format", "stream-json", *ACCESS[job.access], *started(job)]
        # one process less, and signals reach it; and no folders of an editor whose terminal teamchat runs in
        env = {"GEMINI_CLI_NO_RELAUNCH": "true", "NO_COLOR": "1", "GEMINI_CLI_IDE_WORKSPACE_PATH": ""}
        files = {}
        if rules := policy(job):
            path = job.scratch / "policy.toml"
            files[path] = rules.encode()
            argv += ("--admin-policy", str(path))
        if job.project_settings:
            env["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
        else:
            # both: --skip-trust alone runs the project's hooks where the user once trusted the folder
            argv.append("--skip-trust")
            env["GEMINI_CLI_TRUST_WORKSPACE"] = "false"
        variables, modules = other_files(job, system_defaults(job))
        env |= variables
        files |= modules
        if job.model:
            argv += ("-m", job.model)
        if job.images:  # it reads nothing outside of its workspace
            folder = str(job.images[0].parent)
            if "," in folder:  # the option is split there, and an editor's folders at ":"
                env["GEMINI_CLI_IDE_WORKSPACE_PATH"] = folder
            else:
                argv += ("--include-directories", folder)
        if job.forks:
            session, copied = forked(job.env, job.cwd, job.forks)
            argv += ("--resume", session)
            files |= copied
        elif job.resumes:
            argv += ("--resume", job.resumes)
        return Command((*argv, *job.args), env, files)

    def parser(self) -> EventParser:
        return GeminiEvents()

    def refusal(self, access: Access, env: Mapping[str, str]) -> str | None:
        """Where `--admin-policy`, which bounds `read` and `edit`, would not be obeyed: a machine's policies replace it.

        That option is split at commas, also where it is repeated. For images, which `full` may have as well, there are
        two ways to name a folder: one is split at commas, the other at colons.
        """
        folder = env.get("TMPDIR", "")
        if "," in folder and (access != "full" or ":" in folder):
            return "Gemini splits a folder's name at a comma, and TMPDIR has one: set another TMPDIR"
        there = next((folder for folder in SYSTEM_POLICIES if access != "full" and any(folder.glob("*.toml"))), None)
        return f"the policies in {there} switch off --admin-policy, which bounds its tools" if there else None

    def reads_note(self, job: Job) -> str:
        servers = ("MCP servers",) if job.servers is None else ()
        users = listed("settings", *servers, "extensions")
        if job.project_settings:
            return f"{READS}{users}, and of the project {listed('settings', 'hooks', *servers)}"
        return f"{READS}{users}; not the project's hooks, settings and MCP servers"

    def unreadable(self, job: Job) -> Iterable[tuple[Path, str]]:
        return ((file, why) for file in settings_files(job) if (why := broken(file)))

    def servers(self, cwd: Path, env: Mapping[str, str]) -> Collection[str]:  # noqa: ARG002 (they are the same everywhere)
        return users_servers(env)

    def login(self, cwd: Path, env: Mapping[str, str]) -> Login | None:
        return gemini_login(cwd, env)
