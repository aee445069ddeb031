"""What the scripted model asks a CLI to do in each turn, by the CLI's own names for its tools."""

from __future__ import annotations

from pathlib import Path

from teamchat.runners.scripted import Reply
from teamchat.runners.selftest import NOTE, SelfTest

HANGING = ("tail", "-f", NOTE)
"""A command that never ends. Claude Code 2.1.330 runs no `sleep`, and `tail` only on files of its own folder."""


def plant(home: Path, test: SelfTest) -> None:
    """Put something that a prompt can mention into a home: an agent or a skill."""
    file = home / test.prover
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("---\nname: prover\ndescription: It proves.\n---\nProve it.\n")


def quoting(test: SelfTest) -> str:
    """Text that the CLI would expand if a person had typed it."""
    return f"max says:\n{test.mentions}\n{' '.join(test.keywords)}\nThat is all."


def trying_to_write(test: SelfTest, target: Path) -> list[Reply]:
    """A model that writes a file with the CLI's editor, then one beside it with its shell, and then is done."""
    shell = test.running(f"touch {target}.shell")
    return [Reply(tools=(test.writing(target),)), Reply(tools=(shell,)), Reply("I tried.")]
