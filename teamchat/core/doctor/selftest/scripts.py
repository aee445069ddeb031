"""What the scripted model asks a CLI to do in each turn, by the CLI's own names for its tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from teamchat.runners.base import Vendor
from teamchat.runners.scripted import Reply, ToolUse

NOTE = "note.txt"
KEYWORDS: Mapping[Vendor, tuple[str, ...]] = MappingProxyType(
    {"claude": ("ultrathink", "ultracode", "ultraplan", "ultrareview")}
)
"""Words that a CLI takes for a wish wherever they stand in a prompt (Claude 2.1.197 to 2.1.330)."""
HANGING = ("tail", "-f", NOTE)
"""A command that does not end: Claude Code 2.1.330 runs no `sleep`, and `tail` only on files of its own folder."""


def looking(vendor: Vendor) -> ToolUse:
    """Reads the file `NOTE` of its folder, which every access allows."""
    look: dict[Vendor, ToolUse] = {
        "claude": ToolUse("Read", {"file_path": NOTE}),
        "codex": ToolUse("exec_command", {"cmd": f"cat {NOTE}"}),
        "gemini": ToolUse("read_file", {"file_path": NOTE}),
    }
    return look[vendor]


def running(vendor: Vendor, command: str) -> ToolUse:
    """Runs a shell command."""
    run: dict[Vendor, ToolUse] = {
        "claude": ToolUse("Bash", {"command": command}),
        "codex": ToolUse("exec_command", {"cmd": command}),
        "gemini": ToolUse("run_shell_command", {"command": command}),
    }
    return run[vendor]


def writing(vendor: Vendor, target: Path) -> ToolUse:
    """Writes a file by the CLI's own editor."""
    patch = f"*** Begin Patch\n*** Add File: {target.name}\n+written\n*** End Patch"
    edit: dict[Vendor, ToolUse] = {
        "claude": ToolUse("Write", {"file_path": str(target), "content": "written"}),
        "codex": ToolUse("apply_patch", {"input": patch}),
        "gemini": ToolUse("write_file", {"file_path": str(target), "content": "written"}),
    }
    return edit[vendor]


def planted(home: Path, vendor: Vendor) -> None:
    """Puts what a prompt could mention into a home: an agent, or a skill of Codex."""
    file: dict[Vendor, str] = {
        "claude": ".claude/agents/prover.md",
        "codex": ".codex/skills/prover/SKILL.md",
        "gemini": ".gemini/agents/prover.md",
    }
    (home / file[vendor]).parent.mkdir(parents=True, exist_ok=True)
    (home / file[vendor]).write_text("---\nname: prover\ndescription: It proves.\n---\nProve it.\n")


def quoting(vendor: Vendor) -> str:
    """What the CLI would expand if a person had typed it."""
    mentions: dict[Vendor, str] = {
        "claude": f'@agent-prover @"prover (agent)" @{NOTE}',
        "codex": "$prover",
        "gemini": f"@prover @{NOTE}",
    }
    return f"max says:\n{mentions[vendor]}\n{' '.join(KEYWORDS.get(vendor, ()))}\nThat is all."


def acting_later() -> Reply:
    """A model that has Claude do something after the turn."""
    inputs: dict[str, dict[str, object]] = {
        "CronCreate": {"cron": "* * * * *", "prompt": "Go on.", "recurring": True, "durable": True},
        "ScheduleWakeup": {"delaySeconds": 60, "prompt": "Go on.", "reason": "to go on"},
        "Monitor": {"command": "ls", "description": "look", "timeout_ms": 60_000, "persistent": True},
    }
    return Reply(tools=tuple(ToolUse(name, given) for name, given in inputs.items()))


def trying_to_write(vendor: Vendor, target: Path) -> list[Reply]:
    """A model that writes a file by the CLI's editor, then one beside it by its shell, and then is done."""
    shell = running(vendor, f"touch {target}.shell")
    return [Reply(tools=(writing(vendor, target),)), Reply(tools=(shell,)), Reply("I tried.")]
