"""What the lines around the prompt say of the conversation: who asks, and what was spent."""

from __future__ import annotations

from msgspec.structs import replace

from teamchat.cli.chatting.kept import Place
from teamchat.cli.chatting.layout import Footer
from teamchat.cli.output.lines import plural, short_number
from teamchat.core.engine.team_changes import fitted
from teamchat.core.store.database import Database
from teamchat.core.store.routes import load_state
from teamchat.core.store.sessions import Session
from teamchat.core.store.usage import Sum, total_used, used
from teamchat.core.text.clean import printable
from teamchat.core.turn.run import rules_of


def question_to(db: Database, session: Session | None, place: Place) -> str | None:
    """The member whose question the person at the keyboard is asked."""
    if session is None:
        return None
    asked = fitted(load_state(db, session.id, rules_of(place.team))).answered_by(place.you)
    return asked.by if asked else None


def footer_of(db: Database, session: Session | None, place: Place) -> Footer:
    team, name = place.team, session.name if session else "new session"
    begun = Footer(printable(team.name), printable(name), plural(len(team.members), "member"))
    if session is None:
        return begun
    spent = total_used(used(db, session.id))
    tokens = spent.input_tokens + spent.output_tokens
    return replace(
        begun,
        tokens=f"{_sum(tokens, short_number)} tokens" if tokens.known else "",
        cost=_sum(spent.cost_usd, "${:.2f}".format) if spent.cost_usd.known else "",
    )


def _sum(part: Sum, words: object) -> str:
    assert callable(words)
    return f"{'≥' if part.unknown else ''}{words(part.known)}"
