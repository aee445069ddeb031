"""A transcript without secrets, as recordings are kept."""

from __future__ import annotations

from collections.abc import Mapping

from teamchat.core.cassette.redaction import CutRedactor
from teamchat.core.cassette.writer import secrets_of
from teamchat.core.messages import well_formed
from teamchat.core.team.team import Team
from teamchat.core.text.redact import Redactor
from teamchat.core.transcripts.transcript import Transcript, mapped

FIXED = frozenset({"id", "type", "kind", "status", "what", "access", "session", "team"})
"""The fields whose words are the format's own, or name something."""


def redactor(env: Mapping[str, str], team: Team | None) -> CutRedactor:
    """Secrets are what looks like a key, and the values of `env` and of the team's members with a secret's name."""
    return CutRedactor(Redactor(secrets_of(team, env) if team else env))


def without_secrets(transcript: Transcript, redact: CutRedactor) -> tuple[Transcript, int]:
    """The transcript with every character of a secret replaced by `*`, and how many secrets there were.

    Those that `redact` has removed before, where a text is cut, are counted with them. Each text is looked at twice,
    because a secret can be found after the place where a piece of it is. The texts can be written as UTF-8: a path may
    have bytes that cannot.
    """
    before = redact.removed

    def clean(name: str, text: str) -> str:
        return text if name in FIXED else redact(well_formed(text))

    mapped(transcript, clean)
    between = redact.removed
    without: Transcript = mapped(transcript, clean)
    return without, before + redact.removed - between
