from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.context.conversation_view import ContextManager
from teamchat.core.context.snapshot import Conversation, Renamed, from_json, to_json
from teamchat.core.messages import ConversationMessage, NewMessage, Routing, Speaker
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.store.sessions import create_session

MESSAGES = (
    ConversationMessage(
        "[NEXT: max] Hi", Speaker("u1", "Kai Lai", type="human"), Routing(("max",), ("[NEXT: max]",)), 1000, id="msg-1"
    ),
    ConversationMessage("Hello", Speaker("m1", "Max", role_title="Architect", type="ai"), timestamp=2000, id="msg-2"),
)
JSON_MESSAGES = [
    {
        "id": "msg-1",
        "content": "[NEXT: max] Hi",
        "speaker": {"roleId": "u1", "roleName": "Kai Lai", "type": "human"},
        "routing": {"resolvedAddressees": ["max"], "rawNextMarkers": ["[NEXT: max]"]},
        "timestamp": 1000,
    },
    {
        "id": "msg-2",
        "content": "Hello",
        "speaker": {"roleId": "m1", "roleName": "Max", "roleTitle": "Architect", "type": "ai"},
        "routing": {"resolvedAddressees": [], "rawNextMarkers": []},
        "timestamp": 2000,
    },
]
SNAPSHOT = {"messages": JSON_MESSAGES, "teamTask": "Design it", "timestamp": 3000, "version": 1}
MESSAGE = JSON_MESSAGES[0]

speakers = st.builds(
    Speaker,
    st.text(min_size=1),
    st.text(),
    role_title=st.none() | st.text(),
    type=st.sampled_from(["ai", "human", "system"]),
)
names = st.lists(st.text()).map(tuple)
conversations = st.lists(
    st.builds(
        ConversationMessage,
        st.text(),
        speakers,
        st.builds(Routing, names, names),
        st.integers(0, 2**53),
        id=st.text(min_size=1),
    ),
    max_size=5,
    unique_by=lambda message: message.id,
).map(tuple)


def test_a_conversation_is_written_in_camel_case() -> None:
    before = int(time.time() * 1000)

    snapshot = to_json(MESSAGES, "Design it")

    timestamp = snapshot.pop("timestamp")
    assert snapshot == {"messages": JSON_MESSAGES, "teamTask": "Design it", "version": 1}
    assert isinstance(timestamp, int)
    assert before <= timestamp <= before + 60_000


def test_without_a_task_the_key_is_there() -> None:
    assert to_json((), None)["teamTask"] is None


def test_a_conversation_is_read_back() -> None:
    assert from_json(SNAPSHOT) == Conversation(MESSAGES, "Design it")


@given(conversations, st.none() | st.text())
def test_json_there_and_back_loses_nothing(messages: tuple[ConversationMessage, ...], task: str | None) -> None:
    assert from_json(json.loads(json.dumps(to_json(messages, task)))) == Conversation(messages, task)


def test_what_a_message_may_lack_is_filled_in() -> None:
    bare = {"content": "Hi", "speaker": {"roleId": "u1"}}

    assert from_json(SNAPSHOT | {"messages": [bare]}).messages == (
        ConversationMessage("Hi", Speaker("u1", "u1", type="human"), timestamp=3000, id="msg-1"),
    )


def test_what_a_snapshot_may_lack_is_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teamchat.core.context.snapshot.now_ms", lambda: 5000)
    bare = {"version": 1, "messages": [{"content": "Hi", "speaker": {"roleName": "Kai"}}]}

    assert from_json(bare) == Conversation(
        (ConversationMessage("Hi", Speaker("Kai", "Kai", type="human"), timestamp=5000, id="msg-1"),),
        None,
        (Renamed("", "msg-1"),),
    )


def test_null_is_the_same_as_a_missing_key() -> None:
    nothing = dict.fromkeys(("id", "routing", "timestamp"))
    said = {"content": "Hi", "speaker": {"roleId": "u1", "roleName": None, "roleTitle": None, "type": None}} | nothing
    routed = said | {"routing": {"resolvedAddressees": None, "rawNextMarkers": None}}
    bare = {"content": "Hi", "speaker": {"roleId": "u1"}}

    read = from_json(SNAPSHOT | {"teamTask": None, "messages": [said, routed]})

    assert read == from_json({"version": 1, "timestamp": 3000, "messages": [bare, bare]})


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        (1700000000123, 1700000000123),
        (1700000000123.9, 1700000000123),
        (-1, -1),
        ("1700000000123", 1700000000123),
        ("2023-11-14T22:13:20.123Z", 1700000000123),
        ("2023-11-14T22:13:20.123999Z", 1700000000123),
        ("2023-11-15T00:13:20.123+02:00", 1700000000123),
        ("2023-11-14T22:13:20", 1700000000000),
        ("2023-11-14", 1699920000000),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_a_time_is_in_milliseconds_or_iso(written: object, milliseconds: int) -> None:
    read = from_json(SNAPSHOT | {"timestamp": written, "messages": [MESSAGE | {"timestamp": written}, bare_message()]})

    assert [message.timestamp for message in read.messages] == [milliseconds, milliseconds]


def bare_message() -> dict[str, object]:
    return {"id": "bare", "content": "Hi", "speaker": {"roleId": "u1"}}


def test_the_first_message_of_an_id_keeps_it_and_others_get_free_ones(caplog: pytest.LogCaptureFixture) -> None:
    same = [MESSAGE | {"id": name} for name in ("msg-3", "msg-3", "x", "", "x", "msg-5", "\ud800", "\ufffd")]

    read = from_json(SNAPSHOT | {"messages": same})

    assert [message.id for message in read.messages] == [
        "msg-3", "msg-6", "x", "msg-7", "msg-8", "msg-5", "\ufffd", "msg-9",
    ]  # fmt: skip
    assert [record.getMessage() for record in caplog.records] == [
        "[ContextManager] Message id 'msg-3' is empty or taken, renamed to msg-6",
        "[ContextManager] Message id '' is empty or taken, renamed to msg-7",
        "[ContextManager] Message id 'x' is empty or taken, renamed to msg-8",
        "[ContextManager] Message id '\ufffd' is empty or taken, renamed to msg-9",
    ]


def test_a_long_id_is_cut_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    from_json(SNAPSHOT | {"messages": [MESSAGE | {"id": "x" * 5000}] * 2})

    assert caplog.messages == [f"[ContextManager] Message id '{'x' * 79} is empty or taken, renamed to msg-1"]


def test_a_message_of_any_time_that_a_store_holds_is_exported() -> None:
    late = (ConversationMessage("Hi", Speaker("u1", "Kai", type="human"), timestamp=2**63 - 1, id="msg-1"),)

    assert from_json(to_json(late, None)).messages == late


def test_a_new_id_is_none_that_a_later_message_has() -> None:
    edge = [f"msg-{number}" for number in (10**18 - 1, 10**18 - 1, 10**18, 10**18 + 1)]

    read = from_json(SNAPSHOT | {"messages": [MESSAGE | {"id": name} for name in edge]})

    assert [message.id for message in read.messages] == [edge[0], f"msg-{10**18 + 2}", edge[2], edge[3]]


def optional(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | values


moments = st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=-9.5))])).map(datetime.isoformat)
times = st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(-1e15, 1e15) | moments
named = st.sampled_from(["msg-1", "msg-2", "msg-" + "9" * 18, "msg-1" + "0" * 18, "m1", ""])
long_ids = st.builds(lambda digit, count: f"msg-{digit * count}", st.sampled_from("0179"), st.integers(1, 6000))
loose_texts = st.text(st.characters())
loose_messages = st.fixed_dictionaries(
    {
        "content": loose_texts,
        "speaker": st.fixed_dictionaries(
            {"roleId": st.text(min_size=1)},
            optional={
                "roleName": optional(loose_texts),
                "roleTitle": optional(loose_texts),
                "type": optional(st.sampled_from(["ai", "human", "system"])),
            },
        ),
    },
    optional={
        "id": optional(named | long_ids | loose_texts),
        "timestamp": optional(times),
        "routing": optional(
            st.fixed_dictionaries(
                {},
                optional={
                    "resolvedAddressees": optional(st.lists(loose_texts)),
                    "rawNextMarkers": optional(st.lists(loose_texts)),
                },
            )
        ),
        "later": st.integers(),
    },
)
loose_snapshots = st.fixed_dictionaries(
    {"version": st.just(1), "messages": st.lists(loose_messages, max_size=6)},
    optional={"teamTask": optional(loose_texts | st.just("水" * 3000)), "timestamp": optional(times)},
)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with closing(Database(tmp_path_factory.mktemp("store") / "teamchat.db")) as db:
        yield db


@given(snapshot=loose_snapshots, stored=st.booleans())
def test_what_was_imported_is_exported_and_imported_again(
    db: Database, snapshot: dict[str, object], *, stored: bool
) -> None:
    def manager() -> ContextManager:
        return ContextManager(SqliteLog(db, create_session(db, "team", None).id) if stored else None)

    first, second = manager(), manager()
    first.import_snapshot(snapshot)
    second.import_snapshot(json.loads(json.dumps(first.export_snapshot())))

    assert second.get_messages() == first.get_messages()
    assert second.get_team_task() == first.get_team_task()
    following = NewMessage("next", Speaker("u1", "Kai", type="human"))
    assert first.add_message(following).id == second.add_message(following).id
    second.add_message(following)
    ids = [message.id for message in second.get_messages()]
    assert len(set(ids)) == len(ids)


def test_unknown_keys_are_ignored() -> None:
    assert from_json(SNAPSHOT | {"later": 1, "messages": [MESSAGE | {"mood": "good"}]}).messages == MESSAGES[:1]


def test_lone_surrogates_become_the_replacement_character() -> None:
    text = json.loads('"a\\ud800b"')

    read = from_json(SNAPSHOT | {"teamTask": text, "messages": [MESSAGE | {"content": text}]})

    assert (read.team_task, read.messages[0].content) == ("a\ufffdb", "a\ufffdb")


@pytest.mark.parametrize(
    "snapshot",
    [
        None,
        {},
        [],
        "{}",
        SNAPSHOT | {"version": 2},
        SNAPSHOT | {"version": "1"},
        {key: value for key, value in SNAPSHOT.items() if key != "version"},
        {key: value for key, value in SNAPSHOT.items() if key != "messages"},
        SNAPSHOT | {"messages": None},
        SNAPSHOT | {"teamTask": 5},
        SNAPSHOT | {"messages": [MESSAGE | {"content": 123}]},
        SNAPSHOT | {"messages": [MESSAGE | {"content": None}]},
        SNAPSHOT | {"messages": [MESSAGE | {"id": 5}]},
        SNAPSHOT | {"messages": [None]},
        SNAPSHOT | {"messages": [MESSAGE | {"speaker": None}]},
        SNAPSHOT | {"messages": [MESSAGE | {"speaker": {"roleTitle": "Architect", "type": "ai"}}]},
        SNAPSHOT | {"messages": [MESSAGE | {"speaker": {"roleId": "", "roleName": ""}}]},
        SNAPSHOT | {"messages": [MESSAGE | {"speaker": {"roleId": "m", "roleName": "Max", "type": "robot"}}]},
        SNAPSHOT | {"timestamp": "yesterday"},
        SNAPSHOT | {"timestamp": True},
        SNAPSHOT | {"timestamp": 2**63},
        SNAPSHOT | {"timestamp": float("nan")},
        SNAPSHOT | {"timestamp": float("inf")},
        SNAPSHOT | {"timestamp": "9" * 5000},
    ],
)
def test_anything_else_is_an_invalid_snapshot(snapshot: object) -> None:
    with pytest.raises(ValueError, match=r"^Invalid snapshot format$"):
        from_json(snapshot)
