"""Trust and folders are checked at every turn: a member may change what another one runs, or its folder."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from teamchat.core.errors import NotTrusted
from teamchat.core.team.team import Team
from teamchat.core.team.trust import TrustStore, require
from teamchat.core.team.trust_files import untrusted_copies
from teamchat.core.text.clean import printable
from teamchat.core.turn.caller import find_caller
from teamchat.core.turn.host import Host
from teamchat.core.turn.ready import ReadyTurn
from teamchat.runners.process.running import Launch, Running


def with_trust_checks(host: Host, team: Team, store: TrustStore) -> Host:
    """The host whose turns start only while the team is trusted and each member's folder is still the same one.

    The check raises `NotTrusted` with what has changed. The process starts in the folder found now, not in another one
    that has its path later.
    """
    members = {member.name: member for member in team.ai_members}
    folders = {member.name: Path(os.path.realpath(member.cwd)) for member in team.ai_members}

    caller = find_caller()

    def check(turn: ReadyTurn) -> None:
        if caller:
            caller.check_access(turn.member, turn.agent)
        member = members[turn.member.name]
        now = Path(os.path.realpath(member.cwd))
        if now != folders[member.name]:
            moved = f"{member.name}'s folder was {folders[member.name]} when this command began, and now is {now}"
            raise NotTrusted(printable(moved), "teamchat resume")
        require(team, store)
        if turn.member.cwd != member.cwd and (other := untrusted_copies(team, member, turn.member)):
            changed = f"{member.name} runs {other[0]}, which in its worktree is not as you trusted it"
            merge, remove = f"teamchat merge {member.name}", f"teamchat worktrees remove {member.name}"
            raise NotTrusted(printable(changed), f"{merge}\n{remove}")
        host.check(turn)

    def launcher(what: Launch) -> Running:
        name = what.identity.member
        shared = name in members and what.cwd == members[name].cwd
        return host.launcher(replace(what, real_cwd=folders[name] if shared else what.cwd))

    return replace(host, check=check, launcher=launcher)
