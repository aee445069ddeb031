"""Runs a module of teamchat as a separate program, in a folder that may belong to anybody.

`python -m` would import from its working folder, and the environment may name further folders. So the interpreter gets
only the absolute import folders of the running teamchat.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def isolated_command(module: str, *arguments: str) -> tuple[str, ...]:
    """Build the command line for `main(arguments)` of the module."""
    folders = [folder for folder in sys.path if Path(folder).is_absolute()]
    return (sys.executable, "-I", "-S", __file__, json.dumps(folders), module, *arguments)


if __name__ == "__main__":
    sys.path += json.loads(sys.argv[1])
    importlib.import_module(sys.argv[2]).main(sys.argv[3:])
