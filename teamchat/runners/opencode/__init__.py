"""opencode (npm `opencode-ai`): its turns, its events, and its limits."""

from __future__ import annotations
