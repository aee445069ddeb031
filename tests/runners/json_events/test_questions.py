"""What an agent asks its user, in words: one shape for Claude's and Gemini's tool, and whatever else may come."""

from __future__ import annotations

import pytest

from teamchat.runners.json_events import questions_text

DATABASE = {
    "question": "Which database?",
    "header": "DB",
    "multiSelect": False,
    "options": [{"label": "SQLite", "description": "a file"}, {"label": "Postgres"}],
}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"questions": [DATABASE]}, "Which database?\n- SQLite: a file\n- Postgres"),
        ({"questions": [{"question": "Name?", "type": "text"}, DATABASE]},
         "Name?\n\nWhich database?\n- SQLite: a file\n- Postgres"),
        ({"questions": [{**DATABASE, "multiSelect": True, "options": []}]}, "Which database? (several may be chosen)"),
        ({"question": "Why?"}, '{"question": "Why?"}'),
        ({"questions": ["Why?"]}, '{"questions": ["Why?"]}'),
        ({"questions": [{"question": 7, "options": 8}]}, '{"questions": [{"question": 7, "options": 8}]}'),
        ({"questions": [{"question": "Why?", "options": [3, {"label": None}]}]}, "Why?\n-"),
        ({}, "(a question without words)"),
        (None, "(a question without words)"),
        ("Why?", '"Why?"'),
    ],
)  # fmt: skip
def test_a_question_has_its_words_and_options(asked: object, words: str) -> None:
    assert questions_text(asked) == words
