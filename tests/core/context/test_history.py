from __future__ import annotations

import pytest

from teamchat.assemblers.parts import PromptContextMessage
from teamchat.core.context.history import Context, deduplicate, format_addressees, read_context
from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Said, Speaker
from teamchat.core.store.message_log import MemoryLog

KAILAI = Speaker("u1", "kailai", type="human")
MAX = Speaker("m1", "max", type="ai")
SARAH = Speaker("s1", "sarah", type="ai")


def log_of(*messages: tuple[Speaker, str]) -> MemoryLog:
    log = MemoryLog()
    for speaker, content in messages:
        log.append(NewMessage(content, speaker))
    return log


def said(speaker: Speaker, text: str, message_id: str) -> Said:
    return Said(NewMessage(text, speaker).stored_as(message_id), text)


@pytest.mark.parametrize(
    ("names", "formatted"),
    [
        ((), "all"),
        (("max",), "max"),
        (("max", "sarah"), "max, sarah"),
        (("max", "sarah", "carol"), "max, sarah, carol"),
    ],
)
def test_addressees_are_listed(names: tuple[str, ...], formatted: str) -> None:
    assert format_addressees(names) == formatted


class TestDeduplicate:
    def test_ai_to_ai_dedup_with_same_id(self) -> None:
        first, again = said(KAILAI, "Hi", "msg-1"), said(MAX, "Hello", "msg-2")

        assert deduplicate([first, again], said(MAX, "Hello, edited", "msg-2")) == [first]
        assert deduplicate([first, first, again], said(MAX, "Hello, edited", "msg-2")) == [first, first]

    def test_ai_to_ai_dedup_with_same_speaker_and_content(self) -> None:
        first, again = said(KAILAI, "Hi", "msg-1"), said(MAX, "Hello", "msg-2")

        assert deduplicate([first, again], said(MAX, "Hello", "msg-3")) == [first]

    def test_ai_to_ai_no_dedup_with_different_speaker(self) -> None:
        history = [said(SARAH, "Hello", "msg-2")]

        assert deduplicate(history, said(MAX, "Hello", "msg-3")) == history

    def test_ai_to_ai_no_dedup_with_different_content(self) -> None:
        history = [said(MAX, "Hi", "msg-2")]

        assert deduplicate(history, said(MAX, "Hello", "msg-3")) == history

    def test_human_message_no_dedup(self) -> None:
        history = [said(KAILAI, "Hi", "msg-1")]

        assert deduplicate(history, said(KAILAI, "Hi", "msg-1")) == history

    def test_only_the_last_is_looked_at(self) -> None:
        history = [said(MAX, "Hello", "msg-1"), said(KAILAI, "Hi", "msg-2")]

        assert deduplicate(history, said(MAX, "Hello", "msg-3")) == history

    def test_without_history_there_is_nothing_to_drop(self) -> None:
        assert deduplicate([], said(MAX, "Hello", "msg-1")) == []


def test_markers_are_read_as_their_authors_may_use_them() -> None:
    """FROM is a marker in a human's message and text in an agent's."""
    log = log_of((KAILAI, "[FROM: kailai] Hi [NEXT: max]"), (MAX, "[FROM: kailai] is said so [NEXT: sarah]"))

    context = read_context(log, 5, None)

    assert context.current == "[FROM: kailai] is said so"
    assert context.history == (PromptContextMessage("kailai", "Hi", "all"),)


def test_messages_of_markers_only_are_passed_over_and_do_not_count() -> None:
    log = log_of(
        (KAILAI, "one"), (MAX, "two"), (KAILAI, "[NEXT: max]"), (MAX, "three"), (KAILAI, " \n"), (SARAH, "[NEXT: max]")
    )

    context = read_context(log, 2, None)

    assert context.current == "three"
    assert [message.content for message in context.history] == ["one", "two"]


def test_an_agents_escape_sequences_are_not_quoted_and_are_no_text() -> None:
    log = log_of((MAX, "\x1b[31mred\x1b[0m"), (MAX, "\x1b[31m \x1b[0m"), (KAILAI, "\x1b[31mhuman"))

    context = read_context(log, 5, None)

    assert context.current == "\x1b[31mhuman"
    assert context.history == (PromptContextMessage("max", "red", "all"),)


def test_a_context_names_the_message_it_answers_and_all_that_it_shows() -> None:
    log = log_of((KAILAI, "one"), (KAILAI, "two"), (KAILAI, "[NEXT: max]"), (MAX, "three"), (KAILAI, "[NEXT: max]"))

    context = read_context(log, 1, None)

    assert context.answers == log.get("msg-4")
    assert context.shown == ("msg-2", "msg-4")


def test_up_to_hides_what_came_later() -> None:
    log = log_of((KAILAI, "one"), (MAX, "two"), (SARAH, "three"))

    context = read_context(log, 5, "msg-2")

    assert context.current == "two"
    assert [message.content for message in context.history] == ["one"]


def test_up_to_a_message_of_markers_only_stands_at_the_last_text_before_it() -> None:
    log = log_of((KAILAI, "one"), (MAX, "two"), (KAILAI, "[NEXT: max]"), (SARAH, "three"))

    assert read_context(log, 5, "msg-3").current == "two"


def test_up_to_an_unknown_message_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        read_context(log_of((KAILAI, "one")), 5, "msg-2")


def test_without_any_text_there_is_no_context() -> None:
    assert read_context(log_of((KAILAI, "[NEXT: max]"), (KAILAI, "")), 5, None) == Context("", ())


def test_addressees_are_those_of_the_routing() -> None:
    log = log_of()
    log.append(NewMessage("Hi", KAILAI, Routing(("max", "sarah"))))
    log.append(NewMessage("Go on", MAX))

    assert read_context(log, 5, None).history == (PromptContextMessage("kailai", "Hi", "max, sarah"),)


class CountingLog(MemoryLog):
    """Counts the messages it gives out."""

    given_out = 0

    def latest(self, up_to: str | None = None) -> ConversationMessage | None:
        self.given_out += 1
        return super().latest(up_to)

    def window(self, before_id: str, size: int) -> list[ConversationMessage]:
        page = super().window(before_id, size)
        self.given_out += len(page)
        return page

    def all(self) -> list[ConversationMessage]:
        raise AssertionError("a context is never built from the whole log")


@pytest.mark.parametrize("length", [20, 5000])
@pytest.mark.parametrize(("window", "read"), [(0, 1), (1, 2), (5, 6)])
def test_the_cost_is_that_of_the_window_however_long_the_log_is(length: int, window: int, read: int) -> None:
    log = CountingLog()
    for number in range(length):
        log.append(NewMessage(f"message {number}", KAILAI))

    context = read_context(log, window, None)

    assert len(context.history) == window
    assert log.given_out == read


class RepeatingLog(MemoryLog):
    """Gives out the current message once more, as the last one before it."""

    def window(self, before_id: str, size: int) -> list[ConversationMessage]:
        return [*super().window(before_id, size - 1), self.get(before_id)] if before_id == "msg-2" else []


def test_a_log_that_repeats_the_current_message_is_deduplicated() -> None:
    log = RepeatingLog()
    log.append(NewMessage("Hi", KAILAI))
    log.append(NewMessage("Hello", MAX))

    context = read_context(log, 5, None)

    assert context.current == "Hello"
    assert context.history == (PromptContextMessage("kailai", "Hi", "all"),)
