from __future__ import annotations

import pytest
from hypothesis import given as with_each
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.assemblers.budget import fit
from teamchat.assemblers.formats import CLAUDE, CODEX, GEMINI, PLAIN_TEXT
from teamchat.assemblers.parts import (
    DIFFERENCES,
    KNOWLEDGE,
    LAYERS,
    LESSONS,
    RESULTS,
    SUMMARY,
    TODO,
    Assembler,
    AssemblerInput,
    AssemblerOutput,
    BudgetExceeded,
    PromptContextMessage,
    Trimmed,
)
from teamchat.assemblers.sections import (
    BLOCKS,
    BRACKETED,
    PLAIN,
    Parts,
    PromptFormat,
    Section,
    addressed,
    lay_out,
    render,
)
from teamchat.assemblers.truncation import least_bytes

ASSEMBLERS: list[Assembler] = [CLAUDE, CODEX, GEMINI, PLAIN_TEXT]
PLENTY = 10**9

LONG = AssemblerInput(
    context_messages=tuple(PromptContextMessage("max", f"message {n} " + "x" * 50) for n in range(5)),
    current_message="begin" + "m" * 400 + "end",
    team_task="task",
    system_instruction="instruction",
    contexts={"framework__context": "framework"},
    turn_note="note",
    request="first" + "r" * 400 + "last",
)

words = st.text(max_size=30) | st.text("aé水🙂 \n", max_size=150)
inputs = st.builds(
    AssemblerInput,
    context_messages=st.lists(st.builds(PromptContextMessage, words, words, st.none() | words)).map(tuple),
    current_message=words,
    team_task=st.none() | words,
    system_instruction=st.none() | words,
    instruction_file_text=st.none() | words,
    max_bytes=st.integers(0, 800),
    contexts=st.dictionaries(st.sampled_from(LAYERS), words),
    turn_note=st.none() | words,
    request=st.none() | words,
    fence=st.sampled_from([None, "0123abcd"]),
)
headings = st.sampled_from(["", "[X]", "水:"])
formats = st.builds(
    PromptFormat,
    speaker=st.just(addressed),
    layers=st.sampled_from([BRACKETED, PLAIN, dict.fromkeys(BLOCKS, "")]),
    system=headings,
    task=headings,
    history=headings,
    request=headings,
    turn=headings,
    message=headings,
    system_apart=st.booleans(),
)


FENCED = replace(LONG, fence="0123abcd")


def size(output: AssemblerOutput) -> int:
    return len(output.prompt.encode()) + len((output.system_flag or "").encode())


def least(given: AssemblerInput, form: PromptFormat) -> int:
    """What the prompt takes with its message and request cut to their marker, no history and no layers."""
    parts = lay_out(given, form)
    message, request = (replace(s, body="?" * least_bytes(s.body)) for s in (parts.message, parts.request))
    return size(render(replace(parts, history=(), layers={}, message=message, request=request), Trimmed()))


@with_each(inputs, formats)
def test_a_prompt_is_within_the_budget_or_refused(given: AssemblerInput, form: PromptFormat) -> None:
    parts, needed = lay_out(given, form), least(given, form)
    if needed > given.max_bytes:
        with pytest.raises(BudgetExceeded) as raised:
            fit(parts, given.max_bytes)
        assert (raised.value.needed, raised.value.allowed) == (needed, given.max_bytes)
    else:
        assert size(render(*fit(parts, given.max_bytes))) <= given.max_bytes


@with_each(inputs, formats)
def test_what_is_said_to_be_needed_is_enough(given: AssemblerInput, form: PromptFormat) -> None:
    needed = least(given, form)

    assert size(render(*fit(lay_out(given, form), needed))) <= needed


@with_each(inputs, formats, st.integers(0, 600))
def test_pieces_stay_whole_or_are_cut_in_order_of_their_worth(
    given: AssemblerInput, form: PromptFormat, more: int
) -> None:
    parts = lay_out(given, form)
    budget = least(given, form) + more

    kept, trimmed = fit(parts, budget)

    assert (kept.system_flag, kept.opening, kept.turn) == (parts.system_flag, parts.opening, parts.turn)
    assert kept.history == parts.history[trimmed.history_messages :]
    assert (kept.message == parts.message) == (trimmed.message_bytes == 0)
    assert (kept.request == parts.request) == (trimmed.request_bytes == 0)
    assert trimmed.layers == tuple(name for name in parts.layers if name not in kept.layers)
    if trimmed.history_messages:
        assert set(kept.layers) <= {SUMMARY, DIFFERENCES, RESULTS}
    if trimmed.message_bytes:
        assert kept.history == ()
        assert not kept.layers
    worth = [name for name in (TODO, LESSONS, KNOWLEDGE) if name in parts.layers]
    assert [name for name in worth if name in kept.layers] == worth[: len(set(worth) & set(kept.layers))]
    if trimmed.message_bytes and len(parts.request.body.encode()) > least_bytes(parts.request.body):
        assert len(kept.request.body.encode()) == least_bytes(parts.request.body)


def kept_longest(parts: Parts) -> dict[str, Section]:
    return {name: section for name, section in parts.layers.items() if name in (SUMMARY, DIFFERENCES, RESULTS)}


@with_each(inputs, formats, st.integers(0, 600))
def test_no_more_history_is_dropped_than_is_needed(given: AssemblerInput, form: PromptFormat, more: int) -> None:
    parts = lay_out(given, form)
    budget = least(given, form) + more

    kept, trimmed = fit(parts, budget)

    if trimmed.history_messages:
        one_more = replace(kept, history=parts.history[trimmed.history_messages - 1 :], layers=kept_longest(kept))
        assert size(render(one_more, trimmed)) > budget


@with_each(inputs, st.sampled_from(ASSEMBLERS))
def test_within_the_budget_nothing_changes(given: AssemblerInput, assembler: Assembler) -> None:
    whole = assembler.assemble(replace(given, max_bytes=PLENTY))

    assert assembler.assemble(replace(given, max_bytes=size(whole))) == whole
    assert not whole.trimmed


@with_each(inputs, st.sampled_from(ASSEMBLERS))
def test_the_prompt_ends_with_the_message_from_its_place_on(given: AssemblerInput, assembler: Assembler) -> None:
    output = assembler.assemble(replace(given, max_bytes=PLENTY))

    message = output.prompt[len(output.prompt) if output.message_at is None else output.message_at :]
    ending = "\n</said-0123abcd>" if given.fence and message else ""
    assert message == given.current_message.strip() + ending


@pytest.mark.parametrize("assembler", ASSEMBLERS, ids=lambda a: a.get_agent_type())
class TestEachAssembler:
    def test_a_byte_too_many_drops_the_oldest_message(self, assembler: Assembler) -> None:
        whole = size(assembler.assemble(LONG))

        output = assembler.assemble(replace(LONG, max_bytes=whole - 1))

        assert replace(output.trimmed, bytes=0, limit=None) == Trimmed(history_messages=1)
        assert "message 0" not in output.prompt
        assert "message 1" in output.prompt

    def test_fences_are_counted_and_never_cut(self, assembler: Assembler) -> None:
        bare = size(assembler.assemble(replace(FENCED, context_messages=())))

        output = assembler.assemble(replace(FENCED, max_bytes=bare - 500))

        assert bare == size(assembler.assemble(replace(LONG, context_messages=()))) + 2 * len(
            "<said-0123abcd>\n\n</said-0123abcd>"
        )
        assert "<said-0123abcd>\n…102 tokens truncated…\n</said-0123abcd>" in output.prompt
        assert output.prompt.endswith("mend\n</said-0123abcd>")
        assert (output.prompt.count("<said-"), output.prompt.count("</said-")) == (2, 2)
        assert size(output) == bare - 500

    def test_layers_go_before_history_knowledge_first_and_what_a_process_shows_last(self, assembler: Assembler) -> None:
        given = replace(LONG, contexts={name: f"{name} " + "y" * 40 for name in LAYERS})
        dropped = []
        for smaller in range(size(assembler.assemble(given)), 0, -1):
            output = assembler.assemble(replace(given, max_bytes=smaller))
            if (now := (*sorted(output.trimmed.layers), output.trimmed.history_messages)) not in dropped:
                dropped.append(now)
            if output.trimmed.message_bytes:
                break
        assert dropped[:4] == [(0,), (KNOWLEDGE, 0), (LESSONS, KNOWLEDGE, 0), (LESSONS, KNOWLEDGE, TODO, 0)]
        assert dropped[4:9] == [(LESSONS, KNOWLEDGE, TODO, messages) for messages in range(1, 6)]
        assert dropped[9][:-1] == (SUMMARY, LESSONS, KNOWLEDGE, TODO)
        assert dropped[-1][:-1] == (SUMMARY, DIFFERENCES, LESSONS, KNOWLEDGE, RESULTS, TODO)

    def test_the_newest_message_is_the_last_to_go(self, assembler: Assembler) -> None:
        alone = size(assembler.assemble(replace(LONG, context_messages=LONG.context_messages[-1:])))

        assert "message 4" in assembler.assemble(replace(LONG, max_bytes=alone)).prompt
        assert "message 4" not in assembler.assemble(replace(LONG, max_bytes=alone - 1)).prompt

    def test_without_history_the_request_is_cut_in_its_middle(self, assembler: Assembler) -> None:
        bare = size(assembler.assemble(replace(LONG, context_messages=())))

        output = assembler.assemble(replace(LONG, max_bytes=bare - 100))

        assert replace(output.trimmed, bytes=0, limit=None) == Trimmed(history_messages=5, request_bytes=125)
        assert "firstr" in output.prompt
        assert "r…31 tokens truncated…r" in output.prompt
        assert "rlast" in output.prompt
        assert output.prompt[output.message_at :] == LONG.current_message
        assert size(output) == bare - 100

    def test_the_message_is_cut_only_when_nothing_of_the_request_is_left(self, assembler: Assembler) -> None:
        bare = size(assembler.assemble(replace(LONG, context_messages=())))

        output = assembler.assemble(replace(LONG, max_bytes=bare - 500))

        message = output.prompt[output.message_at :]
        assert "firstr" not in output.prompt
        assert output.prompt.count("…102 tokens truncated…") == 1
        assert output.trimmed.request_bytes == 409
        assert message.startswith("beginm")
        assert message.endswith("mend")
        assert len(message.encode()) + output.trimmed.message_bytes > 408
        assert size(output) == bare - 500

    def test_task_system_text_framework_and_note_are_never_cut(self, assembler: Assembler) -> None:
        given = replace(LONG, context_messages=(), current_message="", request=None)
        needed = size(assembler.assemble(given))

        assert assembler.assemble(replace(given, max_bytes=needed)) == assembler.assemble(given)
        with pytest.raises(BudgetExceeded) as raised:
            assembler.assemble(replace(given, max_bytes=needed - 1))
        assert (raised.value.fixed, raised.value.needed, raised.value.allowed) == (needed, needed, needed - 1)

    def test_system_text_alone_is_measured_exactly(self, assembler: Assembler) -> None:
        given = AssemblerInput(system_instruction="You are Max")
        needed = size(assembler.assemble(given))

        assert size(assembler.assemble(replace(given, max_bytes=needed))) == needed
        with pytest.raises(BudgetExceeded):
            assembler.assemble(replace(given, max_bytes=needed - 1))

    def test_a_prompt_that_would_lose_its_message_is_refused(self, assembler: Assembler) -> None:
        given = AssemblerInput(current_message="Hello", team_task="task")
        needed = size(assembler.assemble(given))

        with pytest.raises(BudgetExceeded):
            assembler.assemble(replace(given, max_bytes=needed - 1))

    def test_no_input_makes_an_empty_prompt_whatever_the_budget(self, assembler: Assembler) -> None:
        assert replace(assembler.assemble(AssemblerInput(max_bytes=0)), blocks=()) == AssemblerOutput("", None)


class Measured(str):
    """A history line that counts how often it is measured."""

    __slots__ = ()
    times = 0

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        Measured.times += 1
        return super().encode(encoding, errors)


@pytest.mark.parametrize("budget", [100, 50_000, PLENTY])
def test_no_line_is_measured_more_than_twice(budget: int) -> None:
    """So the cost is linear in the history, however much of it is dropped."""
    given = AssemblerInput(tuple(PromptContextMessage("max", "é" * 99) for _ in range(1000)))
    parts = lay_out(given, PromptFormat(speaker=addressed, layers=PLAIN))
    parts = replace(parts, history=tuple(map(Measured, parts.history)))
    Measured.times = 0

    kept, _ = fit(parts, budget)

    assert Measured.times == 1000 + (len(kept.history) < 1000)  # the first that goes is measured to see that it does
