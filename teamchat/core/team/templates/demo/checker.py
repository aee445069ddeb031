"""An agent of the demo: runs slug.py, shows what it printed, and asks the person, whose name is its argument."""

from __future__ import annotations

import subprocess
import sys
import time

TITLES = ("Crème brûlée!", "10 ways to say hello", "???")

prompt = sys.stdin.read()
person = sys.argv[1]


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    time.sleep(0.2)


if f", from {person}, below." in prompt:
    say("Thank you. Then we are done.")
else:
    say("I ran it on three titles:\n\n```text")
    for title in TITLES:
        ran = subprocess.run([sys.executable, "slug.py", title], capture_output=True, text=True, check=False)
        say(f"{title:<22} {(ran.stdout or ran.stderr).strip().splitlines()[-1]}")
    say(f"```\n\nIt does what the plan says. May I call it done?\n\n[NEXT: {person}]")
