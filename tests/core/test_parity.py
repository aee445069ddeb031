"""What is known of members and plain CLIs: every difference has its reason, and the page shows what was measured."""

from __future__ import annotations

from teamchat.core.parity import ROWS, parity
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
