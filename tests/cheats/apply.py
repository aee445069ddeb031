"""What a member does that cheats: `apply.py CHEATS NAME` changes the files of its folder, and says what it says."""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path


def written(path: str, text: str) -> None:
    """Write the file as an editor does: its permissions stay, and a link to it keeps what it had."""
    file = Path(path)
    mode = file.stat().st_mode if file.exists() else None
    file.unlink(missing_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    if mode is not None:
        file.chmod(mode)


sys.stdin.read()
cheat = next(one for one in tomllib.loads(Path(sys.argv[1]).read_text())["cheat"] if one["name"] == sys.argv[2])
for path in cheat.get("remove", []):
    if Path(path).is_dir():
        shutil.rmtree(path)
    else:
        Path(path).unlink()
for path, text in cheat.get("write", {}).items():
    written(path, text)
for path, text in cheat.get("append", {}).items():
    written(path, Path(path).read_text() + text)
print(cheat["reply"])
