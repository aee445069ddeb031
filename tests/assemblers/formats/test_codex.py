from __future__ import annotations

from msgspec.structs import replace

from teamchat.assemblers.formats import CODEX
from teamchat.assemblers.parts import AssemblerInput, AssemblerOutput, PromptContextMessage

FULL = AssemblerInput(
    context_messages=(PromptContextMessage("kailai", "Hi", "max"), PromptContextMessage("max", "Hello", "sarah")),
    current_message="Go on",
    team_task="Design it",
    system_instruction="You are Sarah",
)
FULL_PROMPT = (
    "[SYSTEM]\nYou are Sarah\n\n[TEAM_TASK]\nDesign it\n\n"
    "[CONTEXT]\n- kailai -> max: Hi\n- max -> sarah: Hello\n\n[MESSAGE]\nGo on"
)
FRAMEWORK = {"framework__context": "Hand over."}


def assemble(given: AssemblerInput) -> AssemblerOutput:
    return CODEX.assemble(given)


def test_get_agent_type_returns_openai_codex() -> None:
    assert CODEX.get_agent_type() == "openai-codex"


def test_system_is_inline_and_sections_stand_in_full_order() -> None:
    assert replace(assemble(FULL), blocks=()) == AssemblerOutput(FULL_PROMPT, None, message_at=len(FULL_PROMPT) - 5)


def test_empty_sections_are_not_emitted() -> None:
    assert assemble(AssemblerInput(current_message="Go on", team_task=" ", system_instruction=" ")).prompt == (
        "[MESSAGE]\nGo on"
    )
    assert assemble(AssemblerInput(system_instruction="You are Sarah")).prompt == "[SYSTEM]\nYou are Sarah"
    assert assemble(AssemblerInput()).prompt == ""


def test_a_message_without_addressee_went_to_all() -> None:
    assert assemble(AssemblerInput((PromptContextMessage("max", "Hi"),))).prompt == "[CONTEXT]\n- max -> all: Hi"


def test_framework_request_and_turn_note_have_their_places() -> None:
    output = assemble(replace(FULL, contexts=FRAMEWORK, request="Build it", turn_note="kailai asks you."))

    assert output.prompt == FULL_PROMPT.replace("You are Sarah", "You are Sarah\n\nHand over.").replace(
        "[MESSAGE]", "[REQUEST]\nBuild it\n\n[TURN]\nkailai asks you.\n\n[MESSAGE]"
    )
