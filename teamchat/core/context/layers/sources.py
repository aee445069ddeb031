"""Which source each layer of a stored session has."""

from __future__ import annotations

from teamchat.assemblers.parts import COMPRESSION, EXPERIENCE, FRAMEWORK, KNOWLEDGE, TODO
from teamchat.core.context.layers.collector import ContextCollector
from teamchat.core.context.layers.compression import Compression
from teamchat.core.context.layers.experience import Experience
from teamchat.core.context.layers.framework import framework_text
from teamchat.core.context.layers.knowledge import Knowledge
from teamchat.core.context.layers.todo import Todos
from teamchat.core.knowledge.index import INDEX_NAME, KnowledgeIndex
from teamchat.core.store.database import Database
from teamchat.core.team.team import Team


def collector_of(team: Team, db: Database, session: int) -> ContextCollector:
    """The collector of a session; `share_context` decides whether more than the framework is told."""
    index = KnowledgeIndex(db.path.with_name(INDEX_NAME))
    everybodys = {path for member in team.members for path in member.knowledge.values()}
    return ContextCollector(
        {
            FRAMEWORK: lambda occasion: framework_text(team, occasion.member),
            EXPERIENCE: Experience(db, team.experience_tokens),
            KNOWLEDGE: Knowledge(index, team.knowledge_tokens, everybodys),
            TODO: Todos(db, session, team.redact),
            COMPRESSION: Compression(db, session, team),
        },
        share=team.share_context,
    )
