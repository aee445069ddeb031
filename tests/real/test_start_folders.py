"""What the runtimes of the CLIs (Bun, Node, Rust) may obey in the folder where they start: none of it runs."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from teamchat.core.agents import AGENT_TYPES
from teamchat.runners.base import Access, Vendor
from tests.real import clis
from tests.real.model.replies import Reply
from tests.real.model.selftest import NOTE
from tests.real.model.table import SELF_TESTS
from tests.real.world import TIMEOUT_S, World

pytestmark = pytest.mark.real
PATHS = json.dumps({"compilerOptions": {"baseUrl": ".", "paths": {"*": ["./p.js"]}}})
PACKAGE = {
    "type": "module",
    "main": "./p.js",
    "imports": {"#*": "./p.js"},
    "exports": "./p.js",
    "browser": {"fs": "./p.js"},
    "scripts": dict.fromkeys(("preinstall", "prepare"), "sh e.sh"),
}
FILES = {
    "tsconfig.json": PATHS,
    "jsconfig.json": PATHS,
    "bunfig.toml": 'preload = ["./p.js"]\n[run]\nbun = true\n',
    "package.json": json.dumps(PACKAGE),
    ".npmrc": "node-options=--require ./p.js\nscript-shell=./e.sh\n",
    ".env": "NODE_OPTIONS=--require ./p.js\nBUN_OPTIONS=--preload ./p.js\nBUN_INSPECT_PRELOAD=./p.js\n",
    "node.config.json": json.dumps({"nodeOptions": {"require": ["./p.js"], "import": ["./p.js"]}}),
    ".babelrc": json.dumps({"presets": ["./p.js"]}),
}
PACKAGES = (
    *("yargs", "react", "ink", "sharp", "undici", "ws", "node-pty", "@lydell/node-pty", "keytar", "@github/keytar"),
    *("bufferutil", "utf-8-validate", "@google/gemini-cli-core", "graceful-fs", "source-map-support", "encoding"),
    *("fsevents", "@img/sharp-linux-x64", "@vscode/ripgrep", "canvas", "node-gyp-build", "fs", "path", "child_process"),
)
PROGRAMS = ("node", "git", "rg", "sh", "bash", "bun", "ps", "uname", "which")


def plant(folder: Path, sprung: Path) -> None:
    """Plant all of it in `folder`. Whatever runs makes the file `sprung`."""
    shell, code = f"touch {sprung}\n", f"require('node:child_process').execSync({json.dumps(f'touch {sprung}')})\n"
    for name, text in {**FILES, "p.js": code, "e.sh": shell}.items():
        (folder / name).write_text(text)
    for name in PACKAGES:
        package = folder / "node_modules" / name
        package.mkdir(parents=True)
        (package / "index.js").write_text(code)
        (package / "package.json").write_text(json.dumps({"name": name, "main": "index.js"}))
    (folder / "node_modules" / ".bin").mkdir()
    for file in (place / name for place in (folder, folder / "node_modules" / ".bin") for name in PROGRAMS):
        file.write_text(f"#!/bin/sh\n{shell}")
        file.chmod(0o755)


@pytest.mark.parametrize("access", ["read", "edit", "full"])
@pytest.mark.parametrize("vendor", clis.VENDORS)
def test_no_configuration_of_a_runtime_runs_in_a_turn(user: World, vendor: Vendor, access: Access) -> None:
    folder, sprung = user.cwd / "sub", user.cwd.parent / "sprung"
    folder.mkdir()
    plant(user.cwd, sprung)
    plant(folder, sprung)
    (folder / NOTE).write_text("XYLOPHONE\n")
    user.env = {**user.env, "IS_SANDBOX": "1"}  # else Claude refuses full access to root
    name = user.member(vendor, f'cwd = "sub"\naccess = "{access}"')
    user.server.script(vendor, [Reply("Hm.", tools=(SELF_TESTS[vendor].looking(),)), Reply("Hi.")])
    ran = user.json("send", "--trust", "--to", name, "Hi")
    assert (ran.code, ran.result["text"]) == (0, "Hi."), ran.err
    assert not sprung.exists()


@pytest.mark.recorded
@pytest.mark.parametrize("vendor", clis.VENDORS)
def test_what_is_planted_is_a_danger_in_plain_opencode(
    user: World, vendor: Vendor, record_property: Callable[[str, object], None]
) -> None:
    """What the others obey by themselves is recorded: 2.1.330, 0.169.0 and 0.61.0 obey none of it."""
    sprung = user.cwd.parent / "sprung"
    plant(user.cwd, sprung)
    program = shutil.which(vendor, path=user.env["PATH"])
    assert program
    for words in (("--version",), AGENT_TYPES[vendor].help):
        subprocess.run(
            [program, *words], cwd=user.cwd, env=dict(user.env), stdin=subprocess.DEVNULL, timeout=TIMEOUT_S,
            check=True, capture_output=True,
        )  # fmt: skip
    record_property("obeys files of its folder", sprung.exists())
    assert sprung.exists() or vendor != "opencode"
