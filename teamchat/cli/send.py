from __future__ import annotations

from typing import Annotated

import typer

from teamchat.cli.shared.complete import members, people
from teamchat.cli.shared.options import (
    AskOption,
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
    WindowOption,
    asks,
    words_of,
)

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TEXT]...",
        show_default=False,
        help='The message, such as "[NEXT:max] Hi"; none, or a - at its end, demands standard input.',
    ),
]
ToOption = Annotated[
    list[str] | None,
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
FollowOption = Annotated[
    bool,
    typer.Option(
        "--follow", help="While another process runs the conversation, wait for the replies even at a terminal."
    ),
]
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
    window: WindowOption = None,
    timeout: TimeoutOption = None,
    trust: TrustOption = False,
    no_wait: NoWaitOption = False,
    notify: NotifyOption = None,
    ask: AskOption = False,
    no_input: NoInputOption = False,
    record: RecordOption = None,
    verdict: VerdictOption = None,
    follow: FollowOption = False,
    dry_run: DryRunOption = False,
) -> int:
    """Send a message and let members answer until nobody is left to speak.

    Piped text is appended to the message as a fenced block: git diff | teamchat send --to max "Find bugs"
    """
    from teamchat.cli.shared.showing import OutputOptions
    from teamchat.cli.shared.workspace import begin_run, find_team
    from teamchat.core.engine.state import UNBOUNDED, Bounds

    verdicts, ask = words_of(verdict), asks(ask, no_input)
    found = find_team(team, timeout)
    if not dry_run:
        begin_run(found, record=record, trust=trust)
    from teamchat.cli.shared.piped import read_message, without_calls  # these imports take as long as git
    from teamchat.cli.shared.request import Request

    names = ",".join(to) if to else None
    message = read_message(words or (), None if cut else found.max_bytes, file or (), judged=bool(verdicts))
    if not anyway:
        names, message = without_calls(message, names, found.members)
    request = Request(
        team=found,
        message=message,
        bounds=Bounds(turns, only, window=window),
        session=session,
        new=new,
        title=title,
        speaker=as_,
        to=names,
        cut=cut,
        expand=expand,
        anyway=anyway,
    )
    if dry_run:
        from teamchat.cli.shared.dry_run import explain

        return explain(request)
    show = OutputOptions(as_json, stream, quiet, notify)
    return request.carry_out(
        show,
        wait=not no_wait,
        record=record,
        ask=ask,
        verdict=verdicts,
        own_run=bool(record or timeout or notify) or request.bounds != UNBOUNDED,
        follow=follow or ask,
    )
