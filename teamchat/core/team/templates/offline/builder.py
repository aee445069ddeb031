"""An agent in a few lines: counts what it was given, which stands for work here, and hands over to the checker."""

from __future__ import annotations

import sys

prompt = sys.stdin.read()
lines, words = len(prompt.splitlines()), len(prompt.split())

sys.stdout.write(f"""\
I built the smallest part. My prompt had {lines} lines and {words} words: `teamchat show TURN --prompt` prints it.

[NEXT: checker]
""")
