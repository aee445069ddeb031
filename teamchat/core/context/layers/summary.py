"""The summary layer: the summary of the messages before those that a prompt quotes."""

from __future__ import annotations

from msgspec import Struct

from teamchat.assemblers.truncation import truncate_middle
from teamchat.core.context.layers.collector import LayerContext
from teamchat.core.routing.markers import strip_markers
from teamchat.core.store.database import Database
from teamchat.core.store.summaries import Summary, summary_before
from teamchat.core.team.team import Team
from teamchat.core.text.clean import told
from teamchat.core.text.redact import redact_shapes


class SummaryLayer(Struct, frozen=True):
    """A source: the valid summary of the messages before the one that is answered, or None."""

    db: Database
    session: int
    team: Team

    def __call__(self, context: LayerContext) -> str | None:
        summary = summary_before(self.db, self.session, context.message.id)
        return summary_told(summary, self.team) if summary else None


def summary_told(summary: Summary, team: Team) -> str:
    """The text of the layer: who wrote the summary, and the summary.

    It is at most as long as a message of the history. If the team redacts, secrets in it are removed for everybody: it
    combines messages of many speakers.
    """
    text = worth_telling(summary.text)
    if team.redact:
        text = redact_shapes(text)[0]
    text = truncate_middle(text, team.message_bytes).text
    return f"{team.wording.summary.format(member=summary.member)}\n\n{text}"


def worth_telling(summary: str) -> str:
    """A summary as prompts quote it: no markers, no escape sequences, no space around it."""
    return told(strip_markers(summary, author="ai")).strip()
