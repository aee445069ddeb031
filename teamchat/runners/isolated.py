"""Runs a module of teamchat as a program of its own, in a folder that may be anybody's.

`python -m` would import from the folder that it is started in, and the environment may name folders, too. So the
interpreter is given the absolute ones of the running teamchat, and no others.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def isolated_command(module: str, *arguments: str) -> tuple[str, ...]:
    """The command line for `main(arguments)` of the module."""
    folders = [folder for folder in sys.path if Path(folder).is_absolute()]
    return (sys.executable, "-I", "-S", __file__, json.dumps(folders), module, *arguments)


if __name__ == "__main__":
    sys.path += json.loads(sys.argv[1])
    importlib.import_module(sys.argv[2]).main(sys.argv[3:])
