"""Records the session of `teamchat demo`: real CLIs, scripted model. Run by `make record-demo`.

It needs a quiet machine, because the demo plays at the recorded pace.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.real import clis
from tests.real.model.replies import Reply, ToolUse
from tests.real.model.server import ModelServer

NO_WORD = re.compile("[^A-Za-z0-9]")  # what Claude writes as `-` in the name of a project folder (observed at 2.1.330)
TEAM = """
[team]
name = "blog"
task = "Readable addresses for our blog posts"
lead = "max"

[[members]]
name = "kai"
type = "human"

[[members]]
name = "max"
title = "Architect"
agent = "claude"
model = "claude-opus-4-8"
system_instruction = "You are Max. Plan in a few lines, then hand over."

[[members]]
name = "sarah"
title = "Engineer"
agent = "codex"
access = "edit"
system_instruction = "You are Sarah. Write small functions and try them."

[[members]]
name = "carol"
title = "Reviewer"
agent = "gemini"
model = "gemini-2.5-flash"
system_instruction = "You are Carol. Look for what breaks, and say how to test it."
"""
FIRST = """*** Begin Patch
*** Add File: slug.py
+import re
+
+
+def slug(title: str) -> str:
+    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
*** End Patch"""
SECOND = """*** Begin Patch
*** Update File: slug.py
@@
 import re
+import unicodedata
{blank}
{blank}
 def slug(title: str) -> str:
-    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
+    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
+    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
*** End Patch""".replace("{blank}", " ")  # in a patch every line of context begins with a space
PLAN = (
    "The plan:\n\n"
    "1. `slug(title)` in `slug.py`: lower case, words joined by `-`.\n"
    "2. No packages; the standard library is enough.\n"
    "3. Two of us look at it before kai merges.\n\n"
    "[NEXT: sarah]"
)
WRITTEN = (
    "`slug.py` is there:\n\n```python\ndef slug(title: str) -> str:\n"
    '    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")\n```\n\n'
    '`slug("Hello, World!")` gives `hello-world`. Please look at it.\n\n[NEXT: max + carol]'
)
APPROVED = "It is what I had planned: one function, no packages. Fine with me if carol finds nothing."
FOUND = (
    'One thing breaks: `slug("Crème brûlée")` gives `cr-me-br-l-e`. Take the accents off first '
    "(`unicodedata.normalize`), and test it with that title.\n\n[NEXT: sarah]"
)
FIXED = (
    'Right. Now `slug("Crème brûlée")` gives `creme-brulee`.\n\n'
    "kai, one question before you merge: a title without any letter gives an empty slug. "
    "Shall that be `untitled`?\n\n[NEXT: kai]"
)


def spoken(text: str) -> Reply:
    """A reply that comes word by word."""
    words = text.split(" ")
    pieces = tuple(
        word if last else f"{word} " for word, last in zip(words, [False] * (len(words) - 1) + [True], strict=True)
    )
    return Reply(pieces, delay_s=0.03)


def main(target: Path) -> None:
    programs = clis.installed(clis.PINNED)
    with tempfile.TemporaryDirectory(prefix="demo-") as folder, ModelServer() as server:
        home, work = Path(folder) / "home", Path(folder) / "home" / "blog"
        work.mkdir(parents=True)
        (work / "teamchat.toml").write_text(TEAM, encoding="utf-8")
        server.script("claude", [spoken(PLAN), spoken(APPROVED)])
        check = 'python3 -c "from slug import slug; print(slug({}))"'
        server.script(
            "codex",
            [
                Reply(tools=(ToolUse("apply_patch", {"input": FIRST}),), delay_s=0.5),
                Reply(tools=(ToolUse("exec_command", {"cmd": check.format("'Hello, World!'")}),)),
                spoken(WRITTEN),
                Reply(tools=(ToolUse("apply_patch", {"input": SECOND}),), delay_s=0.5),
                Reply(tools=(ToolUse("exec_command", {"cmd": check.format("'Crème brûlée'")}),)),
                spoken(FIXED),
            ],
        )
        server.script("gemini", [spoken(FOUND)])
        cassette = Path(folder) / "demo.cassette"
        env = clis.environment(home, server.url, programs) | {
            "TEAMCHAT_HOME": str(Path(folder) / "state"),
            "TEAMCHAT_CASSETTE_LABEL": "scripted model",
        }
        message = "[NEXT:max] We need readable addresses for our posts. Tell me when I can merge."
        argv = [sys.executable, "-m", "teamchat", "send", "--trust", "--record", str(cassette), message]
        done = subprocess.run(argv, cwd=work, env=env, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 9, done.returncode  # it ends with a question to a person
        text = cassette.read_text(encoding="utf-8")
        target.write_text(without_places(text, home, folder), encoding="utf-8")


def without_places(text: str, home: Path, folder: str) -> str:
    """The text of a cassette with the folders of a user instead of those of this machine."""
    for path, name in ((str(clis.CACHE), "/opt/clis"), (str(home), "/home/kai"), (folder, "/tmp")):
        text = text.replace(path, name).replace(NO_WORD.sub("-", path), NO_WORD.sub("-", name))
    return text


if __name__ == "__main__":
    main(Path(sys.argv[1]))
