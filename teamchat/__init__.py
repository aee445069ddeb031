"""Puts agent CLIs and people into one conversation."""

from __future__ import annotations
