"""Which texts of commands run where `allow` names a program: all of them in one turn of the real CLI.

`./tool FILE` is allowed and makes the file, `./other FILE` is not and makes it, too. Every text tries to make a file of
its own beside the workspace, `@`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Reply, ToolUse
from tests.real.model.table import SELF_TESTS
from tests.real.world import World

pytestmark = pytest.mark.real
VENDORS: tuple[Vendor, ...] = ("claude", "codex", "gemini")
AT_ONCE = 12  # tools in a reply: Gemini asks its model about loops after 30 replies
NEITHER: tuple[str, ...] = (
    # another command after, before or beside the allowed one
    "./tool; ./other @",
    "./tool;./other @",
    "./tool ;./other @",
    "./tool && ./other @",
    "./tool&&./other @",
    "./tool --fail || ./other @",
    "./tool | ./other @",
    "./tool |& ./other @",
    "./tool|./other @",
    "./tool & ./other @",
    "./tool &./other @",
    "./tool\n./other @",
    "./tool\n\n./other @",
    "./tool \\\n; ./other @",
    "./tool # a comment\n./other @",
    "# a comment\n./other @",
    "./other @; ./tool",
    "./other @ && ./tool",
    "./other @ | ./tool",
    "./other @ & ./tool",
    "./other @\n./tool",
    "./tool a; ./tool b; ./other @",
    "./tool a | ./tool b | ./other @",
    "./tool 'a' ; ./other @",
    "./tool 'a'\"'\"'b' ; ./other @",
    './tool "a" ; ./other @',
    './tool "\\"" ; ./other @',
    "./tool \\' ; ./other @ #'",
    './tool \\" ; ./other @ #"',
    "./tool $'\\'' ; ./other @ #'",
    "./tool a\\;b ; ./other @",
    # a substitution in its words
    "./tool $(./other @)",
    './tool "$(./other @)"',
    "./tool a$(./other @)b",
    './tool "a $(./other @) b"',
    "./tool --opt=$(./other @)",
    "./tool `./other @`",
    './tool "`./other @`"',
    "./tool <(./other @)",
    "./tool >(./other @)",
    "./tool < <(./other @)",
    "./tool > >(./other @)",
    "./tool ${x:-$(./other @)}",
    './tool "${x:-$(./other @)}"',
    "./tool ${x:=`./other @`}",
    "./tool ${HOME:+$(./other @)}",
    "./tool ${HOME/#/$(./other @)}",
    "./tool ${HOME:$(./other @)}",
    "./tool $((a[$(./other @)]))",
    "./tool $(( $(./other @) ))",
    "./tool $[ $(./other @) ]",
    './tool "${a[$(./other @)]}"',
    "./tool ${!a[$(./other @)]}",
    "./tool $(echo $(./other @))",
    "./tool $(echo `./other @`)",
    "./tool {a,$(./other @)}",
    "./tool <<< $(./other @)",
    './tool <<< "$(./other @)"',
    "./tool <<X\n$(./other @)\nX",
    "./tool <<-X\n\t`./other @`\n\tX",
    "./tool <<'X'\na\nX\n./other @",
    "./tool $(<x; ./other @)",
    "./tool $( ( ./other @ ) )",
    "./tool ${x@P}; ./other @",
    "$(./other @) ./tool",
    "`./other @` ./tool",
    # an assignment, a prefix or a builtin
    "X=1 ./other @",
    "X=$(./other @) ./tool",
    "X=`./other @` ./tool",
    "X=$(./other @)",
    "X=(a $(./other @)) ; ./tool",
    "a[$(./other @)]=1 ./tool",
    "PATH=. other @",
    "PATH=.:$PATH other @",
    "env ./other @",
    "env X=1 ./other @",
    "env -S './other @'",
    "command ./other @",
    "exec ./other @",
    "exec -a ./tool ./other @",
    "builtin eval ./other @",
    "eval ./other @",
    "eval './other @'",
    "eval ./tool\\; ./other @",
    "time ./other @",
    "time -p ./other @",
    "! ./other @",
    "nohup ./other @",
    "nice ./other @",
    "nice -n 5 ./other @",
    "timeout 5 ./other @",
    "stdbuf -o0 ./other @",
    "setsid ./other @",
    "xargs ./other @",
    "echo @ | xargs ./other",
    "find . -maxdepth 0 -exec ./other @ \\;",
    "find . -maxdepth 0 -execdir ./other @ ;",
    "sh -c './other @'",
    "bash -c './other @'",
    "bash -c './tool; ./other @'",
    "bash -lc './other @'",
    "bash <<< './other @'",
    "bash other @",
    "sh ./other @",
    ". ./other @",
    "source ./other @",
    "python3 -c 'import os; os.system(\"./other @\")'",
    'node -e \'require("child_process").execSync("./other @")\'',
    "perl -e 'system(\"./other @\")'",
    "awk 'BEGIN { system(\"./other @\") }'",
    "sed -n '1e ./other @' tool",
    "git -c alias.x='!./other @' x",
    "coproc ./other @",
    "coproc x { ./other @; }",
    "declare -i n='a[$(./other @)]'",
    "typeset -i n='a[$(./other @)]'",
    "declare x=$(./other @)",
    "export x=$(./other @)",
    "readonly x=$(./other @)",
    "let 'a[$(./other @)]=1'",
    "printf -v 'a[$(./other @)]' x",
    "read 'a[$(./other @)]' <<< x",
    "unset 'a[$(./other @)]'",
    "test -v 'a[$(./other @)]'",
    "[ -v 'a[$(./other @)]' ]",
    "[[ -v a[$(./other @)] ]]",
    "[[ 'a[$(./other @)]' -eq 0 ]]",
    "((a[$(./other @)]))",
    "((a[`./other @`]=1))",
    "mapfile -c 1 -C './other @;:' a <<< x",
    "compgen -C './other @' x",
    "complete -C './other @' x",
    "trap './other @' EXIT",
    "trap './other @' DEBUG; ./tool",
    "trap './other @' ERR; ./tool --fail",
    "alias x='./other @'\nx",
    "shopt -s expand_aliases\nalias x='./other @'\nx",
    "enable -f ./other x",
    "hash -p ./other x; x @",
    "bind -x '\"x\": ./other @'",
    # grouping, functions and control flow
    "{ ./other @; }",
    "(./other @)",
    "( ./tool; ./other @ )",
    "{ ./tool; ./other @; }",
    "f() { ./other @; }; f",
    "function f { ./other @; }; f",
    "./tool() { ./other @; }; ./tool",
    "f() ( ./other @ )\nf",
    "if ./other @; then ./tool; fi",
    "if ./tool; then ./other @; fi",
    "if ./tool --fail; then :; else ./other @; fi",
    "while ./other @; do break; done",
    "while ./tool; do ./other @; break; done",
    "until ./tool --fail; do ./other @; break; done",
    "for i in 1; do ./other @; done",
    "for i in $(./other @); do ./tool; done",
    "for ((i=0; i<1; i++)); do ./other @; done",
    "case x in x) ./other @;; esac",
    "case $(./other @) in x) ./tool;; esac",
    "select x in a; do ./other @; break; done <<< 1",
    # the other program in disguise
    "./tool; '.'/other @",
    "./tool; .\\/other @",
    './tool; "./other" @',
    "./tool; ./ot''her @",
    "./tool; ./o?her @",
    "./tool; $'\\x2e/other' @",
    "./tool; ${x-./other} @",
    "./tool; $(printf ./other) @",
    "x=./other; $x @",
    "./tool; $PWD/other @",
    "$PWD/other @",
    "./toolx @",
    "./tool-x @",
    "./tool.x @",
    "./tool/../other @",
    "./toolx; ./tool @x",
    "../*/other @",
    "./two other @",
    "./two 'other' @",
    "'./two' other @",
    # a redirection
    "./tool > @",
    "./tool >@",
    "./tool>@",
    "./tool >> @",
    "./tool >| @",
    "./tool &> @",
    "./tool &>> @",
    "./tool >& @",
    "./tool 1> @",
    "./tool 2> @",
    "./tool 3> @",
    "./tool <> @",
    "./tool {fd}> @",
    "./tool a > @ b",
    "./tool > @ 2>&1",
    "./tool 2>&1 > @",
    "> @ ./tool",
    "> @",
    ": > @",
    "exec > @",
    "exec 3> @; ./tool >&3",
    "./tool | tee @",
    "./tool > '@'",
    './tool > "@"',
    "./tool a\\>b > @",
    "./tool 'a > b' > @",
    "./tool > $(printf @)",
)
"""None of them may run, in any CLI."""
BOTH: tuple[str, ...] = (
    "./tool @",
    "./tool @ a b",
    "./tool '@'",
    './tool "@"',
    "./tool @ --opt=x",
    "./tool @ a=b",
    "./tool @ 'a b'",
    './tool @ "a b"',
    './tool @ "it\'s"',
    "./tool @ '\"'",
    "./tool @ *.x",
    "./tool @ ~",
    "./tool @ #",
    "./tool @ -- -x",
    "./tool @ ü 漢",
    "./tool @ 'f(x)'",
    "./tool @ %s",
    "./two run @",
    "./two run '@' a",
)
"""They run in Claude and Gemini. Codex runs any text, in its sandbox, which lets none write there."""
HARMLESS: tuple[str, ...] = (
    "./tool @; ./tool",
    "./tool && ./tool @",
    "./tool | ./tool @",
    "./tool @ 'a;b'",
    "./tool @ 'a > b'",
    './tool @ "a & b"',
    "./tool @ a\\;b",
    "./tool @ a\\ b",
    "./tool @ [a]",
)
"""The CLI's own parser decides whether they run, and may do otherwise elsewhere. `make newest` prints it."""
TEXTS = (*NEITHER, *BOTH, *HARMLESS)
SCRIPT = '#!/bin/sh\n[ "$1" = --fail ] && exit 1\n[ "$1" = run ] && shift\n[ -n "$1" ] && touch "$1"\nexit 0\n'


def test_there_are_enough_texts() -> None:
    assert len(set(TEXTS)) == len(TEXTS) >= 219


@pytest.mark.recorded
@pytest.mark.parametrize("vendor", VENDORS)
def test_only_plain_commands_that_allow_names_run(
    user: World, vendor: Vendor, record_property: Callable[[str, object], None]
) -> None:
    beside = user.cwd.parent / "beside"
    beside.mkdir()
    for name in ("tool", "other", "toolx", "tool-x", "tool.x", "two"):
        (user.cwd / name).write_text(SCRIPT)
        (user.cwd / name).chmod(0o755)
    user.member(vendor, 'access = "edit"' + ("" if vendor == "codex" else '\nallow = ["./tool", "./two run"]'))
    shell = SELF_TESTS[vendor].running
    calls = [shell(text.replace("@", f"../beside/{number}")) for number, text in enumerate(TEXTS)]
    if vendor == "gemini":  # a command in another argument is not the one that runs
        calls.append(ToolUse("run_shell_command", {"command": "./other ../beside/nested", "x": {"command": "./tool"}}))
    replies = [Reply(tools=tuple(calls[at : at + AT_ONCE])) for at in range(0, len(calls), AT_ONCE)]
    user.server.script(vendor, [*replies, Reply("I tried.")])
    ran = user.json("send", "--trust", "Try")
    assert ran.result["text"] == "I tried.", ran.err
    made = {path.name for path in beside.iterdir()}
    done = {text for number, text in enumerate(TEXTS) if str(number) in made}
    assert [name for name in made if not name.isdecimal()] == []
    record_property("ran, and need not", sorted(done & set(HARMLESS)))
    assert done - set(HARMLESS) == (set() if vendor == "codex" else set(BOTH))
    assert vendor != "codex" or not done
