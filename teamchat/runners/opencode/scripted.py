"""The Anthropic Messages protocol, as opencode speaks it to a provider whose address has a path of its own."""

from __future__ import annotations

from teamchat.runners.claude.scripted import Anthropic

PATH = "/opencode/v1"


class Opencode(Anthropic):
    def claims(self, path: str) -> bool:
        return path.startswith(f"{PATH}/messages")
