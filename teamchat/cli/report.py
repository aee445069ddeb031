from __future__ import annotations

from teamchat.cli.output.jsonl import print_line
from teamchat.cli.output.process_report import lines_of
from teamchat.cli.output.terminal.result import fitted
from teamchat.cli.running.showing import wrap_width
from teamchat.cli.startup.options import JsonOption, PlaceOptions
from teamchat.cli.startup.workspace import find_root, open_store
from teamchat.core.conversation.process_totals import whole_report
from teamchat.core.errors import ExitCode, UsageError
from teamchat.core.store.routes import last_process
from teamchat.core.store.sessions import need_session
from teamchat.core.text.clean import printable
from teamchat.core.turn.lines import ProcessMovedLine, process_fields


def report(place: PlaceOptions, as_json: JsonOption = False) -> int:
    """Print the result of the last process again, as at its end."""
    with open_store(find_root(place.team)) as db:
        chosen = need_session(db, place.session)
        process = last_process(db, chosen.id)
        if process is None:
            raise UsageError(f"no process ran in session {chosen.name}", "teamchat run --help")
        reported = whole_report(db, chosen.id, process)
    if as_json:
        print_line(ProcessMovedLine(**process_fields(process, reported)))
    else:
        lines, width = map(printable, lines_of(reported)), wrap_width()
        for line in lines if width is None else fitted(lines, width):
            print(line)
    return ExitCode.DONE
