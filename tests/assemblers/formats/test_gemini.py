from __future__ import annotations

from msgspec.structs import replace

from teamchat.assemblers.formats import GEMINI
from teamchat.assemblers.parts import AssemblerInput, AssemblerOutput, PromptContextMessage

FULL = AssemblerInput(
    context_messages=(PromptContextMessage("kailai", "Hi", "max"), PromptContextMessage("max", "Hello", "sarah")),
    current_message="Go on",
    team_task="Design it",
    system_instruction="You are Carol",
)
FULL_PROMPT = (
    "Instructions:\nYou are Carol\n\nTeam Task:\nDesign it\n\n"
    "Conversation so far:\n- kailai: Hi\n- max: Hello\n\nUser message:\nGo on"
)
FRAMEWORK = {"framework__context": "Hand over."}


def assemble(given: AssemblerInput) -> AssemblerOutput:
    return GEMINI.assemble(given)


def test_get_agent_type_returns_google_gemini() -> None:
    assert GEMINI.get_agent_type() == "google-gemini"


def test_headings_are_plain_words() -> None:
    assert replace(assemble(FULL), blocks=()) == AssemblerOutput(FULL_PROMPT, None, message_at=len(FULL_PROMPT) - 5)


def test_headings_have_no_brackets() -> None:
    given = replace(FULL, contexts=FRAMEWORK, request="Build it", turn_note="kailai asks you.")

    assert "[" not in assemble(given).prompt


def test_empty_sections_are_not_emitted() -> None:
    assert assemble(AssemblerInput(current_message="Go on", team_task=" ", system_instruction=" ")).prompt == (
        "User message:\nGo on"
    )
    assert assemble(AssemblerInput(system_instruction="You are Carol")).prompt == "Instructions:\nYou are Carol"
    assert assemble(AssemblerInput()).prompt == ""


def test_framework_request_and_turn_note_have_their_places() -> None:
    output = assemble(replace(FULL, contexts=FRAMEWORK, request="Build it", turn_note="kailai asks you."))

    assert output.prompt == FULL_PROMPT.replace("You are Carol", "You are Carol\n\nHand over.").replace(
        "User message:", "Request:\nBuild it\n\nThis turn:\nkailai asks you.\n\nUser message:"
    )
