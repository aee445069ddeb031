from __future__ import annotations

from teamchat.cli.shared.options import JsonOption, Shown, SpeedOption

NEXT = """
That was a recording: no agent ran, and nothing left this machine. To go on:
  teamchat init                       a team of the agent CLIs you have
  teamchat send "[NEXT:writer] Hi"    your first message
  teamchat init --template offline    small scripts instead, to try everything
  teamchat --help                     all commands"""


def demo(speed: SpeedOption = 1.0, as_json: JsonOption = False) -> int:
    """Play a recorded session: three members plan, write and review a piece of code, and ask a person."""
    from importlib.resources import files

    from teamchat.cli.shared.playback import play
    from teamchat.core.cassette.format import parse_cassette
    from teamchat.core.errors import ExitCode

    text = files("teamchat.cli").joinpath("demo.cassette").read_text(encoding="utf-8")
    code = play(parse_cassette(text, "the demo"), Shown(as_json), speed=speed)
    if code != ExitCode.HUMAN_ASKED:  # how it ends
        return code
    if not as_json:
        print(NEXT)
    return ExitCode.DONE
