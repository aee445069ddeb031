"""Where a turn ran is shown wherever a turn is shown."""

from __future__ import annotations

import json
from pathlib import Path

from teamchat.version import VERSION
from tests.forks import RUN
from tests.terminals import Terminal
from tests.workers.hosts import Host, Lab, events

MAX = 'name = "max"\nagent = "writer"\nhost = "any"'


def one_turn(lab: Lab) -> Host:
    """A host, and a turn of max on it."""
    host = lab.host("alpha")
    host.offers({"writer": [host.agent("echo hello")]}).worker().ready()
    lab.team(MAX)
    return host


def test_a_receipt_says_where_the_turn_ran_and_with_what(lab: Lab) -> None:
    host = one_turn(lab)
    sent = lab.cli("send", "[NEXT:max] Hi")
    assert "· max begins on alpha (turn 1)" in sent.err
    shown = lab.cli("show", "1").out.splitlines()
    assert f"  host      alpha (teamchat {VERSION})" in shown
    assert f"  ran       {host.folder}/agent" in shown
    assert f"  in        {host.project}" in shown
    assert str(lab.project) not in "\n".join(shown)
    receipt = json.loads(lab.cli("show", "1", "--json").out)
    assert (receipt["setup"]["host"], receipt["setup"]["argv"]) == ("alpha", [])
    ran = receipt["outcome"]["ran"]
    assert (ran["host"], ran["cwd"], ran["teamchat"]) == ("alpha", str(host.project), VERSION)
    assert ran["argv"] == [f"{host.folder}/agent"]
    assert ran["executor"]


def test_events_of_a_run_name_the_host(lab: Lab) -> None:
    one_turn(lab)
    sent = lab.cli("send", "--json", "[NEXT:max] Hi")
    assert [events(sent, kind)[0]["host"] for kind in ("turn_started", "turn_finished")] == ["alpha", "alpha"]


def test_a_turn_that_never_began_says_so(lab: Lab) -> None:
    one_turn(lab)
    (lab.project / "only-here").mkdir()
    lab.team(f'{MAX}\ncwd = "only-here"')
    sent = lab.cli("send", "[NEXT:max] Hi")
    assert sent.code != 0, sent.out
    assert "begins on alpha" in sent.err, sent.err
    shown = lab.cli("show", "1")
    assert "  host      alpha, where it never began" in shown.out.splitlines(), shown.out
    assert "  ran  " not in shown.out


def test_an_export_names_the_host_and_an_import_keeps_it(lab: Lab, tmp_path: Path) -> None:
    one_turn(lab)
    assert lab.cli("send", "[NEXT:max] Hi").code == 0
    assert " · writer on alpha · " in lab.cli("export").out
    assert "writer on alpha" in lab.cli("export", "--format", "html").out
    first, again = tmp_path / "talk.json", tmp_path / "again.json"
    assert lab.cli("export", "-o", str(first)).code == 0
    assert json.loads(first.read_text())["entries"][1]["turn"]["host"] == "alpha"
    assert lab.cli("import", str(first), "--session", "other").code == 0
    assert lab.cli("export", "--session", "other", "-o", str(again)).code == 0
    one, other = (json.loads(file.read_text())["entries"] for file in (first, again))
    assert one == other


def test_a_terminal_and_who_watches_are_told_the_host(lab: Lab) -> None:
    host = one_turn(lab)
    go = host.folder / "go"
    host.agent(f"until test -e {go}; do sleep 0.02; done; echo hello")
    env = {**lab.env, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    child = Terminal(RUN[0], [*RUN[1:], "send", "[NEXT:max] Hi"], env=env, cwd=str(lab.project), timeout=30)
    child.expect("writer on alpha")
    child.expect("alpha: ")
    watcher = Terminal(RUN[0], [*RUN[1:], "watch"], env=env, cwd=str(lab.project), timeout=30)
    watcher.expect("writer on alpha")
    watcher.expect("alpha: ")
    go.touch()
    for shown in (child, watcher):
        shown.expect("hello")
        shown.close(force=True)
