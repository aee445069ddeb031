"""Claude's prompt and system flag byte for byte: with every section, without some, and within a budget."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from teamchat.assemblers.formats import CLAUDE
from teamchat.assemblers.parts import AssemblerInput, AssemblerOutput, PromptContextMessage, Trimmed

FULL = AssemblerInput(
    context_messages=(
        PromptContextMessage(from_="kailai", to="max", content="Hi, please help design a feature"),
        PromptContextMessage(from_="max", to="sarah", content="I suggest using a microservice architecture"),
    ),
    current_message="What do you think about this approach?",
    team_task="Design a user authentication system",
    system_instruction="You are Sarah, a backend engineer",
    instruction_file_text="Focus on security and scalability",
)
FULL_PROMPT = """\
[TEAM_TASK]
Design a user authentication system

[CONTEXT]
- kailai -> max: Hi, please help design a feature
- max -> sarah: I suggest using a microservice architecture

[MESSAGE]
What do you think about this approach?"""
FULL_SYSTEM = "You are Sarah, a backend engineer\n\nFocus on security and scalability"


def assemble(given: AssemblerInput) -> AssemblerOutput:
    return CLAUDE.assemble(given)


def size(output: AssemblerOutput) -> int:
    return len(output.prompt.encode()) + len((output.system_flag or "").encode())


def test_get_agent_type_returns_claude_code() -> None:
    assert CLAUDE.get_agent_type() == "claude-code"


class TestAssemble:
    def test_produces_correct_format_with_all_sections(self) -> None:
        assert assemble(FULL).prompt == FULL_PROMPT

    def test_separates_system_flag_from_prompt(self) -> None:
        output = assemble(FULL)

        assert output.system_flag == FULL_SYSTEM
        assert "You are Sarah" not in output.prompt

    def test_joins_system_instruction_and_instruction_file_text(self) -> None:
        given = AssemblerInput(system_instruction="You are Max", instruction_file_text="Always be helpful")

        assert assemble(given).system_flag == "You are Max\n\nAlways be helpful"

    def test_without_task_and_context_only_the_message_is_left(self) -> None:
        given = AssemblerInput(current_message="Hello", system_instruction="You are Max")

        assert replace(assemble(given), blocks=()) == AssemblerOutput("[MESSAGE]\nHello", "You are Max", message_at=10)

    def test_without_instructions_the_prompt_is_all(self) -> None:
        given = AssemblerInput(current_message="Hello", team_task="Build a feature")

        assert replace(assemble(given), blocks=()) == AssemblerOutput(
            "[TEAM_TASK]\nBuild a feature\n\n[MESSAGE]\nHello", None, message_at=39
        )

    def test_framework_request_and_turn_note_have_their_places(self) -> None:
        given = replace(
            FULL,
            contexts={"framework__context": "Hand over with a marker."},
            request="Build it",
            turn_note="kailai asks you.",
        )

        output = assemble(given)

        assert output.system_flag == FULL_SYSTEM + "\n\nHand over with a marker."
        assert output.prompt == FULL_PROMPT.replace(
            "[MESSAGE]", "[REQUEST]\nBuild it\n\n[TURN]\nkailai asks you.\n\n[MESSAGE]"
        )


class TestEmptySectionHandling:
    def test_omits_team_task_when_team_task_is_none(self) -> None:
        assert "[TEAM_TASK]" not in assemble(replace(FULL, team_task=None)).prompt

    def test_omits_team_task_when_team_task_is_whitespace(self) -> None:
        assert "[TEAM_TASK]" not in assemble(replace(FULL, team_task="  ")).prompt

    def test_omits_context_when_context_messages_is_empty(self) -> None:
        assert "[CONTEXT]" not in assemble(replace(FULL, context_messages=())).prompt

    def test_omits_message_when_current_message_is_empty(self) -> None:
        output = assemble(replace(FULL, current_message=""))

        assert "[MESSAGE]" not in output.prompt
        assert output.message_at is None

    def test_returns_empty_prompt_when_all_sections_empty(self) -> None:
        assert replace(assemble(AssemblerInput()), blocks=()) == AssemblerOutput("", None)

    def test_returns_no_system_flag_when_no_instructions(self) -> None:
        assert assemble(AssemblerInput(current_message="Hello")).system_flag is None


class TestBuildSystemFlag:
    @pytest.mark.parametrize(
        ("instruction", "file_text", "flag"),
        [
            pytest.param(None, None, None, id="returns None when both are None"),
            pytest.param("You are Max", None, "You are Max", id="returns system_instruction only"),
            pytest.param(None, "Always be helpful", "Always be helpful", id="returns instruction_file_text only"),
            pytest.param("You are Max", "Be helpful", "You are Max\n\nBe helpful", id="joins both with double newline"),
            pytest.param(" You are Max\n", "\tBe helpful ", "You are Max\n\nBe helpful", id="trims whitespace"),
            pytest.param("  ", "text", "text", id="ignores whitespace-only instruction"),
            pytest.param("  ", "\n", None, id="ignores whitespace-only inputs"),
        ],
    )
    def test_system_flag(self, instruction: str | None, file_text: str | None, flag: str | None) -> None:
        given = AssemblerInput(system_instruction=instruction, instruction_file_text=file_text)

        assert assemble(given).system_flag == flag


class TestByteBudget:
    whole = size(assemble(FULL))

    def test_returns_unchanged_when_within_budget(self) -> None:
        assert assemble(replace(FULL, max_bytes=self.whole)) == assemble(FULL)

    def test_trims_oldest_context_messages_first(self) -> None:
        output = assemble(replace(FULL, max_bytes=self.whole - 1))

        assert output.prompt == FULL_PROMPT.replace("- kailai -> max: Hi, please help design a feature\n", "")
        assert replace(output.trimmed, bytes=0, limit=None) == Trimmed(history_messages=1)

    def test_preserves_message_section(self) -> None:
        output = assemble(replace(FULL, max_bytes=180))

        assert output.prompt.endswith("[MESSAGE]\nWhat do you think about this approach?")
        assert replace(output.trimmed, bytes=0, limit=None) == Trimmed(history_messages=2)

    def test_preserves_team_task_section(self) -> None:
        output = assemble(replace(FULL, current_message="a" * 500, max_bytes=200))

        assert output.prompt.startswith("[TEAM_TASK]\nDesign a user authentication system\n\n[MESSAGE]\naa")
        assert " tokens truncated…" in output.prompt
        assert size(output) == 200

    def test_does_not_trim_system_flag(self) -> None:
        assert assemble(replace(FULL, current_message="a" * 500, max_bytes=200)).system_flag == FULL_SYSTEM


class TestFormatValidation:
    def test_uses_correct_section_markers(self) -> None:
        headings = [line for line in assemble(FULL).prompt.splitlines() if line.startswith("[")]

        assert headings == ["[TEAM_TASK]", "[CONTEXT]", "[MESSAGE]"]

    def test_uses_correct_context_message_format(self) -> None:
        given = AssemblerInput(context_messages=(PromptContextMessage("max", "Hi", "sarah, carol"),))

        assert assemble(given).prompt == "[CONTEXT]\n- max -> sarah, carol: Hi"

    def test_separates_sections_with_double_newline(self) -> None:
        assert [section.split("\n")[0] for section in assemble(FULL).prompt.split("\n\n")] == [
            "[TEAM_TASK]",
            "[CONTEXT]",
            "[MESSAGE]",
        ]

    def test_preserves_newlines_brackets_and_unicode_within_content(self) -> None:
        text = "one\n\n  two [NEXT:x] [MESSAGE]\n水 🙂"
        given = AssemblerInput((PromptContextMessage("max", text),), current_message=text, team_task=text)

        assert assemble(given).prompt == f"[TEAM_TASK]\n{text}\n\n[CONTEXT]\n- max -> all: {text}\n\n[MESSAGE]\n{text}"


def system_flag(system_instruction: str | None, instruction_file_text: str | None) -> str | None:
    given = AssemblerInput(system_instruction=system_instruction, instruction_file_text=instruction_file_text)
    return assemble(given).system_flag


class TestSystemFlag:
    def test_returns_none_when_both_are_none(self) -> None:
        assert system_flag(None, None) is None

    def test_returns_system_instruction_only(self) -> None:
        assert system_flag("You are Max", None) == "You are Max"

    def test_returns_instruction_file_text_only(self) -> None:
        assert system_flag(None, "Always be helpful") == "Always be helpful"

    def test_joins_both_with_double_newline(self) -> None:
        assert system_flag("You are Max", "Always be helpful") == "You are Max\n\nAlways be helpful"

    def test_trims_whitespace_from_inputs(self) -> None:
        assert system_flag("  You are Max\n", "\n\tAlways be helpful ") == "You are Max\n\nAlways be helpful"

    def test_ignores_whitespace_only_inputs(self) -> None:
        assert system_flag(" \n", "\t") is None
        assert system_flag(" \n", "Always be helpful") == "Always be helpful"
