"""The CLIs that the scripted model can serve, and the model that each asks for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from teamchat.runners.base import Vendor
from tests.real.model import claude, codex, gemini, opencode
from tests.real.model.chat import ChatCompletions
from tests.real.model.replies import VendorProtocol
from tests.real.model.selftest import SelfTest

CHAT = "chat"
"""The protocol of the CLIs that a row describes."""
SELF_TESTS: Mapping[Vendor, SelfTest] = MappingProxyType(
    {"claude": claude.SELF_TEST, "codex": codex.SELF_TEST, "gemini": gemini.SELF_TEST, "opencode": opencode.SELF_TEST}
)
PROTOCOLS: Mapping[Vendor, VendorProtocol] = MappingProxyType(
    {name: test.protocol for name, test in SELF_TESTS.items()} | {CHAT: ChatCompletions()}
)
MODELS: Mapping[Vendor, str] = MappingProxyType({name: row.model for name, row in SELF_TESTS.items()})
