"""A question that an agent asks its user by a tool of its CLI. Nobody can answer while the agent runs.

Claude's AskUserQuestion and Gemini's ask_user have the same input. Without a terminal neither CLI offers its tool
(Claude 2.1.197 to 2.1.330 except with `--permission-prompt-tool`, Gemini 0.55.1 to 0.61.0), and both refuse a call of
it.
"""

from __future__ import annotations

from collections.abc import Iterator

from teamchat.runners.untrusted_json import summary


def questions_text(asked: object) -> str:
    """The questions of a tool call, each with its options, for a person to read."""
    questions = asked.get("questions") if isinstance(asked, dict) else None
    texts = [text for question in _dicts(questions) if (text := _question(question))]
    return "\n\n".join(texts) or summary(asked) or "(a question without words)"


def _question(question: dict[str, object]) -> str:
    text = question.get("question")
    if not isinstance(text, str):
        return ""
    several = " (several may be chosen)" if question.get("multiSelect") is True else ""
    return "\n".join((text.strip() + several, *map(_option, _dicts(question.get("options"))))).strip()


def _option(option: dict[str, object]) -> str:
    parts = (option.get("label"), option.get("description"))
    return "- " + ": ".join(part for part in parts if isinstance(part, str) and part)


def _dicts(values: object) -> Iterator[dict[str, object]]:
    yield from (value for value in values if isinstance(value, dict)) if isinstance(values, list) else ()
