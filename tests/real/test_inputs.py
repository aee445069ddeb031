"""Awkward prompts: each arrives exactly as `show --prompt` says, or is refused before anything runs."""

from __future__ import annotations

import pytest

from teamchat.runners.base import Vendor
from tests.real.world import World

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
TEXT = "你好，世界 👩‍👩‍👧‍👦 𝒳 é ﷽ a\x01b\x1b[31mc\x7fd one\r\ntwo\rthree\u2028four"
AWKWARD = {  # each begins with a sign that means something to a CLI there
    "dash": f"--help -p {TEXT}",
    "slash": "/help me, /clear",
    "at": "@nobody and foo@example.org",
    "bang": "!ls and !{ls}",
    "dollar": "$skill #file `code` ${HOME}",
}


@pytest.mark.parametrize("vendor", VENDORS)
def test_awkward_prompts_arrive_exactly(user: World, vendor: Vendor) -> None:
    user.member(vendor)
    for turn, (name, text) in enumerate(AWKWARD.items(), 1):
        ran = user("send", "--expand", "-", stdin=text.encode())
        assert ran.code == 0, (name, ran.err)
        assert user.prompt(vendor) == user.shown(turn), name
        assert user.prompt(vendor).endswith(text), name


@pytest.mark.parametrize("vendor", VENDORS)
def test_700_kilobytes_arrive_exactly(user: World, vendor: Vendor) -> None:
    user.member(vendor)
    text = "".join(f"line {number} äöü\n" for number in range(40_000))[: 700 * 1024].strip()
    ran = user("send", "-", stdin=text.encode())
    assert ran.code == 0, ran.err
    assert user.prompt(vendor) == user.shown(1)
    assert user.prompt(vendor).endswith(text)


@pytest.mark.parametrize(("vendor", "size"), [("codex", 1_100_000), ("gemini", 4_600_000), ("claude", 2_800_000)])
def test_more_than_a_cli_takes_is_refused_before_it_runs(user: World, vendor: Vendor, size: int) -> None:
    name = user.member(vendor, head="max_bytes = 20000000\nmax_prompt_tokens = 5000000")
    ran = user("send", "-", stdin=b"x" * size)
    assert ran.code == 12
    assert f"{name}: the prompt has" in ran.err
    assert "Traceback" not in ran.err
    assert user.server.turns(vendor) == []
    assert user("log").code == 4  # nothing began


def test_a_system_text_of_300_kilobytes_reaches_claude_exactly(user: World) -> None:
    text = "".join(f'Rule {number}: 守则 "quoted" $x\n' for number in range(14_000))[:280_000].strip()
    (user.cwd / "rules.md").write_text(text, encoding="utf-8")
    user.member("claude", 'instruction_file = "rules.md"')
    ran = user("send", "Hi")
    assert ran.code == 0, ran.err
    system = user.shown(1, "--system")
    assert len(system.encode()) > 300_000
    assert system.startswith(text)
    assert user.system("claude").count(system) == 1


def test_paths_in_other_speakers_text_are_not_read_but_a_persons_own_are(user: World) -> None:
    (user.cwd / "secret.txt").write_text("XYLOPHONE")
    user.team(
        '[team]\n[[members]]\nname = "kailai"\ntype = "human"\n'
        '[[members]]\nname = "echo"\nagent = "echo"\n'
        '[[members]]\nname = "max"\nagent = "claude"\n[[members]]\nname = "carol"\nagent = "gemini"\n'
        'model = "gemini-2.5-flash"\n'
        '[agents.echo]\ncommand = ["sh", "-c", "cat > /dev/null; echo see @secret.txt"]\n'
    )
    for name, vendor in (("max", "claude"), ("carol", "gemini")):
        ran = user("send", "--new", "--trust", f"[NEXT:echo,{name}] Look")
        assert ran.code == 0, ran.err
        assert b"XYLOPHONE" not in user.server.turns(vendor)[-1].raw
        assert "see \\@secret.txt" in user.shown(2)
        assert user.receipt(2)["setup"]["inert_mentions"] == 1
    assert user("send", "--new", "--to", "max", "Read @secret.txt").code == 0
    assert b"XYLOPHONE" in user.last("claude").raw
