"""What each real CLI's model receives, turn by turn, from a member that remembers and from one that does not."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from teamchat.core.store.turns import turns_of
from teamchat.runners.base import Vendor
from tests.hiding import hide
from tests.real.model.replies import Reply, Request, ToolUse
from tests.real.model.server import messages
from tests.real.model.table import MODELS
from tests.real.world import MEMBERS, TIMEOUT_S, World, alive, kill, tree, wait_until

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
KINDS = [*((vendor, kind) for vendor in VENDORS for kind in ("fresh", "resume")), ("claude", "live")]
FILES = {
    "claude": ".claude/projects/**/*.jsonl",
    "codex": ".codex/sessions/**/*.jsonl",
    "gemini": ".gemini/tmp/**/*.jsonl",
}

READ: dict[Vendor, ToolUse] = {
    "claude": ToolUse("Read", {"file_path": "spec.md"}),
    "codex": ToolUse("exec_command", {"cmd": "cat spec.md"}),
    "gemini": ToolUse("read_file", {"file_path": "spec.md"}),
}


def heard(user: World, vendor: Vendor) -> str:
    """Everything that the model was last given of the conversation."""
    return "\n".join(message.text for message in messages(user.last(vendor)))


def kept(user: World, vendor: Vendor) -> list[Path]:
    """The session files in the CLI's own folder."""
    return sorted(Path(user.env["HOME"]).glob(FILES[vendor]))


@pytest.mark.parametrize(("vendor", "kind"), KINDS)
def test_the_model_gets_every_message_once_on_every_turn(user: World, vendor: Vendor, kind: str) -> None:
    """And every file: the model has one read whenever it is not in what it is sent."""
    name = user.member(vendor, f'memory = "{kind}"\nsystem_instruction = "You are the one"', "context_window = 30")
    (user.cwd / "spec.md").write_text("Purple elephants.\n")
    read: list[Request] = []

    def model(request: Request) -> Reply:
        if b"Purple elephants" in request.raw:
            return Reply(f"Answer {number}.")
        read.append(request)
        return Reply(tools=(READ[vendor],))

    user.server.script(vendor, model)
    for number in range(1, 6):
        ran = user.json("send", f"Question {number}.", "--to", name)
        assert ran.code == 0, ran.err
        whole = heard(user, vendor)
        said = [f"Question {at}." for at in range(1, number + 1)] + [f"Answer {at}." for at in range(1, number)]
        # Codex and Claude repeat a system text that teamchat gives, never what was said
        assert {text: whole.count(text) for text in said} == dict.fromkeys(said, 1)
        prompt = user.prompt(vendor)
        assert ("Question 1." in prompt) == (kind == "fresh" or number == 1)
    assert len(read) == (5 if kind == "fresh" else 1)
    turns = user.turns
    assert [turn.setup.resumes is not None for turn in turns] == [False, *[kind != "fresh"] * 4]
    assert len({turn.vendor_session for turn in turns}) == (5 if kind == "fresh" else 1)
    if vendor != "gemini":  # which has no switch for it
        assert bool(kept(user, vendor)) == (kind != "fresh")


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_session_that_is_gone_is_replaced_with_the_whole_context(user: World, vendor: Vendor) -> None:
    name = user.member(vendor, 'memory = "resume"')
    assert user("send", "First question.", "--to", name).code == 0
    for file in kept(user, vendor):
        file.unlink()
    ran = user.json("send", "Second question.", "--to", name)
    assert ran.code == 0, ran.err
    assert "First question." in user.prompt(vendor)
    assert [turn.status for turn in user.turns] == ["done", "failed", "done"]
    assert any("begins a fresh session" in event["text"] for event in ran.events if event["type"] == "warning")


@pytest.mark.parametrize(("vendor", "kind"), KINDS)
def test_usage_is_that_of_the_turn_alone(user: World, vendor: Vendor, kind: str) -> None:
    name = user.member(vendor, f'memory = "{kind}"')
    usages = [user.json("send", f"Question {number}.", "--to", name).result["usage"] for number in (1, 2, 3)]
    assert [(usage["input_tokens"], usage["output_tokens"]) for usage in usages] == [(11, 7)] * 3
    first, *others = [usage["cost_usd"] for usage in usages]
    assert [bool(first), *others] == [vendor == "claude", first, first]


OTHER_MODELS = {"claude": "claude-sonnet-4-5", "codex": "gpt-5.4", "gemini": "gemini-2.5-pro"}
CHANGED = "its instructions, model, access or folder have changed"


def remembering(user: World, vendor: Vendor, model: str | None = None, **keys: str) -> str:
    extra = {"memory": "resume", "system_instruction": "You are the one", **keys}
    name = user.member(vendor, "\n".join(f'{key} = "{value}"' for key, value in extra.items()))
    if model:
        user.team((user.cwd / "teamchat.toml").read_text().replace(MODELS[vendor], model))
    return name


@pytest.mark.parametrize("vendor", VENDORS)
def test_after_each_break_the_model_gets_all_that_is_visible_once_in_a_new_session(user: World, vendor: Vendor) -> None:
    (user.cwd / "sub").mkdir()
    name = remembering(user, vendor)
    said: list[str] = []
    sessions: list[str | None] = []

    def asks(number: int, why: str | None) -> None:
        user.server.script(vendor, [Reply(f"Answer {number}.")])
        ran = user("send", "--trust", f"Question {number}.", "--to", name)
        assert ran.code == 0, ran.err
        answered(number, why)

    def answered(number: int, why: str | None) -> None:
        said.append(f"Question {number}.")
        whole = heard(user, vendor)
        assert {text: whole.count(text) for text in said} == dict.fromkeys(said, 1)
        said.append(f"Answer {number}.")
        turn = user.turns[-1]
        assert turn.setup.fresh_because == why
        assert (turn.vendor_session in sessions) == (why is None)
        sessions.append(turn.vendor_session)

    asks(1, "its first turn")
    with user.store() as db:
        hide(db, "msg-2")
    hidden = said.pop()
    asks(2, "messages were undone")
    assert hidden not in heard(user, vendor)
    remembering(user, vendor, system_instruction="You are another")
    asks(3, CHANGED)
    assert "You are the one" not in heard(user, vendor) + user.system(vendor)
    remembering(user, vendor, OTHER_MODELS[vendor])
    asks(4, CHANGED)
    assert OTHER_MODELS[vendor] in (user.last(vendor).raw.decode() + user.last(vendor).path)
    remembering(user, vendor, access="edit")
    asks(5, CHANGED)
    remembering(user, vendor, access="edit", cwd="sub")
    asks(6, CHANGED if vendor == "gemini" else None)  # the others go on in any folder
    asked = len(user.server.turns(vendor))
    user.server.script(vendor, [Reply("Half an", ending="stall")])
    with user.start("send", "--trust", "Question 7.", "--to", name) as process:
        wait_until(lambda: len(user.server.turns(vendor)) > asked, 60)
        kill(process)
    user.server.script(vendor, [Reply("Answer 7.")])
    ran = user("resume")
    assert ran.code == 0, ran.err
    answered(7, "its turn 7 was cut short")
    assert "Half an" not in heard(user, vendor)
    asks(8, None)


def test_who_stands_in_and_who_comes_back_get_everything_in_new_sessions(user: World) -> None:
    person = '[[members]]\nname = "kailai"\ntype = "human"\n'
    members = (
        f'[[members]]\nname = "{MEMBERS[vendor]}"\nagent = "{vendor}"\nmodel = "{MODELS[vendor]}"\nmemory = "resume"\n'
        for vendor in VENDORS[:2]
    )
    user.team(person + 'fallback = ["sarah"]\n'.join(members))

    def asks(number: int) -> None:
        ran = user("send", f"Question {number}.", "--to", "max")
        assert ran.code == 0, ran.err

    user.server.script("claude", [Reply("Answer 1."), Reply(status=429, message="rate limit exceeded")])
    user.server.script("codex", [Reply("Answer 2.")])
    asks(1)
    asks(2)
    for text in ("Question 1.", "Answer 1.", "Question 2."):
        assert heard(user, "codex").count(text) == 1
    (Path(user.env["TEAMCHAT_HOME"]) / "cooldowns.json").unlink()
    user.server.script("claude", [Reply("Answer 3."), Reply("Answer 4.")])
    for number in (3, 4):
        asks(number)
        for text in (f"{kind} {at}." for at in range(1, number) for kind in ("Question", "Answer")):
            assert heard(user, "claude").count(text) == 1, (number, text)
    went_on = [(turn.member, turn.setup.resumes is not None) for turn in user.turns if turn.status == "done"]
    assert went_on == [("max", False), ("sarah", False), ("max", False), ("max", True)]


@pytest.mark.parametrize("vendor", VENDORS)
def test_two_conversations_at_once_never_share_a_session(user: World, vendor: Vendor) -> None:
    name = remembering(user, vendor)
    for number in (1, 2):
        new = ["--new"] if number == 1 else []
        both = [
            user.start("send", *new, "--session", which, f"{which} {number}.", "--to", name)
            for which in ("left", "right")
        ]
        for process in both:
            _, err = process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0, err
    with user.store() as db:
        left, right = (turns_of(db, session) for session in (1, 2))
    lefts, rights = ([turn.vendor_session for turn in turns if turn.status == "done"] for turns in (left, right))
    assert lefts == [lefts[0]] * 2
    assert rights == [rights[0]] * 2
    assert lefts[0] != rights[0]
    for request in user.server.turns(vendor):
        whole = "\n".join(message.text for message in messages(request))
        assert ("left 1." in whole) != ("right 1." in whole)


@pytest.mark.core
def test_a_live_member_that_is_called_back_answers_in_the_same_process(user: World) -> None:
    person = '[[members]]\nname = "kailai"\ntype = "human"\n'
    members = (
        f'[[members]]\nname = "{MEMBERS[vendor]}"\nagent = "{vendor}"\nmodel = "{MODELS[vendor]}"\nmemory = "{kind}"\n'
        for vendor, kind in zip(VENDORS, ("live", "resume"), strict=False)
    )
    user.team(person + "".join(members))
    replies = iter((Reply("Plan.\n[NEXT: sarah]"), Reply("All done.")))
    live: list[set[int]] = []

    def answers(_request: Request) -> Reply:
        live.append({pid for pid in tree(process.pid) if "--input-format" in argv_of(pid)})
        return next(replies)

    user.server.script("claude", answers)
    user.server.script("codex", [Reply("Code.\n[NEXT: max]")])
    with user.start("send", "Build it", "--to", "max") as process:
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    assert [turn.member for turn in user.turns] == ["max", "sarah", "max"]
    assert [turn.setup.same_process for turn in user.turns] == [False, False, True]
    first, second = live
    assert len(first) == 1
    assert second == first
    assert not any(alive(pid) for pid in first)
    whole = heard(user, "claude")
    assert [whole.count(text) for text in ("Build it", "Plan.", "Code.")] == [1, 1, 1]


def test_ctrl_c_ends_the_turn_of_a_live_member_quickly_and_its_process_with_it(user: World) -> None:
    name = user.member("claude", 'memory = "live"')
    user.server.script("claude", [Reply("Half an", ending="stall")])
    with user.start("send", "Go", "--to", name) as process:
        wait_until(lambda: user.server.turns("claude"))
        seen = tree(process.pid)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, err
    assert time.monotonic() - began < 60
    assert seen
    assert not any(alive(pid) for pid in seen)
    (turn,) = user.turns
    assert turn.status == "interrupted"


def argv_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


@pytest.mark.parametrize("extra", ["", "project_settings = true", 'access = "read"\ngit = true'])
def test_a_gemini_that_starts_beside_deletes_no_session_of_another_minute(user: World, extra: str) -> None:
    """Its clean-up takes the second record of a session that was resumed in another minute for an empty session."""
    if "git" in extra:
        pytest.importorskip("mcp")
        (user.cwd / ".git").mkdir()
    member = f'agent = "gemini"\nmodel = "{MODELS["gemini"]}"\nmemory = "resume"\n{extra}\n'
    user.team("".join(f'[[members]]\nname = "{name}"\n{member}' for name in ("kim", "ann")))

    def asks(name: str, number: int) -> None:
        ran = user("send", "--trust", f"Question {number}.", "--to", name)
        assert ran.code == 0, ran.err

    asks("kim", 1)
    (record,) = kept(user, "gemini")
    date, short_id = record.name.removeprefix("session-").rsplit("-", 1)
    record.rename(record.with_name(f"session-{an_hour_before(date)}-{short_id}"))
    asks("kim", 2)
    assert len(kept(user, "gemini")) == 2, "Gemini no longer makes a second record"
    asks("ann", 3)
    asks("kim", 4)
    sessions = [(turn.member, turn.status, turn.vendor_session) for turn in user.turns]
    kims, anns = (next(session for name, _, session in sessions if name == who) for who in ("kim", "ann"))
    expected = [("kim", kims), ("kim", kims), ("ann", anns), ("kim", kims)]
    assert sessions == [(name, "done", session) for name, session in expected]
    assert [heard(user, "gemini").count(f"Question {number}.") for number in range(1, 5)] == [1, 1, 1, 1]


def an_hour_before(date: str) -> str:
    """The date of a record's name, an hour earlier."""
    form = "%Y-%m-%dT%H-%M"
    return (datetime.strptime(date, form).replace(tzinfo=UTC) - timedelta(hours=1)).strftime(form)
