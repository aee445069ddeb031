"""A transcript without secrets, as recordings are kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from teamchat.core.cassette.redaction import CutRedactor
from teamchat.core.cassette.writer import secrets_of
from teamchat.core.messages import well_formed
from teamchat.core.team.team import Team
from teamchat.core.text.redact import Redactor
from teamchat.core.transcripts.transcript import Transcript

FIXED = frozenset({"id", "type", "kind", "status", "what", "access", "session", "team"})
"""The fields whose words are the format's own, or name something."""


def without_secrets(transcript: Transcript, env: Mapping[str, str], team: Team | None) -> tuple[Transcript, int]:
    """The transcript with every character of a secret replaced by `*`, and how many secrets there were.

    Secrets are what looks like a key, and the values of `env` and of the team's members that are secrets by their
    names. Each text is looked at twice, because a secret can be found after the place where a piece of it is. The texts
    can be written as UTF-8: a path may have bytes that cannot.
    """
    redact = CutRedactor(Redactor(secrets_of(team, env) if team else env))
    _redacted(transcript, redact)
    before = redact.removed
    clean: Transcript = _redacted(transcript, redact)
    return clean, redact.removed - before


def _redacted(value: Any, redact: CutRedactor) -> Any:
    changed = value
    match value:
        case str():
            changed = redact(well_formed(value))
        case tuple():
            changed = tuple(_redacted(item, redact) for item in value)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = (field.name for field in dataclasses.fields(value) if field.name not in FIXED)
            changed = dataclasses.replace(value, **{name: _redacted(getattr(value, name), redact) for name in fields})
    return changed
