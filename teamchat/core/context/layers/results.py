"""The results layer: the checks' output and the reviewers' findings in a process, for the member that goes on.

The output of a check is shown with its beginning and its end, in a fence that nothing in it can close. Neither it nor
a finding has markers.
"""

from __future__ import annotations

from msgspec import Struct

from teamchat.assemblers.truncation import truncate_middle
from teamchat.core.context.layers.collector import LayerText
from teamchat.core.engine.processes.until_reading import read_review
from teamchat.core.engine.processes.words import in_place
from teamchat.core.engine.workflow import DOER, Part, Review
from teamchat.core.messages import well_formed
from teamchat.core.routing.markers import strip_markers
from teamchat.core.store.checks import CheckRecord, find_check, output_of
from teamchat.core.store.database import Database
from teamchat.core.store.messages import SqliteLog
from teamchat.core.text.clean import told
from teamchat.core.text.redact import redact_shapes

MOST_BYTES = 16 * 1024  # Bytes of a check's output that a member is shown.
LITTLE = 2 * 1024  # Bytes of a green check's output.
SHORTEST_FENCE = 3  # backquotes


class ResultsLayer(Struct, frozen=True):
    """The results that a turn's part names, in about `room` bytes, shared equally.

    `redact` removes well-known keys from the words of programs and members.
    """

    db: Database
    session: int
    room: int
    redact: bool

    def layer(self, part: Part) -> LayerText:
        """Make the layer of a part that names results."""
        share = self.room // (len(part.checks) + len(part.reviews))
        records = (find_check(self.db, self.session, number) for number in part.checks)
        checks = [self._check(record, share, all_of_it=part.role == DOER) for record in records if record]
        reviews = [truncate_middle(self._review(message), share).text for message in part.reviews]
        return LayerText("\n\n".join([*checks, *filter(None, reviews)]))

    def _check(self, record: CheckRecord, room: int, *, all_of_it: bool) -> str:
        result = record.result
        why = f", {result.reason}" if result and result.reason else ""
        command = " ".join(told(record.shown_command).split())
        name = record.name if record.name == command else f"{record.name} ({command})"
        head = f"{record.label} {name}: {record.status.replace('_', ' ')}{why}"
        most = min(MOST_BYTES if all_of_it and record.status != "green" else LITTLE, room)
        return f"{head}\n{fenced(self._harmless(output_of(self.db, record).decode(errors='replace'), most))}"

    def _review(self, message_id: str) -> str:
        message = SqliteLog(self.db, self.session).get(message_id)
        review = read_review(message.content)
        if not isinstance(review, Review):
            return ""
        lines = [f"{message.speaker.role_name} in {message.id}: {'PASS' if review.passed else 'FAIL'}"]
        for number, finding in enumerate(review.findings, 1):
            lines.append(f"{number}. {self._harmless(in_place(finding), MOST_BYTES)}")
        if review.more:
            lines.append(f"and {review.more:,} more, in {message.id}")
        return "\n".join(lines)

    def _harmless(self, text: str, most: int) -> str:
        text = told(strip_markers(well_formed(text), author="ai")).strip("\n")
        if self.redact:
            text = redact_shapes(text)[0]
        return truncate_middle(text, most).text


def fenced(text: str) -> str:
    """Put the text in a fence that none of its own lines closes. Return a sentence if it is empty."""
    if not text.strip():
        return "It wrote nothing."
    lines = [line.lstrip() for line in text.splitlines()]
    longest = max(len(line) - len(line.lstrip("`")) for line in lines)
    fence = "`" * max(SHORTEST_FENCE, longest + 1)
    return f"{fence}\n{text}\n{fence}"
