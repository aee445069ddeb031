"""The table of layers: the source of each one in a stored session."""

from __future__ import annotations

from teamchat.assemblers.parts import DIFFERENCES, FRAMEWORK, KNOWLEDGE, LESSONS, SUMMARY, TODO
from teamchat.core.context.layers.collector import ContextCollector, LayerContext, LayerText, Source
from teamchat.core.context.layers.framework import framework_text
from teamchat.core.context.layers.lessons import LessonsLayer
from teamchat.core.context.layers.summary import SummaryLayer
from teamchat.core.context.layers.todo import TodoLayer
from teamchat.core.engine.part import Part
from teamchat.core.store.database import Database
from teamchat.core.team.team import Team


def collector_of(team: Team, db: Database, session: int, compared: Compared | None = None) -> ContextCollector:
    """The collector of a session. Without `share_context` it gathers the framework, and what is `compared`."""
    return ContextCollector(
        {
            FRAMEWORK: lambda context: framework_text(team, context.member, context.part),
            LESSONS: LessonsLayer(db, team.experience_tokens),
            KNOWLEDGE: _knowledge(team, db),
            TODO: TodoLayer(db, session, team.redact),
            SUMMARY: SummaryLayer(db, session, team),
            DIFFERENCES: compared or Compared(team, db, session),
        },
        share=team.share_context,
    )


def _knowledge(team: Team, db: Database) -> Source:
    """The layer of a team that names files. Without any, nothing that reads and searches them is loaded."""
    everybodys = {path for member in team.members for path in member.knowledge.values()}
    if not everybodys:
        return lambda _context: None
    from teamchat.core.context.layers.knowledge import KnowledgeLayer
    from teamchat.core.knowledge.index import INDEX_NAME, KnowledgeIndex

    return KnowledgeLayer(KnowledgeIndex(db.path.with_name(INDEX_NAME)), team.knowledge_tokens, everybodys)


class Compared:
    """A source: what the members changed that a turn compares, in half of the room of a prompt.

    Blocks while git reads their worktrees, about a second where these have many files. `look` has that done before the
    turn is prepared, in another thread.
    """

    def __init__(self, team: Team, db: Database, session: int) -> None:
        self._state, self._session, self._redact = db.path.parent, session, team.redact
        self._room = team.prompt_bytes // 2
        self._seen: dict[Part, LayerText] = {}

    def look(self, part: Part) -> None:
        """Raises `UsageError` and `CheckpointFailed`."""
        from teamchat.core.context.layers.differences import tell_differences

        self._seen[part] = tell_differences(
            self._state, self._session, part.options, part.compares, self._room, redact=self._redact
        )

    def __call__(self, context: LayerContext) -> LayerText | None:
        part = context.part
        if part is None or not part.compares:
            return None
        if part not in self._seen:
            self.look(part)
        return self._seen.pop(part)  # the next turn sees what they have by then
