"""Large replies arrive whole, every time: two of the CLIs throw away what a pipe has not taken when they exit."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply
from tests.real.world import Ran, World

RUNS = int(os.environ.get("REPLIES", "3"))  # REPLIES=20 for a long look
AT_ONCE = 3
LINES = [f"{number} {hashlib.sha512(b'%d' % number).hexdigest()}\n" for number in range(38_000)]


@pytest.mark.real
@pytest.mark.timeout(900)
@pytest.mark.parametrize("vendor", ["claude", "gemini"])
def test_replies_of_five_megabytes_arrive_whole(user: World, vendor: Vendor) -> None:
    user.member(vendor, 'timeout = "5m"')
    pieces = tuple("".join(LINES[at : at + 500]) for at in range(0, len(LINES), 500))
    text = "".join(pieces).strip()
    assert len(text) > 5_000_000
    user.server.script(vendor, [Reply(pieces)])

    def send(run: int) -> Ran:
        home = f"{user.env['TEAMCHAT_HOME']}{run}"  # a store each: they would wait for each other
        return replace(user, env={**user.env, "TEAMCHAT_HOME": home})("send", "--quiet", "Hi")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        ran = list(pool.map(send, range(RUNS)))
    assert [(one.code, len(one.out), one.err) for one in ran if (one.code, one.out) != (0, text + "\n")] == []
