"""The table of layers: the source of each one in a stored session, and the small layers themselves.

The todo layer is the list at the time the prompt is built, equal for every member. The summary layer is the summary of
the messages before those that a prompt quotes. The lessons layer has the lessons of this workspace, one per line; when
not all fit, those that match the message are taken first.
"""

from __future__ import annotations

from collections.abc import Iterable

from teamchat.assemblers.parts import DIFFERENCES, FRAMEWORK, KNOWLEDGE, LESSONS, RESULTS, SUMMARY, TODO
from teamchat.assemblers.truncation import BYTES_PER_TOKEN, byte_length, truncate_middle
from teamchat.core.context.layers.collector import ContextCollector, LayerContext, LayerText, Source
from teamchat.core.context.layers.framework import framework_text
from teamchat.core.engine.workflow import Part
from teamchat.core.knowledge.files import Excerpt
from teamchat.core.routing.markers import strip_markers
from teamchat.core.routing.todos import rendered
from teamchat.core.store.database import Database
from teamchat.core.store.lessons import Lesson, fitting_lessons, newest_lessons
from teamchat.core.store.summaries import Summary, summary_before
from teamchat.core.store.todos import todos_of
from teamchat.core.team import wording
from teamchat.core.team.team import Team
from teamchat.core.text.clean import told
from teamchat.core.text.redact import redact_shapes
from teamchat.core.text.words import match_query


def collector_of(team: Team, db: Database, session: int, compared: Compared | None = None) -> ContextCollector:
    """Make the collector of a session. Without `share_context` it gathers the framework, and what is `compared`."""
    return ContextCollector(
        {
            FRAMEWORK: lambda context: framework_text(team, context.member, context.part),
            LESSONS: LessonsLayer(db, team.experience_tokens),
            KNOWLEDGE: _knowledge(team, db),
            TODO: lambda _context: _todos(db, session, redact=team.redact),
            SUMMARY: lambda context: _summary(db, session, context.message.id, team),
            DIFFERENCES: compared or Compared(team, db, session),
            RESULTS: lambda context: _results(context, team, db, session),
        },
        share=team.share_context,
    )


def _knowledge(team: Team, db: Database) -> Source:
    """Make the layer of a team that names files. Without files, the code that reads and searches them is not loaded."""
    everybodys = {path for member in team.members for path in member.knowledge.values()}
    if not everybodys:
        return lambda _context: None
    from teamchat.core.context.layers.knowledge import KnowledgeLayer
    from teamchat.core.knowledge.index import INDEX_NAME, KnowledgeIndex

    return KnowledgeLayer(KnowledgeIndex(db.path.with_name(INDEX_NAME)), team.knowledge_tokens, everybodys)


def _results(context: LayerContext, team: Team, db: Database, session: int) -> LayerText | None:
    """Make the layer of a process's checks and reviews; only `teamchat run until` has any."""
    if context.part is None or not (context.part.checks or context.part.reviews):
        return None
    from teamchat.core.context.layers.results import ResultsLayer

    return ResultsLayer(db, session, team.prompt_bytes // 4, team.redact).layer(context.part)


class Compared:
    """A source: the changes of the members that a turn compares, or the changes between two git trees.

    It has half of the room of a prompt. Blocks while git reads the worktrees, about a second where these have many
    files. `look` has that done before the turn is prepared, in another thread. A replay is not `live` and
    looks nowhere: its recording has the layer.
    """

    def __init__(self, team: Team, db: Database, session: int, *, live: bool = True) -> None:
        self._live = live
        self._state, self._session, self._redact = db.path.parent, session, team.redact
        self._root = team.root
        self._room = team.prompt_bytes // 2
        self._seen: dict[Part, LayerText] = {}

    def look(self, part: Part) -> None:
        """Read the changes that the part shows. Raises `UsageError` and `CheckpointFailed`."""
        from teamchat.core.context.layers.differences import tell_changes, tell_differences

        if part.trees:
            self._seen[part] = tell_changes(self._root, self._state, part.trees, self._room, redact=self._redact)
            return
        self._seen[part] = tell_differences(
            self._state, self._session, part.options, part.compares, self._room, redact=self._redact
        )

    def __call__(self, context: LayerContext) -> LayerText | None:
        part = context.part
        if part is None or not (part.shows_changes and self._live):
            return None
        if part not in self._seen:
            self.look(part)
        return self._seen.pop(part)  # the next turn sees what they have by then


def _todos(db: Database, session: int, *, redact: bool) -> str | None:
    """Write the todo list. `redact` removes well-known keys from the items: anybody may have written them."""
    text = rendered(todos_of(db, session))
    return redact_shapes(text)[0] if text and redact else text


def _summary(db: Database, session: int, message: str, team: Team) -> str | None:
    """Write the valid summary of the messages before the answered one; None without a summary."""
    summary = summary_before(db, session, message)
    return summary_told(summary, team) if summary else None


def summary_told(summary: Summary, team: Team) -> str:
    """Write the text of the layer: who wrote the summary, and the summary.

    It is at most as long as a message of the history. If the team redacts, secrets in it are removed for everybody: it
    combines messages of many speakers.
    """
    text = worth_telling(summary.text)
    if team.redact:
        text = redact_shapes(text)[0]
    text = truncate_middle(text, team.message_bytes).text
    return f"{wording.SUMMARY.format(member=summary.member)}\n\n{text}"


def worth_telling(summary: str) -> str:
    """Prepare a summary for quoting: no markers, no escape sequences, no space around it."""
    return told(strip_markers(summary, author="ai")).strip()


class LessonsLayer:
    """A source: all lessons if `max_tokens` hold them, else the best matches and then the newest."""

    def __init__(self, db: Database, max_tokens: int) -> None:
        self._db, self._max_bytes = db, max_tokens * BYTES_PER_TOKEN

    def __call__(self, context: LayerContext) -> LayerText | None:
        """Make the layer; None without a lesson."""
        newest = newest_lessons(self._db)
        chosen = [(lesson, "all fit in") for lesson in newest]
        if _size(newest) > self._max_bytes:
            query = match_query(context.text, context.request, context.task)
            fitting = fitting_lessons(self._db, query) if query else []
            ranked = [(lesson, f"rank {rank}, score {lesson.score:.2f}") for rank, lesson in enumerate(fitting, 1)]
            there = {lesson.number for lesson in fitting}
            ranked += [(lesson, "newest") for lesson in newest if lesson.number not in there]
            chosen, room = [], self._max_bytes
            for lesson, why in ranked:  # as many as there is room for, the first ones first
                needed = _size([lesson])
                if needed <= room:
                    chosen.append((lesson, why))
                    room -= needed
        chosen.sort(key=lambda pair: pair[0].number)
        excerpts = tuple(Excerpt(f"lesson {lesson.number}", why, byte_length(lesson.line)) for lesson, why in chosen)
        return LayerText("\n".join(lesson.line for lesson, _ in chosen), excerpts) if chosen else None


def _size(lessons: Iterable[Lesson]) -> int:
    return sum(byte_length(f"{lesson.line}\n") for lesson in lessons)
