"""`run until` over the real CLIs: what each round showed to whom, the git trees that were verified, and the replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.runners.base import Vendor
from teamchat.runners.untrusted.file_changes import FileChanges
from tests.hostile_git import git
from tests.real.model.server import prompt, system_text
from tests.real.processes import FOUND, SIZES, copy_ship, ship
from tests.real.world import Ran, World

pytestmark = pytest.mark.real
FAILS = "AssertionError: Tuples differ: (1066, 800) != (600, 800)"


def prompts(user: World, vendor: Vendor) -> list[str]:
    """What the vendor's model was told in each turn, system text included; a turn with tools asks it several times."""
    return [*dict.fromkeys(f"{system_text(request)}\n{prompt(request)}" for request in user.server.turns(vendor))]


def test_a_red_check_and_a_review_that_says_no_go_back_to_the_one_that_works(user: World) -> None:
    copy_ship(user.cwd)
    scenario = ship(user.cwd)
    scenario.play(user.server)
    ran = user.json("run", "--trust", "--record", "../run.cassette", *scenario.args)
    assert ran.code == 0, ran.err
    assert (user.cwd / "shrink" / "size.py").read_text().endswith(SIZES[-1])
    rounds_are_as_scripted(ran)
    receipts_have_what_was_verified(user, ran)
    prompts_show_results_findings_and_differences(user)
    replayed = user("replay", "../run.cassette", "--speed", "0", "--verify")
    assert replayed.code == 0, replayed.err


def rounds_are_as_scripted(ran: Ran) -> None:
    checks = [line for line in ran.events if line["type"] == "check_finished"]
    assert [(line["check"], line["status"], line["exit_code"], line["files"]) for line in checks] == [
        ("check-1", "red", 1, []),
        ("check-2", "green", 0, []),
        ("check-3", "green", 0, []),
    ]
    process = ran.result["process"]
    assert [
        (one["doer"], [check["number"] for check in one["checks"]], [review["passed"] for review in one["reviews"]])
        for one in process["rounds"]
    ] == [("max", [1], []), ("max", [2], [True, False]), ("max", [3], [True, True])]
    assert (process["result"], process["open_findings"]) == ("done", [])


def receipts_have_what_was_verified(user: World, ran: Ran) -> None:
    """Each round's checks and reviews are of the tree that the doer's turn has left, and change nothing in it."""
    rounds = ran.result["process"]["rounds"]
    turns = user.turns
    works = [turn for turn in turns if turn.member == "max"]
    reviews = [turn for turn in turns if turn.member != "max"]
    left = []
    for turn in works:
        assert turn.outcome is not None
        assert (turn.setup.access, turn.outcome.files, turn.outcome.denied) == ("edit", ("shrink/size.py",), ())
        assert isinstance(turn.outcome.changes, FileChanges)
        left.append(turn.outcome.changes.after)
    assert [[check["tree"] for check in one["checks"]] for one in rounds] == [[tree] for tree in left]
    assert [[review["tree"] for review in one["reviews"]] for one in rounds] == [[], [left[1]] * 2, [left[2]] * 2]
    assert ran.result["process"]["tree"] == left[2]
    assert [turn.setup.access for turn in reviews] == ["read"] * 4
    assert not [turn.member for turn in reviews if turn.outcome is None or turn.outcome.files]
    (checkpoints,) = Path(user.env["TEAMCHAT_HOME"]).glob("workspaces/*/checkpoints/*/objects")
    listed = [git(checkpoints.parent, "show", f"{tree}:shrink/size.py").splitlines()[-1] for tree in left]
    assert listed == [code.splitlines()[-1] for code in SIZES[1:]]


def prompts_show_results_findings_and_differences(user: World) -> None:
    first, after_red, after_no = prompts(user, "claude")
    assert "check-1" not in first
    assert "check-1 tests (python3 -m unittest -q): red, exit code 1" in after_red
    assert FAILS in after_red
    assert FOUND not in after_red
    assert "check-2 tests (python3 -m unittest -q): green" in after_no
    assert f"carol in msg-5: FAIL\n1. shrink/size.py:8 (high): {FOUND}" in after_no
    assert "sarah in " not in after_no  # who has found nothing
    for vendor, others in (("codex", "carol"), ("gemini", "sarah")):
        blind, again = prompts(user, vendor)
        assert "check-2 tests (python3 -m unittest -q): green" in blind
        assert "check-3 tests (python3 -m unittest -q): green" in again
        assert all(FAILS not in told for told in (blind, again))
        for told, code in ((blind, SIZES[2]), (again, SIZES[3])):
            assert all(f"+{line}" in told for line in code.splitlines())
            assert f"-{SIZES[0].rstrip()}" in told
            assert "+    if height > width" not in told  # the red try is not what is left
        assert "most = min(most, longest)" not in blind
        assert "Right: `most` is now at most the longest side" in again
        assert f"{others} ->" not in again
    assert FOUND in prompts(user, "gemini")[1]
    assert FOUND not in prompts(user, "codex")[1]
