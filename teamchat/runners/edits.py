"""The actions that `access = "edit"` lets a member do, by kinds, with a row for each CLI (`Runner.edits`).

The real tier tries each of them in a turn and compares (`tests/real/test_edits.py`). `teamchat team`, `teamchat doctor`
and the manual print these rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

Kind = Literal[
    "files", "looking", "file commands", "redirections", "modes", "programs", "commits", "network", "outside",
    "links", ".git", "inner .git", ".claude", ".codex", ".gemini", ".vscode", "allowed", "allowed redirections",
]  # fmt: skip
Doing = Literal["lets", "refuses", "fails"]
"""The action succeeds; it fails, and the receipt counts it as denied; it fails, and only the model learns it."""
Edits: TypeAlias = Mapping[Kind, Doing]

KINDS: Mapping[Kind, str] = MappingProxyType(
    {
        "files": "create and change files by its edit tool",
        "looking": "`ls`, `cat`, `git log`",
        "file commands": "`mkdir`, `touch`, `cp`, `mv`, `rm`, `sed -i`",
        "redirections": "`echo x > FILE`",
        "modes": "`chmod`, `ln -s`",
        "programs": "`node -e`, `sh FILE`, tests",
        "commits": "`git commit`, `git checkout`",
        "network": "a connection, also to this machine",
        "outside": "write outside of the workspace",
        "links": "write through a link that leads outside",
        ".git": "write in `.git`",
        "inner .git": "write in the `.git` of a repository inside of the workspace",
        ".claude": "write in `.claude`",
        ".codex": "write in `.codex`",
        ".gemini": "write in `.gemini`",
        ".vscode": "write in `.vscode`",
        "allowed": "a program that `allow` names writes outside",
        "allowed redirections": "a command that `allow` names writes outside by `>`",
    }
)


def edits(*, lets: tuple[Kind, ...] = (), fails: tuple[Kind, ...] = ()) -> Edits:
    """Build a row. An action that is in neither group is refused."""
    doing: Mapping[Kind, Doing] = {**dict.fromkeys(lets, "lets"), **dict.fromkeys(fails, "fails")}
    return MappingProxyType({kind: doing.get(kind, "refuses") for kind in KINDS})


def in_words(row: Edits) -> Iterator[tuple[str, str]]:
    """Write the row's allowed and refused actions, each as one line."""
    for name, let in (("lets", True), ("refuses", False)):
        yield name, "; ".join(KINDS[kind] for kind, doing in row.items() if (doing == "lets") is let).replace("`", "")
