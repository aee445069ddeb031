from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.messages import NewMessage, Routing, Speaker, well_formed

MAX = Speaker("max", "Max", type="ai")


def test_a_draft_is_stored_as_itself_with_an_id() -> None:
    draft = NewMessage("Hi", MAX, Routing(("sarah",)), timestamp=5, turn_id=2)

    message = draft.stored_as("msg-3")

    assert message.id == "msg-3"
    assert (message.content, message.speaker, message.routing) == ("Hi", MAX, Routing(("sarah",)))
    assert (message.timestamp, message.turn_id) == (5, 2)


def test_a_draft_is_of_now_in_milliseconds() -> None:
    before = int(time.time() * 1000)

    assert before <= NewMessage("Hi", MAX).timestamp <= before + 60_000


def test_a_message_does_not_change() -> None:
    message = NewMessage("Hi", MAX).stored_as("msg-1")

    with pytest.raises(AttributeError):
        message.content = "Bye"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "formed"),
    [
        ("\ud83d", "\ufffd"),
        ("a\udc80b", "a\ufffdb"),
        ("\udc80\ud83d!", "\ufffd\ufffd!"),
        ("\ud83d\ude42", "🙂"),
        ("\ufeffé水🙂\0", "\ufeffé水🙂\0"),
    ],
)
def test_lone_surrogates_become_the_replacement_character(text: str, formed: str) -> None:
    assert well_formed(text) == formed


@given(st.text())
def test_well_formed_text_is_unchanged(text: str) -> None:
    assert well_formed(text) == text


@given(st.text(st.characters(), max_size=20))
def test_every_text_becomes_one_that_utf8_can_hold(text: str) -> None:
    assert well_formed(text).encode().decode() == well_formed(text)
