"""What the scripted model asks a CLI to do in each turn, by the CLI's own names for its tools."""

from __future__ import annotations

from pathlib import Path

from teamchat.core.scripted.reply import Reply, ToolUse
from teamchat.runners.base import Vendor

NOTE = "note.txt"
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


def trying_to_write(vendor: Vendor, target: Path) -> list[Reply]:
    """A model that writes a file by the CLI's editor, then one beside it by its shell, and then is done."""
    shell = running(vendor, f"touch {target}.shell")
    return [Reply(tools=(writing(vendor, target),)), Reply(tools=(shell,)), Reply("I tried.")]
