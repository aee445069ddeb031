"""Every mistake of a team file is one line that names the file, the key and what was expected."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from teamchat.core.errors import ExitCode, TeamFileError
from teamchat.core.team.find import HELP, load

if TYPE_CHECKING:
    from pathlib import Path

MAX = '[[members]]\nname = "max"\nagent = "claude"\n'
AGENT = '[[members]]\nname = "al"\nagent = "local"\n[agents.local]\n'
MOST = "expected at most 1,000,000,000,000, got 99999999999999999999"
KEYS = "expected one of team, members, knowledge, experience, agents, processes, checks, hooks"
TEAMCHATS_OWN = "no agent and no check gets {}, which is for teamchat alone; remove it"
OF_A_HOST = "a host has its own; remove it, or remove host"
TIME = 'expected a time above zero such as "90s", "30m" or "1h30m", got'


def mistake(folder: Path, text: str | bytes) -> str:
    file = folder / "teamchat.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TeamFileError) as wrong:
        load(file)
    assert wrong.value.code is ExitCode.USAGE
    said = str(wrong.value)
    assert said.isprintable()
    where, _, why = said.removeprefix(f"{file}:").partition(" ")
    assert where == "" or where.removesuffix(":").isdigit()
    return why.replace(str(folder), "DIR")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "members: missing, expected at least one [[members]] table"),
        ("members = []", "members: expected at least one, got an empty list"),
        ("members = 1", "members: expected a list, got 1"),
        ("members = [1]", "members[0]: expected a table, got 1"),
        ("team = true\n" + MAX, "team: expected a table, got true"),
        ("[[membrs]]\n" + MAX, "membrs: unknown key, did you mean 'members'?"),
        ("[other]\n" + MAX, f"other: unknown key, {KEYS}"),
        ("agents = 2026-01-01\n" + MAX, "agents: expected a table, got a date or time"),
    ],
)
def test_the_files_own_tables(text: str, said: str, tmp_path: Path) -> None:
    assert mistake(tmp_path, text) == said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('name = ""', "team: name: expected one line of text, got ''"),
        ('name = "a\\nb"', "team: name: expected one line of text, got 'a\\nb'"),
        ("name = 3", "team: name: expected a string, got 3"),
        ("contextwindow = 3", "team: contextwindow: unknown key, did you mean 'context_window'?"),
        ('context_window = "3"', "team: context_window: expected a whole number, got '3'"),
        ("context_window = true", "team: context_window: expected a whole number, got true"),
        ("context_window = -1", "team: context_window: expected at least 0, got -1"),
        ("max_bytes = 0", "team: max_bytes: expected at least 1, got 0"),
        ("max_prompt_tokens = 1.5", "team: max_prompt_tokens: expected a whole number, got 1.5"),
        ("share_context = 1", "team: share_context: expected true or false, got 1"),
        ("limits = 4", "team: limits: expected a table, got 4"),
        ("limits.turns = 0", "team.limits: turns: expected at least 1, got 0"),
        ("limits.minutes = 0", "team.limits: minutes: expected more than 0, got 0"),
        ("limits.minutes = inf", "team.limits: minutes: expected a finite number, got inf"),
        ("limits.minutes = nan", "team.limits: minutes: expected a finite number, got nan"),
        ("limits.tokens = []", "team.limits: tokens: expected a whole number, got an empty list"),
        ("limits.cost_usd = -1.0", "team.limits: cost_usd: expected more than 0, got -1.0"),
        ("limits.cost = 1", "team.limits: cost: unknown key, did you mean 'cost_usd'?"),
        ('lead = "mx"', "team: lead: no AI member 'mx', did you mean 'max'?"),
        ('compactor = "mx"', "team: compactor: no AI member 'mx', did you mean 'max'?"),
        ('compactor = "max"\ncompact_at_tokens = 0', "team: compact_at_tokens: expected at least 1, got 0"),
        ("compact_at_tokens = 9", "team: compact_at_tokens: expected only with compactor, which names who summarises"),
        ("context_window = 99999999999999999999", f"team: context_window: {MOST}"),
        ("limits.turns = 99999999999999999999", f"team.limits: turns: {MOST}"),
        ("limits.similarity = 2", "team.limits: similarity: expected at most 1, got 2"),
        (f'name = "{"x" * 256}"', "team: name: expected at most 255 characters, got 256"),
        ('lead = "zoe"', "team: lead: no AI member 'zoe', expected one of max"),
        (f'task = "{"é" * 3000}"', "team: task: expected at most 5,120 bytes, got 6,000"),
    ],
)
def test_the_team_table(line: str, said: str, tmp_path: Path) -> None:
    assert mistake(tmp_path, f"[team]\n{line}\n{MAX}") == said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('acces = "edit"', "acces: unknown key, did you mean 'access'?"),
        ('access = "write"', "access: expected 'read', 'edit' or 'full', got 'write'"),
        ('type = "robot"', "type: expected 'ai' or 'human', got 'robot'"),
        ('title = "\\u202e"', "title: expected one line of text, got '\\u202e'"),
        (f'title = "{"x" * 256}"', "title: expected at most 255 characters, got 256"),
        ("retries = 11", "retries: expected at most 10, got 11"),
        ('fallback = ["max"]', "fallback: no other AI member 'max', there is none"),
        ('model = "-x"', "model: expected letters, digits and ._:/@[]- not beginning with -, got '-x'"),
        ('model = "a b"', "model: expected letters, digits and ._:/@[]- not beginning with -, got 'a b'"),
        ('model = ""', "model: expected letters, digits and ._:/@[]- not beginning with -, got ''"),
        ('model = "x\\n"', "model: expected letters, digits and ._:/@[]- not beginning with -, got 'x\\n'"),
        ("system_instruction = 1", "system_instruction: expected a string or a list of strings"),
        ('system_instruction = ["a", 1]', "system_instruction: expected a string or a list of strings"),
        ('instruction_file = ""', "instruction_file: expected text, got ''"),
        ('instruction_file = "gone.md"', "instruction_file: DIR/gone.md: no such file"),
        ('instruction_file = "."', "instruction_file: DIR: not a file"),
        ('instruction_file = "~nobody-here/x"', "instruction_file: no home folder for '~nobody-here/x'"),
        ('cwd = "a\\u0000b"', "cwd: expected text without NUL characters"),
        ('allow = "pytest"', "allow: expected a list, got 'pytest'"),
        ('allow = ["ok", ""]', "allow[1]: expected one line of text, got ''"),
        ('args = ["a\\u0000"]', "args[0]: expected text without NUL characters"),
        ('timeout = "soon"', f"timeout: {TIME} 'soon'"),
        ('stall = "0s"', f"stall: {TIME} '0s'"),
        ("first_byte = -5", f"first_byte: {TIME} '-5'"),
        ("first_byte = nan", f"first_byte: {TIME} 'nan'"),
        ("timeout = true", 'timeout: expected a time such as "90s", "30m" or "1h30m"'),
        ("timeout = {}", 'timeout: expected a time such as "90s", "30m" or "1h30m"'),
        ("env = { KEY = 123 }", "env.KEY: expected a string"),
        ('env = { "A=B" = "1" }', "env.A=B: expected the name of an environment variable, got 'A=B'"),
        ('env = { "" = "1" }', "env.: expected text, got ''"),
        ('env = ["A=B"]', "env: expected a table"),
        ('env = { TEAMCHAT_DATABASE = "" }', f"env.TEAMCHAT_DATABASE: {TEAMCHATS_OWN.format('TEAMCHAT_DATABASE')}"),
        ('env_keep = ["A", "DBOS_X"]', f"env_keep[1]: {TEAMCHATS_OWN.format('DBOS_X')}"),
        ('env_keep = "A"', "env_keep: expected a list, got 'A'"),
        ("project_settings = 1", "project_settings: expected true or false, got 1"),
        ('web = "on"', "web: expected true or false, got 'on'"),
        ('mcp = "github"', "mcp: expected a list, got 'github'"),
        ('mcp = ["a", ""]', "mcp[1]: expected the name of an MCP server, got ''"),
        ('mcp = ["a,b"]', "mcp[0]: expected the name of an MCP server, got 'a,b'"),
        ('mcp = ["--debug"]', "mcp[0]: expected the name of an MCP server, got '--debug'"),
        ("git = 1", "git: expected true or false, got 1"),
        *(
            (f'host = "gpu1"\n{line}', f"{line.partition(' ')[0]}: {OF_A_HOST}")
            for line in (
                'args = ["-v"]',
                'env = { A = "1" }',
                'env_keep = ["A"]',
                'mcp = ["github"]',
                "mcp = []",
                "git = true",
                "project_settings = true",
            )
        ),
        ('host = "gpu1"\nmemory = "live"', 'memory: no process stays on a host, expected "fresh" or "resume"'),
        (
            'host = "gpu1"\naccess = "edit"\nworkspace = "shared"',
            "workspace: who may write on a host has a worktree; remove it, or remove host",
        ),
        ('host = ""', 'host: expected the name of a host, a list of names, or "any"'),
        ("host = []", 'host: expected the name of a host, a list of names, or "any"'),
        ('cwd = ["a"]', "cwd: expected a string, got a list"),
        ("cwd = { a = 1 }", "cwd: expected a string, got a table"),
        (
            f'cwd = ["{"x" * 99}"]\naccess = "{"x" * 99}"',
            f"access: expected 'read', 'edit' or 'full', got '{'x' * 59}...",
        ),
    ],
)
def test_a_members_keys(line: str, said: str, tmp_path: Path) -> None:
    assert mistake(tmp_path, f"{MAX}{line}\n") == f"members 'max': {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[members]]\nagent = "claude"', "members[0]: name: missing, expected a name"),
        (MAX + "[[members]]\nname = 3", "members[1]: name: expected a string, got 3"),
        (f'[[members]]\nname = "{"x" * 41}"', f"members '{'x' * 41}': name: expected at most 40 characters, got 41"),
        (
            f'[[members]]\nname = "{"x" * 100_000}"',
            f"members '{'x' * 59}...: name: expected at most 40 characters, got 100,000",
        ),
        ('[[members]]\nname = "a b!"', "members 'a b!': name: expected letters, digits, _ . and -, got 'a b!'"),
        ('[[members]]\nname = "ALL"', "members 'ALL': name: 'ALL' means everybody and cannot be a name"),
        (
            MAX + '[[members]]\nname = "M-a_x"\ntype = "human"',
            "members 'M-a_x': name: two members are named 'max' (case, - and _ are ignored)",
        ),
        (MAX + MAX, "members 'max': name: two members are named 'max' (case, - and _ are ignored)"),
        (MAX.replace("max", "m") * 2, "members 'm': name: two members are named 'm' (case, - and _ are ignored)"),
        ('[[members]]\nname = "kai"\ntype = "human"', "members: expected at least one AI member"),
        (
            '[[members]]\nname = "kai"\ntype = "human"\nagent = "claude"',
            "members 'kai': agent: expected only name, type and title of a human",
        ),
        ('[[members]]\nname = "max"', "members 'max': agent: missing, expected one of claude, codex, gemini, opencode"),
        (
            '[[members]]\nname = "max"\nagent = "cladue"',
            "members 'max': agent: unknown agent 'cladue', did you mean 'claude'?",
        ),
        (
            '[[members]]\nname = "max"\nagent = "locl"\n[agents.Local]\ncommand = ["x"]',
            "members 'max': agent: unknown agent 'locl', did you mean 'Local'?",
        ),
        (
            '[[members]]\nname = "max"\nagent = "local"\ngit = true\n[agents.local]\ncommand = ["x"]',
            "members 'max': git: expected only for claude, codex, gemini and opencode, not for local",
        ),
        (
            '[[members]]\nname = "max"\nagent = "opencode"\nallow = ["echo"]',
            (
                "members 'max': allow: opencode cannot be held to a list of commands; "
                'remove it, and where it is to run commands set access = "full"'
            ),
        ),
        (
            '[[members]]\nname = "max"\nagent = "own"\nallow = ["x"]\n[agents.own]\ncommand = ["x"]\nlike = "opencode"',
            (
                "members 'max': allow: opencode cannot be held to a list of commands; "
                'remove it, and where it is to run commands set access = "full"'
            ),
        ),
        (
            '[[members]]\nname = "max"\nagent = "zzz"\n[agents.local]\ncommand = ["x"]',
            (
                "members 'max': agent: unknown agent 'zzz', expected one of claude, codex, gemini, opencode, local, "
                "aider, cline, continue, copilot, grok, kilo, kimi, pi, qwen, vibe"
            ),
        ),
        (
            '[team]\nlead = "kai"\n' + MAX + '[[members]]\nname = "kai"\ntype = "human"',
            "team: lead: no AI member 'kai', expected one of max",
        ),
        (
            "[team.limits]\ncost_usd = 5.0\n" + MAX + '[[members]]\nname = "carol"\nagent = "gemini"',
            (
                "team.limits: cost_usd: expected only where every member reports its cost; "
                "member 'carol' (gemini) reports none"
            ),
        ),
    ],
)
def test_the_members_together(text: str, said: str, tmp_path: Path) -> None:
    assert mistake(tmp_path, text) == said


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('like = "plain"', 'command: missing, expected a list such as ["ollama", "run", "llama3"]'),
        ("command = []", 'command: expected a program and its arguments, such as ["ollama", "run", "llama3"]'),
        ('command = [""]', 'command: expected a program and its arguments, such as ["ollama", "run", "llama3"]'),
        (f'command = ["sh", "{"w " * 1000}"]', "command: has 1,001 words, over 1,000; put them into a script"),
        ('command = "ollama run"', "command: expected a list, got 'ollama run'"),
        ('command = ["a", 1]', "command[1]: expected a string, got 1"),
        ('command = ["~nobody-here/x"]', "command[0]: no home folder for '~nobody-here/x'"),
        ('command = ["a"]\nlike = "x"', "like: expected 'plain', 'claude', 'codex', 'gemini' or 'opencode', got 'x'"),
        ('command = ["a"]\nlik = "x"', "lik: unknown key, did you mean 'like'?"),
        ('command = ["a"]\ntransport = "tty"', "transport: expected 'pipe' or 'pty', got 'tty'"),
        (
            'command = ["a"]\ntransport = "pty"',
            'prompt_pattern: missing, expected a pattern of its prompt with transport = "pty"',
        ),
        ('command = ["a"]\nprompt_pattern = "> "', 'prompt_pattern: expected only with transport = "pty"'),
        ('command = ["a"]\nexit = "/bye"', 'exit: expected only with transport = "pty"'),
        ('command = ["a"]\ntransport = "pipe"\nsubmit = "x"', 'submit: expected only with transport = "pty"'),
        (
            'command = ["a"]\ntransport = "pty"\nprompt_pattern = "("',
            "prompt_pattern: expected a regular expression, got '(' (missing ), unterminated subpattern at position 0)",
        ),
        (
            'command = ["a"]\ntransport = "pty"\nprompt_pattern = ".*"',
            "prompt_pattern: expected a pattern that an empty line does not match, got '.*'",
        ),
        (
            'command = ["a"]\ntransport = "pty"\nprompt_pattern = "> "\nlike = "codex"',
            "like: expected 'plain' with transport = \"pty\", got 'codex'",
        ),
        ('command = ["a"]\ntransport = "pty"\nprompt_pattern = "> "\nsubmit = ""', "submit: expected text, got ''"),
    ],
)
def test_an_agents_keys(lines: str, said: str, tmp_path: Path) -> None:
    assert mistake(tmp_path, AGENT + lines) == f"agents 'local': {said}"


def test_an_agent_is_a_table(tmp_path: Path) -> None:
    assert mistake(tmp_path, MAX + "[agents]\nlocal = 1") == "agents 'local': expected a table, got 1"


def test_an_agents_name_can_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    said = "agents 'a\\x1b[2J': expected one line of text, got 'a\\x1b[2J'"
    assert mistake(tmp_path, MAX + '[agents."a\\u001b[2J"]\ncommand = ["x"]') == said


def test_an_unknown_key_can_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    said = f"a\\x1b[2J\\n: unknown key, {KEYS}"
    assert mistake(tmp_path, '"a\\u001b[2J\\n" = 1\n' + MAX) == said


def test_an_agent_is_given_once(tmp_path: Path) -> None:
    text = MAX + '[agents.claude]\ncommand = ["x"]\n[agents.Claude-Code]\ncommand = ["y"]'
    assert mistake(tmp_path, text) == "agents 'Claude-Code': the same agent as agents 'claude'"


def test_a_wrapper_that_is_like_claude_reports_its_cost(tmp_path: Path) -> None:
    file = tmp_path / "teamchat.toml"
    file.write_text("[team.limits]\ncost_usd = 5.0\n" + AGENT + 'command = ["x"]\nlike = "claude"')
    assert load(file).limits.cost_usd == 5.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[team\n", "not TOML: Expected ']' at the end of a table declaration (at line 1, column 6)"),
        ("a = 1\na = 2\n", "not TOML: Cannot overwrite a value (at line 2, column 6)"),
        (b'name = "\xff"', "not UTF-8 (byte 8)"),
        ("a = " + "[" * 5000, "not TOML: lists or tables too deep in one another"),
        ("a." * 100_000 + "a = 1", "not TOML: a key of more than 16 parts"),
        ("[" + '"a" . ' * 17 + "a]", "not TOML: a key of more than 16 parts"),
        ("a = { " + "b." * 17 + "c = 1 }", "not TOML: a key of more than 16 parts"),
        ("a = " + "{ b = " * 5000, "not TOML: lists or tables too deep in one another"),
        ("#" * 1024 * 1024 + "\n", "has 1,048,577 bytes, and 1,048,576 are the most"),
        ("a = " + "1" * 5000, "not TOML: a number of too many digits"),
    ],
)
def test_what_is_no_toml(text: str | bytes, said: str, tmp_path: Path) -> None:
    assert mistake(tmp_path, text) == said


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TeamFileError) as wrong:
        load(tmp_path / "gone.toml")
    assert str(wrong.value) == f"{tmp_path}/gone.toml: no such file"


def test_a_folder_is_no_team_file(tmp_path: Path) -> None:
    with pytest.raises(TeamFileError) as wrong:
        load(tmp_path)
    assert str(wrong.value) == f"{tmp_path}: not a file"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(TeamFileError) as wrong:
        load(tmp_path / "pipe.toml")
    assert str(wrong.value) == f"{tmp_path}/pipe.toml: a named pipe, not a file"


def test_a_file_that_can_not_be_opened(tmp_path: Path) -> None:
    name = "x" * 300 + ".toml"
    with pytest.raises(TeamFileError) as wrong:
        load(tmp_path / name)
    assert str(wrong.value) == f"{tmp_path}/{name}: cannot be read: File name too long"


def test_an_instruction_file_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "max.md").write_bytes(b"ab\xff")
    said = mistake(tmp_path, MAX + 'instruction_file = "max.md"')
    assert said == "members 'max': instruction_file: DIR/max.md: not UTF-8 (byte 2)"


def test_a_path_can_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    with pytest.raises(TeamFileError) as wrong:
        load(tmp_path / "a\x1b[2J.toml")
    assert str(wrong.value) == f"{tmp_path}/a\\x1b[2J.toml: no such file"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MAX + 'memory = "long"\n', "members 'max': memory: expected 'fresh', 'resume' or 'live', got 'long'"),
        (
            MAX.replace("claude", "codex") + 'memory = "live"\n',
            'members \'max\': memory: "live" is only for claude, expected "fresh" or "resume"',
        ),
        (
            '[[members]]\nname = "al"\nagent = "local"\nmemory = "resume"\n[agents.local]\ncommand = ["cat"]\n',
            "members 'al': memory: agent 'local' has no sessions to continue, expected \"fresh\"",
        ),
    ],
)
def test_a_memory_that_the_agent_can_not_have(text: str, said: str, tmp_path: Path) -> None:
    assert mistake(tmp_path, text) == said


WHOLE = """\
# The team of a shop
[team]
lead = "max"

[team.limits]
turns = 40

[[members]]
name = "max"
agent = "claude"
system_instruction = '''
[[members]]
name = "nobody"
access = "all"
'''

[members.env]
LANG = "C"

[[members]] # the second one
name = 'sarah'
agent = "local"
access = "read"

[agents.local]
command = ["ollama", "run", "llama3"]

[processes."look.twice"]
kind = "debate"

[hooks]
asked = ["notify-send", "asked"]

[checks.tests]
command = "make tests"
needs = []
"""


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("# The team of a shop", "tem = 1", ":1"),
        ('lead = "max"', 'lead = "moritz"', ":3"),
        ("turns = 40", "turns = 0", ":6"),
        ("turns = 40", "turn = 40", ":6"),
        ('agent = "claude"', 'agent = "claud"', ":10"),
        ('LANG = "C"', "LANG = 1", ":17"),
        ("'sarah'", "'max'", ":21"),
        ('access = "read"', 'access = "all"', ":23"),
        ('agent = "local"', "", ":20"),
        ("name = 'sarah'", "", ":20"),
        ('command = ["ollama", "run", "llama3"]', "", ":25"),
        ('kind = "debate"', 'kind = "quarrel"', ":29"),
        ('asked = ["notify-send", "asked"]', 'asked = "notify-send"', ":32"),
        ("[hooks]", "[hoks]", ":31"),
        ('command = "make tests"', "", ":34"),
        ('command = "make tests"', "command = []", ":35"),
        ("needs = []", 'needs = ["tests"]', ":36"),
        ("[hooks]", "[hooks", ":31"),
        ("[team.limits]\nturns = 40", "limits.turns = 0", ":5"),
        ("[team.limits]\nturns = 40", "limits.tokens = 9\nlimits.turns = 0", ""),
        ("[agents.local]\ncommand", "[agents]\nlocal.comand", ""),
    ],
)
def test_a_mistake_has_the_line_of_its_key_or_table_where_a_plain_scan_finds_it(
    old: str, new: str, where: str, tmp_path: Path
) -> None:
    file = tmp_path / "teamchat.toml"
    assert WHOLE.count(old) == 1
    file.write_text(WHOLE.replace(old, new))
    with pytest.raises(TeamFileError) as wrong:
        load(file)
    assert str(wrong.value).partition(": ")[0] == f"{file}{where}", wrong.value
    assert wrong.value.hint == HELP


def test_a_long_line_of_nothing_is_scanned_at_once(tmp_path: Path) -> None:
    assert mistake(tmp_path, "[[members]]\n" + "a" * 500_000 + "= 1\n#" + " [" * 100_000)
