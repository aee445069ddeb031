"""An agent of the demo: writes slug.py in the folder it works in, and hands over to the checker."""

from __future__ import annotations

import sys
import time
from pathlib import Path

CODE = '''\
"""Prints an address for a title: python3 slug.py "Crème brûlée!" """

import re
import sys
import unicodedata


def slug(title):
    plain = unicodedata.normalize("NFKD", title.lower())
    words = re.findall("[a-z0-9]+", plain.encode("ascii", "ignore").decode())
    return "-".join(words) or sys.exit("nothing is left of this title")


print(slug(" ".join(sys.argv[1:])))
'''

prompt = sys.stdin.read()
Path("slug.py").write_text(CODE, encoding="utf-8")
for line in (
    f"I wrote `slug.py`, {len(CODE.splitlines())} lines.\n",
    f"My prompt had {len(prompt.split())} words; the plan was among them.\n\n",
    "[NEXT: checker]\n",
):
    sys.stdout.write(line)
    sys.stdout.flush()
    time.sleep(0.3)
