"""The ledger that teamchat ships, and what is made of it."""

from __future__ import annotations

import json

import pytest

from teamchat.core.agents import AGENT_TYPES
from teamchat.core.doctor.versions import ledger, newest_proven, reports_denials, shortfalls
from teamchat.runners.base import Vendor
from tests.real import ledger as made
from tests.real.clis import PINNED, VENDORS, in_words, parsed
from tests.real.proof.findings import ORDER

HOLDS = {"flags": {"state": "ok"}, "stop": {"state": "warning", "text": "killed"}, "denials": {"state": "ok"}}
OWN = {
    "claude": {
        "2.10.0": {**HOLDS, "denials": {"state": "unknown", "text": "not known"}},
        "2.9.0": {**HOLDS, "flags": {"state": "failed", "text": "refused"}},
        "2.8.0": HOLDS,
        "2.1.0": HOLDS,
    },
    "codex": {"1.0.0": HOLDS},
    "gemini": {"1.0.0": {**HOLDS, "stays": {"state": "ok"}}},
}


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teamchat.core.doctor.versions.ledger", lambda: OWN)


@pytest.mark.parametrize("vendor", VENDORS)
def test_three_versions_of_each_cli_are_in_it_with_every_row(vendor: Vendor) -> None:
    versions = ledger()[vendor]
    assert len(versions) >= 3
    only = {**dict.fromkeys(("stays", "later", "keywords"), "claude"), "dotenv": "gemini"}
    rows = [what for what in ORDER if what != "time" and only.get(what, vendor) == vendor]
    for found in versions.values():
        assert list(found) == rows
        assert all(("text" in row) is (row["state"] != "ok") for row in found.values())


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_pinned_version_is_proven_and_the_one_that_the_runner_knows(vendor: Vendor) -> None:
    assert shortfalls(vendor, PINNED[vendor]) == ()
    assert AGENT_TYPES[vendor].row.proven == (PINNED[vendor],)


def test_the_page_has_the_tables_of_the_data() -> None:
    text = made.PAGE.read_text(encoding="utf-8")
    assert made.page(text, made.rendered(ledger())) == text


def test_the_data_is_what_would_be_written() -> None:
    assert made.dumped(ledger()) == made.DATA.read_text(encoding="utf-8")


@pytest.mark.usefixtures("own")
def test_the_newest_proven_version_is_the_greatest_that_holds_in_every_row() -> None:
    assert newest_proven("claude") == "2.8.0"
    assert shortfalls("claude", "2.10.0") == ("denials",)
    assert shortfalls("claude", "2.9.0") == ("flags",)
    assert shortfalls("claude", "2.8.0") == ()
    assert shortfalls("claude", "2.8.1") is None


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("vendor", "version", "believed"),
    [
        ("claude", "2.8.0", True),
        ("claude", "2.9.0", True),  # what does not hold has nothing to do with refusals
        ("claude", "2.10.0", False),
        ("claude", "2.11.0", False),
        ("claude", None, False),
        ("codex", "1.0.0", False),  # no version of it tells every refusal
        ("gemini", "1.0.0", True),
    ],
)
def test_no_refusal_is_believed_of_a_version_that_is_known_to_tell_them(
    vendor: Vendor, version: str | None, believed: bool
) -> None:
    assert reports_denials(AGENT_TYPES[vendor].runner, version) is believed


def test_a_program_on_a_pipe_reports_no_refusals() -> None:
    assert not reports_denials(AGENT_TYPES["plain"].runner, "1.0.0")


@pytest.mark.usefixtures("own")
def test_the_tables_have_a_mark_for_each_row_and_a_line_for_what_does_not_hold() -> None:
    assert (
        made.rendered(json.loads(json.dumps(OWN)))
        == """\
## claude

The newest proven version is 2.8.0.

| version | flags | stop | denials |
|---|---|---|---|
| 2.10.0 | ✓ | ! | ? |
| 2.9.0 | ✗ | ! | ✓ |
| 2.8.0 | ✓ | ! | ✓ |
| 2.1.0 | ✓ | ! | ✓ |

- 2.10.0, stop: killed
- 2.10.0, denials: not known
- 2.9.0, flags: refused
- 2.9.0, stop: killed
- 2.8.0, stop: killed
- 2.1.0, stop: killed

## codex

The newest proven version is 1.0.0.

| version | flags | stop | denials |
|---|---|---|---|
| 1.0.0 | ✓ | ! | ✓ |

- 1.0.0, stop: killed

## gemini

The newest proven version is 1.0.0.

| version | flags | stays | stop | denials |
|---|---|---|---|---|
| 1.0.0 | ✓ | ✓ | ! | ✓ |

- 1.0.0, stop: killed
"""
    )


def test_a_set_of_versions_is_told_by_words() -> None:
    assert parsed(in_words(PINNED).split()) == PINNED
    assert parsed(["codex=1.2.3"]) == {"codex": "1.2.3"}
    with pytest.raises(ValueError, match="no CLI is called 'cody'"):
        parsed(["cody=1"])
