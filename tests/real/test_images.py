"""Images that a person attaches reach the models of the three CLIs, with read access and below any folder."""

from __future__ import annotations

import base64

import pytest

from teamchat.runners.base import Vendor
from tests.images import png
from tests.real.model.replies import Reply
from tests.real.world import World

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")


def carried(user: World, vendor: Vendor, image: bytes) -> bool:
    """Whether the model was last sent that image."""
    return base64.b64encode(image) in user.last(vendor).raw


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("memory", ["fresh", "resume"])
def test_an_image_reaches_the_model(user: World, vendor: Vendor, memory: str) -> None:
    name = user.member(vendor, f'memory = "{memory}"')
    first, second = png(10), png(20)
    (user.cwd / "shot one.png").write_bytes(first)
    (user.cwd / "other.png").write_bytes(second)
    ran = user("send", "What is it?", "--to", name, "--file", "shot one.png", "--file", "other.png")
    assert ran.code == 0, ran.err
    assert carried(user, vendor, first)
    assert carried(user, vendor, second)
    ran = user("send", "And this?", "--to", name, "--file", "other.png")
    assert ran.code == 0, ran.err
    assert carried(user, vendor, second)
    assert user.turns[1].setup.resumes is not None or memory == "fresh"


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_image_below_a_folder_with_spaces_reaches_the_model(user: World, vendor: Vendor) -> None:
    folder = user.cwd.parent / "a b  c"
    folder.mkdir()
    user.env = {**user.env, "TMPDIR": str(folder)}
    name = user.member(vendor)
    (user.cwd / "shot.png").write_bytes(png(30))
    ran = user("send", "What is it?", "--to", name, "--file", "shot.png")
    assert ran.code == 0, ran.err
    assert carried(user, vendor, png(30))


def test_an_image_below_a_folder_with_a_comma_reaches_a_gemini_with_full_access(user: World) -> None:
    folder = user.cwd.parent / "a,b (c)"
    folder.mkdir()
    user.env = {**user.env, "TMPDIR": str(folder)}
    name = user.member("gemini", 'access = "full"')
    (user.cwd / "shot.png").write_bytes(png(30))
    ran = user("send", "--trust", "What is it?", "--to", name, "--file", "shot.png")
    assert ran.code == 0, ran.err
    assert carried(user, "gemini", png(30))


def test_an_image_reaches_a_process_that_stays(user: World) -> None:
    name = user.member("claude", 'memory = "live"\naccess = "edit"')
    (user.cwd / "shot.png").write_bytes(png(40))
    ran = user("send", "--trust", "What is it?", "--to", name, "--file", "shot.png")
    assert ran.code == 0, ran.err
    assert carried(user, "claude", png(40))


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_turn_that_failed_is_tried_again_with_its_image(user: World, vendor: Vendor) -> None:
    name = user.member(vendor)
    (user.cwd / "shot.png").write_bytes(png(50))
    user.server.script(vendor, lambda _request: Reply(status=400))
    ran = user("send", "What is it?", "--to", name, "--file", "shot.png")
    assert ran.code != 0
    (user.cwd / "shot.png").unlink()
    user.server.script(vendor, lambda _request: Reply("A square."))
    assert user("resume").code == 0
    assert carried(user, vendor, png(50))
