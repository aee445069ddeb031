"""What a group costs beside its slowest member, and twenty small agents beside one: `make bench`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEAD = '[team.limits]\nturns = 30\n[[members]]\nname = "kai"\ntype = "human"\n'


def team(folder: Path, name: str, commands: list[str]) -> Path:
    """A team file with a member `m0`, `m1`, ... for each shell command."""
    tables = []
    for number, line in enumerate(commands):
        command = json.dumps(["sh", "-c", line])
        tables.append(
            f'[[members]]\nname = "m{number}"\nagent = "a{number}"\n[agents.a{number}]\ncommand = {command}\n'
        )
    file = folder / f"{name}.toml"
    file.write_text(HEAD + "\n".join(tables))
    return file


def seconds(folder: Path, file: Path, to: str, env: dict[str, str]) -> float:
    argv = [
        sys.executable,
        "-m",
        "teamchat",
        "send",
        "--quiet",
        "--new",
        "--trust",
        "--team",
        str(file),
        "--to",
        to,
        "Hi",
    ]
    times = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run(argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        times.append(time.perf_counter() - began)
    return sorted(times)[2]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {**os.environ, "TEAMCHAT_HOME": str(folder / "state"), "HOME": name}
        slow = team(folder, "slow", [f"cat > /dev/null; sleep {pause}; echo Hi" for pause in (0.6, 0.8, 1.0)])
        small = team(folder, "small", ["cat > /dev/null; echo Hi"] * 20)
        rows = (
            ("a group of three beside its slowest member", slow, "m0+m1+m2", "m2", 1.4),
            ("twenty small agents beside one", small, "+".join(f"m{number}" for number in range(20)), "m0", 3.0),
        )
        for text, file, group, one, target in rows:
            floor = seconds(folder, file, one, env)
            took = seconds(folder, file, group, env)
            print(f"{text:<45} {took:6.2f} s  {took / floor:4.2f} x {floor:.2f} s  (at most {target:g})")


if __name__ == "__main__":
    main()
