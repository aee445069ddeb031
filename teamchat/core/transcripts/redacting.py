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


def without_secrets(transcript: Transcript, env: Mapping[str, str], team: Team | None) -> tuple[Transcript, int]:
    """The transcript with every character of a secret replaced by `*`, and how many secrets there were.

    Secrets are what looks like a key, and the values of `env` and of the team's members that are secrets by their
    names. Each text is looked at twice, because a secret can be found after the place where a piece of it is. The texts
    can be written as UTF-8: a path may have bytes that cannot.
    """
    redact = CutRedactor(Redactor(secrets_of(team, env) if team else env))

    def clean(name: str, text: str) -> str:
        return text if name in FIXED else redact(well_formed(text))

    mapped(transcript, clean)
    before = redact.removed
    without: Transcript = mapped(transcript, clean)
    return without, redact.removed - before
