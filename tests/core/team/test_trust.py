from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from teamchat.core.errors import ExitCode, NotTrusted, StoreError
from teamchat.core.files.folders import WRITABLE
from teamchat.core.team.find import installed_team, load, resolve_team
from teamchat.core.team.trust import REMEMBERED, Standing, TrustStore, require
from teamchat.core.team.trust_changes import LARGEST_KEPT, LONGEST_LINE
from teamchat.core.team.trust_needs import covered, fingerprint, needs

if TYPE_CHECKING:
    from pathlib import Path

    from teamchat.core.team.team import Team

HEAD = '[[members]]\nname = "max"\nagent = "claude"\n'
ON_TERMINAL = '\ntransport = "pty"\nprompt_pattern = "> "\n'
OWN = '[[members]]\nname = "al"\nagent = "own"\n[agents.own]\n'


def fingerprint_of(team: Team) -> str:
    return fingerprint(team, covered(team))


@pytest.fixture
def proj(tmp_path: Path) -> Path:
    folder = tmp_path / "proj"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "state" / "trust.json")


def team_of(folder: Path, text: str) -> Team:
    file = folder / "teamchat.toml"
    file.write_text(text)
    return load(file)


def lines(team: Team) -> list[str]:
    return [need.line for need in needs(team)]


def test_a_team_that_only_reads_needs_no_trust(proj: Path, store: TrustStore) -> None:
    (proj / "src").mkdir()
    (proj / "max.md").write_text("Hello")
    text = HEAD + 'access = "read"\nallow = ["pytest"]\nmodel = "opus"\ncwd = "src"\ninstruction_file = "max.md"\n'
    team = team_of(proj, text + '[agents.unused]\ncommand = ["rm", "-rf", "/"]\n')
    assert needs(team) == ()
    require(team, store)
    assert not store.file.exists()


def test_knowledge_outside_the_folder_needs_trust_for_the_place_where_it_is(proj: Path, store: TrustStore) -> None:
    for name in ("shared", "other", "proj/docs"):
        (proj.parent / name).mkdir()
    (proj / "link").symlink_to(proj.parent / "shared")
    own = 'knowledge = ["../shared", "docs"]\n[knowledge]\npaths = ["link"]\n'
    team = team_of(proj, HEAD + own)
    assert lines(team) == [f"max gets what is in {proj.parent}/shared"] * 2
    store.grant(team)
    (proj / "link").unlink()
    (proj / "link").symlink_to(proj.parent / "other")
    moved = team_of(proj, HEAD + own)
    assert f"max gets what is in {proj.parent}/other" in lines(moved)
    with pytest.raises(NotTrusted):
        require(moved, store)


def test_the_installed_clis_need_no_trust(proj: Path, store: TrustStore) -> None:
    team = installed_team(proj, {"claude": "/bin/claude"}.get)
    assert needs(team) == ()
    require(team, store)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (OWN + 'command = ["ollama", "run", "a b"]', "al runs ollama run 'a b'; its access is not enforced"),
        (OWN + 'command = ["./agent.sh"]', "al runs {proj}/agent.sh; its access is not enforced"),
        (OWN + 'command = ["bash"]' + ON_TERMINAL, "al runs bash on a terminal; its access is not enforced"),
        (
            OWN + 'command = ["sh"]' + ON_TERMINAL + 'exit = "rm x"',
            "al runs sh on a terminal, and types 'rm x' there; its access is not enforced",
        ),
        (
            HEAD + '[agents.claude]\ncommand = ["wrapper"]',
            (
                "max runs wrapper like claude, access read: reads files; has no tool that writes or runs anything "
                "(--tools Read,Grep,Glob), if wrapper obeys what claude does: not proven"
            ),
        ),
        (HEAD + 'args = ["--mcp-config", "x y"]', "max runs claude with --mcp-config 'x y'"),
        (HEAD + 'env = { PATH = "/evil", MY_API_KEY = "sk-1" }', "max runs with PATH=/evil MY_API_KEY=..."),
        (HEAD + 'env = { DB_PASS = "x", GIT_ASKPASS = "./ask" }', "max runs with DB_PASS=... GIT_ASKPASS=./ask"),
        (HEAD + 'env = { AUTH = "x", MY_COOKIE = "y" }', "max runs with AUTH=... MY_COOKIE=..."),
        (HEAD + 'env = { HTTPS_PROXY = "http://al:pw@proxy" }', "max runs with HTTPS_PROXY=..."),
        (HEAD + 'env_keep = ["OPENAI_API_KEY"]', "max sees the keys OPENAI_API_KEY"),
        (HEAD + "project_settings = true", "max runs the project's own hooks and MCP commands"),
        (HEAD + "web = true", "max searches the web and reads pages"),
        (HEAD + 'mcp = ["jira", "github"]', "max calls the tools of your MCP servers github, jira"),
        (HEAD + "git = true", "max reads the git repository and its history"),
        (HEAD + 'mcp = []\naccess = "edit"', "max edits files in {proj}"),
        (HEAD + 'timeout = "25h"', "max may take 90,000 s for a turn"),
        (
            HEAD + 'mcp = []\naccess = "edit"\nallow = ["pytest", "npm test"]',
            "max edits files in {proj} and runs pytest, npm test",
        ),
        (HEAD + 'mcp = []\naccess = "full"', "max does anything you may do"),
        (HEAD + 'cwd = ".."', "max works in {outside}"),
        (HEAD + 'cwd = "link"', "max works in {outside}/there"),
        (HEAD + 'instruction_file = "../secret"', "max gets the text of {outside}/secret"),
        (HEAD + 'instruction_file = "leak.md"', "max gets the text of {outside}/secret"),
        (
            OWN + 'command = ["sh", "-c", "ls\\u001b[2K\\n"]',
            "al runs sh -c 'ls\\x1b[2K\\n'; its access is not enforced",
        ),
    ],
)
def test_what_needs_trust_is_told_in_a_line(text: str, line: str, proj: Path, store: TrustStore) -> None:
    outside = proj.parent
    (outside / "there").mkdir()
    (outside / "secret").write_text("secret")
    (proj / "link").symlink_to("../there")
    (proj / "leak.md").symlink_to("../secret")
    team = team_of(proj, text)
    assert lines(team) == [line.format(proj=proj, outside=outside)]
    assert not store.standing(team).trusted
    store.grant(team)
    assert store.standing(team).trusted


def test_every_member_and_every_key_is_listed(proj: Path) -> None:
    text = HEAD + 'access = "full"\nproject_settings = true\n' + OWN + 'command = ["x"]\n'
    assert [(need.member, need.key) for need in needs(team_of(proj, text))] == [
        ("max", "project_settings"),
        ("max", "mcp"),
        ("max", "access"),
        ("al", "command"),
    ]


def test_an_untrusted_team_is_refused_with_what_would_have_run(proj: Path, store: TrustStore) -> None:
    team = team_of(proj, HEAD + 'access = "edit"\n' + OWN + 'command = ["./agent.sh"]\n')
    with pytest.raises(NotTrusted) as refused:
        require(team, store)
    assert str(refused.value) == (
        f"{proj}/teamchat.toml is not trusted yet; with it\n  max starts all your MCP servers\n"
        f"  max edits files in {proj}\n  al runs {proj}/agent.sh; its access is not enforced"
    )
    assert refused.value.hint == "teamchat trust"
    assert refused.value.code is ExitCode.NOT_TRUSTED


def test_the_hint_names_a_team_that_was_named(tmp_path: Path, store: TrustStore) -> None:
    file = tmp_path / "my teams" / "a.toml"
    file.parent.mkdir()
    file.write_text(HEAD + 'access = "full"\n')
    with pytest.raises(NotTrusted) as refused:
        require(resolve_team("my teams/a.toml", tmp_path, tmp_path), store)
    assert refused.value.hint == f"teamchat trust --team '{file}'"


def test_the_hint_names_a_team_of_the_configuration_folder(tmp_path: Path, store: TrustStore) -> None:
    (tmp_path / "teams").mkdir()
    (tmp_path / "teams" / "phoenix.toml").write_text(HEAD + 'access = "full"\n')
    with pytest.raises(NotTrusted) as refused:
        require(resolve_team("phoenix", tmp_path, tmp_path), store)
    assert refused.value.hint == "teamchat trust --team phoenix"


def test_a_named_team_is_trusted_once_for_all_places(tmp_path: Path, store: TrustStore) -> None:
    (tmp_path / "teams").mkdir()
    (tmp_path / "teams" / "phoenix.toml").write_text(HEAD + 'access = "edit"\n')
    (tmp_path / "other").mkdir()
    store.grant(resolve_team("phoenix", tmp_path, tmp_path))
    assert store.standing(resolve_team("phoenix", tmp_path / "other", tmp_path)).trusted


def test_editing_what_needs_no_trust_never_asks_again(proj: Path, store: TrustStore) -> None:
    (proj / "max.md").write_text("one")
    text = HEAD + 'access = "edit"\ninstruction_file = "max.md"\n'
    store.grant(team_of(proj, text))
    (proj / "max.md").write_text("two")
    assert store.standing(
        team_of(proj, f'[team]\nname = "x"\n{text}system_instruction = "Be kind"\ntimeout = "1h"\n')
    ).trusted


def test_the_order_of_members_and_of_names_does_not_ask_again(proj: Path, store: TrustStore) -> None:
    max_ = HEAD + 'access = "edit"\nallow = {}\nenv = {}\n'
    eve = '[[members]]\nname = "eve"\nagent = "codex"\naccess = "full"\n'
    store.grant(team_of(proj, max_.format('["a", "b"]', '{ A = "1", B = "2" }') + eve))
    assert store.standing(team_of(proj, eve + max_.format('["b", "a"]', '{ B = "2", A = "1" }'))).trusted


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (OWN + 'command = ["x"]', OWN + 'command = ["x", "-y"]'),
        (OWN + 'command = ["x"]', OWN + 'command = ["x"]' + ON_TERMINAL),
        (OWN + 'command = ["x"]' + ON_TERMINAL, OWN + 'command = ["x"]' + ON_TERMINAL + 'exit = "rm x"'),
        (OWN + 'command = ["x"]' + ON_TERMINAL, OWN + 'command = ["x"]' + ON_TERMINAL + 'submit = "; rm x"'),
        (OWN + 'command = ["x", "y z"]', OWN + 'command = ["x", "y", "z"]'),
        (HEAD + 'args = ["-a"]', HEAD + 'args = ["-b"]'),
        (HEAD + 'env = { MY_KEY = "1" }', HEAD + 'env = { MY_KEY = "2" }'),
        (HEAD + 'env = { A = "1" }', HEAD + 'env_keep = ["A=1"]'.replace("=1", "")),
        (HEAD + 'access = "edit"', HEAD + 'access = "full"'),
        (HEAD + 'access = "edit"\nallow = ["pytest"]', HEAD + 'access = "edit"\nallow = ["pytest", "curl *"]'),
        (HEAD + 'access = "edit"', HEAD + 'access = "edit"\nproject_settings = true'),
        (HEAD + 'access = "edit"', HEAD.replace("max", "eve") + 'access = "edit"'),
        (HEAD + 'cwd = ".."', HEAD + 'cwd = "../.."'),
        (OWN + 'command = ["claude", "-p"]\nlike = "claude"', OWN + 'command = ["claude", "-p"]\nlike = "plain"'),
        (OWN + 'command = ["claude", "-p"]\nlike = "claude"', OWN + 'command = ["claude", "-p"]'),
        (OWN + 'command = ["x"]', OWN.replace("own", "other") + 'command = ["x"]'),
        (HEAD + "web = true", HEAD.replace("claude", "gemini") + "web = true"),
        (HEAD + 'access = "edit"\nmcp = []', HEAD + 'access = "edit"'),
        (HEAD + 'access = "full"\nmcp = []', HEAD + 'access = "full"'),
        (HEAD + 'access = "full"\nmcp = ["a"]', HEAD + 'access = "full"'),
        (HEAD + 'access = "full"\nworkspace = "worktree"', HEAD + 'access = "full"'),
        (HEAD + 'access = "full"\nworkspace = "worktree"', HEAD + 'access = "full"\nworkspace = "shared"'),
        (HEAD + 'access = "edit"\nworkspace = "shared"', HEAD + 'access = "edit"'),
        (HEAD + 'access = "edit"', HEAD + 'access = "edit"\ntimeout = "25h"'),
    ],
)
def test_a_changed_key_asks_again(before: str, after: str, proj: Path, store: TrustStore) -> None:
    store.grant(team_of(proj, before))
    assert not store.standing(team_of(proj, after)).trusted


@pytest.mark.parametrize("keys", ["mcp = []", 'workspace = "worktree"', 'agent = "gemini"', 'timeout = "24h"'])
def test_what_is_only_covered_asks_nothing_alone(keys: str, proj: Path, store: TrustStore) -> None:
    eve = '[[members]]\nname = "eve"\nagent = "claude"\naccess = "full"\n'
    head = HEAD.replace('agent = "claude"\n', "") if "agent" in keys else HEAD
    assert needs(team_of(proj, head + keys)) == ()
    store.grant(team_of(proj, HEAD + eve))
    assert store.standing(team_of(proj, f"{head}{keys}\n{eve}")).trusted


def test_like_decides_what_access_means_and_is_told(proj: Path, store: TrustStore) -> None:
    store.grant(team_of(proj, OWN + 'command = ["claude", "-p"]\nlike = "claude"'))
    changed = store.standing(team_of(proj, OWN + 'command = ["claude", "-p"]\nlike = "plain"')).changes
    assert changed == (
        (
            "command of al: runs claude -p like claude, access read: reads files; has no tool that writes or runs "
            "anything (--tools Read,Grep,Glob) → runs claude -p; its access is not enforced"
        ),
    )


def test_a_link_that_leads_elsewhere_asks_again(proj: Path, store: TrustStore) -> None:
    for name in ("one", "two"):
        (proj.parent / name).mkdir()
    (proj / "link").symlink_to("../one")
    store.grant(team_of(proj, HEAD + 'cwd = "link"'))
    (proj / "link").unlink()
    (proj / "link").symlink_to("../two")
    assert not store.standing(team_of(proj, HEAD + 'cwd = "link"')).trusted


@pytest.mark.parametrize(
    "text",
    [
        OWN + 'command = ["./tool"]',
        OWN + 'command = ["python3", "tool"]',
        HEAD + 'args = ["--mcp-config", "tool"]',
        HEAD + 'args = ["--mcp-config=./tool"]',
    ],
)
def test_a_changed_file_of_a_command_asks_again(text: str, proj: Path, store: TrustStore) -> None:
    (proj / "tool").write_text("one")
    team = team_of(proj, text)
    store.grant(team)
    assert store.standing(team).trusted
    (proj / "tool").write_text("two")
    assert not store.standing(team).trusted
    (proj / "tool").unlink()
    assert not store.standing(team).trusted


def test_a_script_is_looked_for_where_its_member_works(proj: Path, store: TrustStore) -> None:
    (proj / "src").mkdir()
    (proj / "src" / "tool.py").write_text("one")
    team = team_of(
        proj, '[[members]]\nname = "al"\nagent = "own"\ncwd = "src"\n[agents.own]\ncommand = ["py", "tool.py"]'
    )
    store.grant(team)
    (proj / "src" / "tool.py").write_text("two")
    assert not store.standing(team).trusted


def test_a_large_file_of_a_command_counts_by_its_size_and_time(proj: Path, store: TrustStore) -> None:
    model = proj / "model.gguf"
    model.touch()
    os.truncate(model, 20 * 1024 * 1024)
    team = team_of(proj, OWN + 'command = ["llama", "-m", "model.gguf"]')
    store.grant(team)
    assert store.standing(team).trusted
    os.utime(model, ns=(1, 1))
    assert not store.standing(team).trusted


def test_a_long_argument_is_no_file(proj: Path, store: TrustStore) -> None:
    team = team_of(proj, HEAD + f'args = ["{"x" * 5000}"]')
    store.grant(team)
    assert store.standing(team).trusted


def test_the_same_file_elsewhere_asks_again(proj: Path, tmp_path: Path, store: TrustStore) -> None:
    text = HEAD + 'access = "full"'
    store.grant(team_of(proj, text))
    (tmp_path / "copy").mkdir()
    copy = team_of(tmp_path / "copy", text)
    assert fingerprint_of(copy) != fingerprint_of(load(proj / "teamchat.toml"))
    assert not store.standing(copy).trusted


def test_both_states_of_a_file_stay_trusted(proj: Path, store: TrustStore) -> None:
    texts = [HEAD + 'access = "edit"', HEAD + 'access = "full"']
    for text in texts:
        store.grant(team_of(proj, text))
    assert all(store.standing(team_of(proj, text)).trusted for text in texts)


def test_trust_is_remembered_once_and_for_the_user_alone(proj: Path, store: TrustStore) -> None:
    team = team_of(proj, HEAD + 'access = "full"')
    store.grant(team)
    store.grant(team)
    (given,) = json.loads(store.file.read_text())[str(team.path)]
    assert given["fingerprint"] == fingerprint_of(team)
    assert store.file.stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in store.file.parent.iterdir()) == ["trust.json", "trust.json.lock"]


def test_of_a_value_of_env_only_a_digest_is_kept(proj: Path, store: TrustStore) -> None:
    text = HEAD + 'env = { WORD = "XYLOPHONE" }'
    store.grant(team_of(proj, text))
    kept = store.file.read_text()
    assert ("WORD" in kept, "XYLOPHONE" in kept) == (True, False)
    changed = store.standing(team_of(proj, text.replace("XYLOPHONE", "ZITHER")))
    assert not changed.trusted
    assert "XYLOPHONE" not in str(changed)


def test_what_needs_no_trust_is_not_remembered(proj: Path, store: TrustStore) -> None:
    store.grant(team_of(proj, HEAD))
    assert not store.file.exists()


DAMAGED = [
    "",
    "{",
    "[]",
    '{"a": 1}',
    '{"a": [1]}',
    '{"a": [{}]}',
    '{"a": [{"fingerprint": "x", "values": [], "files": []}]}',
    '{"a": [{"fingerprint": "x", "values": [7], "files": {}}]}',
    '{"a": [{"fingerprint": "x", "values": [["max", "access"]], "files": {}}]}',
    '{"a": [{"fingerprint": "x", "values": [["max", "access", "", "line", 7]], "files": {}}]}',
    '{"a": [{"fingerprint": "x", "values": [], "files": {"b": 7}}]}',
    "\udcff",
]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_trusts_nobody_and_is_not_overwritten(content: str, proj: Path, store: TrustStore) -> None:
    store.file.parent.mkdir()
    store.file.write_bytes(os.fsencode(content))
    team = team_of(proj, HEAD + 'access = "full"')
    for act in (store.standing, store.grant):
        with pytest.raises(StoreError) as damaged:
            act(team)
        assert str(damaged.value) == f"{store.file} is damaged; without it every team file asks for trust once more"
        assert damaged.value.hint == f"rm {store.file}"
    assert store.file.read_bytes() == os.fsencode(content)


def test_a_store_that_can_not_be_read_is_an_error(proj: Path, tmp_path: Path) -> None:
    team = team_of(proj, HEAD + 'access = "full"')
    with pytest.raises(StoreError) as failed:
        TrustStore(tmp_path).standing(team)
    assert str(failed.value) == f"{tmp_path} cannot be read: Is a directory; {WRITABLE}"


def test_a_store_that_can_not_be_written_is_an_error(proj: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = TrustStore(tmp_path / "file" / "state" / "trust.json")
    with pytest.raises(StoreError) as failed:
        store.grant(team_of(proj, HEAD + 'access = "full"'))
    assert str(failed.value) == f"{store.file} cannot be written: Not a directory; {WRITABLE}"


def test_two_processes_may_grant_at_once(store: TrustStore) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from teamchat.core.team.team import Member, Team; from teamchat.core.team.trust import TrustStore\n"
        "for n in range(50):\n"
        "    root = Path('/', sys.argv[1] + str(n))\n"
        "    member = Member('max', 'ai', root, agent='claude', access='full')\n"
        "    TrustStore(Path(sys.argv[2])).grant(Team('t', (member,), root, root / 'teamchat.toml'))\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, name, str(store.file)]) for name in ("a", "b")]
    assert [process.wait(60) for process in running] == [0, 0]
    assert len(json.loads(store.file.read_text())) == 100


# --- what changed since it was trusted


SECRETS = 'env = { MY_KEY = "sk-old", PATH = "/old" }'


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        (
            OWN + 'command = ["x"]',
            OWN + 'command = ["x", "a b"]',
            ["command of al: runs x; its access is not enforced → runs x 'a b'; its access is not enforced"],
        ),
        (
            HEAD + 'access = "full"\nmcp = []\nworkspace = "worktree"',
            HEAD.replace("claude", "gemini") + 'access = "full"',
            [
                "mcp of max: has no MCP server → starts all your MCP servers",
                "agent of max: is claude → is gemini",
                "removed workspace of max: works in a worktree of its own",
            ],
        ),
        (
            OWN + 'command = ["x"]' + ON_TERMINAL,
            OWN + 'command = ["x"]' + ON_TERMINAL + 'submit = "; rm x"',
            ["command of al: runs x on a terminal; its access is not enforced, in a part that is not shown"],
        ),
        (HEAD + 'args = ["-a"]', HEAD + 'args = ["-b"]', ["args of max: runs claude with -a → runs claude with -b"]),
        (
            HEAD + SECRETS,
            HEAD + 'env = { MY_KEY = "sk-new", PATH = "/new" }',
            ["env MY_KEY of max: another value", "env PATH of max: now /new"],
        ),
        (
            HEAD + SECRETS,
            HEAD + 'env = { A_TOKEN = "sk-new", HOME = "/new" }',
            [
                "added env A_TOKEN of max",
                "added env HOME of max: /new",
                "removed env MY_KEY of max",
                "removed env PATH of max",
            ],
        ),
        (
            HEAD + 'env_keep = ["A"]',
            HEAD + 'env_keep = ["A", "B"]',
            ["env_keep of max: sees the keys A → sees the keys A, B"],
        ),
        (
            HEAD + 'access = "full"',
            HEAD + "project_settings = true",
            [
                "added project_settings of max: runs the project's own hooks and MCP commands",
                "removed mcp of max: starts all your MCP servers",
                "removed access of max: does anything you may do",
            ],
        ),
        (
            HEAD + 'access = "edit"\nallow = ["a"]',
            HEAD + 'access = "edit"\nallow = ["a", "curl *"]',
            ["access of max: edits files in {proj} and runs a → edits files in {proj} and runs a, curl *"],
        ),
        (HEAD + 'cwd = ".."', HEAD + 'cwd = "../.."', ["cwd of max: works in {up} → works in {upper}"]),
        (
            HEAD + 'instruction_file = "../one"',
            HEAD + 'instruction_file = "../two"',
            ["instruction_file of max: gets the text of {up}/one → gets the text of {up}/two"],
        ),
        (
            HEAD + 'knowledge = ["../one"]',
            HEAD + 'knowledge = ["../one", "../two"]',
            ["added knowledge of max: gets what is in {up}/two"],
        ),
        (
            HEAD + 'access = "full"',
            HEAD.replace("max", "eve") + 'access = "full"',
            [
                "added mcp of eve: starts all your MCP servers",
                "added access of eve: does anything you may do",
                "added agent of eve: is claude",
                "removed mcp of max: starts all your MCP servers",
                "removed access of max: does anything you may do",
                "removed agent of max: is claude",
            ],
        ),
        (
            OWN + 'command = ["x"]',
            OWN + 'command = ["x", "\\u001b[2K"]',
            ["command of al: runs x; its access is not enforced → runs x '\\x1b[2K'; its access is not enforced"],
        ),
    ],
)
def test_what_changed_is_told_key_by_key(
    before: str, after: str, changes: list[str], proj: Path, store: TrustStore
) -> None:
    for name in ("one", "two"):
        (proj.parent / name).write_text(name)
    store.grant(team_of(proj, before))
    assert "sk-old" not in store.file.read_text()
    assert "/old" not in store.file.read_text()
    told = tuple(line.format(proj=proj, up=proj.parent, upper=proj.parent.parent) for line in changes)
    assert store.standing(team_of(proj, after)) == Standing(trusted=False, before=True, changes=told)


def test_a_changed_program_is_told(proj: Path, store: TrustStore) -> None:
    (proj / "agents").mkdir()
    tool, notes, outside = proj / "agents" / "builder.py", proj / "notes", proj.parent / "mcp.json"
    for file in (tool, outside):
        file.write_text("one")
    team = team_of(proj, OWN + f'command = ["./agents/builder.py", "notes", "--with={outside}"]')
    store.grant(team)
    tool.write_text("two")
    assert store.standing(team).changes == ("agents/builder.py has changed",)
    notes.write_text("now a file")
    outside.write_text("two")
    tool.unlink()
    assert sorted(store.standing(team).changes) == [
        f"{outside} has changed",
        "added file notes",
        "removed file agents/builder.py",
    ]


def test_an_error_names_the_first_changes_and_counts_the_others(proj: Path, store: TrustStore) -> None:
    store.grant(team_of(proj, HEAD + 'args = ["-a"]'))
    text = HEAD + 'args = ["-b"]\nenv_keep = ["A"]\naccess = "full"\nproject_settings = true\ncwd = ".."\n'
    with pytest.raises(NotTrusted) as refused:
        require(team_of(proj, text), store)
    assert str(refused.value) == (
        f"{proj}/teamchat.toml has changed since you trusted it: "
        "args of max: runs claude with -a → runs claude with -b; added env_keep of max: sees the keys A; "
        "added project_settings of max: runs the project's own hooks and MCP commands; "
        "and 3 more, which `teamchat doctor` shows"
    )
    assert refused.value.hint == "teamchat trust"


def test_it_is_compared_with_what_was_trusted_last(proj: Path, store: TrustStore) -> None:
    one, two, three = (team_of(proj, HEAD + f'args = ["{name}"]') for name in ("-1", "-2", "-3"))
    for team in (one, two, one):
        store.grant(team)
    assert store.standing(three).changes == ("args of max: runs claude with -1 → runs claude with -3",)
    assert store.standing(two).trusted


def test_of_an_older_file_only_that_it_changed_is_known(proj: Path, store: TrustStore) -> None:
    team = team_of(proj, HEAD + 'access = "edit"')
    store.file.parent.mkdir()
    store.file.write_text(json.dumps({str(team.path): [fingerprint_of(team)]}))
    assert store.standing(team).trusted
    changed = team_of(proj, HEAD + 'access = "full"')
    assert store.standing(changed) == Standing(trusted=False, before=True)
    with pytest.raises(NotTrusted) as refused:
        require(changed, store)
    assert str(refused.value) == (
        f"{proj}/teamchat.toml has changed since you trusted it; with it\n"
        "  max starts all your MCP servers\n  max does anything you may do"
    )
    store.grant(team)
    assert store.standing(changed).changes == (f"access of max: edits files in {proj} → does anything you may do",)


def test_a_long_line_is_kept_in_part(proj: Path, store: TrustStore) -> None:
    store.grant(team_of(proj, HEAD + f'args = ["{"x" * 3000}a"]'))
    store.grant(team_of(proj, HEAD + 'access = "edit"'))
    store.grant(team_of(proj, HEAD + f'args = ["{"x" * 3000}a"]'))
    start = "runs claude with "
    kept = start + "x" * (LONGEST_LINE - len(start)) + "…"
    changed = team_of(proj, HEAD + f'args = ["{"x" * 3000}b"]')
    assert store.standing(changed).changes == (f"args of max: {kept} → {start}{'x' * 3000}b",)


def test_of_a_content_that_is_too_large_only_that_it_changed_is_known(proj: Path, store: TrustStore) -> None:
    many = "".join(HEAD.replace("max", f"m{n}") + f'args = ["{"x" * 2000}"]\n' for n in range(40))
    team = team_of(proj, many)
    store.grant(team)
    assert store.standing(team).trusted
    assert store.file.stat().st_size < LARGEST_KEPT
    assert store.standing(team_of(proj, HEAD + 'access = "full"')) == Standing(trusted=False, before=True)


def test_only_of_the_files_trusted_last_more_than_a_fingerprint_is_kept(tmp_path: Path, store: TrustStore) -> None:
    for n in range(REMEMBERED + 1):
        (tmp_path / str(n)).mkdir()
        store.grant(team_of(tmp_path / str(n), HEAD + 'access = "edit"'))
    first, second = (team_of(tmp_path / name, HEAD + 'access = "full"') for name in ("0", "1"))
    assert store.standing(first) == Standing(trusted=False, before=True)
    assert len(store.standing(second).changes) == 1


# --- checks


NOTE = "the team runs checks: each runs files that a member has just written, with your rights and the network"
TESTS = HEAD + "[checks.tests]\n"
BOTH = '[checks.lint]\ncommand = "x"\n[checks.types]\ncommand = "x"\n'


@pytest.mark.parametrize(
    ("table", "shown"),
    [
        ('command = "make tests && true"', ["runs make tests && true"]),
        ('command = ["make", "a b"]', ["runs make 'a b'"]),
        ('command = ["./run.sh", "x/y"]', ["runs {proj}/run.sh x/y"]),
        ('command = "a\\u001b[2Jb"', ["runs a\\x1b[2Jb"]),
        ('command = "x"\ntimeout = "2h"', ["runs x", "may take 7,200 s"]),
        ('command = "x"\nfolder = "sub"', ["runs x", "works in sub"]),
        ('command = "x"\nenv = { CI = "1", MY_KEY = "sk-1" }', ["runs x", "runs with CI=1 MY_KEY=..."]),
        ('command = "x"\nenv_keep = ["B", "A"]', ["runs x", "sees the keys B, A"]),
    ],
)
def test_a_check_needs_trust_and_is_shown_with_its_command(
    table: str, shown: list[str], proj: Path, store: TrustStore
) -> None:
    team = team_of(proj, TESTS + table)
    said = [f"the check tests {line}".format(proj=proj) for line in shown]
    assert lines(team) == [NOTE, *said]
    with pytest.raises(NotTrusted) as refused:
        require(team, store)
    assert str(refused.value).splitlines()[1:] == [f"  {line}" for line in (NOTE, *said)]
    store.grant(team)
    require(team, store)


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ('command = "x"', 'command = "y"', ["command of the check tests: runs x → runs y"]),
        (
            'command = "make x"',
            'command = ["make", "x"]',
            ["command of the check tests: runs make x, in a part that is not shown"],
        ),
        (
            'command = "program x"',
            'command = ["program x"]',
            ["command of the check tests: runs program x → runs 'program x'"],
        ),
        ('command = ["a"]', 'command = ["./a"]', ["command of the check tests: runs a → runs {proj}/a"]),
        ('command = "x"', 'command = "x"\ntimeout = 5', ["added timeout of the check tests: may take 5 s"]),
        ('command = "x"\nfolder = "a"', 'command = "x"', ["removed folder of the check tests: works in a"]),
        (
            'command = "x"\nenv = { A = "1", MY_KEY = "old" }',
            'command = "x"\nenv = { A = "2", MY_KEY = "new" }',
            ["env A of the check tests: now 2", "env MY_KEY of the check tests: another value"],
        ),
        (
            'command = "x"\nenv_keep = ["A"]',
            'command = "x"\nenv_keep = ["A", "B"]',
            ["env_keep of the check tests: sees the keys A → sees the keys A, B"],
        ),
        (
            'command = "x"\nneeds = ["lint"]',
            'command = "x"\nneeds = ["lint", "types"]',
            ["needs of the check tests: needs lint → needs lint, types"],
        ),
        ('command = "x"', 'command = "x"\n[checks.more]\ncommand = "z"', ["added command of the check more: runs z"]),
        ('command = "x"\n[checks.more]\ncommand = "z"', 'command = "x"', ["removed command of the check more: runs z"]),
    ],
)
def test_what_changed_in_a_check_asks_again(
    before: str, after: str, changes: list[str], proj: Path, store: TrustStore
) -> None:
    store.grant(team_of(proj, f"{TESTS}{before}\n{BOTH}"))
    told = tuple(line.format(proj=proj) for line in changes)
    assert store.standing(team_of(proj, f"{TESTS}{after}\n{BOTH}")) == Standing(False, before=True, changes=told)


def test_the_first_check_of_a_trusted_team_asks_again(proj: Path, store: TrustStore) -> None:
    store.grant(team_of(proj, HEAD + "web = true"))
    changed = team_of(proj, TESTS.replace("[checks", "web = true\n[checks") + 'command = "make"')
    assert store.standing(changed).changes == (
        f"added checks of {NOTE.replace(' runs', ': runs', 1)}",
        "added command of the check tests: runs make",
    )


@pytest.mark.parametrize(
    "command",
    [
        '"make"',
        '["make"]',
        '["sh", "run.sh"]',
        '"./run.sh"',
        '["./run.sh"]',
        '["python3", "-m", "tool"]',
        '["npm", "test"]',
    ],
)
def test_a_member_may_change_what_a_check_runs(command: str, proj: Path, store: TrustStore) -> None:
    team = team_of(proj, f"{TESTS}command = {command}")
    store.grant(team)
    for name in ("Makefile", "run.sh", "tool.py", "package.json"):
        (proj / name).write_text("changed")
        (proj / name).chmod(0o755)
    require(team, store)  # raises nothing


def test_a_command_that_a_process_has_as_a_check_needs_trust(proj: Path, store: TrustStore) -> None:
    team = team_of(proj, TESTS + 'command = "make"\n[processes.fix]\nkind = "debate"')

    def with_checks(*words: str) -> Team:
        fix = team.processes["fix"]
        return replace(team, processes={"fix": replace(fix, settings=replace(fix.settings, check=words))})

    assert lines(with_checks("tests")) == lines(team)
    named = with_checks("tests", "npm test", "tox")
    assert lines(named) == [*lines(team), "the process fix runs 'npm test' tox as checks"]
    alone = replace(named, checks={})
    assert lines(alone) == [NOTE, "the process fix runs tests 'npm test' tox as checks"]
    store.grant(named)
    assert store.standing(with_checks("tests", "npm test")).changes == (
        "check of the process fix: runs 'npm test' tox as checks → runs 'npm test' as checks",
    )


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://max:SECRET@localhost/chat", "postgresql://localhost/chat"),
        ("postgresql:///chat?host=/run/postgresql&user=max&password=SECRET", "postgresql:///chat?host=/run/postgresql"),
        ("postgresql://localhost:1/x?sslpassword=SECRET", "postgresql://localhost:1/x"),
        ("SECRET", "that TEAMCHAT_DATABASE names"),
        ("postgresql://[SECRET", "that TEAMCHAT_DATABASE names"),
    ],
)
def test_no_password_of_a_database_is_shown(
    address: str, shown: str, proj: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAMCHAT_DATABASE", address)
    file = proj / "teamchat.toml"
    file.write_text('[[members]]\nname = "max"\nagent = "claude"\nhost = "any"\n')
    lines = [need.line for need in needs(load(file))]
    assert any(f"the database {shown}" in line for line in lines), lines
    assert "SECRET" not in "".join(lines)
