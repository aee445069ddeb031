from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.messages import ConversationMessage, Routing, Speaker
from teamchat.core.snapshot import Conversation, from_json, to_json

MESSAGES = (
    ConversationMessage(
        "[NEXT: max] Hi", Speaker("u1", "Kai Lai", type="human"), Routing(("max",), ("[NEXT: max]",)), 1000, id="msg-1"
    ),
    ConversationMessage("Hello", Speaker("m1", "Max", "Architect", type="ai"), timestamp=2000, id="msg-2"),
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
    Speaker, st.text(min_size=1), st.text(), st.none() | st.text(), type=st.sampled_from(["ai", "human", "system"])
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


def test_a_conversation_is_written_in_the_seeds_camel_case() -> None:
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
    bare = {"id": "m1", "content": "Hi", "speaker": {"roleId": "u1", "roleName": "User", "type": "human"}}

    (message,) = from_json(SNAPSHOT | {"messages": [bare]}).messages

    assert (message.routing, message.timestamp) == (Routing(), 3000)


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
        SNAPSHOT | {"messages": [MESSAGE | {"id": ""}]},
        SNAPSHOT | {"messages": [MESSAGE | {"speaker": {"roleName": "Max", "type": "ai"}}]},
        SNAPSHOT | {"messages": [MESSAGE | {"speaker": {"roleId": "m", "roleName": "Max", "type": "robot"}}]},
        SNAPSHOT | {"messages": [MESSAGE, MESSAGE]},
    ],
)
def test_anything_else_is_an_invalid_snapshot(snapshot: object) -> None:
    with pytest.raises(ValueError, match=r"^Invalid snapshot format$"):
        from_json(snapshot)
