"""What every `MessageLog` does. A test class inherits `MessageLogContract` and has a fixture `log`: an empty log."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from teamchat.core.errors import UsageError
from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Speaker
from teamchat.core.store.message_log import MessageLog

KAILAI = Speaker("kailai", "Kai Lai", type="human")
MAX = Speaker("max", "Max", role_title="Architect", type="ai")


def draft(content: str, speaker: Speaker = KAILAI) -> NewMessage:
    return NewMessage(content, speaker, timestamp=1_700_000_000_000)


def stored(message_id: str, content: str = "Hi") -> ConversationMessage:
    return draft(content).stored_as(message_id)


def ids(messages: Sequence[ConversationMessage]) -> list[str]:
    return [message.id for message in messages]


class MessageLogContract:
    @pytest.fixture
    def filled(self, log: MessageLog) -> MessageLog:
        """The log with `msg-1` to `msg-7` in it."""
        for number in range(1, 8):
            log.append(draft(f"message {number}"))
        return log

    def test_a_new_log_is_empty(self, log: MessageLog) -> None:
        assert log.latest() is None
        assert ids(log.all()) == []
        assert log.team_task is None

    def test_append_numbers_messages_from_one(self, log: MessageLog) -> None:
        assert [log.append(draft(text)).id for text in ("a", "b", "c")] == ["msg-1", "msg-2", "msg-3"]

    @pytest.mark.parametrize("speaker", [KAILAI, MAX, Speaker("teamchat", "teamchat", type="system")])
    def test_append_keeps_the_whole_message(self, log: MessageLog, speaker: Speaker) -> None:
        routing = Routing(("max", "sarah"), ("[NEXT: max, sarah]",))
        whole = NewMessage("Hi", speaker, routing, timestamp=1_700_000_000_123)

        message = log.append(whole)

        assert message == whole.stored_as("msg-1")
        assert log.get("msg-1") == message

    @pytest.mark.parametrize(
        "content",
        [
            "",
            " [NEXT: max]  two  spaces \n\n\ttab\r\n ",
            "水 🙂 \u202e \x1b[31m",
            "a\0b",
            "x" * 1_000_000,
            "é\n水🙂" * 700_000,
        ],
    )
    def test_content_is_kept_verbatim(self, log: MessageLog, content: str) -> None:
        log.append(draft(content))

        assert log.get("msg-1").content == content

    def test_latest_is_the_newest(self, filled: MessageLog) -> None:
        latest = filled.latest()

        assert latest == stored("msg-7", "message 7")

    def test_latest_up_to_a_message_is_that_message(self, filled: MessageLog) -> None:
        latest = filled.latest("msg-3")

        assert latest == stored("msg-3", "message 3")

    def test_window_has_the_newest_before_a_message_in_order(self, filled: MessageLog) -> None:
        assert ids(filled.window("msg-6", 3)) == ["msg-3", "msg-4", "msg-5"]

    def test_window_has_no_more_than_there_is(self, filled: MessageLog) -> None:
        assert ids(filled.window("msg-3", 100)) == ["msg-1", "msg-2"]

    def test_nothing_is_before_the_first_message(self, filled: MessageLog) -> None:
        assert ids(filled.window("msg-1", 3)) == []

    def test_a_window_of_nothing_is_empty(self, filled: MessageLog) -> None:
        assert ids(filled.window("msg-6", 0)) == []

    def test_all_has_every_message_in_order(self, filled: MessageLog) -> None:
        assert ids(filled.all()) == [f"msg-{number}" for number in range(1, 8)]

    def test_all_is_a_copy(self, filled: MessageLog) -> None:
        before = filled.all()
        filled.append(draft("later"))

        assert len(before) == 7

    def test_an_unknown_id_is_a_key_error(self, filled: MessageLog) -> None:
        with pytest.raises(KeyError):
            filled.get("msg-8")
        with pytest.raises(KeyError):
            filled.latest("msg-8")
        with pytest.raises(KeyError):
            filled.window("msg-8", 3)
        with pytest.raises(KeyError):
            filled.get("no id of this log")

    def test_the_task_is_kept_until_it_is_changed(self, log: MessageLog) -> None:
        log.team_task = "Design it\n水"
        assert log.team_task == "Design it\n水"

        log.team_task = None
        assert log.team_task is None

    def test_restore_fills_an_empty_log_with_messages_and_a_task(self, log: MessageLog) -> None:
        taken = (stored("msg-9", "nine"), stored("msg-4", "four"))

        log.restore(taken, "another task")

        assert list(log.all()) == list(taken)
        assert log.latest() == taken[1]
        assert log.team_task == "another task"

    def test_restore_into_a_log_with_messages_is_refused_and_changes_nothing(self, filled: MessageLog) -> None:
        filled.team_task = "task"
        before = filled.all()

        with pytest.raises(UsageError):
            filled.restore([stored("msg-9")], "another task")

        assert (filled.all(), filled.team_task) == (before, "task")

    @pytest.mark.parametrize(
        ("taken", "following"),
        [
            ([], "msg-1"),
            (["msg-2", "msg-10", "msg-9"], "msg-11"),
            (["m1", "msg-", "msg-x", "xmsg-50", "msg-50x"], "msg-1"),
            (["m1", "msg-3"], "msg-4"),
            (["msg-" + "9" * 30, "msg-3"], "msg-4"),
            (["msg-" + "9" * 5000, "msg-3"], "msg-4"),
            (["msg-" + "9" * 18, "msg-1" + "0" * 18, "msg-1" + "0" * 17 + "1"], "msg-1" + "0" * 17 + "2"),
        ],
    )
    def test_the_next_id_follows_from_the_ids_taken_over(
        self, log: MessageLog, taken: list[str], following: str
    ) -> None:
        log.restore(map(stored, taken), None)

        assert log.append(draft("next")).id == following
        made = ids(log.all()) + [log.append(draft("again")).id for _ in range(3)]
        assert len(set(made)) == len(made)

    def test_order_is_that_of_the_messages_not_of_their_ids(self, log: MessageLog) -> None:
        log.restore(map(stored, ["msg-9", "m1", "msg-4"]), None)
        log.append(draft("next"))

        assert ids(log.window("msg-10", 2)) == ["m1", "msg-4"]
