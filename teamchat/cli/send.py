from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from teamchat.cli.shared.complete import members, people
from teamchat.cli.shared.options import (
    JsonOption,
    NoInputOption,
    NotifyOption,
    NoWaitOption,
    OnlyOption,
    QuietOption,
    RecordOption,
    SessionOption,
    StreamOption,
    TeamOption,
    TimeoutOption,
    TitleOption,
    TrustOption,
    TurnsOption,
    VerdictOption,
    words_of,
)

if TYPE_CHECKING:
    from teamchat.cli.shared.conversation import Work
    from teamchat.cli.shared.piped import PersonMessage
    from teamchat.core.cassette.writer import CassetteWriter, Cooling
    from teamchat.core.conversation.coordinator import ConversationCoordinator
    from teamchat.core.store.database import Database
    from teamchat.core.store.sessions import Session
    from teamchat.core.team.team import Team
    from teamchat.core.turn.events import Conclusion


Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TEXT]...",
        show_default=False,
        help='The message, such as "[NEXT:max] Hi"; - or none reads standard input.',
    ),
]
ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="NAMES",
        autocompletion=members,
        help="Who answers: max, or max,sarah in turn, or max+sarah at once.",
    ),
]
AsOption = Annotated[
    str | None, typer.Option("--as", metavar="NAME", autocompletion=people, help="The person you speak as.")
]
NewOption = Annotated[bool, typer.Option("--new", help="Start a new conversation, named by --session if given.")]
AnywayOption = Annotated[
    bool, typer.Option("--anyway", help="Send the text even if it looks like a call but calls nobody.")
]
CutOption = Annotated[
    bool, typer.Option("--cut", help="Send a text that exceeds the prompt limit; prompts leave out its middle.")
]
FileOption = Annotated[
    list[str] | None,
    typer.Option("--file", metavar="PATH", help="Attach a text file, or an image if the member's CLI accepts images."),
]
ExpandOption = Annotated[bool, typer.Option("--expand", help="Expand @paths in piped text and files, too.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show the routing, prompts and commands without running anything.")
]


def send(
    words: Words = None,
    to: ToOption = None,
    as_: AsOption = None,
    team: TeamOption = None,
    session: SessionOption = None,
    new: NewOption = False,
    title: TitleOption = None,
    anyway: AnywayOption = False,
    cut: CutOption = False,
    file: FileOption = None,
    expand: ExpandOption = False,
    as_json: JsonOption = False,
    stream: StreamOption = False,
    quiet: QuietOption = False,
    only: OnlyOption = False,
    turns: TurnsOption = None,
    timeout: TimeoutOption = None,
    trust: TrustOption = False,
    no_wait: NoWaitOption = False,
    notify: NotifyOption = None,
    no_input: NoInputOption = False,
    record: RecordOption = None,
    verdict: VerdictOption = None,
    dry_run: DryRunOption = False,
) -> int:
    """Send a message and let members answer until nobody is left to speak.

    Piped text is appended to the message as a fenced block: git diff | teamchat send --to max "Find bugs"
    """
    from teamchat.cli.shared.showing import OutputOptions
    from teamchat.cli.shared.workspace import begun, choose_session, find_team, need_trust, open_store
    from teamchat.core.engine.state import Bounds
    from teamchat.core.turn.ahead import begun_for

    show, bounds = OutputOptions(as_json, stream, quiet, notify), Bounds(turns, only)
    verdicts = words_of(verdict)
    found = find_team(team, timeout)
    if not dry_run:
        if record:
            from teamchat.cli.shared.recorder import check_recording

            check_recording(record)
        need_trust(found, give=trust)
    ahead = None if dry_run else begun_for(found)
    from contextlib import nullcontext  # these imports take as long as git

    from msgspec.structs import replace

    from teamchat.cli.output.lines import note
    from teamchat.cli.shared.answering import Answering
    from teamchat.cli.shared.piped import read_message
    from teamchat.cli.shared.typed import saying_what_to_type
    from teamchat.core.conversation.entry import check_entry
    from teamchat.core.store.sessions import current_session

    message = read_message(words or (), None if cut else found.max_bytes, file or ())
    typed = 0 if anyway else message.typed
    sent = replace(message, typed=len(message.text)) if expand else message
    with open_store(found.root) as db, saying_what_to_type(message):
        if dry_run:
            from teamchat.cli.shared.dry_run import explain

            return explain(
                found, db, session, sent, new=new, title=title, speaker=as_, to=to, typed=typed, cut=cut, bounds=bounds
            )
        current = None if new else current_session(db, session)
        check_entry(found, db, current, message.text, speaker=as_, to=to, typed=typed, cut=cut, images=message.images)
        chosen, begins = choose_session(db, found, session, new=new, title=title)
        if not quiet:
            note(f"session {chosen.name} " + ("begins" if begins else "continues (--new starts another)"))

        def write_input(writer: CassetteWriter, cooling: Cooling) -> None:
            writer.human(sent.text, as_, to, cooling, sent.images, sent.typed, bounds)

        work = sending(found, db, chosen, sent, speaker=as_, to=to)
        answering = Answering(
            team=found,
            db=db,
            session=chosen,
            show=show,
            bounds=bounds,
            wait=not no_wait,
            record=record,
            speaker=as_,
            no_input=no_input,
            verdict=verdicts,
        )
        with begun(db, chosen) if begins else nullcontext():
            return answering.run(work, write_input, ahead)


def sending(
    team: Team, db: Database, session: Session, message: PersonMessage, *, speaker: str | None, to: str | None
) -> Work:
    """Send the message, after a note on what is still on hold."""
    from teamchat.cli.output.lines import note
    from teamchat.cli.shared.workspace import session_typed

    async def work(coordinator: ConversationCoordinator) -> Conclusion:
        if held := coordinator.state.held:
            waiting = ", ".join(route.target for route in held)
            named = team.typed + session_typed(db, session)
            note(f"still on hold: {waiting} (teamchat resume{named} continues with them)")
        return await coordinator.send(message.text, speaker=speaker, to=to, images=message.images, typed=message.typed)

    return work
