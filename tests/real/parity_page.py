"""docs/parity.md: the table of what was measured, and why a member differs from the plain CLI."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from teamchat.core.doctor.parity import ROWS, Mode, parity
from teamchat.runners.base import Access, Vendor

BEGIN, END = "<!-- made by `make parity` -->\n", "<!-- end of what is made -->\n"
ACCESSES: tuple[Access, ...] = ("read", "edit", "full")
MODES: tuple[Mode, ...] = ("plain", *ACCESSES)
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini", "opencode")


@dataclass(frozen=True, slots=True)
class Explained:
    """Why these rows differ for these CLIs and accesses, and the key of the team file that changes it."""

    text: str
    key: str
    rows: tuple[str, ...]
    accesses: tuple[Access, ...] = ("read",)
    vendors: tuple[Vendor, ...] = VENDORS

    def holds(self, vendor: Vendor, row: str, access: Access) -> bool:
        return row in self.rows and access in self.accesses and vendor in self.vendors


EXPLANATIONS: tuple[Explained, ...] = (
    Explained(
        "`read` has no tool that writes or runs anything, whatever your own rules allow. Codex has a shell that can"
        " neither write nor reach a network.",
        '`access = "edit"`',
        ("write", "shell", "run", "expand", "rules-user", "variables", "plan", "notebook", "background"),
    ),
    Explained(
        "Git runs in the shell. `read` and `edit` of opencode have no shell, and `edit` of Gemini only runs what"
        " `allow` names.",
        "`git = true`, teamchat's own read-only git; `allow`",
        ("git",),
        ("read", "edit"),
    ),
    Explained(
        "`edit` of Claude and Gemini runs only what `allow` and your own rules name. It asks nobody.",
        "`allow`",
        ("run", "expand", "network"),
        ("edit",),
        ("claude", "gemini"),
    ),
    Explained(
        "`edit` of opencode runs nothing, whatever your own rules allow: it cannot be held to a list of commands.",
        '`access = "full"`',
        ("shell", "run", "expand", "rules-user", "variables", "network"),
        ("edit",),
        ("opencode",),
    ),
    Explained(
        "Under `read` and `edit`, opencode stays in the workspace, except that it follows links out of it.",
        '`access = "full"`',
        ("directories",),
        ("read", "edit"),
        ("opencode",),
    ),
    Explained(
        "`read` reaches no network, and neither does the sandbox of Codex.",
        '`access = "full"`',
        ("network",),
        ("read", "edit"),
    ),
    Explained(
        "Without the key only `full` searches and fetches: a file could tell a member to send what it has read.",
        "`web = true`",
        ("web-search", "web-fetch"),
        ("read", "edit"),
    ),
    Explained(
        "No CLI limits what an MCP server does.",
        '`mcp = ["name"]`; `access = "edit"` for those of plugins and extensions',
        ("mcp-user", "mcp-plugin"),
    ),
    Explained(
        "A cloned project's own configuration could run commands, so it is off.",
        "`project_settings = true`",
        ("mcp-project", "hooks-project", "rules-project"),
        ("read", "edit", "full"),
    ),
    Explained(
        "Codex takes a project's subagents for a part of its configuration.",
        "`project_settings = true`",
        ("subagents-project",),
        ("read", "edit", "full"),
        ("codex",),
    ),
    Explained(
        "`read` has no tool that calls them, because they bring tools of their own.",
        '`access = "edit"`',
        ("subagents", "subagents-user", "subagents-project", "skills", "skills-user", "skills-project"),
    ),
    Explained(
        "Subagents of opencode have permissions of their own.",
        '`access = "full"`',
        ("subagents", "subagents-user", "subagents-project"),
        ("edit",),
        ("opencode",),
    ),
    Explained(
        "opencode loads a project's whole configuration or none of it.",
        "`project_settings = true`",
        ("subagents-project", "skills-project"),
        ("edit", "full"),
        ("opencode",),
    ),
    Explained(
        "Gemini offers it in its yolo mode only.",
        '`access = "full"`',
        ("todo", "skills", "background"),
        ("read", "edit"),
        ("gemini",),
    ),
    Explained(
        "It would act between turns, without a receipt.", "none", ("later",), ("read", "edit", "full"), ("claude",)
    ),
)


def explanation(vendor: Vendor, row: str, access: Access) -> int | None:
    """The number of what explains that difference, as the page has it; None where nothing does."""
    numbers = (number for number, one in enumerate(EXPLANATIONS, 1) if one.holds(vendor, row, access))
    return next(numbers, None)


def differs(vendor: Vendor, row: str, access: Access) -> bool:
    """Whether a member of that access has it where the plain CLI has not, or has it not where that has."""
    held = parity()[vendor][row]
    return held[access] != held["plain"]


def differences() -> Iterator[tuple[Vendor, str, Access]]:
    for vendor in VENDORS:
        for row in ROWS:
            yield from ((vendor, row, access) for access in ACCESSES if differs(vendor, row, access))


def rendered() -> str:
    head = ["", *(f"{vendor} {mode}" if mode == "plain" else mode for vendor in VENDORS for mode in MODES)]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {label} | {' | '.join(_cells(row))} |" for row, label in ROWS.items()]
    told = [f"{number}. {one.text} Key: {one.key}." for number, one in enumerate(EXPLANATIONS, 1)]
    return "\n".join([*lines, "", *told]) + "\n"


def _cells(row: str) -> Iterator[str]:
    for vendor in VENDORS:
        held = parity()[vendor][row]
        for mode in MODES:
            mark = "✓" if held[mode] else "–" if any(held.values()) else ""
            number = explanation(vendor, row, mode) if mode != "plain" and differs(vendor, row, mode) else None
            yield f"{mark} {number}" if number else mark


def page(text: str) -> str:
    """The page with the table in place of its own."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{rendered()}\n{END}{rest.partition(END)[2]}"
