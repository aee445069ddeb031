"""An agent in a few lines: reads its prompt, answers with a plan, and hands over to the builder."""

from __future__ import annotations

import sys

prompt = sys.stdin.read()
# teamchat says whose message is to be answered; the rest of the prompt is the message, between two lines of its own
message = prompt.rpartition("You are answering ")[2].partition("\n\n")[2] or prompt
lines = [line for line in message.splitlines() if line.strip() and not line.startswith("<said-")]
first_line = lines[0] if lines else "nothing"

sys.stdout.write(f"""\
> {first_line}

1. Say how we will know that it works.
2. Build the smallest part of it.
3. Look at that together.

[NEXT: builder]
""")
