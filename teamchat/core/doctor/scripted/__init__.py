"""A scripted model: a server on loopback that answers the real CLIs by a script.

`teamchat doctor --offline` runs the installed CLIs against it, and so do this project's tests. It needs only the
standard library.
"""

from __future__ import annotations
