"""`teamchat chat` with a member that runs on a host."""

from __future__ import annotations

from tests.forks import RUN
from tests.terminals import Terminal
from tests.workers.hosts import Lab


def test_a_member_on_a_host_works_in_chat_as_at_home(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"writer": [host.agent("echo answer $(wc -l < $HOME/../starts)")]}).worker().ready()
    lab.team('name = "max"\nagent = "writer"\nhost = "alpha"')
    env = {**lab.env, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    child = Terminal(RUN[0], [*RUN[1:], "chat"], env=env, cwd=str(lab.project), timeout=30, encoding="utf-8")
    try:
        child.expect("max")
        for number in (1, 2):
            child.send("[NEXT:max] Hi\r")
            child.expect("writer on alpha")
            child.expect(f"answer {number}")
        child.send("/quit\r")
        child.expect_exact(["\x1b[?2004l", "teamchat chat"])
    finally:
        child.close(force=True)
    assert host.starts == 2
