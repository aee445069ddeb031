"""A member with memory "resume" continues its session on the host that has it, and begins a fresh one on another."""

from __future__ import annotations

import json

from tests.workers.hosts import Host, Lab

MAX = 'name = "max"\nagent = "claude"\nmemory = "resume"\nhost = "any"'
LINES = (
    {"type": "system", "subtype": "init", "session_id": "SESSION", "model": "m", "claude_code_version": "2.1.330"},
    {
        "type": "assistant",
        "message": {"id": "m1", "content": [{"type": "text", "text": "Hi."}]},
        "session_id": "SESSION",
    },
    {"type": "result", "subtype": "success", "is_error": False, "result": "Hi.", "session_id": "SESSION"},
)


def claude(host: Host) -> Host:
    """The host with a program that speaks as Claude does, and writes down its arguments."""
    lines = "\n".join(json.dumps(line).replace("SESSION", f"session-of-{host.name}") for line in LINES)
    script = f"echo \"$*\" >> {host.folder}/arguments\ncat <<'END'\n{lines}\nEND"
    return host.offers({"claude": [host.agent(script)]})


def setup(lab: Lab, turn: int) -> dict[str, object]:
    shown: dict[str, dict[str, object]] = json.loads(lab.cli("show", str(turn), "--json").out)
    return shown["setup"]


def test_a_session_belongs_to_a_host(lab: Lab) -> None:
    alpha, beta = claude(lab.host("alpha")), claude(lab.host("beta"))
    first = alpha.worker().ready()
    lab.team(MAX)
    for number in range(2):
        sent = lab.cli("send", f"[NEXT:max] Number {number}")
        assert sent.code == 0, sent.err
    assert setup(lab, 2)["resumes"] == "session-of-alpha"
    assert "--resume session-of-alpha" in (alpha.folder / "arguments").read_text()
    assert "Number 0" not in alpha.prompt
    assert first.end() == 0
    beta.worker().ready()
    elsewhere = lab.cli("send", "[NEXT:max] Number 2")
    assert elsewhere.code == 0, elsewhere.err
    assert setup(lab, 3)["resumes"] is None
    assert setup(lab, 3)["fresh_because"] == "its session is on alpha"
    assert "Number 0" in beta.prompt
