"""Gemini's custom commands that a person calls by `/name` (observed at 0.61.0).

Gemini expands a command at the beginning of its whole input alone, and takes all that follows for its arguments. So
teamchat puts Gemini's expansion of the command behind the prompt: the text of its file with the arguments in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from teamchat.patterns import regex
from teamchat.runners.base import Job, Slash
from teamchat.runners.gemini.folder_trust import trusts
from teamchat.runners.homes.folders import gemini_folder
from teamchat.runners.slash_commands import LARGEST, command_name, first_file
from teamchat.runners.untrusted.regular_files import read_regular_text
from teamchat.runners.untrusted.toml import loads

RUNS = "!{"  # Gemini runs what follows as a shell command
_FILE = regex(r"@\{([^{}\n]*)\}")
DEEPEST = 80  # parts of a key


def find(typed: str, job: Job) -> Slash | None:
    """Find the command with its expanded text; one that would run a shell command is refused."""
    name = command_name(typed)
    file = first_file(_files(name, job)) if name else None
    template = _prompt(file) if file else None
    if file is None or template is None:
        return None
    if RUNS in template:
        return Slash(typed, str(file), refused="it runs shell commands")
    return Slash(typed, str(file), _expanded(template, typed))


def _files(name: str, job: Job) -> Iterator[Path]:
    """List the files that may define the command; one of the project comes before the user's of the same name."""
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
    """Expand it as Gemini does: the arguments in place of `{{args}}`, or the whole command behind the text."""
    arguments = typed.split(maxsplit=1)[1:]
    text = _FILE.sub(lambda found: "@" + found[1].strip().replace(" ", "\\ "), template)
    if "{{args}}" in template:
        return text.replace("{{args}}", "".join(arguments))
    return f"{text}\n\n{typed}" if arguments else text


def with_command(stdin: bytes, slash: Slash) -> bytes:
    name = slash.typed.split()[0]
    return stdin + f"\n\nThe command {name} says:\n\n{slash.text}".encode()
