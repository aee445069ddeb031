from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from teamchat.cli.output.lines import note
from teamchat.cli.running.converse import held
from teamchat.cli.startup.complete import members
from teamchat.cli.startup.options import NoWaitOption, PlaceOptions, TrustOption
from teamchat.cli.startup.workspace import find_team, need_person, need_trust, open_store
from teamchat.core.conversation.permission import trust_store
from teamchat.core.conversation.sessions.open import plan_opening
from teamchat.core.errors import AgentMissing, UsageError
from teamchat.core.files.whole_files import temporary_folder
from teamchat.core.store.sessions import need_session
from teamchat.core.store.turns import mark_opened
from teamchat.core.team.trust import require
from teamchat.core.text.clean import printable
from teamchat.core.text.commands import saying
from teamchat.runners.child.process import foreground
from teamchat.runners.child.running import SpawnFailed


def open(  # noqa: A001 (the command's name)
    member: Annotated[
        str, typer.Argument(metavar="MEMBER", autocompletion=members, help="The member whose session to open.")
    ],
    place: PlaceOptions,
    trust: TrustOption = False,
    no_wait: NoWaitOption = False,
) -> int:
    """Open a member's session in its own CLI. Only that member will remember what you say there."""
    need_person("sessions are opened")
    team = find_team(place.team)
    with open_store(team.root) as db:
        chosen = need_session(db, place.session)
        plan_opening(db, chosen, team, member, os.environ)  # report errors before waiting for anything
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError("opening a session needs a terminal", saying("--to", member))
        need_trust(team, give=trust)
        with held(team.root, db, chosen, wait=not no_wait):
            require(team, trust_store())  # the team file may have changed while this process waited for another one
            opened = plan_opening(db, chosen, team, member, os.environ)
            which = printable(f"{opened.turn.member}'s session {opened.turn.vendor_session}")
            note(f"opens {which}; what is said there is not part of the conversation")
            mark_opened(db, opened.turn)
            try:
                with put_back() as reset_screen, temporary_folder("open") as folder:
                    own = {} if opened.env.get("TMPDIR") != os.environ.get("TMPDIR") else {"TMPDIR": str(folder)}
                    code = foreground(opened.argv, {**opened.env, **own}, opened.cwd)
                    if code:  # a program that failed may not have reset the screen
                        reset_screen()
            except SpawnFailed as error:
                raise AgentMissing(f"{opened.turn.member}'s program could not be started: {error}") from error
            return code


RESET = (
    b"\x1b7\x1b[?1049l"  # save the cursor first: leaving the alternate screen restores it, even if that screen is off
    b"\x1b[?25h\x1b[?7h\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?1007l\x1b[?1016l"
    b"\x1b[?2026l\x1b[?2031l\x1b[?1l\x1b>\x1b[>4m\x1b[<u\x1b(B\x0f\x1b[0m\r\n"
)
"""Leaves the alternate screen, shows the cursor, wraps long lines; ends bracketed paste, reports of mouse, focus, keys
and colours, held drawing, special keypads, other characters and colours."""


@contextlib.contextmanager
def put_back() -> Iterator[Callable[[], None]]:
    """Restore the line settings at the end, and take the terminal back from a process group that a program gave it to.

    The yielded function resets the screen, after a program that failed.
    """
    stdin = sys.stdin.fileno()
    before, group = termios.tcgetattr(stdin), os.getpgrp()
    foreground = os.tcgetpgrp(stdin) == group
    try:
        yield lambda: _write(RESET)
    finally:
        # in the background this process would be stopped here
        handler = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            with contextlib.suppress(OSError, termios.error):  # the terminal was closed
                if foreground:
                    os.tcsetpgrp(stdin, group)
                termios.tcsetattr(stdin, termios.TCSADRAIN, before)
        finally:
            signal.signal(signal.SIGTTOU, handler)


def _write(data: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), data)
