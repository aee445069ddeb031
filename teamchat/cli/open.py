from __future__ import annotations

from typing import Annotated

import typer

from teamchat.cli.shared.complete import members
from teamchat.cli.shared.options import NoWaitOption, SessionOption, TeamOption, TrustOption


def open(  # noqa: A001 (the command's name)
    member: Annotated[
        str, typer.Argument(metavar="MEMBER", autocompletion=members, help="The member whose session to open.")
    ],
    team: TeamOption = None,
    session: SessionOption = None,
    trust: TrustOption = False,
    no_wait: NoWaitOption = False,
) -> int:
    """Open a member's session in its own CLI. Only that member will remember what you say there."""
    import os
    import sys

    from teamchat.cli.output.lines import note
    from teamchat.cli.shared.conversation import held
    from teamchat.cli.shared.terminal_state import put_back
    from teamchat.cli.shared.workspace import find_team, need_trust, open_store, trust_store
    from teamchat.core.conversation.opening import plan_opening
    from teamchat.core.errors import AgentMissing, UsageError
    from teamchat.core.store.sessions import need_session
    from teamchat.core.store.turns import mark_opened
    from teamchat.core.team.trust import require
    from teamchat.core.text.clean import printable
    from teamchat.core.text.commands import saying
    from teamchat.runners.process.process import foreground
    from teamchat.runners.process.start_errors import SpawnFailed

    found = find_team(team)
    with open_store(found.root) as db:
        chosen = need_session(db, session)
        plan_opening(db, chosen, found, member, os.environ)  # report errors before waiting for anything
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError("opening a session needs a terminal", saying("--to", member))
        need_trust(found, give=trust)
        with held(found.root, db, chosen, wait=not no_wait):
            require(found, trust_store())  # it may have changed while this process waited for another one
            opened = plan_opening(db, chosen, found, member, os.environ)
            which = printable(f"{opened.turn.member}'s session {opened.turn.vendor_session}")
            note(f"opens {which}; what is said there is not part of the conversation")
            mark_opened(db, opened.turn)
            try:
                with put_back() as reset_screen:
                    code = foreground(opened.argv, opened.env, opened.cwd)
                    if code:  # it may not have come to that itself
                        reset_screen()
            except SpawnFailed as error:
                raise AgentMissing(f"{opened.turn.member}'s program could not be started: {error}") from error
            return code
