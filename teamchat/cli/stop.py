from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time

from teamchat.cli.output.lines import note
from teamchat.cli.startup.options import PlaceOptions
from teamchat.cli.startup.typed import placed_here
from teamchat.cli.startup.workspace import abandoned, find_root, lock_file, need_person, open_store, session_typed
from teamchat.core.conversation.recovery import how_left, note_stopped
from teamchat.core.dispatch.connect import connect
from teamchat.core.dispatch.dispatch import Away
from teamchat.core.errors import HostUnavailable, SessionBusy, TeamchatError
from teamchat.core.files.session_lock import look_at
from teamchat.core.store.routes import open_routes
from teamchat.core.store.sessions import need_session
from teamchat.core.store.turns import running_turns
from teamchat.core.store.unsent import handed_over_to
from teamchat.runners.child.guardian import FIRST_PID

PATIENCE_S = 15.0


def stop(place: PlaceOptions) -> None:
    """Stop a conversation that is running in another terminal. Its turn ends cleanly; the queue is kept."""
    need_person("conversations are stopped")
    root = find_root(place.team)
    with open_store(root) as db:
        chosen = need_session(db, place.session)
        typed = session_typed(db, chosen)
        left = abandoned(root, chosen.id, lambda: running_turns(db, chosen.id))
        how = [f"turn {turn.number} ({turn.member}) {how_left(db, turn)}" for turn in left]
    lock = lock_file(root, chosen.id)
    holder = look_at(lock)
    if holder is None:
        note(f"session {chosen.name} is not running")
        if on_hosts := [turn for turn in left if turn.setup.host]:
            known = _stop_on_hosts([turn.folder.name for turn in on_hosts])
            for turn in on_hosts:
                if turn.folder.name not in known:
                    note(f"turn {turn.number} is not known to the database (TEAMCHAT_DATABASE), and was not stopped")
            on_hosts = [turn for turn in on_hosts if turn.folder.name in known]
            with open_store(root) as db:
                for turn in on_hosts:
                    note_stopped(db, turn)
                how = [f"turn {turn.number} ({turn.member}) {how_left(db, turn)}" for turn in left]
        for words in how:
            note(f"{words}; teamchat resume{typed} continues")
        return
    process = holder.here
    if process is None:
        raise SessionBusy(
            f"{holder.said} cannot be seen from here: stop it in the container or on the machine where it runs",
            placed_here("teamchat watch"),
        )
    for number in (signal.SIGTERM, signal.SIGCONT):  # a process stopped by Ctrl-Z hears only the second
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)
    until = time.monotonic() + PATIENCE_S
    while (still := look_at(lock)) and still == holder:
        if time.monotonic() > until:
            raise TeamchatError(
                f"{holder.said} has not ended {PATIENCE_S:g} s after it was asked to",
                f"kill -9 {process}" if process >= FIRST_PID else None,  # process 1 ignores it
            )
        time.sleep(0.05)
    with open_store(root) as db:
        waits = open_routes(db, chosen.id) or handed_over_to(db, chosen.id)
    what = f"teamchat resume{typed} continues" if waits else f"nothing is waiting in session {chosen.name}"
    note(f"stopped {holder.said}; {what}")


def _stop_on_hosts(names: list[str]) -> set[str]:
    """Stop turns that go on at their hosts without a teamchat here, and return the ones known to the database.

    Raises `HostUnavailable`.
    """
    dispatch = connect()

    async def stop_all() -> set[str]:
        known = {name for name in names if await dispatch.state(name) is not None}
        for name in known:
            await dispatch.cancel(name)
        return known

    try:
        return asyncio.run(stop_all())
    except Away as away:
        raise HostUnavailable(str(away), away.hint) from None
    finally:
        dispatch.close()
