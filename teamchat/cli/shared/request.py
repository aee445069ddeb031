"""What a person asks for with `send` or `run`: checked, stored, and followed until nobody is left to speak."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from teamchat.cli.output.lines import note, plural
from teamchat.cli.shared.answering import Answering
from teamchat.cli.shared.conversation import Work
from teamchat.cli.shared.piped import PersonMessage
from teamchat.cli.shared.showing import OutputOptions
from teamchat.cli.shared.typed import saying_what_to_type
from teamchat.cli.shared.workspace import (
    begun,
    calling,
    choose_session,
    continued_session,
    is_held,
    note_moved,
    open_store,
    session_typed,
)
from teamchat.core.conversation.coordinator import ConversationCoordinator
from teamchat.core.conversation.entry import check_entry
from teamchat.core.engine.state import Bounds
from teamchat.core.errors import ExitCode
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import Session, last_session
from teamchat.core.store.unsent import handed_over_to, keep_unsent
from teamchat.core.team.team import Team
from teamchat.core.turn.events import Conclusion

if TYPE_CHECKING:
    from teamchat.cli.shared.recorder import WriteInput
    from teamchat.core.cassette.writer import CassetteWriter, Cooling
    from teamchat.core.engine.process import Process


class Request(Struct, frozen=True, kw_only=True):
    """A person's message to a team, and where it goes. With a `process` it is the task of that.

    `session`, `new` and `title` choose the session, `speaker` is `--as`, `to` is `--to`. A message that may be `cut`
    does not have to fit into a prompt as a whole. With `expand` its `@paths` count as typed, also those of piped text.
    With `anyway` it is sent even if it looks like a call and calls nobody.
    """

    team: Team
    message: PersonMessage
    bounds: Bounds
    session: str | None
    new: bool
    title: str | None
    speaker: str | None
    to: str | None = None
    cut: bool = False
    expand: bool = False
    anyway: bool = False
    process: Process | None = None

    @property
    def sent(self) -> PersonMessage:
        """The message as it is stored."""
        return replace(self.message, typed=len(self.message.text)) if self.expand else self.message

    @property
    def typed(self) -> int:
        """How many characters must not look like a call that calls nobody."""
        return 0 if self.anyway else self.message.typed

    def check(self, db: Database, session: Session | None) -> None:
        """Raise the reason to refuse it in that session, or in a new one (None): see `check_entry`, `check_task`."""
        message, caller = self.message, calling()
        if self.process is None:
            check_entry(
                self.team,
                db,
                session,
                message.text,
                speaker=self.speaker,
                to=self.to,
                typed=self.typed,
                cut=self.cut,
                images=message.images,
                caller=caller,
            )
            return
        from teamchat.core.conversation.processes import check_task  # only `teamchat run` needs the processes

        check_task(
            self.team,
            db,
            session,
            message.text,
            self.process,
            speaker=self.speaker,
            cut=self.cut,
            images=message.images,
            caller=caller,
        )

    def carry_out(
        self,
        show: OutputOptions,
        *,
        wait: bool,
        record: Path | None,
        ask: bool,
        verdict: tuple[str, ...],
        notes: tuple[str, ...] = (),
        own_run: bool = True,
        follow: bool = False,
    ) -> ExitCode:
        """Store it and follow the conversation. The keywords are as for `Answering`; `notes` are told before.

        While another process runs the session, that sends a message that needs no `own_run`. At a terminal the command
        does not wait for the replies then, unless it is to `follow` them.
        """
        with open_store(self.team.root) as db, saying_what_to_type(self.message):
            self.check(db, None if self.new else continued_session(db, self.session))
            if not show.quiet and last_session(db) is None:
                note_moved(self.team.root)
            session, begins = choose_session(db, self.team, self.session, new=self.new, title=self.title)
            if not show.quiet:
                note(f"session {session.name} " + ("begins" if begins else "continues (--new starts another)"))
            for line in notes:
                note(line)
            answering = Answering(
                team=self.team,
                db=db,
                session=session,
                show=show,
                bounds=self.bounds,
                wait=wait,
                record=record,
                speaker=self.speaker,
                ask=ask,
                verdict=verdict,
            )
            shared = not (own_run or self.message.images or calling())
            if wait and shared and is_held(self.team.root, session.id):
                from teamchat.cli.shared.handing_over import hand_over_to_run, sent_there

                hand = partial(hand_over_to_run, self.team, db, session, self.sent, self.speaker, self.to)
                run = partial(answering.run, write_input=self._recorded())
                if (code := sent_there(hand, run, show, verdict, follow=follow)) is not None:
                    return code
            with begun(db, session) if begins else nullcontext():
                return answering.run(self._work(db, session, shared=shared), self._recorded())

    def _work(self, db: Database, session: Session, *, shared: bool) -> Work:
        """Send the message, after a note on what is still on hold.

        What was handed over and is not sent yet goes out before a message that may be `shared`.
        """
        sent = self.sent

        async def work(coordinator: ConversationCoordinator) -> Conclusion:
            if held := coordinator.state.held:
                waiting = ", ".join(route.target for route in held)
                named = self.team.typed + session_typed(db, session)
                note(f"still on hold: {waiting} (teamchat resume{named} continues with them)")
            if shared and (before := handed_over_to(db, session.id)):
                note(f"{plural(len(before), 'message')} that waited {'goes' if len(before) == 1 else 'go'} out first")
                own = keep_unsent(db, session.id, sent.text, self.speaker, self.to, typed=sent.typed, handed_over=True)
                return await coordinator.send_unsent(own=own.id)
            if self.process:
                return await coordinator.run_process(
                    sent.text, self.process, speaker=self.speaker, images=sent.images, typed=sent.typed
                )
            return await coordinator.send(
                sent.text, speaker=self.speaker, to=self.to, images=sent.images, typed=sent.typed
            )

        return work

    def _recorded(self) -> WriteInput:
        sent = self.sent

        def write(writer: CassetteWriter, cooling: Cooling) -> None:
            writer.human(sent.text, self.speaker, self.to, cooling, sent.images, sent.typed, self.bounds, self.process)

        return write
