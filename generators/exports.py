"""What `teamchat export` makes of the demo's conversation: a recording in examples/, screenshots of the page in docs/.

`make picture` writes them. The screenshots need Chromium.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from teamchat.cli.exporting.formats import ExportOptions, writer
from teamchat.cli.running.playback import open_stage
from teamchat.cli.startup.options import FormatName
from teamchat.core.cassette.format import parse_cassette
from teamchat.core.cassette.player import Player
from teamchat.core.cassette.replay import recorded_turn
from teamchat.core.transcripts.collect import collect, redactor, without_secrets
from teamchat.core.transcripts.transcript import Transcript, mapped

ROOT = Path(__file__).parents[1]
TITLE = "Readable addresses for our posts"
CHROMIUM = "chromium"
DARK = "--blink-settings=preferredColorScheme=0"
SCREENSHOTS: Mapping[str, tuple[str, ...]] = {
    "light": ("--window-size=900,1000",),
    "dark": ("--window-size=900,1000", DARK),
    "phone": ("--window-size=390,844",),
}


def demo(speed: float = 1.0) -> Transcript:
    """The conversation of the demo, played at its recorded pace or faster."""
    text = files("teamchat.cli").joinpath("demo.cassette").read_text(encoding="utf-8")
    with open_stage(parse_cassette(text, "the demo"), lambda turns: Player(turns, speed), None, None) as stage:
        for run in stage.cassette.runs:
            stage.play(run)
        redact = redactor({}, None)
        transcript, _ = without_secrets(collect(stage.db, stage.session, redact), redact)
        turns = [recorded_turn(turn) for run in stage.cassette.runs for turn in run.turns]
    folders = "|".join({re.escape(f"{turn.exit.cwd}/") for turn in turns if turn.exit and turn.exit.cwd})
    relative: Transcript = mapped(transcript, lambda _, text: re.sub(folders, "", text))
    return replace(relative, session="demo", title=TITLE)


def exported(transcript: Transcript, name: FormatName) -> str:
    return "".join(writer(name)(transcript, ExportOptions()))


def write_screenshots(page: str, folder: Path) -> None:
    with TemporaryDirectory() as home:
        file = Path(home) / "demo.html"
        file.write_text(page, encoding="utf-8")
        for name, options in SCREENSHOTS.items():
            to = f"--screenshot={folder / f'page-{name}.png'}"
            own = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={home}")
            subprocess.run([CHROMIUM, *own, *options, to, file.as_uri()], check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    conversation = demo()
    (ROOT / "examples" / "demo.cast").write_text(exported(conversation, "cast"), encoding="utf-8")
    if shutil.which(CHROMIUM) is None:
        sys.exit("the screenshots need chromium")
    write_screenshots(exported(conversation, "html"), ROOT / "docs" / "images")
