from __future__ import annotations

from teamchat.cli.output.lines import note
from teamchat.cli.startup.options import TeamOption
from teamchat.cli.startup.workspace import find_team, need_person
from teamchat.core.conversation.permission import check_gives_trust, check_not_hidden, trust_store
from teamchat.core.team.trust_needs import needs
from teamchat.core.text.clean import printable


def trust(team: TeamOption = None) -> None:
    """Trust the team file as it is now: its commands, its access and the paths outside its folder."""
    need_person("trust is given")
    current_team = find_team(team)
    check_not_hidden(current_team.root)
    wanted, store = needs(current_team), trust_store()
    standing = store.standing(current_team)
    if not standing.trusted:
        check_gives_trust(current_team.root)
    store.grant(current_team)
    for line in (*(f"since you trusted it: {change}" for change in standing.changes), *(need.line for need in wanted)):
        note(line)
    note(
        f"{printable(str(current_team.path))} is trusted"
        if wanted
        else "this team needs no trust: its members only read"
    )
