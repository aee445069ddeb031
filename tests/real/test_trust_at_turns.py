"""A real CLI that may edit rewrites the program of another member, and a file that other tools run."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply, ToolUse
from tests.real.world import MEMBERS, World

pytestmark = pytest.mark.real
EVIL = "touch pwned\necho Theirs.\n"
AL = '[[members]]\nname = "al"\nagent = "own"\n[agents.own]\ncommand = ["sh", "al.sh"]\n'


RUNS: dict[Vendor, str] = {"claude": "Makefile", "codex": "Makefile", "gemini": "justfile"}
"""What each is to write; Gemini 0.61.0 itself refuses a Makefile and what lies in .vscode under `edit`."""


def rewriting(vendor: Vendor, folder: Path) -> list[Reply]:
    """A model that writes al.sh and what other tools run: Codex by its shell, the others by their editors."""
    script, runs = str(folder / "al.sh"), str(folder / RUNS[vendor])
    uses: dict[Vendor, tuple[ToolUse, ...]] = {
        "claude": (
            ToolUse("Read", {"file_path": script}),
            ToolUse("Write", {"file_path": script, "content": EVIL}),
            ToolUse("Write", {"file_path": runs, "content": "{}"}),
        ),
        "codex": (ToolUse("exec_command", {"cmd": "printf 'touch pwned\\n' > al.sh; echo all: > Makefile"}),),
        "gemini": (
            ToolUse("write_file", {"file_path": script, "content": EVIL}),
            ToolUse("write_file", {"file_path": runs, "content": "{}"}),
        ),
    }
    return [*(Reply(tools=(use,)) for use in uses[vendor]), Reply("Done. [NEXT: al]")]


@pytest.mark.parametrize("vendor", ["claude", "codex", "gemini"])
def test_a_rewritten_program_does_not_run_and_what_others_run_is_marked(user: World, vendor: Vendor) -> None:
    (user.cwd / "al.sh").write_text("echo Mine.\n")
    name = user.member(vendor, f'access = "edit"\n{AL}')
    user.server.script(vendor, rewriting(vendor, user.cwd))
    ran = user.json("send", "--trust", f"[NEXT: {name}] Go")
    assert "touch pwned" in (user.cwd / "al.sh").read_text(), ran.err
    assert (ran.code, [route["target"] for route in ran.result["held"]]) == (5, ["al"]), ran.out
    assert ran.result["reason"].endswith("has changed since you trusted it: al.sh has changed")
    assert ran.result["hint"] == "teamchat trust && teamchat resume"
    assert not (user.cwd / "pwned").exists()
    assert user.receipt(1)["outcome"]["files_that_run"] == [RUNS[vendor]]
    warnings = [event["text"] for event in ran.events if event["type"] == "warning"]
    assert f"{MEMBERS[vendor]} changed files that run things: {RUNS[vendor]}" in warnings
