"""Proves that installed agent CLIs do what teamchat relies on, by running real turns of them and looking at the wire.

`scripts.py` says what the scripted model asks of each CLI, `selftest.py` of its folder in `runners` what the CLI calls
it. `watch.py` runs one turn and watches it, `findings.py` turns what was seen into findings, and `prove.py` goes
through the turns. `ask.py` asks the user's own logins instead.
"""

from __future__ import annotations
