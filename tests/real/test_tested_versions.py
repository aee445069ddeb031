"""`doctor` over the real CLIs: their versions are the tested ones, and no model hears of it."""

from __future__ import annotations

import pytest

from teamchat.runners.base import Vendor
from tests.real.world import World

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")


def test_the_pinned_clis_are_the_tested_ones_and_have_their_keys(user: World) -> None:
    user.team()
    ran = user.json("doctor")
    assert ran.code == 0, ran.out
    states = {(row["member"], row["what"]): row["state"] for row in ran.events[:-1]}
    for member in ("max", "sarah", "carol"):
        assert [states[member, what] for what in ("program", "version", "login")] == ["ok"] * 3
    assert [user.server.turns(vendor) for vendor in VENDORS] == [[], [], []]
