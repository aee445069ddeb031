"""What is known of members and plain CLIs: every difference has its reason, and the page shows what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.core.doctor.parity import ROWS, features_without, parity
from teamchat.core.team.team import BUILTIN_AGENTS, AgentSpec
from teamchat.runners.base import Access, Job, Vendor
from tests.program import ROOT
from tests.real.parity_page import EXPLANATIONS, MODES, VENDORS, differences, explanation, page


def test_every_row_was_measured_for_every_cli() -> None:
    assert {vendor: list(held) for vendor, held in parity().items()} == {vendor: list(ROWS) for vendor in VENDORS}
    assert {tuple(held) for rows in parity().values() for held in rows.values()} == {MODES}


def test_every_difference_has_a_reason_with_a_key_and_every_reason_a_difference() -> None:
    found = {one: explanation(*one) for one in differences()}
    assert [one for one, number in found.items() if number is None] == []
    assert set(found.values()) == set(range(1, len(EXPLANATIONS) + 1))


def test_the_page_shows_what_was_measured() -> None:
    text = (ROOT / "docs" / "parity.md").read_text(encoding="utf-8")
    assert text == page(text), "make parity"


AGENTS = {agent.protocol: agent for agent in BUILTIN_AGENTS.values()}
OTHERS = "the project's instructions (except CLAUDE.md of its folder), skills and subagents"


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A turn of a user with two MCP servers in each CLI."""
    servers = {"one": {"command": "x"}, "two": {"command": "y"}}
    tables = "".join(f'[mcp_servers.{name}]\ncommand = "x"\n' for name in servers)
    files = {".claude.json": json.dumps({"mcpServers": servers}), ".codex/config.toml": tables,
             ".gemini/settings.json": json.dumps({"mcpServers": servers})}  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return Job(("cli",), tmp_path / "work", tmp_path / "scratch", env={"HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("vendor", "access", "lacks"),
    [
        ("claude", "read", ("git", "web", "subagents", "skills", "MCP (2 servers)", OTHERS)),
        ("claude", "edit", ("web", OTHERS)),
        ("claude", "full", (OTHERS,)),
        ("codex", "read", ("web", "MCP (2 servers)")),
        ("codex", "edit", ("web",)),
        ("codex", "full", ()),
        ("gemini", "read", ("git", "web", "subagents", "skills", "todo list", "MCP (2 servers)")),
        ("gemini", "edit", ("git", "web", "skills", "todo list")),
        ("gemini", "full", ()),
    ],
)
def test_a_member_is_told_what_it_lacks(job: Job, vendor: Vendor, access: Access, lacks: tuple[str, ...]) -> None:
    assert features_without(AGENTS[vendor], replace(job, access=access)) == lacks


def test_its_keys_give_it_back(job: Job) -> None:
    given = replace(job, web=True, git=Path("git"), mcp=("one",), project_settings=True)
    assert features_without(AGENTS["claude"], given) == ("subagents", "skills", "MCP (1 server)")
    assert features_without(AGENTS["claude"], replace(given, mcp=("one", "two"), access="edit")) == ()


def test_of_other_programs_nothing_is_known(job: Job) -> None:
    assert features_without(AgentSpec("wrapped", ("wrapper", "claude"), "claude"), job) == ()
    assert features_without(AgentSpec("local", ("ollama",), "plain"), job) == ()
