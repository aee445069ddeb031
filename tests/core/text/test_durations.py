from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamchat.core.text.durations import parse_duration

COUNTS = st.integers(min_value=0, max_value=10_000)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("60s", 60.0),
        ("30m", 1800.0),
        ("2h", 7200.0),
        ("30d", 2_592_000),
        ("1h30m", 5400.0),
        ("1h 30m 5s", 5405.0),
        ("1h5s", 3605.0),
        ("1.5h", 5400.0),
        ("0.25", 0.25),
        (" 30m ", 1800.0),
    ],
)
def test_a_duration_means_its_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "0",
        "0s",
        "0h0m",
        "-5m",
        "5 m",
        "30m1h",
        "1h30",
        "500ms",
        "1w",
        "5M",
        "m",
        "1e3",
        "nan",
        "inf",
        "٣s",
        "9" * 400,
    ],
)
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time") as refused:
        parse_duration(text)
    assert str(refused.value) == f'expected a time above zero such as "90s", "30m" or "1h30m", got {text!r}'


@given(COUNTS, COUNTS, COUNTS)
def test_hours_minutes_and_seconds_add_up(hours: int, minutes: int, seconds: int) -> None:
    total = hours * 3600 + minutes * 60 + seconds
    text = f"{hours}h{minutes}m{seconds}s"
    if total:
        assert parse_duration(text) == parse_duration(str(total)) == total
    else:
        with pytest.raises(ValueError, match="above zero"):
            parse_duration(text)


@given(st.text())
def test_any_text_is_a_positive_time_or_a_sentence(text: str) -> None:
    try:
        assert 0 < parse_duration(text) < float("inf")
    except ValueError as refused:
        assert str(refused).startswith("expected a time above zero")  # noqa: PT017 (either is right)
