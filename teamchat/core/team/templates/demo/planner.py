"""An agent of the demo: reads its prompt, writes a plan line by line, and hands over to the builder."""

from __future__ import annotations

import sys
import time

PLAN = """\
1. `slug.py` turns a title into an address: small letters, digits, dashes.
2. A title of which nothing is left is an error, not an empty address.
3. Somebody who did not write it tries it.

[NEXT: builder]
"""

sys.stdin.read()
for line in PLAN.splitlines(keepends=True):
    sys.stdout.write(line)
    sys.stdout.flush()
    time.sleep(0.2)
