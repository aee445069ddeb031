"""Two agents of rows as the real programs at their proven versions: hand-overs, and what a reader may do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real import agents
from tests.real.clis import Unavailable
from tests.real.model.chat import offered
from tests.real.model.replies import Reply, Request
from tests.real.model.server import ModelServer
from tests.real.model.table import CHAT

pytestmark = pytest.mark.real


@pytest.mark.parametrize("name", ["qwen", "pi"])
def test_two_members_work_and_a_reader_writes_nothing(name: str, server: ModelServer, tmp_path: Path) -> None:
    try:
        stage = agents.Stage(name, server, tmp_path, agents.installed(name))
    except Unavailable as reason:
        pytest.skip(str(reason))
    stage.team()
    writes = stage.placed(stage.home_of.writes)
    tried: list[bool] = []

    def script(request: Request) -> Reply:
        reply = agents.hands_over(request)
        if reply.text == "Seen. [NEXT: one]" and not tried:
            tried.append(True)
            return Reply(tools=(writes,))
        return reply

    server.script(CHAT, script)
    assert stage.result("send", "[NEXT: one] Please work")["code"] == 0
    log = stage("log").stdout
    assert [line for line in log.splitlines() if line in ("Look. [NEXT: two]", "Seen. [NEXT: one]", "Done.")] == [
        "Look. [NEXT: two]",
        "Seen. [NEXT: one]",
        "Done.",
    ]
    assert not (stage.work / "made.txt").exists()
    assert writes.name not in offered(server.turns(CHAT)[0].body)
    receipt = stage.result("show")
    assert receipt["outcome"]["version"] == stage.row.proven[-1]
    if stage.row.stream != "plain":
        assert receipt["outcome"]["usage"]["output_tokens"] == Reply().tokens.output
