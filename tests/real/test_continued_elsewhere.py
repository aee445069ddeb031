"""Sessions that go on in another folder or beside a person: what each real CLI does, and what its member is sent."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply, ToolUse
from tests.real.model.table import MODELS
from tests.real.test_real_adopt import by_hand, heard
from tests.real.world import TIMEOUT_S, World, wait_until

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
ANYWHERE = ("claude", "codex")  # they continue a session in any folder


def repository(folder: Path) -> None:
    git = ["git", "-c", "user.name=Kai", "-c", "user.email=kai@example.com", "-c", "init.defaultBranch=main"]
    for words in (["init"], ["commit", "--allow-empty", "-m", "begin"]):
        subprocess.run([*git, *words], cwd=folder, check=True, capture_output=True)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_member_in_a_worktree_adopts_where_its_cli_finds_the_session(user: World, vendor: Vendor) -> None:
    repository(user.cwd)
    name = user.member(vendor, 'memory = "resume"\naccess = "edit"\nworkspace = "worktree"')
    by_hand(user, vendor, "The password is xyzzy-17.")
    adopted = user("adopt", name, "--last")
    if vendor not in ANYWHERE:
        assert (adopted.code, f"where {vendor} finds no session of yours" in adopted.err) == (2, True)
        return
    assert adopted.code == 0, adopted.err
    ran = user("send", "--trust", "First question.", "--to", name)
    assert ran.code == 0, ran.err
    assert heard(user, vendor).index("xyzzy-17") < heard(user, vendor).index("First question.")
    (turn,) = user.turns
    assert (turn.setup.adopted is not None, turn.setup.cwd == str(user.cwd)) == (True, False)


@pytest.mark.parametrize("vendor", [*VENDORS, "opencode"])
def test_a_folder_that_was_renamed_keeps_the_sessions_that_its_cli_finds(user: World, vendor: Vendor) -> None:
    (user.cwd / ".git").mkdir()  # else all folders are one project to opencode
    name = user.member(vendor, 'memory = "resume"', 'name = "crew"')
    assert user("send", "--trust", "First question.", "--to", name).code == 0
    moved = replace(user, cwd=user.cwd.rename(user.cwd.with_name("renamed")))
    ran = moved("sessions", "move", "--yes", str(user.cwd))
    assert ran.code == 0, ran.err
    ran = moved("send", "--trust", "Second question.", "--to", name)
    assert ran.code == 0, ran.err
    first, second = moved.turns
    continues = vendor in ANYWHERE
    assert (second.vendor_session == first.vendor_session) == continues
    assert ("First question." in moved.prompt(vendor)) == (not continues)
    assert heard(moved, vendor).count("First question.") == 1


def test_what_a_person_lost_the_member_beside_its_turn_is_sent_again_once(user: World) -> None:
    name = user.member("claude", 'memory = "resume"')

    def asks(number: int) -> str:
        user.server.script("claude", [Reply(f"Answer {number}.")])
        ran = user("send", "--trust", f"Question {number}.", "--to", name)
        assert ran.code == 0, ran.err
        return ran.err

    asks(1)
    session = user.turns[-1].vendor_session
    assert session
    asked = len(user.server.turns("claude"))
    user.server.script("claude", [Reply(("By", " hand", "."), delay_s=4.0)])
    argv = ["claude", "-p", "--resume", session, "--model", MODELS["claude"], "Question by hand."]
    with subprocess.Popen(argv, cwd=user.cwd, env=dict(user.env), stdin=subprocess.DEVNULL) as hand:
        wait_until(lambda: len(user.server.turns("claude")) > asked, TIMEOUT_S)
        asks(2)
        assert hand.poll() is None, "the turn by hand ended first"
        assert hand.wait(TIMEOUT_S) == 0
    assert f"{name}'s session has lost its turn 2" in asks(3)
    whole = heard(user, "claude")
    said = ("Question 1.", "Answer 1.", "Question by hand.", "Question 2.", "Answer 2.", "Question 3.")
    assert {text: whole.count(text) for text in said} == dict.fromkeys(said, 1)
    assert "Question 2." in user.prompt("claude")
    assert user.turns[-1].setup.lost == (2,)
    assert "has lost" not in asks(4)
    assert "Question 2." not in user.prompt("claude")
    assert heard(user, "claude").count("Question 2.") == 1


def test_a_person_who_continues_the_session_after_a_turn_loses_the_member_nothing(user: World) -> None:
    name = user.member("claude", 'memory = "resume"')
    assert user("send", "--trust", "Question 1.", "--to", name).code == 0
    argv = ["claude", "-p", "--resume", user.turns[-1].vendor_session or "", "--model", MODELS["claude"], "By hand."]
    subprocess.run(argv, cwd=user.cwd, env=dict(user.env), stdin=subprocess.DEVNULL, check=True, timeout=TIMEOUT_S)
    ran = user("send", "Question 2.", "--to", name)
    assert (ran.code, "has lost" in ran.err, user.turns[-1].setup.lost) == (0, False, ())
    assert ["By hand." in heard(user, "claude"), heard(user, "claude").count("Question 1.")] == [True, 1]


@pytest.mark.parametrize(
    "command", ["echo sum $((1+1)) > made.txt", "echo `date` > made.txt", "cat <(echo) > made.txt"]
)
def test_gemini_refuses_a_command_with_an_expansion_and_the_receipt_says_so(user: World, command: str) -> None:
    name = user.member("gemini", 'access = "full"')
    user.server.script("gemini", [Reply(tools=(ToolUse("run_shell_command", {"command": command}),)), Reply("Done.")])
    ran = user.json("send", "--trust", "Go", "--to", name)
    assert ran.code == 0, ran.err
    assert not (user.cwd / "made.txt").exists()
    assert [event["failed"] for event in ran.events if event["type"] == "tool_result"] == [True]
    assert ran.result["denied"] == 1
    (turn,) = user.turns
    assert turn.outcome
    assert [denied.tool for denied in turn.outcome.denied or ()] == ["run_shell_command"]
