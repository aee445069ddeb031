"""What a person meets with a member that runs on a host: in the team, in `doctor`, before a turn and in chat."""

from __future__ import annotations

import json

from tests.images import png
from tests.workers.hosts import Lab

MAX = 'name = "max"\nagent = "claude"\nhost = ["alpha", "beta"]'
NOWHERE = "postgresql:///teamchat?host=/nowhere/run"


def test_the_team_says_the_hosts_and_that_the_command_is_theirs(lab: Lab) -> None:
    lab.team(MAX)
    shown = lab.cli("team").out
    assert "max · claude on alpha or beta\n" in shown
    assert "  runs: the command of its host, in the environment of its host\n" in shown
    assert "not installed" not in shown
    (row,) = (one for one in json.loads(lab.cli("team", "--json").out)["members"] if one["name"] == "max")
    assert (row["host"], row["argv"], row["env"], row["problem"]) == (["alpha", "beta"], [], {}, None)


def test_doctor_looks_for_the_host_and_not_for_the_program(lab: Lab) -> None:
    lab.team(MAX)
    looked = lab.cli("doctor")
    assert looked.code == 0, looked.out
    assert "max program runs on alpha or beta, whose program, version and login are not looked for here" in looked.out
    assert "! max host    none can run it now: alpha was never seen; beta was never seen" in looked.out
    host = lab.host("alpha")
    host.offers({"claude": [host.agent("echo hello")]}).worker().ready()
    assert "✓ max host    alpha, 1 of 1 jobs free" in lab.cli("doctor").out
    live = lab.cli("doctor", "--live")
    assert "? max answer  not asked: it runs on alpha or beta" in live.out, live.out + live.err


def test_doctor_says_in_one_line_that_the_database_does_not_answer(lab: Lab) -> None:
    lab.team(MAX)
    for database in (NOWHERE, ""):
        looked = lab.cli("doctor", env={"TEAMCHAT_DATABASE": database})
        assert (looked.code, looked.err) == (0, "")
        assert len([line for line in looked.out.splitlines() if " hosts " in line and line.startswith("!")]) == 1


def test_a_dry_run_says_where_and_asks_no_host(lab: Lab) -> None:
    lab.team(MAX)
    told = lab.cli("send", "--dry-run", "[NEXT:max] Hi", env={"TEAMCHAT_DATABASE": NOWHERE})
    assert (told.code, told.err) == (0, "")
    assert "max would run on alpha or beta, with the command and the environment of its host\n" in told.out
    assert "You are answering msg-1" in told.out


def test_an_image_to_a_member_on_a_host_is_refused(lab: Lab) -> None:
    lab.team(MAX)
    (lab.project / "shot.png").write_bytes(png())
    sent = lab.cli("send", "[NEXT:max] Look", "--file", "shot.png")
    told = "max's host gets no images (shot.png); send it to a member of this machine"
    assert (sent.code, sent.err) == (2, f"teamchat: {told}\n")


def test_a_member_on_a_host_is_told_the_name_of_an_image_that_others_get(lab: Lab) -> None:
    host = lab.host("alpha")
    host.offers({"writer": [host.agent("echo hello")]}).worker().ready()
    caller = lab.folder / "home" / "claude"
    caller.parent.mkdir(exist_ok=True)
    line = json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "So. [NEXT: max]"})
    caller.write_text(f"#!/bin/sh\ncat > /dev/null\nprintf '%s\\n' '{line}'\n")
    caller.chmod(0o755)
    own = f'[agents.seer]\ncommand = ["{caller}"]\nlike = "claude"'
    lab.team('name = "max"\nagent = "writer"\nhost = "alpha"', 'name = "eve"\nagent = "seer"', more=own)
    (lab.project / "shot.png").write_bytes(png())
    sent = lab.cli("send", "[NEXT:eve] Look", "--file", "shot.png")
    assert sent.code == 0, sent.err
    assert "max's host gets no images: it gets only the name of shot.png" in sent.err
