"""Orders and pieces are the same after they were text, and no other text becomes one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.core.dispatch.order import (
    Began,
    Ended,
    Order,
    Output,
    Project,
    SentPiece,
    Signed,
    Unreadable,
    read_end,
    read_order,
    read_piece,
    read_pieces,
    read_signed_order,
    written,
)
from teamchat.runners.agent_events import Failure, FailureKind

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
some = st.lists(texts, max_size=3).map(tuple)
seconds = st.floats(0, 1e9, allow_nan=False)
failures = st.builds(Failure, st.sampled_from(FailureKind), texts)
projects = st.builds(Project, some, st.none() | texts, texts)
orders = st.builds(
    Order,
    turn=texts,
    host=texts,
    member=texts,
    agent=texts,
    protocol=texts,
    project=projects,
    prompt=st.binary(max_size=50),
    system_text=st.none() | texts,
    access=st.sampled_from(["read", "edit", "full"]),
    timeout_s=seconds,
    first_byte_s=seconds,
    stall_s=st.none() | seconds,
    allow=some,
    model=st.none() | texts,
    resumes=st.none() | texts,
    budget_usd=st.none() | seconds,
    patience=st.dictionaries(st.sampled_from(FailureKind), st.integers(0, 9), max_size=3),
    teamchat=texts,
)
began = st.builds(
    Began,
    texts,
    texts,
    some,
    st.dictionaries(texts, st.none() | texts, max_size=3),
    texts,
    texts,
    st.none() | texts,
    st.none() | some,
    texts,
)
outputs = st.builds(
    Output, texts, st.sampled_from(["out", "err"]), st.integers(0, 1 << 40), st.binary(max_size=50), seconds
)
ends = st.builds(
    Ended,
    texts,
    st.none() | st.integers(-64, 255),
    some,
    st.none() | st.integers(0, 1 << 40),
    seconds,
    some,
    st.booleans(),
    st.none() | failures,
    seconds,
    st.none() | failures,
)
signed = st.builds(Signed, texts, texts)
pieces = began | outputs | signed


@given(orders)
def test_an_order_is_the_same_after_it_was_text(order: Order) -> None:
    assert read_order(written(order)) == order


@given(ends, began, texts)
def test_an_end_is_the_same_after_it_was_text(end: Ended, start: Began, name: str) -> None:
    whole = replace(end, turn=name, host=name, began=start, out=name, err=name)
    assert read_end(written(whole)) == whole


@given(signed)
def test_what_is_signed_is_the_same_after_it_was_text(value: Signed) -> None:
    assert read_signed_order(written(value)) == value


@given(st.lists(pieces, min_size=1, max_size=4))
def test_pieces_are_the_same_after_they_were_text(some: list[SentPiece]) -> None:
    assert read_pieces(written(some)) == some
    assert read_piece(written(some[0])) == some[0]


@given(orders | ends | pieces, texts)
def test_a_field_that_is_not_known_is_refused(value: Order | Ended | SentPiece, name: str) -> None:
    known = {*value.__struct_fields__, "type"}
    if name in known:
        return
    text = json.dumps({**json.loads(written(value)), name: 1})
    with pytest.raises(Unreadable):
        (read_order if isinstance(value, Order) else read_end if isinstance(value, Ended) else read_piece)(text)


DEEP = "[" * 200_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "1",
        "{}",
        "[]",
        '"x"',
        "{",
        DEEP,
        f'{{"type":"began","attempt":"a","x":{DEEP}',
        '{"type":"other"}',
        "\ud800",
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_a_text_that_is_none_of_ours_is_refused(text: str) -> None:
    for read in (read_order, read_signed_order, read_end, read_piece):
        with pytest.raises(Unreadable):
            read(text)
    if text != "[]":
        with pytest.raises(Unreadable):
            read_pieces(text)


@pytest.mark.parametrize("value", [None, 1, [], {}, b"{}"])
def test_a_value_that_is_no_text_is_no_piece(value: object) -> None:
    with pytest.raises(Unreadable):
        read_piece(value)


@pytest.mark.parametrize(
    ("field", "value"),
    [("access", "all"), ("timeout_s", "1"), ("prompt", "%"), ("host", None), ("project", {"folder": 1})],
)
def test_a_field_of_another_kind_is_refused(field: str, value: object) -> None:
    order = Order("t", "h", "m", "a", "plain", Project(), b"", None, "read", 1.0, 1.0)
    with pytest.raises(Unreadable):
        read_order(json.dumps({**json.loads(written(order)), field: value}))
