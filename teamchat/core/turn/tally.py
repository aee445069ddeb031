"""The sums over the turns of one run, and the reasons of those that failed."""

from __future__ import annotations

from msgspec import Struct, field

from teamchat.core.engine.state import Route
from teamchat.core.errors import AgentMissing, ExitCode, NoMessage, NotTrusted, TeamchatError, UsageError
from teamchat.core.messages import ConversationMessage, Span
from teamchat.core.receipt import Outcome
from teamchat.core.store.turns import Turn
from teamchat.runners.events import Usage

RESUME = "teamchat resume"
SKIP = f"{RESUME} --skip"


class TurnFailure(Struct, frozen=True):
    """Why a turn has no reply. `repeats`: a resume fails again until a person has repaired what the reason says."""

    code: ExitCode
    reason: str
    hint: str | None
    repeats: bool = False


class Tally(Struct):
    """The sums over the turns of one run. A sum with an unknown part is unknown. `turns` counts turns with a route.

    `process`: the run began or continued a process. `routes` are the numbers of those that had a turn, and `said` is
    the message that a person sent last in this run. Of messages that other processes handed over, `of_others`, the
    replies are no result of this run. No marker counts in the parts `repeated` of the `text`.
    """

    turns: int = 0
    text: str = ""
    repeated: tuple[Span, ...] = ()
    denied: int | None = 0
    usage: Usage = field(default_factory=lambda: Usage(0, 0, 0, 0.0))
    failures: dict[int, TurnFailure] = field(default_factory=dict)
    process: bool = False
    routes: list[int] = field(default_factory=list)
    said: str | None = None
    of_others: set[str] = field(default_factory=set)

    def add_reply(self, reply: ConversationMessage, request: str | None = None) -> None:
        """Note the reply to the person's message `request`."""
        if request not in self.of_others:
            self.end_with(reply.content, reply.pasted)

    def end_with(self, text: str, repeated: tuple[Span, ...] = ()) -> None:
        """Note the last text of the run so far."""
        self.text, self.repeated = text, repeated

    def fail(self, route: Route, error: TeamchatError) -> None:
        """Note why the turn of a route could not begin."""
        self.failures[route.number] = TurnFailure(error.code, str(error), hint_for(error), repeats=_repeats(error))

    def fail_turn(self, turn: Turn, outcome: Outcome) -> None:
        """Note why a turn of a route failed, if it did."""
        if outcome.failure and turn.route is not None:
            reason = f"{turn.member} {outcome.failure.reason}"
            self.failures[turn.route] = TurnFailure(outcome.code, reason, outcome.failure.hint)

    def add(self, turn: Turn, outcome: Outcome) -> None:
        self.fail_turn(turn, outcome)
        if turn.route is not None:
            self.turns += 1
            self.routes.append(turn.route)
        self.denied = _plus(self.denied, None if outcome.denied is None else len(outcome.denied))
        used, more = self.usage, outcome.usage or Usage()
        self.usage = Usage(
            input_tokens=_plus(used.input_tokens, more.input_tokens),
            cached_tokens=_plus(used.cached_tokens, more.cached_tokens),
            output_tokens=_plus(used.output_tokens, more.output_tokens),
            cost_usd=None
            if used.cost_usd is None or more.cost_usd is None
            else round(used.cost_usd + more.cost_usd, 9),  # the same in whichever order a group's turns end
        )


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def hint_for(error: TeamchatError) -> str | None:
    """The command that repairs the error. Nobody can answer a message that was undone, so that one is skipped."""
    return SKIP if isinstance(error, NoMessage) else error.hint


def _repeats(error: TeamchatError) -> bool:
    """True when resuming fails in the same way: no command repairs the program, the team file or the environment."""
    return isinstance(error, AgentMissing | NotTrusted | UsageError) and error.hint is None
