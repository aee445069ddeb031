"""The names of Codex's skills, as far as files tell them (observed at 0.169.0).

A prompt that has `$name` of a skill gets all of its SKILL.md. The file gives the name, and not its folder. A skill of a
plugin is called `plugin:name`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path

from teamchat.patterns import regex
from teamchat.runners.codex.configuration import home
from teamchat.runners.untrusted.regular_files import open_regular

DEEPEST_SKILL = 6  # folders below one of the places, as Codex itself looks; a plugin's skills lie deeper
MOST_SKILLS = 2000  # folders that are looked into in one place
HEAD = 16 * 1024  # bytes of a file that may have its name
EVERY = "*"  # stands for any name: that of a skill whose own cannot be told
_NAME = regex(r"^name:[ \t]*(?P<quote>[\"']?)(?P<name>[\w:-]+)(?P=quote)[ \t\r]*$", re.MULTILINE | re.ASCII)


def known_skills(cwd: Path, env: Mapping[str, str]) -> Callable[[str], bool]:
    """Return a function that tells whether a mention names a skill that Codex would find from `cwd`.

    It searches at its first call.
    """
    names = cache(lambda: skill_names(cwd, env))
    return lambda mention: mention.startswith("$") and is_skill(mention, names())


def skill_names(cwd: Path, env: Mapping[str, str]) -> frozenset[str]:
    """List the names of the skills that Codex would find from `cwd`: a prompt may mention them."""
    return frozenset(name for place in _places(cwd, env) for name in _names_in(place))


def is_skill(mention: str, names: frozenset[str]) -> bool:
    """Whether `mention` (`$name`, `$plugin:name`) names a skill in `names`."""
    name = mention.removeprefix("$")
    return EVERY in names or name in names or name.rpartition(":")[2] in names


def _places(cwd: Path, env: Mapping[str, str]) -> Iterator[Path]:
    yield from (home(env) / "skills", home(env) / "plugins", Path("/etc/codex/skills"))
    yield Path(env.get("HOME", "/nonexistent")) / ".agents" / "skills"
    for folder in (cwd, *cwd.parents):
        yield from (folder / name / "skills" for name in (".codex", ".agents"))


def _names_in(place: Path) -> Iterator[str]:
    deepest = len(place.parts) + DEEPEST_SKILL * (2 if place.name == "plugins" else 1)
    walk = os.walk(place, followlinks=True)
    for folder, below, files in islice(walk, MOST_SKILLS):
        if "SKILL.md" in files:
            yield from _names_of(Path(folder))
        if len(Path(folder).parts) >= deepest:
            below.clear()
    if next(walk, None):
        yield EVERY


def _names_of(folder: Path) -> Iterator[str]:
    yield folder.name
    try:
        with open_regular(folder / "SKILL.md") as file:
            head = file.read(HEAD).decode(errors="replace").replace("\r", "\n")
    except OSError:
        return  # Codex cannot read it either
    names = [match["name"] for match in _NAME.finditer(head)]
    yield from names or (EVERY,)
