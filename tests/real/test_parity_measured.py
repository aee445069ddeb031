"""The table of docs/parity.md holds for the CLIs of this run, as far as one start of each shows."""

from __future__ import annotations

import pytest

from teamchat.core.doctor.parity import parity
from teamchat.runners.base import Vendor
from tests.real.parity import measured

pytestmark = pytest.mark.real


@pytest.mark.parametrize("vendor", ["claude", "codex", "gemini", "opencode"])
def test_members_have_what_the_table_says(programs: str, vendor: Vendor) -> None:
    found = measured(vendor, programs, whole=False)
    known = parity()[vendor]
    assert found == {row: known[row] for row in found}
