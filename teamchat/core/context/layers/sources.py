"""The table of layers: the source of each one in a stored session."""

from __future__ import annotations

from teamchat.assemblers.parts import FRAMEWORK, KNOWLEDGE, LESSONS, SUMMARY, TODO
from teamchat.core.context.layers.collector import ContextCollector, Source
from teamchat.core.context.layers.framework import framework_text
from teamchat.core.context.layers.lessons import LessonsLayer
from teamchat.core.context.layers.summary import SummaryLayer
from teamchat.core.context.layers.todo import TodoLayer
from teamchat.core.store.database import Database
from teamchat.core.team.team import Team


def collector_of(team: Team, db: Database, session: int) -> ContextCollector:
    """The collector of a session. Without `share_context` it gathers the framework alone."""
    return ContextCollector(
        {
            FRAMEWORK: lambda context: framework_text(team, context.member, context.part),
            LESSONS: LessonsLayer(db, team.experience_tokens),
            KNOWLEDGE: _knowledge(team, db),
            TODO: TodoLayer(db, session, team.redact),
            SUMMARY: SummaryLayer(db, session, team),
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
