"""What a script pays for each call, as ratios against floors measured in the same run: `make bench`.

The floor of a start is the bare Python with the standard library's heavy modules that every such program needs; the
floor of a turn is the agent program run directly.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

RUNS = 15
AGENT = ["sh", "-c", "cat > /dev/null; echo Hello"]
TEAM = f"""
[[members]]
name = "max"
agent = "hello"

[agents.hello]
command = {json.dumps(AGENT)}
"""


def median_ms(argv: Sequence[str], cwd: Path, env: dict[str, str]) -> float:
    """The median wall time of the command over several runs, after one to warm up."""
    times = []
    for _ in range(RUNS + 1):
        began = time.perf_counter()
        subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times[1:])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cwd = Path(folder)
        (cwd / "teamchat.toml").write_text(TEAM)
        env = {**os.environ, "TEAMCHAT_HOME": str(cwd / "state"), "HOME": folder}
        teamchat = [sys.executable, "-m", "teamchat"]
        subprocess.run([*teamchat, "trust"], cwd=cwd, env=env, check=True, capture_output=True)
        bare = median_ms([sys.executable, "-c", "pass"], cwd, env)
        stdlib = median_ms([sys.executable, "-c", "import asyncio, json, sqlite3, subprocess"], cwd, env)
        agent = median_ms(AGENT, cwd, env)
        rows = [
            ("python -c pass", bare, bare),
            ("python with asyncio, json, sqlite3, subprocess", stdlib, bare),
            ("teamchat --version", median_ms([*teamchat, "--version"], cwd, env), bare),
            ("teamchat --help", median_ms([*teamchat, "--help"], cwd, env), bare),
            (
                "teamchat send, one turn of a shell agent",
                median_ms([*teamchat, "send", "-q", "Hi"], cwd, env),
                stdlib + agent,
            ),
        ]
    for name, milliseconds, floor in rows:
        print(f"{name:<50} {milliseconds:7.0f} ms  {milliseconds / floor:5.1f} x its floor of {floor:.0f} ms")


if __name__ == "__main__":
    main()
