"""What of an answer is the reply, and whose tokens count, where the last event of a real CLI has a part of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply, Request, Tokens, ToolUse
from tests.real.model.server import messages, tool_results
from tests.real.world import World

pytestmark = pytest.mark.real
LOOK = "SUBTASK: look at it."
INNER = Tokens(100, 0, 50)
TASKS: dict[Vendor, ToolUse] = {
    "claude": ToolUse("Task", {"description": "look", "prompt": LOOK, "subagent_type": "general-purpose"}),
    "codex": ToolUse("spawn_agent", {"message": LOOK, "agent_type": "default"}, namespace="multi_agent_v1"),
    "gemini": ToolUse("invoke_agent", {"agent_name": "generalist", "prompt": LOOK}),
}
ENDS: dict[Vendor, Reply] = {
    "claude": Reply("seen", tokens=INNER),
    "codex": Reply("seen", tokens=INNER),
    "gemini": Reply(tools=(ToolUse("complete_task", {"result": {"response": "seen"}}),), tokens=INNER),
}


def script(user: World, vendor: Vendor) -> tuple[list[Request], list[Request]]:
    """The model gives its work to a subagent, and waits for it. The requests of the member, and of the subagent."""
    own: list[Request] = []
    inner: list[Request] = []

    def reply(request: Request) -> Reply:
        if any(LOOK in message.text for message in messages(request) if message.role == "user"):
            inner.append(request)
            return ENDS[vendor]
        own.append(request)
        answers = tool_results(request)
        if not answers:
            return Reply(tools=(TASKS[vendor],))
        if vendor == "codex" and len(answers) == 1:
            waits = {"targets": [json.loads(answers[0])["agent_id"]], "timeout_ms": 60_000}
            return Reply(tools=(ToolUse("wait_agent", waits, namespace="multi_agent_v1"),))
        return Reply("Done.")

    user.server.script(vendor, reply)
    return own, inner


@pytest.mark.parametrize("memory", ["fresh", "live"])
def test_claudes_answer_in_several_blocks_is_one_reply(user: World, memory: str) -> None:
    user.member("claude", f'memory = "{memory}"')
    blocks = Reply("One, ", then=Reply("two.", then=Reply(thinking="hm", text="Three.")))
    user.server.script("claude", [blocks, Reply("The answer.", then=Reply(thinking="hm"))])
    assert user.json("send", "--new", "Hi").result["text"] == "One, two.\n\nThree."
    assert user.json("send", "Hi").result["text"] == "The answer."


@pytest.mark.parametrize("memory", ["fresh", "live"])
def test_claudes_answer_that_is_longer_than_a_message_may_be_is_one_reply(user: World, memory: str) -> None:
    user.member("claude", f'memory = "{memory}"')
    user.server.script(
        "claude",
        [Reply("Verdict: FA", stop="max_tokens"), Reply("IL. The re", stop="max_tokens"), Reply("st is fine.")],
    )
    assert user.json("send", "--new", "Hi").result["text"] == "Verdict: FAIL. The rest is fine."


@pytest.mark.parametrize(("vendor", "access"), [("claude", "edit"), ("gemini", "full"), ("codex", "read")])
def test_the_tokens_of_subagents_are_counted_where_the_cli_reports_them(
    user: World, vendor: Vendor, access: str
) -> None:
    user.member(vendor, f'access = "{access}"')
    own, inner = script(user, vendor)
    ran = user.json("send", "--trust", "--new", "Go")
    assert ran.result["text"] == "Done.", ran.out
    used = ran.result["usage"]
    counted = 0 if vendor == "codex" else len(inner)
    assert (len(own) >= 2, len(inner)) == (True, 1)
    assert used["input_tokens"] == 11 * len(own) + 100 * counted
    assert used["output_tokens"] == 7 * len(own) + 50 * counted
    assert ("are not counted" in ran.out) == (vendor == "codex")


def test_a_hook_that_sends_gemini_back_leaves_what_comes_after_it_as_the_reply(user: World) -> None:
    user.member("gemini")
    once = Path(user.env["HOME"]) / "once"
    hook = Path(user.env["HOME"]) / "hook.sh"
    deny = json.dumps({"decision": "deny", "reason": "Run the tests first."})
    hook.write_text(f"cat > /dev/null; if [ -e {once} ]; then echo '{{}}'; else touch {once}; echo '{deny}'; fi\n")
    settings = Path(user.env["HOME"]) / ".gemini" / "settings.json"
    table = {"AfterAgent": [{"hooks": [{"type": "command", "command": f"sh {hook}"}]}]}
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"hooks": table}))
    user.server.script("gemini", [Reply("A draft."), Reply("The answer, with tests.")])
    ran = user.json("send", "--new", "Hi")
    assert (ran.code, ran.result["text"]) == (0, "The answer, with tests."), ran.out + ran.err
    assert "Run the tests first." in ran.out
