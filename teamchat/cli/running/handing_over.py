"""A message to a session that another process runs: that run sends it before its next turn.

At a terminal the command returns at once. In a script it waits for the replies that its message leads to.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

from teamchat.cli.output.lines import note
from teamchat.cli.running.console import TERMINATED_BY, Work
from teamchat.cli.running.showing import choose_output
from teamchat.cli.running.watching import asked_to_end, show_as_it_happens
from teamchat.cli.startup.options import ShownOptions
from teamchat.cli.startup.typed import placed_here
from teamchat.cli.startup.workspace import lock_file
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.conversation.following import Follower
from teamchat.core.conversation.inputs import Message
from teamchat.core.errors import ExitCode
from teamchat.core.files.session_lock import POLL_S, holder_of
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session
from teamchat.core.store.unsent import Unsent, hand_over, remove_unsent, sent_as, taker_of
from teamchat.core.team.team import Team
from teamchat.core.text.clean import printable
from teamchat.core.turn.run_events import Conclusion


class AlreadySent(Exception):
    """Another process has sent the message meanwhile."""


class HandedOver(Struct, frozen=True):
    """A message that the run of another process is to send. `follower` saw the session before it was handed over."""

    team: Team
    db: Database
    session: Session
    unsent: Unsent
    follower: Follower

    def sent(self) -> str | None:
        """Return the id of the message, once it is sent."""
        return sent_as(self.db, self.unsent.id)

    def wait(self, asked: Sequence[signal.Signals]) -> ExitCode | None:
        """Wait until it is sent, or nobody takes it any more. A person who `asked` to end this takes it back."""
        while not asked and self.sent() is None and self._is_taken():
            time.sleep(POLL_S)
        if not asked:
            return None
        back = remove_unsent(self.db, self.unsent.id)
        note("not sent" if back else "the message was sent; the run that answers it goes on")
        return TERMINATED_BY.get(asked[0], ExitCode.INTERRUPTED)

    def _is_taken(self) -> bool:
        """Whether a process takes handed-over messages."""
        holder = holder_of(lock_file(self.team.root, self.session.id))
        return holder is not None and holder[0] == taker_of(self.db, self.session.id)

    async def send(self, coordinator: ConversationCoordinator) -> Conclusion:
        """Send it in this process. Raises `AlreadySent`."""
        if self.sent() is not None:
            raise AlreadySent
        return await coordinator.send_unsent(own=self.unsent.id)

    def show_replies(self, show: ShownOptions, verdict: Sequence[str]) -> ExitCode:
        """Show the replies that the message leads to. Returns their exit code."""
        message = self.sent()
        assert message is not None, self.unsent
        self.follower.follow_only(message)
        return show_as_it_happens(
            self.follower,
            lambda: choose_output(self.team, self.session.name, show),
            until_done=True,
            at_end=partial(self._judged, message, verdict),
        )

    def _judged(self, message: str, verdict: Sequence[str], ended: Conclusion) -> Conclusion:
        if not verdict:
            return ended
        from teamchat.cli.startup.verdict import replies_to_all, with_verdict

        return with_verdict(ended, verdict, replies_to_all(self.db, self.session.id, (message,)))


def hand_over_to_run(team: Team, db: Database, session: Session, message: Message) -> HandedOver | None:
    """Hand the message over to the process that runs the session; None if none does, or if it takes no messages."""
    lock = lock_file(team.root, session.id)
    holder = holder_of(lock)
    if holder is None:
        return None
    follower = Follower(db, session, team, lock)
    process, said = holder
    unsent = hand_over(
        db, session.id, message.text, message.speaker, message.to, typed=message.typed_through, taker=process
    )
    if unsent is None:
        return None
    note(f"queued: it goes out before the next turn of {printable(said)}")
    return HandedOver(team, db, session, unsent, follower)


def sent_there(
    hand: Callable[[], HandedOver | None],
    run: Callable[[Work], ExitCode],
    show: ShownOptions,
    verdict: Sequence[str],
    *,
    follow: bool,
) -> ExitCode | None:
    """Let the process that runs the session send a message, which `hand` hands over; None if none takes it.

    At a terminal this returns at once, unless it is to `follow` the replies. Where the other process ends before it
    has sent the message, `run` runs the session here.
    """
    with asked_to_end() as asked:
        handed = hand()
        if handed is None:
            return None
        if show.talks and sys.stdout.isatty() and not (follow or verdict):
            note(f"its replies come there, and in: {placed_here('teamchat watch')}")
            return ExitCode.DONE
        if (code := handed.wait(asked)) is not None:
            return code
    if handed.sent() is None:
        with contextlib.suppress(AlreadySent):
            return run(handed.send)
    return handed.show_replies(show, verdict)
