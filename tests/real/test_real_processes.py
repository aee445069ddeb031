"""Processes over the real CLIs: what each role was shown, by the scripted model's log of requests, and their replay."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply, Request
from tests.real.model.server import prompt, system_text
from tests.real.model.table import MODELS, SELF_TESTS
from tests.real.processes import SCENARIOS, TEAM
from tests.real.world import MEMBERS, World

VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")

pytestmark = pytest.mark.real


def played(user: World, kind: str) -> dict[str, object]:
    """Run the scenario of that kind, recorded, and replay it byte for byte; the result of the run."""
    user.team(TEAM.read_text(encoding="utf-8"))
    scenario = SCENARIOS[kind]
    scenario.play(user.server)
    ran = user.json("run", "--trust", "--record", "run.cassette", *scenario.args)
    assert ran.code == 0, ran.err
    replayed = user("replay", "run.cassette", "--speed", "0", "--verify")
    assert replayed.code == 0, replayed.err
    result: dict[str, object] = ran.result
    return result


def edits(vendor: Vendor) -> Iterator[Reply]:
    """A turn that writes a file with the name of the member in it."""
    name = MEMBERS[vendor]
    yield Reply(tools=(SELF_TESTS[vendor].running(f"printf 'width = {len(name)}\\n' > settings.ini"),))
    yield Reply(f"The width is that of {name}.")


def judged(request: Request) -> Reply:
    """The judge picks the answer that sarah has written, by its letter."""
    found = re.search(r"answer ([A-C]) -> all: The width is that of sarah", prompt(request))
    assert found, prompt(request)
    return Reply(f'{{"winner": "{found[1]}", "reasons": "It is the widest."}}')


def test_the_best_is_picked_by_nameless_answers_and_differences_and_merged(user: World) -> None:
    member = '[[members]]\nname = "{}"\nagent = "{}"\nmodel = "{}"\naccess = "edit"\nallow = {}\n'
    members = (member.format(MEMBERS[v], v, MODELS[v], [] if v == "codex" else ["printf"]) for v in VENDORS)
    user.team("".join(('[team]\nlead = "max"\n[[members]]\nname = "kai"\ntype = "human"\n', *members)))
    git = ("git", "-c", "user.name=kai", "-c", "user.email=kai@example.org")
    for argv in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run([*git, *argv], cwd=user.cwd, check=True)
    claude = edits("claude")
    user.server.script("claude", lambda request: next(claude, None) or judged(request))
    for vendor in VENDORS[1:]:
        user.server.script(vendor, list(edits(vendor)))
    ran = user.json("run", "--trust", "--record", "../run.cassette", "best", "Set the width")
    assert ran.code == 0, ran.err
    assert ran.result["process"]["winner"] == "sarah"
    told = prompts(user, "claude")[-1]
    assert all(f"+width = {len(name)}" in told for name in MEMBERS.values())
    assert not any(f"{name} ->" in told or f"/{name}" in told for name in MEMBERS.values())
    assert all("width is that of" not in prompts(user, vendor)[0] for vendor in VENDORS)
    assert not (user.cwd / "settings.ini").exists()
    merged = user("merge", "sarah")
    assert merged.code == 0, merged.err
    assert (user.cwd / "settings.ini").read_text() == "width = 5\n"
    replayed = user("replay", "../run.cassette", "--speed", "0", "--verify")
    assert replayed.code == 0, replayed.err


def prompts(user: World, vendor: Vendor) -> list[str]:
    """All that the vendor's model was told in each turn, system text included."""
    return [f"{system_text(request)}\n{prompt(request)}" for request in user.server.turns(vendor)]


def test_sequential_members_see_what_came_before(user: World) -> None:
    result = played(user, "sequential")
    assert result["turns"] == 3
    (first,), (second,), (third,) = (prompts(user, vendor) for vendor in ("claude", "codex", "gemini"))
    assert "many at a time" not in first
    assert "many at a time" in second
    assert "--width 800" in third
    assert all("To hand over" not in told for told in (first, second, third))


def test_the_lead_gets_every_reply_and_alone_hands_over(user: World) -> None:
    result = played(user, "hierarchical")
    assert str(result["text"]).startswith("Keep the date")
    first, last = prompts(user, "claude")
    (sarah,), (carol,) = prompts(user, "codex"), prompts(user, "gemini")
    assert "To hand over" in first
    assert all("To hand over" not in told for told in (sarah, carol))
    assert "where somebody lives" not in sarah
    assert all(reply in last for reply in ("JPEG, HEIC and WebP", "where somebody lives"))
    assert len(user.server.turns("codex")) == 1  # carol's call of sarah is refused


def test_no_part_of_a_map_reduce_sees_the_conversation_and_a_worker_only_its_subtask(user: World) -> None:
    result = played(user, "mapreduce")
    subtasks = [(task["member"], task["status"]) for task in result["process"]["subtasks"]]  # type: ignore[index]
    assert subtasks == [("sarah", "done"), ("carol", "done"), ("sarah", "done"), ("carol", "done")]
    user.server.script("claude", [Reply("The code word is heron.")])
    assert user("send", "[NEXT: max] What is the code word? [TEAM_TASK: Guard the code word heron]").code == 0
    before = {vendor: len(user.server.turns(vendor)) for vendor in VENDORS}
    scenario = SCENARIOS["mapreduce"]
    scenario.play(user.server)
    assert user("run", *scenario.args).code == 0
    told = {vendor: prompts(user, vendor)[before[vendor] :] for vendor in VENDORS}
    planner, repair, reducer = told["claude"]
    workers = (*told["codex"], *told["gemini"])
    assert not any("The code word is heron" in one for one in (planner, repair, reducer, *workers))
    assert "I would split it by module." in repair
    assert "width of 0" in reducer
    names = ("module read", "module write", "module resize", "module main")
    for worker, own in zip(workers, names, strict=True):
        assert [name for name in names if name in worker] == [own]
        assert not any(other in worker for other in ("heron", "our four modules", "NEXT: max"))


def test_a_debate_is_blind_and_then_nameless(user: World) -> None:
    result = played(user, "debate")
    assert result["process"]["agreement"] == pytest.approx(2 / 3)  # type: ignore[index]
    assert "Dissent" in str(result["text"])
    (blind, again), (codex_blind, codex_again) = prompts(user, "claude")[:2], prompts(user, "codex")
    for told, others in ((blind, ("image editors", "Ask first")), (codex_blind, ("destroy data", "Ask first"))):
        assert not any(other in told for other in others)
    assert all(
        said in again for said in ("answer A -> all: Yes, as image editors do", "Ask first", "your answer -> all: No.")
    )
    assert "sarah ->" not in again
    assert "carol ->" not in codex_again
    synthesis = prompts(user, "claude")[2]
    assert "sarah -> all: The first answer is right" in synthesis


def test_a_vote_is_blind(user: World) -> None:
    result = played(user, "vote")
    assert result["text"] == "1200"
    assert "sharp on dense" not in prompts(user, "claude")[0]
    assert "fits most screens" not in prompts(user, "codex")[0]
