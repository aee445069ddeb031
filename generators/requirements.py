"""Writes the pins of constraints.txt with the hashes of their wheels: `make requirements`.

Those of the program, which come first, are in requirements.txt, the others in requirements-dev.txt, which `make demo`
does not install.

`pip` chooses a wheel of each pin for every Python and system that the tests run on, as the index of its settings has
them. Nothing is downloaded or installed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINS = ROOT / "constraints.txt"
HASHED = (ROOT / "requirements.txt", ROOT / "requirements-dev.txt")
"""A file for each part of constraints.txt. A line with `# The` or `# Its` begins a part."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_GLIBCS = ("manylinux_2_5", "manylinux_2_12", "manylinux_2_17", "manylinux_2_28", "manylinux_2_34")  # the oldest first
SYSTEMS = (
    tuple(f"{glibc}_x86_64" for glibc in _GLIBCS),
    tuple(f"{glibc}_aarch64" for glibc in _GLIBCS),
    ("macosx_11_0_arm64", "macosx_14_0_arm64"),
)
HEAD = "# Made by `make requirements`: pins of constraints.txt, with the hash of each wheel that `make` may install.\n"


def texts() -> list[str]:
    """The whole files. Raises `CalledProcessError` where a pin has no wheel."""
    hashes = defaultdict[str, set[str]](set)
    for python, platforms in product(PYTHONS, SYSTEMS):
        for name, found in _wheels(python, platforms):
            hashes[name].add(found)
    return [HEAD + "".join(_entry(pin, hashes[_name(pin)]) for pin in part) for part in pins()]


def _entry(pin: str, hashes: set[str]) -> str:
    return " \\\n    ".join([pin, *(f"--hash=sha256:{found}" for found in sorted(hashes))]) + "\n"


def pins() -> list[list[str]]:
    """The pins of each part of constraints.txt."""
    _, *parts = re.split(r"^# (?:The|Its) .*\n", PINS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [part.split() for part in parts]


def _wheels(python: str, platforms: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The name of each pin, and the hash of the wheel that pip takes there."""
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    argv += ["--target", "unused", "--no-deps", "--only-binary", ":all:", "--implementation", "cp"]
    argv += ["--python-version", python, *(f"--platform={name}" for name in platforms), "--requirement", str(PINS)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True)
    for wheel in json.loads(done.stdout)["install"]:
        yield _name(wheel["metadata"]["name"]), wheel["download_info"]["archive_info"]["hashes"]["sha256"]


def _name(pin: str) -> str:
    """As the index compares names."""
    return pin.partition("==")[0].lower().replace("_", "-").replace(".", "-")


if __name__ == "__main__":
    for file, text in zip(HASHED, texts(), strict=True):
        file.write_text(text, encoding="utf-8")
