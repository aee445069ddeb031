"""What is told about the newest versions of the CLIs, by a fake npm: it fails nothing, and nothing is passed over."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.installed import install, program
from tests.real import clis, newest

REPORT = """<testsuites><testsuite>
<testcase name="holds"><properties><property name="ran" value="[1]"/></properties></testcase>
<testcase name="breaks"><failure message="AssertionError: no&#10;more of it"/></testcase>
<testcase name="left_out"><skipped message="npm is not installed"/></testcase>
<testcase name="twice"><failure message="one"/><error message="two"/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def npm(world: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An npm that knows the pinned versions and installs nothing; its cache is the test's own."""
    monkeypatch.setattr(clis, "CACHE", world / "cache")
    folder = install(world, monkeypatch)
    versions = "".join(f'*{clis._package(name)}*) echo "{version}";;\n' for name, version in clis.PINNED.items())
    return program(folder / "npm", f'test "$1" = view || exit 1\ncase "$2" in\n{versions}esac')


@pytest.mark.usefixtures("npm")
def test_the_newest_that_are_the_pinned_ones_are_not_run_twice() -> None:
    words = clis.in_words(clis.PINNED)
    assert list(newest.told(clis.PINNED)) == [f"newest CLIs: {words}: they are the pinned ones, nothing is run twice"]


@pytest.mark.usefixtures("npm")
def test_a_set_that_cannot_be_installed_is_said() -> None:
    pinned = {**clis.PINNED, "claude": "2.0.0"}
    first, second = newest.told(pinned)
    assert first == f"newest CLIs: {clis.in_words(clis.PINNED)} (pinned: {clis.in_words(pinned)})"
    assert second.startswith("newest CLIs: not tried, or not to the end: npm install failed")


def test_a_set_that_cannot_be_looked_up_is_said(npm: Path) -> None:
    program(npm, "echo 'no network' >&2; exit 1")
    (line,) = newest.told(clis.PINNED)
    assert line == "newest CLIs: not tried, or not to the end: npm view failed: no network"


def test_without_npm_that_is_said(npm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(npm.parent / "nowhere"))
    (line,) = newest.told(clis.PINNED)
    assert line == "newest CLIs: not tried, or not to the end: npm is not installed"


def test_each_core_test_that_does_not_hold_is_one_line_and_what_one_records() -> None:
    assert list(newest.read(ET.fromstring(REPORT), "core")) == [  # noqa: S314 (it stands above)
        "  core tests: 1 of 4 hold",
        "  breaks: AssertionError: no",
        "  left_out: npm is not installed",
        "  twice: one",
        "  twice: two",
        "  holds: ran: [1]",
    ]


def test_a_version_is_installed_once_and_what_broke_off_is_not_taken_for_it(npm: Path) -> None:
    cache, made = clis.CACHE, 'mkdir -p "$3/node_modules/.bin"; echo once >> "$3/../times"'
    (cache / "codex-1.2.3").mkdir(parents=True)  # of no use, so that installing over it fails and says so
    program(npm, f"{made}; exit 1")
    with pytest.raises(clis.Unavailable):
        clis.installed({"codex": "1.2.3"})
    assert not (cache / "codex-1.2.3" / "node_modules").exists()
    program(npm, f'{made}; touch "$3/node_modules/.bin/codex"')
    for _ in range(2):
        assert clis.installed({"codex": "1.2.3"}) == str(cache / "codex-1.2.3" / "node_modules" / ".bin")
    assert (cache / "times").read_text() == "once\n" * 2
