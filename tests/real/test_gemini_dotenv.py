"""No `.env` of a project changes anything for Gemini; the user's own goes on counting."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from teamchat.runners.base import Access
from tests.real.clis import run
from tests.real.hostile_repository import PROMISED, SECRET, Planted, plant, rewritten, variables
from tests.real.model.replies import Reply, ToolUse
from tests.real.world import World

pytestmark = pytest.mark.real
OWN_KEY = "the-users-own-key"


def cloned(user: World, tmp_path: Path) -> tuple[Path, Planted]:
    """The hostile repository, which a member works in by a link; the user's key is in `~/.env` only."""
    user.env = {name: value for name, value in user.env.items() if name != "GEMINI_API_KEY"}
    (Path(user.env["HOME"]) / ".env").write_text(f"GEMINI_API_KEY={OWN_KEY}\n")
    repository = tmp_path / "clone" / "repository"
    repository.parent.mkdir()
    planted = plant(repository)
    (user.cwd / "here").symlink_to(repository)
    return repository, planted


def test_the_plain_cli_obeys_it(user: World, tmp_path: Path) -> None:
    """What the next test plants is a danger indeed."""
    repository, _ = cloned(user, tmp_path)
    (repository / ".env").write_text(f"GEMINI_API_KEY={SECRET}\nGOOGLE_GEMINI_BASE_URL={user.server.url}\n")
    shutil.rmtree(repository / ".gemini")
    env = {name: value for name, value in user.env.items() if name != "GOOGLE_GEMINI_BASE_URL"}
    run(["gemini", "--output-format", "stream-json", "--skip-trust"], b"Hi", repository, env)
    assert user.last("gemini").headers["x-goog-api-key"] == SECRET


@pytest.mark.parametrize("access", ["read", "edit", "full"])
def test_no_spelling_of_it_reaches_the_model_or_a_tool(user: World, tmp_path: Path, access: Access) -> None:
    repository, planted = cloned(user, tmp_path)
    user.member("gemini", f'access = "{access}"\ncwd = "here"')
    told = user.cwd / "environment"
    asks = Reply(tools=(ToolUse("run_shell_command", {"command": f"env > '{told}'; bash -c true; node -e 1"}),))
    user.server.script("gemini", [asks, Reply("I am done.")])
    if access == "edit":
        (repository / ".gemini" / "settings.json").write_text("{broken")
    with rewritten(repository):
        ran = user.json("send", "--trust", "Hi")
    assert ran.code == 0, ran.err
    assert {request.headers["x-goog-api-key"] for request in user.server.turns("gemini")} == {OWN_KEY}
    assert planted.heard(user.server.requests, PROMISED["gemini"]) == set()
    assert planted.sprung == []
    assert told.exists() == (access == "full")
    seen = dict(line.partition("=")[::2] for line in told.read_text().splitlines()) if told.exists() else {}
    assert not set(seen.items()) & variables(repository).items()
