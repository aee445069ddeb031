"""Claude's custom commands and skills that a person calls by `/name` (observed at 2.1.330).

Claude expands a command at the beginning of the last block of a message, and nothing in the blocks before it: so
the prompt goes as one block, and the command as another one behind it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from teamchat.runners.base import Job, Slash
from teamchat.runners.claude.folders import folders, version_of
from teamchat.runners.claude.project import shows
from teamchat.runners.homes.folders import claude_folder
from teamchat.runners.slash_commands import command_name, first_file

SINCE = (2, 1, 260)  # the oldest version that was seen to expand it so; 2.1.197 answers no message that ends its input
TOO_OLD = "Claude Code before 2.1.260 does not expand it behind a prompt"
_BLOCKS = b'{"type": "user", "message": {"role": "user", "content": ['


def find(typed: str, job: Job) -> Slash | None:
    name = command_name(typed)
    file = first_file(_files(name, job)) if name else None
    if file is None:
        return None
    version = version_of(job.program[0], job.env)
    return Slash(typed, str(file), refused=TOO_OLD if version and version < SINCE else None)


def _files(name: str, job: Job) -> Iterator[Path]:
    places = [claude_folder(job.env)]
    if job.project_settings or shows(job):
        places += (folder / ".claude" for folder in folders(job.cwd))
    for folder in places:
        yield folder / "commands" / f"{name.replace(':', '/')}.md"
        yield folder / "skills" / name / "SKILL.md"


def with_command(stdin: bytes, slash: Slash) -> bytes:
    """Build the line of input that has the prompt and, as a block of its own, the command."""
    return _line([{"type": "text", "text": text} for text in (stdin.decode(), slash.typed)])


def input_line(stdin: bytes) -> bytes:
    """Build the line of input for a process that stays; a line of `with_command` is returned unchanged.

    No prompt begins like such a line: a heading opens it.
    """
    return stdin if stdin.startswith(_BLOCKS) else _line(stdin.decode())


def _line(content: str | list[Mapping[str, str]]) -> bytes:
    message = {"type": "user", "message": {"role": "user", "content": content}}
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"
