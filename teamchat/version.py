"""The version of teamchat. The package's own metadata take 12 ms to read."""

from __future__ import annotations

VERSION = "0.1.0"
