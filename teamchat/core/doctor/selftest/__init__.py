"""Proves that installed agent CLIs do what teamchat relies on: runs real turns and reads what they send.

`scripts.py` says what the scripted model asks of each CLI, and the `selftest.py` of its folder in `runners` has the
CLI's own names. `watch.py` runs one turn and watches it, `findings.py` turns the observations into findings, and
`prove.py` runs the turns. `ask.py` uses the user's logins instead.
"""

from __future__ import annotations
