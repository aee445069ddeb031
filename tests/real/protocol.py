"""The names of `teamchat.core.scripted.protocol` that tests use."""

from __future__ import annotations

from teamchat.core.scripted.protocol import Request, Vendor

__all__ = ["Request", "Vendor"]
