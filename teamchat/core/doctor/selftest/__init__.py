"""Proves that installed agent CLIs do what teamchat relies on, by running real turns of them and looking at the wire.

`scripts.py` says what the scripted model asks each CLI to do, `event_names.py` what its events are called, `watch.py`
runs one turn and watches it, `findings.py` turns what was seen into findings, and `prove.py` goes through the turns.
`ask.py` asks the user's own logins instead.
"""

from __future__ import annotations
