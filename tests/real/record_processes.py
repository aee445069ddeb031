"""Records the sessions of examples/processes and examples/ship: real CLIs, scripted model.

`make record-processes` runs it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.real import clis
from tests.real.model.server import ModelServer
from tests.real.processes import EXAMPLES, SCENARIOS, SHIP, TEAM, copy_ship, ship
from tests.real.record_demo import without_places


def record(name: str, programs: str) -> None:
    with tempfile.TemporaryDirectory(prefix="process-") as folder, ModelServer() as server:
        home, work = Path(folder) / "home", Path(folder) / "home" / "photos"
        work.mkdir(parents=True)
        target = (SHIP if name == "ship" else EXAMPLES) / f"{name}.cassette"
        if name == "ship":
            copy_ship(work)
        else:
            (work / "teamchat.toml").write_text(TEAM.read_text(encoding="utf-8"), encoding="utf-8")
        scenario = ship(work) if name == "ship" else SCENARIOS[name]
        scenario.play(server)
        cassette = Path(folder) / "run.cassette"
        env = clis.environment(home, server.url, programs) | {
            "TEAMCHAT_HOME": str(Path(folder) / "state"),
            "TEAMCHAT_CASSETTE_LABEL": "scripted model",
        }
        argv = [sys.executable, "-m", "teamchat", "run", "--trust", "--record", str(cassette), *scenario.args]
        subprocess.run(argv, cwd=work, env=env, stdin=subprocess.DEVNULL, check=True)
        target.write_text(without_places(cassette.read_text(encoding="utf-8"), home, folder), encoding="utf-8")


def main(*names: str) -> None:
    programs = clis.installed(clis.PINNED)
    for name in names or (*SCENARIOS, "ship"):
        record(name, programs)


if __name__ == "__main__":
    main(*sys.argv[1:])
