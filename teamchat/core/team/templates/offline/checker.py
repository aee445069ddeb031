"""An agent in a few lines: asks the person, whose name is its argument, and ends when the person has answered."""

from __future__ import annotations

import sys

prompt = sys.stdin.read()
person = sys.argv[1]

if f", from {person}, below." in prompt:
    sys.stdout.write("Thank you. Then we are done.\n")
else:
    sys.stdout.write(f"It looks right to me. May we call it done?\n\n[NEXT: {person}]\n")
