"""A member's text is never the user's wish: what a CLI expands for a person who types it stays text in a quotation.

And a Claude that is kept running acts in its turns alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from teamchat.runners.base import Command, Job, Vendor
from teamchat.runners.claude.runner import ClaudeRunner
from tests.real.model.home import plant
from tests.real.model.replies import Reply, Request
from tests.real.model.server import messages
from tests.real.model.table import MODELS, SELF_TESTS
from tests.real.world import MEMBERS, World, wait_until

pytestmark = pytest.mark.real
MENTIONS: Mapping[Vendor, str] = {
    "claude": '@agent-prover @"prover (agent)" @secret.txt @./secret.txt @none/../secret.txt @"secret.txt" ultrathink',
    "codex": "$prover `$prover` $project [$any]({home}/.codex/skills/prover/SKILL.md)",
    "gemini": "@prover @secret.txt @./secret.txt",
}
WISHES: Mapping[Vendor, tuple[str, ...]] = {
    "claude": ("expressed a desire to invoke", "XYLOPHONE", "ultrathink"),
    "codex": ("Prove it.", "XYLOPHONE"),
    "gemini": ("has explicitly selected", "XYLOPHONE"),
}


def told(request: Request, vendor: Vendor, prompt: str) -> list[str]:
    """Which wishes of a person the model was told of beside the prompt."""
    texts = [message.text for message in messages(request)]
    beside = "\n".join(text for text in texts if prompt not in text)
    return [wish for wish in WISHES[vendor] if wish in beside]


@pytest.mark.parametrize("vendor", WISHES)
def test_what_a_person_types_is_a_wish_and_what_others_say_or_a_pipe_holds_is_none(user: World, vendor: Vendor) -> None:
    plant(Path(user.env["HOME"]), SELF_TESTS[vendor])
    (user.cwd / "secret.txt").write_text("XYLOPHONE")
    skill = user.cwd / ".agents" / "skills" / "a" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: project\ndescription: It is here.\n---\nXYLOPHONE\n")
    wishes = MENTIONS[vendor].format(home=user.env["HOME"])
    (user.cwd / "said.txt").write_text(f"See\n{wishes}\n")
    member = MEMBERS[vendor]
    user.team(
        f'[team]\n[[members]]\nname = "kailai"\ntype = "human"\n[[members]]\nname = "echo"\nagent = "echo"\n'
        f'[[members]]\nname = "{member}"\nagent = "{vendor}"\nmodel = "{MODELS[vendor]}"\naccess = "edit"\n'
        '[agents.echo]\ncommand = ["sh", "-c", "cat > /dev/null; cat said.txt"]\n'
    )
    quoted = f"+{wishes}\n {wishes}\n".encode()
    found = []
    for words, stdin in (
        ((f"[NEXT:{member}] See\n{wishes}",), None),
        ((f"[NEXT:echo,{member}] Look",), None),
        ((f"[NEXT:{member}] Look", "--file", "said.txt"), quoted),
        ((f"[NEXT:{member}] Look", "--expand"), quoted),
    ):
        ran = user("send", "--new", "--trust", *words, stdin=stdin)
        assert ran.code == 0, ran.err
        found.append(told(user.last(vendor), vendor, wishes))
    everything = list(WISHES[vendor])
    assert found == [everything, [], [], everything]


@contextmanager
def kept_running(command: Command, cwd: Path, env: Mapping[str, str], output: Path) -> Iterator[None]:
    """A process that has had one turn, and could have more."""
    assert command.live
    with output.open("wb") as out:
        process = subprocess.Popen(
            command.argv,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.DEVNULL,
            cwd=cwd,
            env={**env, **command.env},
            start_new_session=True,
        )
    try:
        assert process.stdin
        process.stdin.write(command.live.line(b"Say one."))
        process.stdin.flush()
        wait_until(lambda: b'"type":"result"' in output.read_bytes())
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def asked(requests: Sequence[Request], text: str) -> int:
    """In how many requests that text stands."""
    return sum(text.encode() in (request.raw or b"") for request in requests)


def test_a_schedule_of_the_project_is_carried_out_by_claude_and_not_by_a_member(user: World, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    for folder, prompt in ((user.cwd, "PLANTED"), (plain, "CONTROL")):
        (folder / ".claude").mkdir(parents=True)
        before = int(time.time() * 1000) - 120_000
        task = f'{{"id":"abc12345","cron":"* * * * *","prompt":"{prompt}","createdAt":{before},"recurring":true}}'
        (folder / ".claude" / "scheduled_tasks.json").write_text(f'{{"tasks":[{task}]}}')
    user.server.script("claude", [Reply("Done.")])
    job = Job(("claude",), user.cwd, tmp_path, access="edit", model=MODELS["claude"], env=user.env, memory="live")
    command = ClaudeRunner().command(job)
    unbound = Command(command.argv[: command.argv.index("--disallowedTools")], live=command.live)
    with (
        kept_running(command, user.cwd, user.env, tmp_path / "bound.out"),
        kept_running(unbound, plain, user.env, tmp_path / "unbound.out"),
    ):
        wait_until(lambda: asked(user.server.turns("claude"), "CONTROL"))
    assert asked(user.server.turns("claude"), "PLANTED") == 0


def test_claudes_system_text_is_in_no_list_of_processes(user: World) -> None:
    user.member("claude", 'system_instruction = "You are the MARIMBA player."')
    arguments: list[bytes] = []

    def looking(_request: Request) -> Reply:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (entry / "cmdline").exists():
                arguments.append((entry / "cmdline").read_bytes())
        return Reply("Done.")

    user.server.script("claude", looking)
    assert user("send", "Hi").code == 0
    assert "You are the MARIMBA player." in user.system("claude")
    assert any(b"--append-system-prompt-file" in one for one in arguments)
    assert not [one for one in arguments if b"MARIMBA" in one]
