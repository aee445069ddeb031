"""Proves that installed agent CLIs do what teamchat relies on, by running real turns of them and looking at the wire.

`tools.py` says what the scripted model asks each CLI to do, `shapes.py` what its events are called, `turn.py`
runs one turn and watches it, `rows.py` turns what was seen into findings, and `prove.py` goes through the turns.
`live.py` asks the user's own logins instead.
"""

from __future__ import annotations
