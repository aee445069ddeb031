"""An example for each command, with which its help ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EXAMPLES = {
    "init": "teamchat init",
    "send": "git diff | teamchat send --only --to max 'Find bugs'",
    "run": "teamchat run debate --members max,sarah 'Which database?'",
    "resume": "teamchat resume --skip",
    "chat": "teamchat chat --new",
    "log": "teamchat log -n 5",
    "watch": "teamchat watch --session s1",
    "show": "teamchat show 3 --prompt",
    "diff": "teamchat diff 2..4 | git apply --check",
    "undo": "teamchat undo 3 --dry-run",
    "doctor": "teamchat doctor --store",
    "redo": "teamchat redo",
    "retry": "teamchat retry --with sarah",
    "open": "teamchat open max",
    "adopt": "teamchat adopt max --last",
    "sessions": "teamchat sessions rename s1 'Version option'",
    "search": "teamchat search 'login error'",
    "branch": "teamchat branch --at msg-4 without-database",
    "compare": "teamchat compare s1 s2",
    "export": "teamchat export --format html > talk.html",
    "import": "teamchat import talk.json",
    "usage": "teamchat usage --all",
    "clear": "teamchat clear",
    "task": "teamchat task 'Port the parser'",
    "todo": "teamchat todo add 'Write the tests'",
    "learn": "teamchat learn 'Run make lint before you commit'",
    "compact": "teamchat compact",
    "team": "teamchat team --json",
    "worktrees": "teamchat worktrees",
    "merge": "teamchat merge max",
    "trust": "teamchat trust",
    "stop": "teamchat stop",
    "demo": "teamchat demo --speed 3",
    "replay": "teamchat replay talk.cassette --speed 0",
    "test": "teamchat test recordings",
    "help": "teamchat help routing",
}
LONG = 12  # options; a help with more has them in groups


def explained(name: str, command: Any, panels: Mapping[str, str]) -> Any:
    """The command with its example at the end of its help, and its options under their headings if it has many."""
    if name in EXAMPLES:
        command.epilog = f"Example: {EXAMPLES[name]}"
    if len(command.params) > LONG:
        for parameter in command.params:
            if panel := panels.get(parameter.name):
                parameter.rich_help_panel = panel
    return command
