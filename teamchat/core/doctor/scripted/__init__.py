"""A model without a model: a server on loopback that answers the real CLIs by a script.

`teamchat doctor --offline` runs the installed CLIs against it, and so do this project's tests. Standard library only.
"""

from __future__ import annotations
