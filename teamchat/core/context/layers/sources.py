"""The table of layers: the source of each one in a stored session."""

from __future__ import annotations

from teamchat.assemblers.parts import DIFFERENCES, FRAMEWORK, KNOWLEDGE, LESSONS, SUMMARY, TODO
from teamchat.assemblers.truncation import BYTES_PER_TOKEN
from teamchat.core.context.layers.collector import ContextCollector, LayerContext, LayerText, Source
from teamchat.core.context.layers.framework import framework_text
from teamchat.core.context.layers.lessons import LessonsLayer
from teamchat.core.context.layers.summary import SummaryLayer
from teamchat.core.context.layers.todo import TodoLayer
from teamchat.core.store.database import Database
from teamchat.core.team.team import Team


def collector_of(team: Team, db: Database, session: int) -> ContextCollector:
    """The collector of a session. Without `share_context` it gathers the framework, and what a process compares."""
    return ContextCollector(
        {
            FRAMEWORK: lambda context: framework_text(team, context.member, context.part),
            LESSONS: LessonsLayer(db, team.experience_tokens),
            KNOWLEDGE: _knowledge(team, db),
            TODO: TodoLayer(db, session, team.redact),
            SUMMARY: SummaryLayer(db, session, team),
            DIFFERENCES: _differences(team, db, session),
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


def _differences(team: Team, db: Database, session: int) -> Source:
    """The layer of a turn that compares what members have changed. It has half of the room of a prompt."""
    room = min(team.max_bytes, team.max_prompt_tokens * BYTES_PER_TOKEN) // 2

    def source(context: LayerContext) -> LayerText | None:
        part = context.part
        if part is None or not part.compares:
            return None
        from teamchat.core.context.layers.differences import tell_differences

        return tell_differences(db.path.parent, session, part.options, part.compares, room, redact=team.redact)

    return source
