"""Whether the user trusts a folder in Gemini, by Gemini's own record (observed at 0.61.0)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from teamchat.runners.homes.folders import gemini_folder
from teamchat.runners.untrusted.json import object_in


def trusts(cwd: Path, env: Mapping[str, str]) -> bool:
    """Whether the longest matching rule trusts the folder. A record that cannot be read trusts nothing."""
    file = Path(env.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") or gemini_folder(env) / "trustedFolders.json")
    rules = object_in(file) or {}
    here = Path(os.path.realpath(cwd))
    holding = [(len(path), level) for path, level in rules.items() if here.is_relative_to(_folder(path, level))]
    return bool(holding) and max(holding, key=lambda rule: rule[0])[1] in {"TRUST_FOLDER", "TRUST_PARENT"}


def _folder(path: str, level: object) -> str:
    return os.path.realpath(Path(path).parent if level == "TRUST_PARENT" else path)
