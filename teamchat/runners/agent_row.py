"""The row of an agent CLI without code of its own here: all that teamchat knows of it, as data.

A row is one TOML file (`teamchat/agents/NAME.toml`). An `[agents]` table of a team file says a part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from teamchat.runners.base import Access

Prompt = Literal["file", "pipe", "argument"]
Reply = Literal["plain", "strip"]
Mentions = Literal["inert", "as they are"]
OWN = "teamchat"
"""The origin of a row that teamchat has itself."""
ARGUMENT_BYTES = 131_071
"""The longest argument that Linux passes to a program, without the NUL at its end."""


class AccessRule(Struct, frozen=True, forbid_unknown_fields=True):
    """What the program gets for one access: arguments, variables, and in `note` what then bounds it.

    Without a note nothing bounds it.
    """

    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


class AgentRow(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How one program takes a prompt, prints a reply, and is bounded. The defaults are those of any program.

    The command line of a turn is `command`, the arguments of the member's access, `model` and `resume` (each with its
    value in place of `{}`), the member's own `args`, and `last`. `prompt` says where the program reads the prompt:
    standard input as a regular `file` or as a `pipe`, or the last `argument`. `largest` is how many bytes of it the
    program takes.

    `stream` is `plain`, `json`, or the vendor in whose format it prints its events. `reply` is `strip` where bullets,
    indents and colours of a terminal are no part of a plain reply. `json` is the path to the reply in a document, or in
    the last line of JSON that has it (`messages.-1.text`), and `session` the path to the id of its own session. A
    reply that `fail_pattern`, a regular expression, finds something in is a failed turn; a line of standard error that
    has one of the texts of `noise` gives no reason for one.

    `mentions` says whether the program gets an `@path` of others' messages as it is. `access` has what each access
    gives it: one that is missing cannot be had. `instructions` names the files that it reads by itself,
    `files_that_run` those of a project that make it run something whatever its access. `stays_in` is the folder of its
    sessions, `leaves` what it leaves running, and `lost` what a member loses beside the CLI by itself. `never` are
    words that may stand in no command of it, for the reason `why_never`, and `login` is the command that logs in.
    `proven` are the versions that its recorded turns are of, else `observed` is the day on which it was looked at.
    `package` is its npm package, or `install` the command that installs it. Whoever reads a row notes in `origin` whose
    it is.
    """

    command: tuple[str, ...] = ()
    package: str = ""
    install: str = ""
    version: tuple[str, ...] = ("--version",)
    last: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    model: tuple[str, ...] = ()
    prompt: Prompt = "file"
    largest: int | None = None
    stream: str = "plain"
    reply: Reply = "plain"
    json: str = ""
    session: str = ""
    resume: tuple[str, ...] = ()
    stays_in: str = ""
    fail_pattern: str = ""
    noise: tuple[str, ...] = ()
    mentions: Mentions = "inert"
    access: Mapping[Access, AccessRule] = field(default_factory=dict)
    instructions: tuple[str, ...] = ()
    files_that_run: tuple[str, ...] = ()
    leaves: str = ""
    lost: str = ""
    login: str = ""
    never: tuple[str, ...] = ()
    why_never: str = ""
    proven: tuple[str, ...] = ()
    observed: str = ""
    origin: str = ""

    @property
    def install_command(self) -> str:
        """The command that installs its program; empty if none is known."""
        return self.install or (f"npm install -g {self.package}" if self.package else "")

    def is_proven(self, access: Access) -> bool:
        """Whether recorded turns of the real program show that it is bounded at that access, in any folder."""
        bounds = self.access.get(access)
        return self.origin == OWN and bool(self.proven and bounds and bounds.note) and not self.files_that_run


ANY = AgentRow()
"""The row of an unknown program."""
