"""What people type because other programs have it, turned into the command that does it."""

from __future__ import annotations


def meant(args: list[str]) -> list[str]:
    """The arguments as they are, or those that were probably meant by a command that is not there."""
    match args:
        case ["version"] | ["-V"]:
            return ["--version"]
        case ["status", *options]:
            return ["log", "-n", "1", *options]
        case ["ls", *options] | ["sessions", "list" | "ls", *options]:
            return ["sessions", *options]
        case ["log", number, *options] if number.isdecimal():
            return ["log", "-n", number, *options]
    return args
