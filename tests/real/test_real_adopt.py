"""A member of each real CLI continues a copy of what a person began there, and the original stays as it was."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.server import messages
from tests.real.model.table import MODELS
from tests.real.world import TIMEOUT_S, World

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
BY_HAND: dict[Vendor, list[str]] = {
    "claude": ["claude", "-p", "--model", MODELS["claude"]],
    "codex": ["codex", "exec", "--skip-git-repo-check", "-m", MODELS["codex"], "-"],
    "gemini": ["gemini", "--skip-trust", "-m", MODELS["gemini"]],
}
RECORDS = {
    "claude": ".claude/projects/**/*.jsonl",
    "codex": ".codex/sessions/**/*.jsonl",
    "gemini": ".gemini/tmp/**/session-*.jsonl",
}


def by_hand(user: World, vendor: Vendor, said: str) -> None:
    """What a person says to the CLI without teamchat."""
    argv, env = BY_HAND[vendor], dict(user.env)
    done = subprocess.run(
        argv, cwd=user.cwd, env=env, input=said.encode(), capture_output=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def records(user: World, vendor: Vendor) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in Path(user.env["HOME"]).glob(RECORDS[vendor])}


def heard(user: World, vendor: Vendor) -> str:
    return "\n".join(message.text for message in messages(user.last(vendor)))


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_member_continues_a_copy_of_what_a_person_began(user: World, vendor: Vendor) -> None:
    name = user.member(vendor, 'memory = "resume"')
    by_hand(user, vendor, "The password is xyzzy-17.")
    before = records(user, vendor)
    assert len(before) == 1
    listed = user("adopt", name)
    assert listed.code == 0, listed.err
    assert "The password is xyzzy-17." in listed.out
    adopted = user("adopt", name, "--last")
    assert adopted.code == 0, adopted.err
    assert "whose words the others do not see: The password is xyzzy-17." in adopted.err

    ran = user.json("send", "First question.", "--to", name)
    assert ran.code == 0, ran.err
    whole = heard(user, vendor)
    assert (whole.count("xyzzy-17"), whole.count("First question.")) == (
        2,
        1,
    )  # once more in the message that tells of it
    assert whole.index("xyzzy-17") < whole.index("First question.")
    assert {file: content for file, content in records(user, vendor).items() if file in before} == before
    assert (ran.result["usage"]["input_tokens"], ran.result["usage"]["output_tokens"]) == (11, 7)

    ran = user.json("send", "Second question.", "--to", name)
    assert ran.code == 0, ran.err
    whole = heard(user, vendor)
    assert {text: whole.count(text) for text in ("First question.", "Second question.")} == {
        "First question.": 1,
        "Second question.": 1,
    }
    assert "xyzzy-17" in whole
    assert "First question." not in user.prompt(vendor)
    assert (ran.result["usage"]["input_tokens"], ran.result["usage"]["output_tokens"]) == (11, 7)
    assert {file: content for file, content in records(user, vendor).items() if file in before} == before
    first, second = user.turns
    assert (first.setup.adopted is not None, second.setup.resumes) == (True, first.vendor_session)
    assert first.vendor_session != first.setup.adopted


@pytest.mark.parametrize("vendor", VENDORS)
def test_after_an_undo_the_member_continues_another_copy(user: World, vendor: Vendor) -> None:
    name = user.member(vendor, 'memory = "resume"')
    by_hand(user, vendor, "The password is xyzzy-17.")
    before = records(user, vendor)
    assert user("adopt", name, "--last").code == 0
    assert user("send", "Forget me.", "--to", name).code == 0
    assert user("undo", "--yes", "--conversation").code == 0
    assert user("send", "Another question.", "--to", name).code == 0
    whole = heard(user, vendor)
    assert whole.index("The password is xyzzy-17.") < whole.index("Forget me.")
    assert (whole.count("xyzzy-17"), whole.count("Forget me.")) == (2, 1)  # it remembers no turn that was undone
    assert {file: content for file, content in records(user, vendor).items() if file in before} == before


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_session_that_has_gone_is_replaced_by_a_fresh_one(user: World, vendor: Vendor) -> None:
    name = user.member(vendor, 'memory = "resume"')
    by_hand(user, vendor, "The password is xyzzy-17.")
    assert user("adopt", name, "--last").code == 0
    for file in records(user, vendor):
        file.unlink()
    ran = user("send", "First question.", "--to", name)
    assert ran.code == 0, ran.err
    assert "begins a fresh session" in ran.err
