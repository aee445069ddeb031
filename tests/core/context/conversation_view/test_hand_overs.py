"""Shows what each member is told in a conversation that hands over from one prompt format to the next."""

from __future__ import annotations

import pytest

from teamchat.assemblers.formats import CLAUDE, CODEX, GEMINI, PLAIN_TEXT
from teamchat.core.context.conversation_view import ContextManager
from teamchat.core.messages import NewMessage, Routing, Speaker

KAILAI = Speaker("u1", "kailai", type="human")
MAX = Speaker("m1", "max", type="ai")
SARAH = Speaker("s1", "sarah", type="ai")
CAROL = Speaker("c1", "carol", type="ai")

FORMATS = {"max": CLAUDE, "sarah": CODEX, "carol": GEMINI, "al": PLAIN_TEXT}


def prompt_for(manager: ContextManager, name: str) -> str:
    return FORMATS[name].assemble(manager.get_context_for_agent()).prompt


def say(manager: ContextManager, speaker: Speaker, content: str, *to: str) -> None:
    manager.add_message(NewMessage(content, speaker, Routing(to)))


def test_parallel_next_routing_each_agent_gets_correct_context() -> None:
    """One message names three members. Each gets the reply before its own as the message, and the rest as history."""
    manager = ContextManager()

    say(manager, KAILAI, "[NEXT:max] [NEXT:sarah] [NEXT:carol] Hi", "max", "sarah", "carol")
    assert prompt_for(manager, "max") == "[MESSAGE]\nHi"

    say(manager, MAX, "我建议...")
    assert prompt_for(manager, "sarah") == "[CONTEXT]\n- kailai -> max, sarah, carol: Hi\n\n[MESSAGE]\n我建议..."

    say(manager, SARAH, "技术上...")
    assert prompt_for(manager, "carol") == (
        "Conversation so far:\n- kailai: Hi\n- max: 我建议...\n\nUser message:\n技术上..."
    )


def test_ai_to_ai_deduplication_in_routing_chain() -> None:
    """Max, Sarah and Carol in turn each get the reply before theirs, once."""
    manager = ContextManager()
    say(manager, KAILAI, "[NEXT:max] Hi", "max")
    say(manager, MAX, "Hello from max [NEXT:sarah]", "sarah")

    for_sarah = prompt_for(manager, "sarah")
    say(manager, SARAH, "Hello from sarah [NEXT:carol]", "carol")
    for_carol = prompt_for(manager, "carol")

    assert for_sarah == "[CONTEXT]\n- kailai -> max: Hi\n\n[MESSAGE]\nHello from max"
    assert for_carol.endswith("User message:\nHello from sarah")
    assert for_carol.count("Hello from max") == for_carol.count("Hello from sarah") == 1


@pytest.mark.parametrize("name", FORMATS)
def test_team_task_injection_across_all_agents(name: str) -> None:
    manager = ContextManager()
    manager.set_team_task("Design a user authentication system")
    say(manager, KAILAI, "Hi")

    assert "Design a user authentication system" in prompt_for(manager, name)


@pytest.mark.parametrize("name", FORMATS)
def test_token_budget_trimming_drops_oldest_context(name: str) -> None:
    manager = ContextManager(max_bytes=1000)
    for number in range(6):
        say(manager, KAILAI, f"message {number} " + "x" * 300)

    prompt = prompt_for(manager, name)

    assert [number for number in range(6) if f"message {number}" in prompt] == [3, 4, 5]
    assert len(prompt.encode()) <= 1000


@pytest.mark.parametrize("name", FORMATS)
def test_context_marker_stripping_prevents_duplication(name: str) -> None:
    manager = ContextManager()
    say(manager, KAILAI, "[FROM:kailai] [NEXT:max] Hi", "max")
    say(manager, MAX, "Hello [NEXT:sarah]", "sarah")
    say(manager, SARAH, "[next: carol!P1] Go on\n[DROP: ALL]", "carol")

    prompt = prompt_for(manager, name).lower()

    assert "next" not in prompt
    assert "from:" not in prompt
    assert "drop" not in prompt
