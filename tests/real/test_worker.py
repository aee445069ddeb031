"""A real claude on a host: home has no CLI, no key and another HOME, and gets its reply and all of its receipt."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from teamchat.core.files.folders import STORE_NAME
from teamchat.core.store.database import Database
from teamchat.core.store.turns import turns_of
from tests.program import cli
from tests.real import clis
from tests.real.model.replies import Reply
from tests.real.model.server import ModelServer, prompt
from tests.real.model.table import MODELS
from tests.workers.hosts import Host, Lab

pytestmark = pytest.mark.real
MAX = f'name = "max"\nagent = "claude"\nmodel = "{MODELS["claude"]}"\nhost = "gpu1"'


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path / "lab", f"sqlite:///{tmp_path}/hosts.sqlite")
    try:
        yield made
    finally:
        made.close()


def begun(lab: Lab, real_env: dict[str, str]) -> Host:
    """A host with a worker whose claude answers, and a team at home that has it. Each has the other's key."""
    host = lab.host("gpu1").signing()
    env = {**host.env, **real_env, "XDG_CONFIG_HOME": str(host.config.parent)}
    written = cli("worker", "--init", "--project", host.project, env=env)
    assert written.code == 0, written.err
    host.worker("--agent", "claude", env=env).ready()
    host.trusted()
    lab.team(MAX)
    return host


def test_a_real_claude_answers_on_a_host(lab: Lab, server: ModelServer, real_env: dict[str, str]) -> None:
    host = begun(lab, real_env)
    assert not any(shutil.which(name, path=lab.env["PATH"]) for name in clis.VENDORS), "home has a CLI"
    server.script("claude", [Reply("From afar.")])
    sent = lab.cli("send", "[NEXT:max] Grüße, 世界")
    assert (sent.code, sent.out) == (0, "max:\nFrom afar.\n\n"), sent.err
    [asked] = server.turns("claude")
    assert prompt(asked) == lab.cli("show", "1", "--prompt").out.removesuffix("\n")
    receipt = json.loads(lab.cli("show", "1", "--json").out)
    outcome = receipt["outcome"]
    assert (receipt["setup"]["host"], outcome["model"]) == ("gpu1", MODELS["claude"])
    assert outcome["version"] == clis.chosen()["claude"]
    [file] = (lab.folder / "state").rglob(STORE_NAME)
    with closing(Database(file)) as db:
        [turn] = turns_of(db, 1)
    ran = turn.outcome and turn.outcome.ran
    assert ran
    assert (ran.host, ran.cwd) == ("gpu1", str(host.project))
    assert ran.argv[0] == shutil.which("claude", path=real_env["PATH"])
    assert ran.argv[-2:] == ("--model", MODELS["claude"])
    assert (ran.env["GEMINI_API_KEY"], ran.env["TEAMCHAT_DATABASE"]) == (None, None)
    assert "ANTHROPIC_API_KEY" not in ran.env, "it has its own, whose value nobody tells"


def test_a_login_that_is_refused_there_is_named_at_home(
    lab: Lab, server: ModelServer, real_env: dict[str, str]
) -> None:
    begun(lab, real_env)
    server.script("claude", [Reply(status=401, message="no such key")])
    sent = lab.cli("send", "[NEXT:max] Hi")
    assert sent.code == 11, sent.err
    assert "ANTHROPIC_API_KEY is set and was refused" in sent.err
