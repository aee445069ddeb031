"""`ContextManager`: messages, the task, what a member is given, and snapshots."""

from __future__ import annotations

import json
import logging
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from teamchat.assemblers.parts import TODO, AssemblerInput, PromptContextMessage
from teamchat.assemblers.truncation import TruncationPolicy
from teamchat.core.context.conversation_view import ContextManager, manager_of
from teamchat.core.errors import UsageError
from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Said, Speaker
from teamchat.core.store.database import Database
from teamchat.core.store.message_log import MemoryLog
from teamchat.core.store.sessions import create_session
from teamchat.core.team import wording
from tests.core.fake_conversation import Stage, team_of

KAILAI = Speaker("u1", "kailai", type="human")
MAX = Speaker("m1", "max", type="ai")
SARAH = Speaker("s1", "sarah", type="ai")


def say(manager: ContextManager, speaker: Speaker, *contents: str) -> None:
    for content in contents:
        manager.add_message(NewMessage(content, speaker))


def texts(given: AssemblerInput) -> list[str]:
    return [message.content for message in given.context_messages]


@pytest.fixture
def manager() -> ContextManager:
    return ContextManager()


class TestMessageManagement:
    def test_only_what_was_said_later_is_after_a_message(self, manager: ContextManager) -> None:
        say(manager, KAILAI, "One", "Two")
        ids = ("msg-1", "msg-2")
        assert [manager.is_after(one, other) for one in ids for other in ids] == [False, False, True, False]

    def test_add_message_stores_and_returns_message_with_generated_id(self, manager: ContextManager) -> None:
        draft = NewMessage("[NEXT: max] Hi", KAILAI, Routing(("max",)))

        added = manager.add_message(draft)

        assert added == draft.stored_as("msg-1")
        assert manager.get_messages() == [added]

    @pytest.mark.parametrize(
        ("message", "error"),
        [
            pytest.param(None, "Message cannot be null or undefined", id="null message"),
            pytest.param(NewMessage(123, KAILAI), "Message content must be a string", id="non-string content"),  # type: ignore[arg-type]
            pytest.param("Hi", "Message content must be a string", id="a bare string"),
            pytest.param(NewMessage("Hi", None), "Message speaker is required", id="missing speaker"),  # type: ignore[arg-type]
            pytest.param(
                NewMessage("Hi", Speaker("", "Max", type="ai")),
                "Message speaker.roleId is required",
                id="missing role id",
            ),
        ],
    )
    def test_add_message_throws_and_stores_nothing(
        self, manager: ContextManager, message: NewMessage, error: str
    ) -> None:
        with pytest.raises(TypeError) as raised:
            manager.add_message(message)

        assert str(raised.value) == error
        assert manager.get_messages() == []

    def test_get_messages_returns_shallow_copy(self, manager: ContextManager) -> None:
        say(manager, KAILAI, "Hi")

        manager.get_messages().clear()

        assert len(manager.get_messages()) == 1

    def test_get_messages_returns_empty_list_initially(self, manager: ContextManager) -> None:
        assert manager.get_messages() == []

    def test_get_messages_returns_all_messages_in_order(self, manager: ContextManager) -> None:
        say(manager, KAILAI, *(str(number) for number in range(20)))

        assert [message.content for message in manager.get_messages()] == [str(number) for number in range(20)]

    def test_get_latest_message_returns_none_when_empty(self, manager: ContextManager) -> None:
        assert manager.get_latest_message() is None

    def test_get_latest_message_returns_last_message(self, manager: ContextManager) -> None:
        say(manager, KAILAI, "one", "[NEXT: max]")

        latest = manager.get_latest_message()

        assert latest == manager.get_messages()[-1]

    def test_get_message_returns_the_one_of_that_id(self, manager: ContextManager) -> None:
        say(manager, KAILAI, "one", "two")

        assert manager.get_message("msg-1").content == "one"
        with pytest.raises(KeyError):
            manager.get_message("msg-3")

    def test_messages_are_kept_as_they_were_said(self, manager: ContextManager) -> None:
        say(manager, KAILAI, " [NEXT: max]  two  spaces \n")

        assert manager.get_messages()[0].content == " [NEXT: max]  two  spaces \n"

    def test_lone_surrogates_become_the_replacement_character(self, manager: ContextManager) -> None:
        say(manager, KAILAI, "a\ud800b")

        assert manager.get_messages()[0].content == "a\ufffdb"

    def test_a_message_that_has_an_id_gets_one_of_this_conversation(self, manager: ContextManager) -> None:
        added = manager.add_message(NewMessage("Hi", KAILAI).stored_as("msg-77"))

        assert added.id == "msg-1"

    def test_adding_is_logged_for_debugging(self, manager: ContextManager, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.DEBUG):
            say(manager, KAILAI, "Hi")

        assert caplog.messages == ["[ContextManager] Message added: msg-1"]

    def test_add_message_calls_on_message_added_hook(self) -> None:
        told: list[ConversationMessage] = []
        manager = ContextManager(on_message_added=told.append)

        say(manager, KAILAI, "One", "Two")

        assert told == manager.get_messages()

    def test_what_a_hook_raises_changes_nothing_and_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        def fail(_message: ConversationMessage) -> None:
            raise ValueError("no channel")

        manager = ContextManager(on_message_added=fail)

        say(manager, KAILAI, "One")

        assert len(manager.get_messages()) == 1
        assert "[ContextManager] A hook failed" in caplog.text
        assert "no channel" in caplog.text


class TestTeamTaskManagement:
    def test_set_team_task_calls_on_team_task_changed_hook(self) -> None:
        told: list[str | None] = []
        manager = ContextManager(on_team_task_changed=told.append)

        manager.set_team_task("Build it")
        manager.set_team_task("x" * 6000)
        manager.set_team_task(None)

        assert told == ["Build it", "x" * 5120, None]

    def test_set_team_task_stores_task(self, manager: ContextManager) -> None:
        manager.set_team_task("Design it")

        assert manager.get_team_task() == "Design it"

    @pytest.mark.parametrize(
        ("task", "kept"),
        [
            pytest.param("a" * 5120, "a" * 5120, id="exactly 5 KB"),
            pytest.param("a" * 5121, "a" * 5120, id="over 5 KB"),
            pytest.param("水" * 2000, "水" * 1706, id="between characters"),
            pytest.param("🙂" * 1280, "🙂" * 1280, id="exactly 5 KB of emoji"),
            pytest.param("a" + "🙂" * 1280, "a" + "🙂" * 1279, id="no half emoji"),
        ],
    )
    def test_set_team_task_truncates_at_5_kb(self, manager: ContextManager, task: str, kept: str) -> None:
        manager.set_team_task(task)

        assert manager.get_team_task() == kept

    def test_set_team_task_logs_warning_on_truncation(
        self, manager: ContextManager, caplog: pytest.LogCaptureFixture
    ) -> None:
        manager.set_team_task("水" * 2000)

        assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
            ("WARNING", "[ContextManager] TeamTask exceeded 5KB limit (6000 bytes), truncated to 5118 bytes")
        ]

    def test_team_task_of_exactly_5_kb_stays_whole_without_a_warning(
        self, manager: ContextManager, caplog: pytest.LogCaptureFixture
    ) -> None:
        manager.set_team_task("a" * 5120)

        assert manager.get_team_task() == "a" * 5120
        assert caplog.messages == []

    def test_set_team_task_with_none_removes_it(self, manager: ContextManager) -> None:
        manager.set_team_task("Design it")

        manager.set_team_task(None)

        assert manager.get_team_task() is None

    def test_get_team_task_returns_none_initially(self, manager: ContextManager) -> None:
        assert manager.get_team_task() is None

    def test_lone_surrogates_become_the_replacement_character(self, manager: ContextManager) -> None:
        manager.set_team_task("a\ud800b")

        assert manager.get_team_task() == "a\ufffdb"


class TestGetContextForAgent:
    def test_returns_empty_context_when_no_messages(self, manager: ContextManager) -> None:
        manager.set_team_task("Design it")

        assert manager.get_context_for_agent(system_instruction="You are Max") == AssemblerInput(
            (), "", team_task="Design it", system_instruction="You are Max", max_bytes=768 * 1024
        )

    def test_a_single_message_has_no_context(self, manager: ContextManager) -> None:
        say(manager, KAILAI, "Hi")

        given = manager.get_context_for_agent()

        assert (given.context_messages, given.current_message) == ((), "Hi")

    def test_applies_context_window_size_limit(self) -> None:
        manager = ContextManager(context_window_size=2)
        say(manager, KAILAI, "one", "two", "three", "four")

        given = manager.get_context_for_agent()

        assert (texts(given), given.current_message) == (["two", "three"], "four")

    def test_respects_window_size_override(self, manager: ContextManager) -> None:
        say(manager, KAILAI, *"abcdefgh")

        given = manager.get_context_for_agent(manager.get_history(window=2))

        assert texts(given) == ["f", "g"]
        assert texts(manager.get_context_for_agent(manager.get_history(window=0))) == []
        assert len(texts(manager.get_context_for_agent())) == 5

    def test_the_window_is_five_messages_by_default(self, manager: ContextManager) -> None:
        say(manager, KAILAI, *"abcdefgh")

        assert texts(manager.get_context_for_agent()) == list("cdefg")

    @pytest.mark.parametrize("window", [0, -1])
    def test_context_window_of_0_has_no_history(self, window: int) -> None:
        manager = ContextManager(context_window_size=window)
        say(manager, KAILAI, "one", "two", "[NEXT: max]")

        given = manager.get_context_for_agent()

        assert (texts(given), given.current_message) == ([], "two")

    def test_strips_markers_from_context_messages(self, manager: ContextManager) -> None:
        say(manager, KAILAI, "[FROM: kailai] [TEAM_TASK: Design it] [NEXT: max] Hi", "Go on")

        assert manager.get_context_for_agent().context_messages == (PromptContextMessage("kailai", "Hi", "all"),)

    def test_strips_markers_from_current_message(self, manager: ContextManager) -> None:
        say(manager, KAILAI, "[NEXT: max] Hi\n\n    code\n")

        assert manager.get_context_for_agent().current_message == "Hi\n\n    code"

    def test_deduplicates_ai_to_ai_context(self, manager: ContextManager, caplog: pytest.LogCaptureFixture) -> None:
        say(manager, KAILAI, "Hi")
        say(manager, MAX, "Hello [NEXT: sarah]", "Hello")

        with caplog.at_level(logging.DEBUG):
            given = manager.get_context_for_agent()

        assert (texts(given), given.current_message) == (["Hi"], "Hello")
        assert "[ContextManager] Deduplicated context for AI→AI" in caplog.messages

    def test_does_not_deduplicate_human_messages(self, manager: ContextManager) -> None:
        say(manager, KAILAI, "Hi", "Hi")

        assert texts(manager.get_context_for_agent()) == ["Hi"]

    def test_does_not_deduplicate_different_speakers(self, manager: ContextManager) -> None:
        say(manager, MAX, "Hello")
        say(manager, SARAH, "Hello")

        assert texts(manager.get_context_for_agent()) == ["Hello"]

    def test_passes_system_instruction_and_instruction_file_text(self, manager: ContextManager) -> None:
        say(manager, KAILAI, "Hi")

        given = manager.get_context_for_agent(system_instruction="You are Max", instruction_file_text="Be helpful")

        assert (given.system_instruction, given.instruction_file_text) == ("You are Max", "Be helpful")

    def test_passes_layers_turn_note_and_request(self, manager: ContextManager) -> None:
        say(manager, KAILAI, "Hi")
        layers = {"framework__context": "F", "todo__context": "T"}

        given = manager.get_context_for_agent(contexts=layers, turn_note="N", request="R")

        assert (given.contexts, given.turn_note, given.request) == (layers, "N", "R")

    def test_passed_texts_are_made_well_formed(self, manager: ContextManager) -> None:
        given = manager.get_context_for_agent(system_instruction="a\ud800", request="\ud800b")

        assert (given.system_instruction, given.request) == ("a\ufffd", "\ufffdb")

    def test_passes_max_bytes_to_output(self) -> None:
        assert ContextManager(max_bytes=1234).get_context_for_agent().max_bytes == 1234

    def test_the_budget_is_768_kib_by_default(self, manager: ContextManager) -> None:
        say(manager, KAILAI, "Hi")

        assert manager.get_context_for_agent().max_bytes == 786432

    def test_up_to_a_message_later_ones_are_not_seen(self, manager: ContextManager) -> None:
        say(manager, KAILAI, "one", "two", "three")

        given = manager.get_context_for_agent(manager.get_history(up_to="msg-2"))

        assert (texts(given), given.current_message) == (["one"], "two")

    def test_get_history_tells_what_the_context_is_made_of(self) -> None:
        manager = ContextManager(context_window_size=1)
        say(manager, KAILAI, "one", "two", "[NEXT: max]", "three", "four")

        history = manager.get_history(up_to="msg-4")
        assert (history.answers, history.shown) == (manager.get_message("msg-4"), ("msg-2", "msg-4"))
        given = manager.get_context_for_agent(history)
        assert (texts(given), given.current_message) == (["two"], "three")
        assert ContextManager().get_history().shown == ()

    def test_the_current_message_is_the_newest_with_text(self) -> None:
        manager = ContextManager()
        assert manager.get_current_message() is None
        say(manager, KAILAI, "one", "two", "[NEXT: max]", "[NEXT: sarah]")

        assert manager.get_current_message() == manager.get_message("msg-2")
        assert manager.get_current_message(up_to="msg-1") == manager.get_message("msg-1")

    def test_up_to_an_unknown_message_is_a_key_error(self, manager: ContextManager) -> None:
        with pytest.raises(KeyError):
            manager.get_history(up_to="msg-1")


class TestLifecycle:
    def test_clear_removes_all_messages(self, used: ContextManager) -> None:
        used.clear()

        assert used.get_messages() == []
        assert used.get_current_message() is None

    def test_clear_resets_team_task(self, used: ContextManager) -> None:
        used.set_team_task("Build it")

        used.clear()

        assert used.get_team_task() is None

    def test_clear_resets_message_id_counter(self, used: ContextManager) -> None:
        used.clear()
        say(used, KAILAI, "Anew")

        assert [message.id for message in used.get_messages()] == ["msg-1"]

    def test_clear_tells_that_the_task_has_changed(self) -> None:
        told: list[str | None] = []
        manager = ContextManager(on_team_task_changed=told.append)

        manager.clear()

        assert told == [None]

    @pytest.fixture
    def used(self, manager: ContextManager) -> ContextManager:
        say(manager, KAILAI, "Hi [NEXT: max]")
        say(manager, MAX, "Hello")
        manager.set_team_task("Design it")
        return manager

    def test_export_snapshot_returns_serializable_object(self, used: ContextManager) -> None:
        snapshot = used.export_snapshot()

        assert json.loads(json.dumps(snapshot)) == snapshot
        assert (snapshot["teamTask"], snapshot["version"]) == ("Design it", 1)

    def test_import_snapshot_restores_messages(self, used: ContextManager) -> None:
        other = ContextManager()

        other.import_snapshot(json.loads(json.dumps(used.export_snapshot())))

        assert other.get_messages() == used.get_messages()

    def test_import_snapshot_restores_team_task(self, used: ContextManager) -> None:
        other = ContextManager()

        other.import_snapshot(used.export_snapshot())

        assert other.get_team_task() == "Design it"

    def test_import_snapshot_recomputes_the_next_id(self, used: ContextManager) -> None:
        other = ContextManager()

        other.import_snapshot(used.export_snapshot())

        assert other.add_message(NewMessage("Go on", KAILAI)).id == "msg-3"

    def test_import_snapshot_throws_on_invalid_format_and_changes_nothing(self, used: ContextManager) -> None:
        before = used.get_messages()

        with pytest.raises(ValueError, match=r"^Invalid snapshot format$"):
            used.import_snapshot({})

        assert (used.get_messages(), used.get_team_task()) == (before, "Design it")

    def test_import_snapshot_refuses_to_replace_messages(self, used: ContextManager) -> None:
        snapshot = used.export_snapshot()
        used.add_message(NewMessage("Go on", KAILAI))

        with pytest.raises(UsageError, match=r"^a conversation can only be restored into an empty one$"):
            used.import_snapshot(snapshot | {"teamTask": "Another"})

        assert (len(used.get_messages()), used.get_team_task()) == (3, "Design it")

    def test_an_imported_task_is_cut_to_5_kb_like_any_other(self, used: ContextManager) -> None:
        other = ContextManager()

        other.import_snapshot(used.export_snapshot() | {"teamTask": "a" * 6000})

        assert other.get_team_task() == "a" * 5120


def test_it_works_on_the_log_it_is_given() -> None:
    log = MemoryLog()
    say(ContextManager(log), KAILAI, "Hi")
    ContextManager(log).set_team_task("Design it")

    other = ContextManager(log)

    assert [message.content for message in other.get_messages()] == ["Hi"]
    assert other.get_team_task() == "Design it"


def test_two_managers_share_nothing() -> None:
    say(ContextManager(), KAILAI, "Hi")

    assert ContextManager().get_messages() == []


def test_the_newest_messages_come_oldest_first(manager: ContextManager) -> None:
    assert manager.get_latest_messages(2) == []
    say(manager, KAILAI, "One", "Two", "Three")
    assert [message.content for message in manager.get_latest_messages(2)] == ["Two", "Three"]
    assert manager.get_latest_messages(5) == manager.get_messages()


def test_a_prompt_has_the_limits_of_its_manager_and_the_texts_it_is_given() -> None:
    policy = TruncationPolicy(50)
    manager = ContextManager(max_bytes=3000, target_bytes=2000, per_message=policy)
    say(manager, KAILAI, "Hi")
    given = manager.get_context_for_agent(instruction_file_text="I", turn_note="N", request="R")
    assert (given.max_bytes, given.target_bytes, given.per_message) == (3000, 2000, policy)
    assert (given.instruction_file_text, given.turn_note, given.request) == ("I", "N", "R")


def test_the_size_of_a_message_is_what_a_history_quotes_of_it() -> None:
    assert ContextManager().quoted_bytes("é" * 100) == 200
    policy = TruncationPolicy(50)
    assert ContextManager(per_message=policy).quoted_bytes("é" * 100) == len(policy("é" * 100).text.encode())


def test_a_prompt_that_asks_for_a_summary_quotes_messages_and_answers_none() -> None:
    manager = ContextManager(fence_key="secret")
    say(manager, KAILAI, "One", "Two")
    manager.set_team_task("Design it")
    said = [Said(message, message.content) for message in manager.get_messages()]
    given = manager.get_context_for_summary(said, "Sum up.", contexts={TODO: "- 1: test it"})
    assert (given.current_message, given.team_task, given.contexts) == ("", "Design it", {TODO: "- 1: test it"})
    assert texts(given) == ["One", "Two"]
    assert given.fence is not None
    assert given.turn_note == f"Sum up.{wording.FENCE}{wording.CODE.format(code=given.fence)}"
    other = manager.get_context_for_summary(said[:1], "Sum up.")
    assert other.fence not in (None, given.fence)
    nothing = manager.get_context_for_summary([], "Sum up.")
    assert (nothing.fence, nothing.turn_note) == (None, "Sum up.")
    plain = ContextManager().get_context_for_summary(said, "Sum up.")
    assert (plain.fence, plain.turn_note) == (None, "Sum up.")


def test_the_manager_of_a_session_has_the_sizes_of_the_team_file_and_a_fence_of_its_own(tmp_path: Path) -> None:
    team = team_of(tmp_path, {"max": "plain"})
    team = replace(team, context_window=2, max_bytes=300_000, max_prompt_tokens=10_000, fence=True)
    one = Stage(tmp_path, team)
    for text in ("One", "Two", "Three"):
        one.send(text)
    given = manager_of(team, one.db, one.session).get_context_for_agent()
    assert (given.max_bytes, given.target_bytes) == (300_000, 40_000)
    assert given.per_message == TruncationPolicy(team.message_bytes)
    assert len(given.context_messages) == 2
    open_team = manager_of(replace(team, fence=False), one.db, one.session)
    assert open_team.get_context_for_agent().fence is None
    (tmp_path / "other").mkdir()
    other = Stage(tmp_path / "other", team)
    other.send("One")
    other.send("Two")
    other.send("Three")
    fences = {given.fence, manager_of(team, other.db, other.session).get_context_for_agent().fence}
    assert len(fences - {None}) == 2


def test_hooks_of_a_stored_session_are_called_once_the_change_is_stored(tmp_path: Path) -> None:
    team = team_of(tmp_path, {"max": "plain"})
    with closing(Database(tmp_path / "teamchat.db")) as db:
        session = create_session(db, "crew", None)
        messages: list[str] = []
        tasks: list[str | None] = []

        def added(message: ConversationMessage) -> None:
            assert not db.in_transaction
            messages.append(message.id)

        manager = manager_of(team, db, session.id, on_message_added=added, on_team_task_changed=tasks.append)
        with db.transaction():
            say(manager, KAILAI, "One")
            manager.set_team_task("Build it")
            assert (messages, tasks) == ([], [])
        assert (messages, tasks) == (["msg-1"], ["Build it"])
        with db.taken_back():
            say(manager, KAILAI, "Two")
        assert messages == ["msg-1"]


def test_clear_of_a_stored_session_keeps_messages_and_ids(tmp_path: Path) -> None:
    team = team_of(tmp_path, {"max": "plain"})
    with closing(Database(tmp_path / "teamchat.db")) as db:
        manager = manager_of(team, db, create_session(db, "crew", "Build it").id)
        say(manager, KAILAI, "One", "Two")

        manager.clear()
        say(manager, KAILAI, "Three", "Four")

        assert [message.id for message in manager.get_messages()] == ["msg-1", "msg-2", "msg-3", "msg-4"]
        assert manager.get_team_task() is None
        assert texts(manager.get_context_for_agent()) == ["Three"]
