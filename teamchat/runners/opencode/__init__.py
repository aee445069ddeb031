"""opencode (npm `opencode-ai`): how its turns are run, what its events say, and what bounds it."""

from __future__ import annotations
