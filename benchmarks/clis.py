"""What `send` adds to a real CLI from npm, which asks a scripted model on loopback and gets one short answer.

The floor is the CLI by itself with the arguments, the environment, the files and the prompt that `send` gives it: a
script in its place writes them down once. Processor time is that of every process of the command. Each `send` is the
first one for a while: teamchat keeps the starts of a vendor's CLIs 0.25 to 0.375 seconds apart, and `send` takes less.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from benchmarks.figure import Figure, Measures
from benchmarks.real_clis import of_each_cli
from benchmarks.timing import REPEATS, Took, interleaved, run
from benchmarks.world import PERSON, ROOT, World
from teamchat.runners.base import Vendor
from tests.real import clis
from tests.real.model.server import ModelServer
from tests.real.model.table import MODELS

MOST: Mapping[Vendor, float] = {"claude": 1.7, "codex": 2.6, "gemini": 1.4}  # times the CLI by itself
SEND = ("send", "--quiet", "--new", "Hi")
WRITES_DOWN = """#!/bin/sh
case "$*" in *--version*) exec {program} "$@";; esac
cp -r "$TMPDIR" {into}/scratch
env -0 > {into}/env
printf '%s\\0' "$@" > {into}/argv
cat > {into}/stdin
exec {program} "$@" < {into}/stdin
"""


class Call(msgspec.Struct, frozen=True):
    """How `send` calls a CLI. `kept` is a copy of the private folder of its turn."""

    program: str
    argv: tuple[str, ...]
    env: dict[str, str]
    stdin: bytes
    kept: Path

    def again(self, at: World) -> Took:
        """What the CLI takes by itself, in the private folder of that turn."""
        scratch = Path(self.env["TMPDIR"])
        shutil.copytree(self.kept, scratch)
        try:
            return run((self.program, *self.argv), at.folder, self.env, self.stdin)
        finally:
            shutil.rmtree(scratch)


def measures(_quick: bool) -> Measures:
    yield from of_each_cli("send to {}", figures)


def figures(vendor: Vendor, programs: str) -> Iterator[Figure]:
    with ModelServer() as server, real_world(vendor, programs, server.url) as at:
        call = recorded(vendor, at)
        before = len(server.turns(vendor))
        ours, alone = interleaved(partial(sent, vendor, at), partial(call.again, at))
        assert len(server.turns(vendor)) == 2 * (REPEATS + 1) + before, "the CLI by itself asked its model, too"
    version = clis.chosen()[vendor]
    yield Figure(
        name=f"send to {vendor}", unit="ms", value=ours.wall_ms, floor=alone.wall_ms,
        floor_is=f"{vendor} {version} by itself", bound=MOST[vendor],
    )  # fmt: skip
    yield Figure(
        name=f"send to {vendor}, CPU", unit="ms", value=ours.cpu_ms, floor=alone.cpu_ms,
        floor_is=f"{vendor} {version} by itself", by="difference",
    )  # fmt: skip


def sent(vendor: Vendor, at: World) -> Took:
    """What a `send` takes that does not have to wait because one has just started the same CLI."""
    Path(at.env["TEAMCHAT_HOME"], f"{vendor}.start").unlink()
    return at.teamchat(*SEND)


@contextmanager
def real_world(vendor: Vendor, programs: str, url: str) -> Iterator[World]:
    """A team of one member of that vendor, whose model answers "OK"."""
    with tempfile.TemporaryDirectory() as name:
        home, work = Path(name) / "home", Path(name) / "work"
        home.mkdir()
        work.mkdir()
        env = clis.environment(home, url, programs)
        made = World(work, {**env, "TEAMCHAT_HOME": f"{name}/state", "PYTHONPATH": str(ROOT)})
        made.team(f'{PERSON}[[members]]\nname = "max"\nagent = "{vendor}"\nmodel = "{MODELS[vendor]}"\n')
        yield made


def recorded(vendor: Vendor, at: World) -> Call:
    """How a `send` calls the CLI."""
    into, programs = at.folder.parent / "call", at.folder.parent / "bin"
    into.mkdir()
    programs.mkdir()
    real = shutil.which(vendor, path=at.env["PATH"])
    assert real
    script = programs / vendor
    script.write_text(WRITES_DOWN.format(program=shlex.quote(real), into=shlex.quote(str(into))))
    script.chmod(0o755)
    World(at.folder, {**at.env, "PATH": f"{programs}:{at.env['PATH']}"}).teamchat(*SEND)
    variables = (one.partition("=") for one in (into / "env").read_text().split("\0") if one)
    argv = (into / "argv").read_text().split("\0")[:-1]
    return Call(
        real,
        tuple(argv),
        {name: value for name, _, value in variables},
        (into / "stdin").read_bytes(),
        into / "scratch",
    )
