"""Random turns on two hosts over PostgreSQL: what `merge` brings in is what a model of it says."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.core.turn.test_random_turns_on_hosts import NAMES, Chance, Entry, Files, Model, apply, there
from tests.workers.hosts import GIT, Host, Lab

HOSTS = {"max": "alpha", "sarah": "beta"}
OURS = ("teamchat.toml", "read-me.txt")


def script(edits: dict[str, Entry | None]) -> str:
    """The edits as an agent makes them in a shell."""
    lines = []
    for path, entry in edits.items():
        name = shlex.quote(path)
        lines.append(f"rm -f {name}")
        if entry is None:
            continue
        lines.append(f"mkdir -p {shlex.quote(str(Path(path).parent))}")
        if entry.link:
            lines.append(f"ln -s {shlex.quote(entry.content)} {name}")
        else:
            lines.append(f"printf %s {shlex.quote(entry.content)} > {name}; chmod {755 if entry.runs else 644} {name}")
    return "\n".join([*lines, "echo done"])


def home_of(lab: Lab) -> Files:
    return {path: entry for path, entry in there(lab.project).items() if path not in OURS}


def standing(folder: Path) -> list[str]:
    """What belongs to the people of a repository: without the branches of worktrees."""
    asked = (("symbolic-ref", "HEAD"), ("ls-files", "-s"), ("stash", "list"), ("for-each-ref",))
    told = [
        subprocess.run(("git", *args), cwd=folder, check=True, capture_output=True, text=True).stdout for args in asked
    ]
    return [line for text in told for line in text.splitlines() if "refs/heads/teamchat/" not in line]


@pytest.mark.workers
@pytest.mark.parametrize("lab", ["postgres"], indirect=True)
@pytest.mark.parametrize("seed", range(4))
def test_turns_on_hosts_are_merged_as_the_model_says(lab: Lab, seed: int) -> None:
    chance = Chance(seed)
    for name in NAMES[:6]:
        (lab.project / name).parent.mkdir(parents=True, exist_ok=True)
        (lab.project / name).write_text(f"{name} 0\n")
    subprocess.run((*GIT, "add", "."), cwd=lab.project, check=True)
    subprocess.run((*GIT, "commit", "-qm", "two"), cwd=lab.project, check=True)
    hosts = {member: lab.host(name) for member, name in HOSTS.items()}
    for host in hosts.values():
        host.offers({"writer": [host.agent(f". {shlex.quote(str(host.folder))}/next")]}, access="edit").worker().ready()
    lab.team(*(f'name = "{name}"\nagent = "writer"\nhost = "{host}"\naccess = "edit"' for name, host in HOSTS.items()))
    before = [standing(folder) for folder in (lab.project, *(host.project for host in hosts.values()))]
    model, turns = Model(home_of(lab)), 0
    while turns < 10:
        match chance.choice(("edit", "turn", "turn", "merge")):
            case "edit":
                apply(lab.project, model.home, chance.edit(model.home))
            case "turn":
                turns += 1
                member = chance.choice(tuple(HOSTS))
                turn(lab, hosts[member], model, member, chance)
            case _:
                for member in [member for member in HOSTS if member in model.own]:
                    merge(lab, model, member)
        assert home_of(lab) == model.home, (seed, turns)
    assert [standing(folder) for folder in (lab.project, *(host.project for host in hosts.values()))] == before


def turn(lab: Lab, host: Host, model: Model, member: str, chance: Chance) -> None:
    model.begins(member)
    edits = chance.edit(model.own[member])
    (host.folder / "next").write_text(script(edits))
    sent = lab.cli("send", f"[NEXT:{member}] Change it")
    assert sent.code == 0, sent.err
    for path, entry in edits.items():
        model.own[member].pop(path, None)
        if entry:
            model.own[member][path] = entry


def merge(lab: Lab, model: Model, member: str) -> None:
    expected, clashes = model.merged(member)
    merged = lab.cli("merge", member)
    assert merged.code == bool(clashes), (merged.err, clashes)
    if clashes:
        assert all(f"conflict: {path} (" in merged.err for path in clashes), (merged.err, clashes)
        assert home_of(lab) == model.home
        merged = lab.cli("merge", "--theirs", member)
    if merged.code == 0:
        model.home, model.base[member] = expected, dict(model.own[member])
