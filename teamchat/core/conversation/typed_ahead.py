"""Messages that people type while members work, here or in another process, go out between two turns in order.

One goes out before each turn, so that each is answered before the next one. A stop of only the turn that runs is here
too: what waits behind that turn goes on, and a kept message goes out first.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from teamchat.core.conversation.addressing import Addressed, address, person
from teamchat.core.conversation.mentioned import illustrated
from teamchat.core.engine.events import (
    Action,
    Deliver,
    HumanAsked,
    Idle,
    Paused,
    PauseKind,
    Queued,
    Released,
    RunCheck,
    RunGroup,
    RunTurn,
)
from teamchat.core.engine.state import RouteStatus, State
from teamchat.core.errors import StoreError, TeamchatError
from teamchat.core.store.images import Image
from teamchat.core.store.unsent import Unsent, begin_taking, end_taking, unsent_of
from teamchat.core.turn.run import Run
from teamchat.core.turn.run_events import Warned

RESET_BY_SPEAKING = (PauseKind.TURNS, PauseKind.TIME, PauseKind.LOOP)
"""The guards that a person's message resets."""


class Outgoing(Struct, frozen=True):
    """A kept message to store now, with the `images` that it mentions.

    `answers` is off if a question was asked after it was typed: the message does not answer that.
    """

    unsent: Unsent
    addressed: Addressed
    answers: bool
    images: tuple[Image, ...] = ()


class TypedAhead(Struct):
    """The kept messages of one run. `store` stores one; it returns () if the person has just removed it.

    `tell_held` tells of routes that a person has stopped while the rest goes on.
    """

    run: Run
    store: Callable[[Outgoing], tuple[Action, ...]]
    tell_held: Callable[[tuple[int, ...]], None]
    refused: dict[int, TeamchatError] = field(default_factory=dict)
    own: int | None = None  # of the messages handed over, the one that this process is to send
    sent: bool = False  # a message was sent that the next turn belongs to

    @contextlib.contextmanager
    def taking(self) -> Iterator[None]:
        """Let other processes hand messages over meanwhile, if the run takes any."""
        run = self.run
        if not run.takes_over:
            yield
            return
        begin_taking(run.db, run.session, os.getpid())
        try:
            yield
        finally:
            with contextlib.suppress(StoreError):  # a store that cannot be written says so elsewhere
                end_taking(run.db, run.session)

    def may_end(self, last: Action) -> bool:
        """Return whether the run may end with `last`, and then take no more messages; False if one goes out first."""
        run = self.run
        if not run.takes_over or run.stopper.asked or not _goes_out(last):
            return True
        return end_taking(run.db, run.session, self._stay)

    @property
    def _stay(self) -> set[int]:
        """The numbers of kept messages that this run does not send."""
        return {*self.refused, *(self.run.hand.held_back if self.run.hand else ())}

    def between_turns(self, last: Action, before: State) -> tuple[Action, ...] | None:
        """Let a person's message and a stop change what the engine wanted `last`; None if neither does.

        The last turn began in the state `before`.
        """
        run, stopper = self.run, self.run.stopper
        only_turn, begins = stopper.only_turn, isinstance(last, RunTurn | RunCheck | RunGroup)
        freed = _held_since(before, run.state) if isinstance(last, Paused) or only_turn else ()
        stopped = self._note_stopped(before, freed if only_turn else ())
        if (stopper.asked and (begins or not only_turn)) or isinstance(last, Deliver):
            return None  # first the turn is stopped, or its group's replies are delivered
        if begins and self.sent:
            self.sent = False
            return None
        actions = self._send_one() if only_turn or _goes_out(last) else None
        if freed and (actions or only_turn):
            actions = (*(actions or ())[:-1], *run.step(Released(run.machine.now(), freed)))
        if actions and only_turn:
            stopper.reset()
            if run.hand:
                run.hand.stopping = None
                self.tell_held(stopped)
        return actions

    def _note_stopped(self, before: State, freed: Collection[int]) -> tuple[int, ...]:
        """Note and return routes that a stop by hand has held since the state `before`, except those that go on."""
        run, hand = self.run, self.run.hand
        if hand:  # a route that was resumed and then failed is no longer stopped by hand
            on_hold = {(run.session, route.number) for route in run.state.held}
            hand.stopped = {key: at for key, at in hand.stopped.items() if key[0] != run.session or key in on_hold}
        if hand and hand.stopping is not None and run.stopper.asked:
            there = {route.number for route in before.held}
            held = tuple(route.number for route in run.state.held if route.number not in {*there, *freed})
            hand.stopped |= dict.fromkeys(((run.session, number) for number in held), hand.stopping)
            return held
        return ()

    def _send_one(self) -> tuple[Action, ...] | None:
        while out := self._next():
            if actions := self.store(out):
                self.sent = any(isinstance(action, Queued) for action in actions)
                return actions
        return None

    def _next(self) -> Outgoing | None:
        """Find the first message that can be sent. Others stay, and are not tried again in this run."""
        run = self.run
        for unsent in unsent_of(run.db, run.session):
            taken = run.takes_over if unsent.handed_over else run.hand is not None
            if not taken or unsent.id in self._stay:
                continue
            try:
                return self._addressed(unsent)
            except StoreError:
                raise
            except TeamchatError as error:
                self.refused[unsent.id] = error
                run.emit(Warned(f"not sent: {error}"))
        return None

    def _addressed(self, unsent: Unsent) -> Outgoing:
        run = self.run
        speaker = person(run.team, unsent.speaker, run.state).name
        asked = run.state.answered_by(speaker)
        # in the millisecond of the question nobody has read it
        answers = asked is None or int(unsent.at * 1000) > run.manager.get_message(asked.parent).timestamp
        state = run.state
        if not answers:
            state = replace(state, queue=tuple(route for route in state.queue if route is not asked))
        if run.tally.process and state.process:
            state = replace(state, process=replace(state.process, over=False))  # it goes on with what was said in it
        opens = run.manager.get_current_message() is None
        images, missing = tuple[Image, ...](), tuple[str, ...]()
        if not unsent.handed_over:
            shown = illustrated(unsent.text, unsent.typed, unsent.pasted, run.team.root)
            unsent = replace(unsent, text=shown.text, typed=shown.typed, pasted=shown.pasted)
            images, missing = shown.images, tuple(f"{name} is not there: it is not attached" for name in shown.missing)
        addressed = address(
            unsent.text,
            run.team,
            state,
            speaker=speaker,
            to=unsent.to,
            opens=opens,
            typed=unsent.typed,
            pasted=unsent.pasted,
            refuse=not unsent.handed_over,  # its sender has checked it
        )
        addressed = replace(addressed, problems=(*addressed.problems, *missing))
        return Outgoing(unsent, addressed, answers, images)


def _goes_out(last: Action) -> bool:
    """Whether kept messages go out now. After a failure and a used-up budget the person decides."""
    if isinstance(last, Paused):
        return last.kind in RESET_BY_SPEAKING
    return isinstance(last, RunTurn | RunCheck | RunGroup | Idle | HumanAsked)


def _held_since(before: State, now: State) -> tuple[int, ...]:
    """List the routes that are held now and only waited `before`, or did not exist."""
    waited = {route.number for route in before.queue if route.status is RouteStatus.WAITING}
    return tuple(route.number for route in now.held if route.number in waited or route.number >= before.next_route)
