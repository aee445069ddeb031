"""Lessons of a conversation: how a member is asked for them, and the lines that are taken from its answer.

Nothing of it is part of the conversation. The lessons are a proposal until a person accepts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from teamchat.assemblers.truncation import approx_tokens
from teamchat.core.context.layers.collector import LayerContext
from teamchat.core.context.layers.sources import LessonsLayer
from teamchat.core.conversation.summary import no_room, prompt_about
from teamchat.core.errors import NoRecording, StoreError, TeamchatError, UsageError
from teamchat.core.messages import Said, well_formed
from teamchat.core.routing.markers import quoted_text, strip_markers
from teamchat.core.store.database import Database
from teamchat.core.store.lessons import Lesson, add_lesson, gist, lesson_text, newest_lessons
from teamchat.core.store.summaries import summary_before
from teamchat.core.store.turns import LARGEST, Turn
from teamchat.core.team import wording
from teamchat.core.team.team import Member, Team
from teamchat.core.text.clean import told
from teamchat.core.text.commands import saying
from teamchat.core.text.redact import redact_shapes
from teamchat.core.turn.machine import TurnReason
from teamchat.core.turn.run import Run, TurnFailure
from teamchat.core.turn.run_events import LessonsFound
from teamchat.core.turn.side_turn import SideTurn, for_side_turn, run_side_turn
from teamchat.patterns import regex

WHY = "a person asked for lessons from the conversation"
MOST = 10
KNOWN_TOKENS = 4000  # tokens for the known lessons in the prompt; a quarter of it at most
NONE = "NONE"
LONGEST_LINE = 16_000  # characters; a longer line, markers included, is no lesson
MOST_LINES = 10_000  # different lines that are read; an answer is asked for ten lessons
MOST_NESTED = 10  # markers in one another; a line with more is no lesson
_HEAD = regex(r"\A\s*(?:[-*+•–—]\s+|\(?\d{1,3}[.):]\s+|#{1,6}\s+)*")  # bullets, numbers, headings
_FENCE = regex(r"\s*(?:```|~~~)")
_WORD = regex(r"[^\W_]")


def learner_of(team: Team, name: str | None) -> Member:
    """Choose whom to ask: the member with that name, else the `lead`, else the first AI.

    Raises `UsageError` and `UnknownName`.
    """
    chosen = name or team.lead
    if chosen is None and not team.ai_members:
        raise UsageError("the team has nobody to ask for lessons; add an agent to the team file")
    member = team.member(chosen) if chosen else team.ai_members[0]
    if member.type == "human":
        other = next((f"teamchat learn --from-session --member {ai.name}" for ai in team.ai_members), None)
        raise UsageError(f"{member.name} is a person; only an agent can be asked for lessons", other)
    return member


def lessons_in(answer: str, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Extract the lessons of an answer, one a line, without `known` ones: ten at most.

    Later prompts contain them, so escape sequences, markers and well-known keys are taken out. A line that is too long
    for a lesson is left out, and so is one with markers nested more than `MOST_NESTED` deep. `MOST_LINES` are read.
    """
    return tuple(islice(_new(_lines(answer), {gist(text) for text in known}), MOST))


def _new(lines: Iterable[str], seen: set[str]) -> Iterator[str]:
    for line in lines:
        said = gist(line)
        if said and said not in seen:
            seen.add(said)
            yield line


def _lines(answer: str) -> Iterator[str]:
    text = redact_shapes(told(well_formed(answer)))[0]  # the whole text at once: a private key has many lines
    lines = (line for line in dict.fromkeys(text.splitlines()) if _WORD.search(line) and not _FENCE.match(line))
    for line in islice(lines, MOST_LINES):
        if len(line) > LONGEST_LINE:
            continue
        try:
            lesson = lesson_text(redact_shapes(_without_markers(_HEAD.sub("", line)))[0])
        except UsageError:
            continue
        if gist(lesson) != gist(NONE):
            yield lesson


def _without_markers(line: str) -> str:
    """Strip until no marker is left, as an escaped one becomes a marker; empty if they are nested too deeply."""
    for _ in range(MOST_NESTED):
        if (stripped := strip_markers(line, author="ai")) == line:
            return line
        line = stripped
    return ""


def keep_lessons(db: Database, texts: Iterable[str], session: str) -> tuple[Lesson, ...]:
    """Store all of the texts or none, as lessons of the session of that name. Returns the new ones."""
    with db.transaction():
        added = [add_lesson(db, text, session) for text in texts]
    return tuple(lesson for lesson, new in added if new)


def _question(run: Run, member: Member, said: Sequence[Said]) -> str:
    """Word the question about the messages `said`, below the known lessons; if there are many, the closest ones."""
    context = LayerContext(
        member, said[-1].message, "\n".join(quoted.text for quoted in said), run.manager.get_team_task()
    )
    known = LessonsLayer(run.db, min(KNOWN_TOKENS, approx_tokens(run.team.prompt_bytes) // 4))(context)
    ask = wording.ASK_LESSONS.format(most=MOST, known=wording.SAME_LESSONS if known else "")
    return f"{wording.KNOWN_LESSONS}\n{known.text}\n\n{ask}" if known else ask


async def find_lessons(run: Run, member: Member, keep_as: str | None = None) -> LessonsFound | TurnFailure:
    """Ask `member` for lessons. With `keep_as`, the session's name, they are stored with the end of the turn.

    Raises `UsageError` when nothing was said yet, `StoreError` and `NoRecording`.
    """
    answers = run.manager.get_current_message()
    if answers is None:
        raise UsageError("this conversation has no messages yet", saying())
    member = for_side_turn(member)

    def read(answer: str) -> Callable[[Turn], LessonsFound]:
        texts = lessons_in(answer, (lesson.text for lesson in newest_lessons(run.db, LARGEST)))
        return lambda turn: LessonsFound(turn, texts, keep_lessons(run.db, texts, keep_as) if keep_as else ())

    try:
        so_far = summary_before(run.db, run.session, answers.id)
        said = [Said(answers, quoted_text(answers)), *run.manager.get_unsummarised()][::-1]
        asked = prompt_about(run.team, member, run.manager, said, _question(run, member, said), so_far)
        if not asked.said:
            raise no_room(member)
        reason = TurnReason(WHY, answers.id, purpose="lessons")
        side = SideTurn(member, asked.built(run.machine.exists), reason, read, lambda _, found: found, keeps_text=True)
        return await run_side_turn(run, side)
    except (NoRecording, StoreError):
        raise
    except TeamchatError as error:
        return TurnFailure(error.code, str(error), error.hint)
