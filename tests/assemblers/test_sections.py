from __future__ import annotations

import pytest
from msgspec.structs import replace

from teamchat.assemblers.budget import fit
from teamchat.assemblers.parts import LAYERS, AssemblerInput, PromptContextMessage, Trimmed
from teamchat.assemblers.sections import PLAIN, PromptFormat, addressed, lay_out, render, system_body
from teamchat.assemblers.truncation import TruncationPolicy

FORMAT = PromptFormat(
    speaker=addressed, layers=PLAIN, system="S", task="T", history="H", request="R", turn="N", message="M"
)


def prompt(given: AssemblerInput) -> str:
    return render(lay_out(given, FORMAT), Trimmed()).prompt


@pytest.mark.parametrize(
    ("instruction", "file_text", "body"),
    [
        (None, None, ""),
        ("", "", ""),
        ("You are Max", None, "You are Max"),
        (None, "Always be helpful", "Always be helpful"),
        ("You are Max", "Always be helpful", "You are Max\n\nAlways be helpful"),
        ("  ", "text", "text"),
        ("text", " \n\t", "text"),
        (" \n", "\t ", ""),
        ("  You are Max\n", "\n Always be helpful ", "You are Max\n\nAlways be helpful"),
    ],
)
def test_system_body_joins_what_is_not_blank(instruction: str | None, file_text: str | None, body: str) -> None:
    assert system_body(instruction, file_text) == body


@pytest.mark.parametrize("blank", [None, "", "  \n "])
def test_blank_framework_leaves_the_system_text_as_it_is(blank: str | None) -> None:
    assert system_body("You are Max", "Be brief", blank) == "You are Max\n\nBe brief"


def test_sections_stand_in_order_with_one_blank_line_between() -> None:
    given = AssemblerInput(
        context_messages=(PromptContextMessage("a", "one", "b"), PromptContextMessage("b", "two")),
        current_message="message",
        team_task="task",
        system_instruction="instruction",
        instruction_file_text="file",
        contexts={"framework__context": "framework"},
        turn_note="note",
        request="request",
    )

    assert prompt(given) == (
        "S\ninstruction\n\nfile\n\nframework\n\nT\ntask\n\nH\n- a -> b: one\n- b -> all: two"
        "\n\nR\nrequest\n\nN\nnote\n\nM\nmessage"
    )


def test_layers_stand_in_their_order_between_the_task_and_the_history() -> None:
    contexts = {name: name.removesuffix("__context") for name in reversed(LAYERS)}
    said = (PromptContextMessage("a", "one", "b"),)
    given = AssemblerInput(said, "message", "task", "instruction", contexts=contexts)

    assert prompt(given) == (
        "S\ninstruction\n\nframework\n\nT\ntask\n\nExperience:\nexperience\n\nKnowledge:\nknowledge"
        "\n\nTo do:\ntodo\n\nSummary so far:\ncompression\n\nDifferences:\ndifferences\n\nResults:\nresults"
        "\n\nH\n- a -> b: one\n\nM\nmessage"
    )


def test_a_fence_is_around_what_was_said_and_around_nothing_else() -> None:
    given = AssemblerInput(
        context_messages=(PromptContextMessage("a", " one\n", "b"), PromptContextMessage("b", "two")),
        current_message=" message ",
        team_task="task",
        turn_note="note",
        request="request",
        fence="0123abcd",
    )

    assert prompt(given) == (
        "T\ntask\n\nH\n- a -> b: <said-0123abcd>\n one\n\n</said-0123abcd>\n- b -> all: <said-0123abcd>\ntwo"
        "\n</said-0123abcd>\n\nR\n<said-0123abcd>\nrequest\n</said-0123abcd>\n\nN\nnote\n\nM\n<said-0123abcd>\nmessage"
        "\n</said-0123abcd>"
    )


@pytest.mark.parametrize("fence", [None, "0123abcd"])
def test_blank_sections_are_left_out(fence: str | None) -> None:
    blank = AssemblerInput(
        fence=fence,
        current_message=" \n",
        team_task=" ",
        system_instruction="\t",
        instruction_file_text="",
        contexts={"framework__context": " "},
        turn_note="\n",
        request=" ",
    )

    assert prompt(blank) == ""


def test_history_content_stays_as_it_is() -> None:
    content = "  def f():\n\n      return '[MESSAGE]'  \n"

    given = AssemblerInput((PromptContextMessage("max", content, "sarah, carol"),))

    assert lay_out(given, FORMAT).history == (f"- max -> sarah, carol: {content}",)


@pytest.mark.parametrize("nobody", [None, ""])
def test_a_message_to_nobody_in_particular_went_to_all(nobody: str | None) -> None:
    assert addressed("max", nobody) == "- max -> all: "


def test_message_at_is_where_the_messages_own_text_begins() -> None:
    output = render(lay_out(AssemblerInput(current_message=" M\nM ", team_task="M\nM"), FORMAT), Trimmed())

    assert output.prompt == "T\nM\nM\n\nM\nM\nM"
    assert output.message_at == 9


def test_with_a_fence_the_messages_own_text_begins_inside_it() -> None:
    output = render(lay_out(AssemblerInput(current_message="M", fence="0123abcd"), FORMAT), Trimmed())

    assert output.prompt[output.message_at :] == "M\n</said-0123abcd>"


def test_without_a_message_there_is_no_place_of_it() -> None:
    assert render(lay_out(AssemblerInput(team_task="task"), FORMAT), Trimmed()).message_at is None


def test_the_blocks_are_all_that_is_sent_but_for_the_lines_between() -> None:
    given = AssemblerInput(
        context_messages=(PromptContextMessage("a", "one", "b"), PromptContextMessage("b", "two")),
        current_message="message",
        team_task="task",
        system_instruction="instruction",
        contexts={name: name for name in LAYERS},
        turn_note="note",
        request="request",
    )
    output = render(lay_out(given, FORMAT), Trimmed())

    assert [block.name for block in output.blocks] == [
        "system", "task", *(name for name in LAYERS if name != "framework__context"),
        "history", "request", "turn", "message",
    ]  # fmt: skip
    assert sum(block.bytes for block in output.blocks) + 2 * (len(output.blocks) - 1) == len(output.prompt.encode())
    assert [block.messages for block in output.blocks if block.name == "history"] == [2]


def test_a_long_message_of_the_history_loses_its_middle_and_the_current_one_does_not() -> None:
    long = "begin" + "x" * 400 + "end"
    said = (PromptContextMessage("a", long), PromptContextMessage("b", "short"))
    given = AssemblerInput(said, long, per_message=TruncationPolicy(20, "tokens"))
    parts, trimmed = fit(lay_out(given, FORMAT), 10_000)

    assert parts.history[0].startswith("- a -> all: beginx")
    assert "tokens truncated…x" in parts.history[0]
    assert parts.history[1] == "- b -> all: short"
    assert parts.message.body == long
    assert replace(trimmed, bytes=0, limit=None) == Trimmed(long_messages=1)
