"""The processes over the three real CLIs and a scripted model: what is asked, what the models answer, how it ends."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from teamchat.runners.base import Vendor
from tests.hostile_git import git
from tests.real.file_changes import edited
from tests.real.model.replies import Reply
from tests.real.model.server import ModelServer

EXAMPLES = Path(__file__).parents[2] / "examples" / "processes"
TEAM = EXAMPLES / "teamchat.toml"


@dataclass(frozen=True)
class Scenario:
    """A command of `teamchat run` and the replies of each vendor's model, in order."""

    args: tuple[str, ...]
    replies: Mapping[Vendor, tuple[Reply, ...]]

    def play(self, server: ModelServer) -> None:
        """Have the models answer as scripted."""
        for vendor, replies in self.replies.items():
            server.script(vendor, replies)


def says(*texts: str) -> tuple[Reply, ...]:
    return tuple(map(Reply, texts))


SEQUENTIAL = Scenario(
    ("sequential", "Write the first lines of a README for a program that resizes photos."),
    {
        "claude": says("# shrink\n\nshrink makes photos smaller, many at a time."),
        "codex": says('# shrink\n\nshrink makes photos smaller, many at a time: `shrink --width 800 "*.jpg"`.'),
        "gemini": says("The example is what a reader needs first. One gap: say that the originals stay as they are."),
    },
)
HIERARCHICAL = Scenario(
    ("hierarchical", "Should shrink keep the date and the place in a photo?"),
    {
        "claude": says(
            "Two questions decide it: what users expect, and what the formats can hold.\n\n"
            "[NEXT: sarah + carol] sarah: which formats hold both? carol: what can go wrong if we keep the place?",
            "Keep the date, and drop the place unless the user asks for it with `--keep-place`: people share photos "
            "that they have resized.",
        ),
        "codex": says("JPEG, HEIC and WebP hold date and place; PNG has no common field for the place."),
        "gemini": says("A photo that is shared tells where somebody lives. [NEXT: sarah]"),
    },
)
MAPREDUCE = Scenario(
    ("mapreduce", "Say for each of our four modules what its tests lack: read, resize, write, main."),
    {
        "claude": says(
            "I would split it by module.",
            '["What do the tests of the module read lack?", "What do the tests of the module resize lack?", '
            '"What do the tests of the module write lack? [NEXT: max]", "What do the tests of the module main lack?"]',
            "| module | its tests lack |\n|---|---|\n| read | a broken file |\n| resize | a width of 0 |\n"
            "| write | a full disk |\n| main | an unknown option |",
        ),
        "codex": says("read: no test has a broken file.", "write: no test has a full disk."),
        "gemini": says("resize: no test has a width of 0.", "main: no test has an unknown option."),
    },
)
DEBATE = Scenario(
    ("debate", "--rounds", "1", "Should shrink overwrite the original by default?"),
    {
        "claude": says(
            'No. A default must not destroy data.\n\n{"position": "Never overwrite by default"}',
            'Still no: disk space is cheap.\n\n{"position": "Never overwrite by default", "changed": false}',
            "shrink writes a new file by default; `--in-place` overwrites.\n\n## Dissent\n\n"
            "carol would overwrite after asking.\n\n"
            '{"agree": ["max", "sarah"], "dissent": {"carol": "overwrite after a question"}}',
        ),
        "codex": says(
            'Yes, as image editors do.\n\n{"position": "Overwrite, like an editor"}',
            "The first answer is right about scripts, where nobody sees the loss.\n\n"
            '{"position": "Write a new file", "changed": true}',
        ),
        "gemini": says(
            'Ask first.\n\n{"position": "Overwrite after a question"}',
            'A question is enough.\n\n{"position": "Overwrite after a question", "changed": false}',
        ),
    },
)
VOTE = Scenario(
    ("vote", "--options", "800,1200,1600", "Which width should shrink have by default?"),
    {
        "claude": says('Most screens show it whole.\n\n{"option": "1200", "reason": "fits most screens"}'),
        "codex": says('{"option": "1600", "reason": "sharp on dense screens"}'),
        "gemini": says('```json\n{"option": "1200", "reason": "small enough to send"}\n```'),
    },
)
BEST = Scenario(
    ("best", "Name the option that keeps the original, and say why."),
    {
        "claude": says(
            "`--keep`: short, and it says what happens.",
            '{"winner": "C", "reasons": "C says what happens in the words of the file system, A and B leave it open."}',
        ),
        "codex": says("`--copy`, as the original is copied."),
        "gemini": says("`--safe`: nobody has to know how."),
    },
)
SCENARIOS: Mapping[str, Scenario] = {
    "sequential": SEQUENTIAL,
    "hierarchical": HIERARCHICAL,
    "mapreduce": MAPREDUCE,
    "debate": DEBATE,
    "vote": VOTE,
    "best": BEST,
}

SHIP = EXAMPLES.parent / "ship"
LONGEST = "    longest = max(width, height)\n"
SCALED = "    return width * most // longest, height * most // longest\n"
WIDE = "    return most, height * most // width\n"
TALL = "    if height > width:\n        return height * most // width, most\n"
SIZES = (WIDE, f"{TALL}{WIDE}", f"{LONGEST}{SCALED}", f"{LONGEST}    most = min(most, longest)\n{SCALED}")
"""What stands at the end of shrink/size.py: at first, and after each round. The first one that is green enlarges."""
FOUND = "A photo that is smaller than `most` is made larger: fitted(400, 300, 800) is (800, 600)."


def ship(folder: Path) -> Scenario:
    """A red round, a green one with a review that says no, and one with which all agree; in a copy of examples/ship."""
    file = folder / "shrink" / "size.py"
    said = (
        "A portrait has its longest side in `height`. Mended.",
        "I had mixed up the sides. Now both are scaled by the longest one.",
        "1. Right: `most` is now at most the longest side, so that nothing is made larger.",
    )
    claude = (
        [*(Reply(tools=(tool,)) for tool in edited("claude", file, old, new)), Reply(text)]
        for old, new, text in zip(SIZES, SIZES[1:], said, strict=False)
    )
    return Scenario(
        ("ship", "Portraits come out too tall. Mend it."),
        {
            "claude": tuple(reply for turn in claude for reply in turn),
            "codex": says(reviewed(2, "PASS"), reviewed(3, "PASS")),
            "gemini": says(reviewed(2, "FAIL", FOUND), reviewed(3, "PASS")),
        },
    )


def reviewed(number: int, verdict: str, *found: str) -> str:
    """A review as the process asks for it."""
    findings = [{"file": "shrink/size.py", "line": 8, "severity": "high", "text": text} for text in found]
    return json.dumps({"round": number, "verdict": verdict, "findings": findings})


def copy_ship(folder: Path) -> None:
    """Make `folder` a repository with the files of examples/ship."""
    ignored = shutil.ignore_patterns("*.cassette", "__pycache__")
    shutil.copytree(SHIP, folder, ignore=ignored, dirs_exist_ok=True)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
