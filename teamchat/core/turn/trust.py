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
from teamchat.core.turn.host import Machine
from teamchat.core.turn.ready import ReadyTurn
from teamchat.runners.process.running import Launch


class TrustedMachine(Machine):
    """The machine, whose turns start only while the team is trusted and each member's folder is still the same one.

    The check raises `NotTrusted` with what has changed. The process starts in the folder found now, not in another one
    that has its path later.
    """

    def __init__(self, team: Team, store: TrustStore) -> None:
        super().__init__()
        self._team, self._store, self._caller = team, store, find_caller()
        self._members = {member.name: member for member in team.ai_members}
        self._folders = {member.name: Path(os.path.realpath(member.cwd)) for member in team.ai_members}

    def check(self, turn: ReadyTurn) -> None:
        if self._caller:
            self._caller.check_access(turn.member, turn.agent)
        member = self._members[turn.member.name]
        now = Path(os.path.realpath(member.cwd))
        if now != self._folders[member.name]:
            before = self._folders[member.name]
            moved = f"{member.name}'s folder was {before} when this command began, and now is {now}"
            raise NotTrusted(printable(moved), "teamchat resume")
        require(self._team, self._store)
        if turn.member.cwd != member.cwd and (other := untrusted_copies(self._team, member, turn.member)):
            changed = f"{member.name} runs {other[0]}, which in its worktree is not as you trusted it"
            merge, remove = f"teamchat merge {member.name}", f"teamchat worktrees remove {member.name}"
            raise NotTrusted(printable(changed), f"{merge}\n{remove}")
        super().check(turn)

    def placed(self, what: Launch) -> Launch:
        name = what.identity.member
        shared = name in self._members and what.cwd == self._members[name].cwd
        return replace(what, real_cwd=self._folders[name] if shared else what.cwd)
