"""Teams of scripted agents, written as a `teamchat.toml` that is trusted already."""

from __future__ import annotations

import json
import marshal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teamchat.core.files.folders import state_dir
from teamchat.core.team.find import load
from teamchat.core.team.trust import TrustStore
from tests.fakes.scripted import spoken
from tests.program import fake

SCRIPTED = Path(__file__).parent / "fakes" / "scripted.py"
Reply = str | Mapping[str, object]
Table = Mapping[str, object]


@dataclass(frozen=True)
class Crew:
    """A team file, and the folder of its agents' scripts and of the prompts that they got."""

    file: Path
    scripts: Path
    like: Mapping[str, str]

    def say(self, member: str, *replies: Reply) -> None:
        """What the member says turn by turn; turns that it had count."""
        written: list[Any] = [self._written(member, {"say": one} if isinstance(one, str) else one) for one in replies]
        (self.scripts / f"{member}.replies").write_bytes(marshal.dumps(written))

    def _written(self, member: str, reply: Mapping[str, object]) -> dict[str, object]:
        said = {"say": spoken(self.like.get(member, "plain"), str(reply["say"]))} if "say" in reply else {}
        return {**reply, **said}

    def prompts(self, member: str) -> list[str]:
        """Every prompt that the member got, in order."""
        turns = sorted(int(path.suffix[1:]) for path in self.scripts.glob(f"{member}.*") if path.suffix[1:].isdigit())
        return [(self.scripts / f"{member}.{turn}").read_bytes().decode() for turn in turns]


def crew(
    world: Path,
    replies: Mapping[str, Sequence[Reply]],
    *,
    humans: Sequence[str] = ("kailai",),
    like: Mapping[str, str] | None = None,
    team: Table | None = None,
    limits: Table | None = None,
    members: Mapping[str, Table] | None = None,
) -> Crew:
    """A team in the working folder; `team`, `limits` and `members` (by name) are further keys of the file.

    The members are named in the order of `replies`; people come first.
    """
    scripts = world / "scripts"
    scripts.mkdir(exist_ok=True)
    tables = [_table("[team]", {"name": "crew", **(team or {})}), _table("[team.limits]", limits or {})]
    tables += [_table("[[members]]", {"name": name, "type": "human"}) for name in humans]
    for name in replies:
        kind = (like or {}).get(name, "plain")
        command = [*fake(SCRIPTED), str(scripts), name]
        tables.append(_table("[[members]]", {"name": name, "agent": f"{name}-agent", **(members or {}).get(name, {})}))
        tables.append(_table(f"[agents.{name}-agent]", {"command": command, "like": kind}))
    made = Crew(Path("teamchat.toml").absolute(), scripts, like or {})
    made.file.write_text("\n".join(tables))
    for name, said in replies.items():
        made.say(name, *said)
    TrustStore(state_dir() / "trust.json").grant(load(made.file))
    return made


def _table(head: str, keys: Table) -> str:
    # JSON's strings, numbers, booleans and lists are TOML's, too
    return "\n".join([head, *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]) + "\n"
