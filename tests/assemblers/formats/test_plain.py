from __future__ import annotations

from msgspec.structs import replace

from teamchat.assemblers.formats import PLAIN_TEXT
from teamchat.assemblers.parts import AssemblerInput, AssemblerOutput, PromptContextMessage

FULL = AssemblerInput(
    context_messages=(PromptContextMessage("kailai", "Hi", "max"), PromptContextMessage("max", "Hello", "sarah")),
    current_message="Go on",
    team_task="Design it",
    system_instruction="You are Al",
)
FULL_PROMPT = "You are Al\n\nDesign it\n\nkailai: Hi\nmax: Hello\n\nGo on"
FRAMEWORK = {"framework__context": "Hand over."}


def assemble(given: AssemblerInput) -> AssemblerOutput:
    return PLAIN_TEXT.assemble(given)


def test_get_agent_type_returns_plain() -> None:
    assert PLAIN_TEXT.get_agent_type() == "plain"


def test_everything_is_bare_text() -> None:
    assert replace(assemble(FULL), blocks=()) == AssemblerOutput(FULL_PROMPT, None, message_at=len(FULL_PROMPT) - 5)


def test_empty_sections_are_not_emitted() -> None:
    assert assemble(AssemblerInput(current_message="Go on", team_task=" ", system_instruction=" ")).prompt == "Go on"
    assert assemble(AssemblerInput(system_instruction="You are Al")).prompt == "You are Al"
    assert assemble(AssemblerInput()).prompt == ""


def test_framework_request_and_turn_note_have_their_places() -> None:
    output = assemble(replace(FULL, contexts=FRAMEWORK, request="Build it", turn_note="kailai asks you."))

    assert output.prompt == (
        "You are Al\n\nHand over.\n\nDesign it\n\nkailai: Hi\nmax: Hello\n\nBuild it\n\nkailai asks you.\n\nGo on"
    )
