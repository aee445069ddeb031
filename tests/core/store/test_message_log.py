from __future__ import annotations

import pytest
from msgspec.structs import replace

from teamchat.core.store.message_log import MemoryLog
from tests.core.store.message_log_contract import MessageLogContract, draft


class TestMemoryLog(MessageLogContract):
    @pytest.fixture
    def log(self) -> MemoryLog:
        return MemoryLog()

    def test_the_turn_of_a_message_is_kept(self, log: MemoryLog) -> None:
        log.append(replace(draft("Hi"), turn_id=3))

        assert log.get("msg-1").turn_id == 3
