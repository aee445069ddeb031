"""git for members: what it answers, that it runs nothing of a hostile repository, and says what it leaves out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from teamchat.runners import git_server
from teamchat.runners.child import isolated
from teamchat.runners.git_server.commands import TOOLS, Blame, Diff, Log, Show, Status, Tool
from teamchat.runners.git_server.output import GitError, read_from_line, read_whole
from teamchat.runners.git_server.repository import Git
from tests.hostile_git import arm, git, make

Ask = Callable[[Tool], str]
EVERYTHING: list[Tool] = [
    Status(),
    Diff(),
    Diff(stat=True),
    Diff(staged=True),
    Diff(revisions="HEAD~1"),
    Diff(revisions="HEAD~1..HEAD"),
    Log(patch=True),
    Show(),
    Show(path="notes.txt"),
    Show(path="blob.bin"),
    Blame(path="notes.txt"),
    Blame(path="notes.txt", revision="HEAD"),
]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make(tmp_path / "work")


@pytest.fixture
def ask(repository: Path, tmp_path: Path) -> Ask:
    return lambda tool: tool.answer(Git(repository, tmp_path / "scratch"))


def test_status_tells_what_differs(ask: Ask, repository: Path) -> None:
    (repository / "new.txt").write_text("new\n")
    assert ask(Status()) == "## main\n M blob.bin\n M notes.txt\n?? new.txt"
    assert ask(Status(paths=["new.txt"])) == "## main\n?? new.txt"


def test_diff_compares_the_files_with_the_last_commit(ask: Ask) -> None:
    assert ask(Diff(paths=["notes.txt"])).splitlines()[-4:] == [
        "@@ -1,2 +1,2 @@",
        " first",
        "-changed",
        "+not committed",
    ]
    assert ask(Diff(staged=True)) == "(nothing)"
    assert ask(Diff(stat=True, paths=["notes.txt"])).startswith(" notes.txt | 2 +-\n 1 file changed")


def test_diff_compares_two_commits_from_wherever_a_side_is_left_out(ask: Ask, repository: Path) -> None:
    lines = ask(Diff(revisions="HEAD~1..", paths=["notes.txt"])).splitlines()
    assert lines[-3:] == [" first", "-second", "+changed"]
    git(repository, "checkout", "-qf", "-b", "topic", "HEAD~1")
    git(repository, "commit", "-qm", "Apart", "--allow-empty")
    assert "-changed" not in ask(Diff(revisions="main...topic"))


def test_log_tells_the_commits_newest_first(ask: Ask) -> None:
    subjects = [line.strip() for line in ask(Log()).splitlines() if line.startswith("    ")]
    assert subjects == ["Change a line", "Begin"]
    assert "Begin" not in ask(Log(count=1))
    assert "Change" not in ask(Log(skip=1))
    assert "+second" in ask(Log(patch=True, paths=["notes.txt"]))
    assert ask(Log(revisions="HEAD~1..HEAD")).count("commit ") == 1


def test_show_gives_a_commit_or_a_file_as_it_was(ask: Ask, repository: Path) -> None:
    assert "-second\n+changed" in ask(Show())
    assert ask(Show(revision="HEAD~1", path="notes.txt")) == "first\nsecond"
    assert ask(Show(revision="HEAD~1", path=str(repository / "notes.txt"))) == "first\nsecond"


def test_blame_tells_where_each_line_is_from(ask: Ask) -> None:
    first, second = ask(Blame(path="notes.txt")).splitlines()
    assert "(kai" in first
    assert "Not Committed Yet" in second
    assert ask(Blame(path="notes.txt", revision="HEAD", first=2, last=2)).endswith("2) changed")


def test_a_folder_below_names_files_from_there(repository: Path, tmp_path: Path) -> None:
    (repository / "sub").mkdir()
    (repository / "sub" / "deep.txt").write_text("deep\n")
    git(repository, "add", "sub")
    git(repository, "commit", "-qm", "Deeper")
    below = Git(repository / "sub", tmp_path / "scratch")
    assert Show(path="deep.txt").answer(below) == "deep"
    assert Show(path="../notes.txt").answer(below) == "first\nchanged"


def test_another_working_tree_and_a_submodule_are_repositories_too(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"), "HEAD~1")
    (tmp_path / "tree" / "notes.txt").write_text("first\n")
    tree = Git(tmp_path / "tree", tmp_path / "scratch")
    assert Status().answer(tree) == "## other\n M notes.txt"
    part = Git(repository / "part", tmp_path / "scratch2")
    assert "A part" in Log().answer(part)
    assert "-part\n+another" in Diff().answer(part)


def test_the_repositorys_way_to_read_files_is_kept(repository: Path, ask: Ask) -> None:
    git(repository, "config", "core.autocrlf", "true")
    (repository / "notes.txt").write_bytes(b"first\r\nchanged\r\n")
    assert "notes.txt" not in ask(Diff(stat=True))


def test_nothing_that_the_repository_names_is_run_and_nothing_is_written(
    repository: Path, ask: Ask, tmp_path: Path
) -> None:
    canaries = tmp_path / "canaries"
    canaries.mkdir()
    arm(repository, lambda name: f"touch '{canaries / name}'")
    before = {path: path.stat().st_mtime_ns for path in repository.rglob("*")}
    for tool in EVERYTHING:
        assert ask(tool)
    assert list(canaries.iterdir()) == []
    assert {path: path.stat().st_mtime_ns for path in repository.rglob("*")} == before
    for command in (["status"], ["diff"], ["show"], ["log", "-p"]):  # the traps are good
        subprocess.run(["git", *command], cwd=repository, capture_output=True, check=False)
    sprung = {path.name.removeprefix("git-top-") for path in canaries.iterdir()}
    assert {"fsmonitor", "process", "external", "textconv", "hook-post-index-change"} <= sprung


def test_the_users_variables_for_git_change_nothing(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = tmp_path / "canary"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch '{canary}'\n")
    script.chmod(0o755)
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(script))
    monkeypatch.setenv("GIT_PAGER", str(script))
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(script))
    assert "+not committed" in ask(Diff())
    assert "notes.txt" in ask(Status())
    assert not canary.exists()


def test_a_git_of_the_repository_is_not_run(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "git").write_text("#!/bin/sh\necho mine\n")
    (repository / "git").chmod(0o755)
    monkeypatch.chdir(repository)
    path = {"PATH": f".{os.pathsep}:{os.environ['PATH']}"}
    assert git_server.server_command(repository, repository, path)[-1] == shutil.which("git")


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        (Log(revisions="--output=made"), "'--output=made' is not a revision"),
        (Diff(revisions="HEAD..--output=made"), "'--output=made' is not a revision"),
        (Show(revision="nowhere"), "there is no commit 'nowhere'"),
        (Show(revision="HEAD\n"), "'HEAD\\n' is not a revision"),
        (Show(path="\0"), "'\\x00' is not a path"),
        (Blame(path=""), "'' is not a path"),
        (Blame(path="--output=made"), "fatal: no such path '--output=made' in HEAD"),
    ],
)
def test_nothing_that_a_model_says_becomes_an_option(repository: Path, ask: Ask, tool: Tool, reason: str) -> None:
    with pytest.raises(GitError) as raised:
        ask(tool)
    assert str(raised.value) == reason
    assert not (repository / "made").exists()


def test_an_option_among_the_paths_is_a_path(repository: Path, ask: Ask) -> None:
    assert ask(Diff(paths=["--output=made"])) == "(nothing)"
    assert ask(Log(paths=["--output=made"])) == "(nothing)"
    assert not (repository / "made").exists()


def test_a_path_outside_is_refused(ask: Ask) -> None:
    with pytest.raises(GitError, match="is outside repository"):
        ask(Diff(paths=["/etc/passwd"]))


def test_no_repository_is_said(tmp_path: Path) -> None:
    with pytest.raises(GitError) as raised:
        Git(tmp_path, tmp_path / "scratch")
    assert str(raised.value) == f"{tmp_path} is not in a git repository"


def no_program(repository: Path, scratch: Path) -> Git:
    return Git(repository, scratch, "/nowhere/git")


def no_scratch(repository: Path, scratch: Path) -> Git:
    scratch.write_text("")
    return Git(repository, scratch)


def no_folder(repository: Path, scratch: Path) -> Git:
    made = Git(repository, scratch)
    shutil.rmtree(repository)
    return made


def a_pointer_to_no_path(repository: Path, scratch: Path) -> Git:
    shutil.rmtree(repository / ".git")
    (repository / ".git").write_text("gitdir: a\0b")
    return Git(repository, scratch)


def a_pointer_in_a_circle(repository: Path, scratch: Path) -> Git:
    shutil.rmtree(repository / ".git")
    (repository / ".git").write_text("gitdir: circle")
    (repository / "circle").symlink_to("circle")
    return Git(repository, scratch)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (no_program, "git cannot answer: No such file or directory: /nowhere/git"),
        (no_scratch, "git cannot answer: Not a directory: {scratch}/"),
        (no_folder, "git cannot answer: No such file or directory: {repository}"),
        (a_pointer_to_no_path, "git cannot answer: "),
        (a_pointer_in_a_circle, "git cannot answer: "),
    ],
)
def test_what_the_system_refuses_is_said(
    repository: Path, tmp_path: Path, broken: Callable[[Path, Path], Git], reason: str
) -> None:
    serve = pytest.importorskip("teamchat.runners.git_server.serve")
    scratch = tmp_path / "scratch"
    with pytest.raises(GitError) as raised:
        serve.answer(lambda: broken(repository, scratch), "git_status", {})
    assert str(raised.value).startswith(reason.format(scratch=scratch, repository=repository))


def test_a_long_answer_comes_in_pages_that_say_so(repository: Path, ask: Ask) -> None:
    lines = [f"line {number} {'x' * 90}" for number in range(1000)]
    (repository / "long.txt").write_text("\n".join(lines) + "\n")
    git(repository, "add", "long.txt")
    git(repository, "commit", "-qm", "Long")
    seen: list[str] = []
    while True:
        text, _, told = ask(Show(path="long.txt", from_line=len(seen) + 1)).partition("\n\n")
        first = len(seen) + 1
        seen += text.splitlines()
        assert len(text) <= 32_000
        if not told:
            break
        assert told == f"(lines {first} to {len(seen)}; for more: from_line = {len(seen) + 1}, or name paths)"
    assert seen == lines


def test_a_long_line_is_cut_and_counted(repository: Path, ask: Ask) -> None:
    (repository / "wide.txt").write_text(f"a\n{'x' * 300_000}\nb\n{'y' * 2_000}\n")
    git(repository, "add", "wide.txt")
    git(repository, "commit", "-qm", "Wide")
    assert ask(Show(path="wide.txt")) == (
        f"a\n{'x' * 2_000} ...\nb\n{'y' * 2_000}\n\n(long lines that are not whole: 1)"
    )


@pytest.mark.parametrize("longest", [1_999, 2_000, 2_001])
def test_a_line_of_about_the_longest_size_keeps_its_end(repository: Path, ask: Ask, longest: int) -> None:
    (repository / "wide.txt").write_text(f"{'x' * longest}\nb\n{'y' * longest}")
    git(repository, "add", "wide.txt")
    git(repository, "commit", "-qm", "Wide")
    lines = ask(Show(path="wide.txt")).partition("\n\n")[0].split("\n")
    end = " ..." if longest > 2_000 else ""
    assert lines == ["x" * min(longest, 2_000) + end, "b", "y" * min(longest, 2_000) + end]


@pytest.mark.parametrize("reading", [read_from_line, read_whole])
def test_a_command_that_takes_too_long_is_stopped(tmp_path: Path, reading: Callable[..., object]) -> None:
    with pytest.raises(GitError, match=r"took longer than 0\.1 s and was stopped"):
        reading(["sleep", "60"], tmp_path, dict(os.environ), longest_s=0.1)


def test_a_failing_command_is_read_whole_and_has_no_input(tmp_path: Path) -> None:
    printing = "import sys; print(sys.stdin.read() + 'x' * 100_000); sys.exit('no')"
    assert read_whole([sys.executable, "-c", printing], tmp_path, {}, 30) == b"x" * 100_000 + b"\n"


def test_a_configuration_that_is_not_read_in_time_is_said(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("teamchat.runners.git_server.repository.LONGEST_S", 0.1)
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o700)
    with pytest.raises(GitError, match=r"^the repository's configuration cannot be read$"):
        Git(repository, tmp_path / "scratch", str(slow))


def test_what_the_model_may_ask_is_described() -> None:
    assert list(TOOLS) == ["git_status", "git_diff", "git_log", "git_show", "git_blame"]
    assert all(tool.__doc__ for tool in TOOLS.values())


def test_a_module_is_run_by_nothing_of_the_folder_it_stands_in(tmp_path: Path) -> None:
    (tmp_path / "teamchat.py").write_text("raise SystemExit(9)")
    (tmp_path / "json.py").write_text("raise SystemExit(9)")
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit(9)")
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONSTARTUP": str(tmp_path / "json.py")}
    command = isolated.isolated_command("teamchat.runners.removal_of_nothing")
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'teamchat.runners.removal_of_nothing'"


class TestMissing:
    def test_nothing_where_git_and_the_package_are_there(self) -> None:
        pytest.importorskip("mcp_types")
        assert git_server.missing(os.environ) is None

    def test_git_itself(self, tmp_path: Path) -> None:
        assert git_server.missing({"PATH": str(tmp_path)}) == ("git is not installed", None)

    @pytest.mark.parametrize(
        ("installed", "reason"),
        [("", "the package mcp is not installed"), ("1.9.2", "the package mcp has version 1.9.2, and 2 is needed")],
    )
    def test_the_package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str, reason: str) -> None:
        if installed:
            (tmp_path / f"mcp-{installed}.dist-info").mkdir()
            (tmp_path / f"mcp-{installed}.dist-info" / "METADATA").write_text(f"Name: mcp\nVersion: {installed}\n")
        monkeypatch.setattr(sys, "path", [str(tmp_path), *(one for one in sys.path if "site-packages" not in one)])
        why, hint = git_server.missing(os.environ) or ("", "")
        assert why == reason
        assert hint is not None
        assert hint.endswith("'mcp==2.*'")


@dataclass(frozen=True)
class Two:
    """A member's folder, and a repository of the user's that its member is not to read."""

    here: Path
    private: Path

    def points(self, to: Path | str, at: str = ".git") -> None:
        """Make the folder's `.git` a file that names that folder."""
        (self.here / at).parent.mkdir(exist_ok=True)
        (self.here / at).write_text(f"gitdir: {to}\n")

    def own(self) -> Path:
        """A repository of the folder's own."""
        git(self.here, "init", "-q", "-b", "main")
        return self.here / ".git"

    def copied(self, *names: str) -> Path:
        """The folder's own repository with links to these entries of the private one."""
        own = self.own()
        for name in names:
            shutil.rmtree(own / name, ignore_errors=True)
            (own / name).unlink(missing_ok=True)
            (own / name).parent.mkdir(parents=True, exist_ok=True)
            (own / name).symlink_to(self.private / ".git" / name)
        return own

    def head(self) -> None:
        """The folder's own repository has the private one's newest commit checked out."""
        (self.here / ".git" / "HEAD").write_text(git(self.private, "rev-parse", "HEAD"))


def a_file(two: Two) -> None:
    two.points(two.private / ".git")


def a_relative_file(two: Two) -> None:
    two.points(os.path.relpath(two.private / ".git", two.here))


def a_link(two: Two) -> None:
    (two.here / ".git").symlink_to(two.private / ".git")


def a_link_to_a_worktrees_file(two: Two) -> None:
    git(two.private, "worktree", "add", "-q", str(two.private.parent / "tree"))
    (two.here / ".git").symlink_to(two.private.parent / "tree" / ".git")


def a_copy_of_a_worktrees_file(two: Two) -> None:
    git(two.private, "worktree", "add", "-q", str(two.private.parent / "tree"))
    shutil.copy(two.private.parent / "tree" / ".git", two.here / ".git")


def a_file_through_a_link(two: Two) -> None:
    (two.here / "inside").symlink_to(two.private)
    two.points("inside/.git")


def a_file_in_a_folder(two: Two) -> None:
    two.own()
    two.points(two.private / ".git", "sub/.git")


def a_link_in_a_folder(two: Two) -> None:
    two.own()
    (two.here / "sub").mkdir()
    (two.here / "sub" / ".git").symlink_to(two.private / ".git")


def a_worktree_of_its_own(two: Two) -> None:
    """A folder of a linked worktree that lies in the working tree, and names the private repository."""
    (two.here / "own").mkdir()
    two.points("own")
    (two.here / "own" / "commondir").write_text(f"{two.private}/.git\n")
    (two.here / "own" / "gitdir").write_text(f"{two.here}/.git\n")
    (two.here / "own" / "HEAD").write_text("ref: refs/heads/main\n")


def a_worktree_in_a_linked_folder(two: Two) -> None:
    a_worktree_of_its_own(two)
    (two.here / "fake").mkdir()
    (two.here / "own").rename(two.here / "fake" / "worktree")
    (two.here / "fake" / "worktrees").symlink_to(two.here / "fake")
    two.points("fake/worktrees/worktree")


def a_common_folder(two: Two) -> None:
    (two.own() / "commondir").write_text(f"{two.private}/.git\n")


def a_link_for_the_common_folder(two: Two) -> None:
    (two.private / "named").write_text(".git\n")
    (two.own() / "commondir").symlink_to(two.private / "named")


def alternates(two: Two) -> None:
    (two.own() / "objects" / "info" / "alternates").write_text(f"{two.private}/.git/objects\n")
    two.head()


def relative_alternates(two: Two) -> None:
    objects = two.own() / "objects"
    (objects / "info" / "alternates").write_text(f"{os.path.relpath(two.private, objects)}/.git/objects\n")
    two.head()


def alternates_by_a_link(two: Two) -> None:
    (two.here / "lent").write_text(f"{two.private}/.git/objects\n")
    (two.own() / "objects" / "info" / "alternates").symlink_to(two.here / "lent")
    two.head()


def alternates_of_alternates(two: Two) -> None:
    git(two.here.parent, "clone", "-q", "--shared", str(two.private), str(two.here / "lent"))
    (two.own() / "objects" / "info" / "alternates").write_text("../../lent/.git/objects\n")
    two.head()


def linked_objects(two: Two) -> None:
    two.copied("objects")
    two.head()


def a_linked_folder_of_objects(two: Two) -> None:
    commit = git(two.private, "rev-parse", "HEAD")[:2]
    two.copied(f"objects/{commit}")


def linked_packs(two: Two) -> None:
    git(two.private, "gc", "-q")
    two.copied("objects/pack")
    two.head()


def a_linked_pack(two: Two) -> None:
    git(two.private, "gc", "-q")
    two.copied(*(f"objects/pack/{path.name}" for path in (two.private / ".git" / "objects" / "pack").iterdir()))
    two.head()


def linked_refs(two: Two) -> None:
    two.copied("refs/heads")


def linked_logs(two: Two) -> None:
    two.copied("logs")


def a_linked_head_and_index(two: Two) -> None:
    two.copied("HEAD", "index")


def a_linked_configuration(two: Two) -> None:
    two.copied("config")


def a_working_tree_elsewhere(two: Two) -> None:
    git(two.here, "init", "-q")
    git(two.here, "config", "core.worktree", str(two.private))


LEADS_OUT = (
    a_file,
    a_relative_file,
    a_link,
    a_link_to_a_worktrees_file,
    a_copy_of_a_worktrees_file,
    a_file_through_a_link,
    a_file_in_a_folder,
    a_link_in_a_folder,
    a_worktree_of_its_own,
    a_worktree_in_a_linked_folder,
    a_common_folder,
    a_link_for_the_common_folder,
    alternates,
    relative_alternates,
    alternates_by_a_link,
    alternates_of_alternates,
    linked_objects,
    a_linked_folder_of_objects,
    linked_packs,
    a_linked_pack,
    linked_refs,
    linked_logs,
    a_linked_head_and_index,
    a_linked_configuration,
    a_working_tree_elsewhere,
)


@pytest.mark.parametrize("leads", LEADS_OUT)
def test_another_repository_is_not_read(tmp_path: Path, leads: Callable[[Two], None]) -> None:
    serve = pytest.importorskip("teamchat.runners.git_server.serve")
    two = Two(tmp_path / "here", tmp_path / "private")
    two.here.mkdir()
    two.private.mkdir()
    git(two.private, "init", "-q", "-b", "main")
    (two.private / "secret.txt").write_text("XYLOPHONE\n")
    git(two.private, "add", "secret.txt")
    git(two.private, "commit", "-qm", "XYLOPHONE")
    leads(two)
    cwd = two.here / "sub" if (two.here / "sub").exists() else two.here
    asked = {"git_show": {"path": "secret.txt"}, "git_blame": {"path": "secret.txt"}}
    for name in TOOLS:
        with pytest.raises(GitError) as raised:
            serve.answer(lambda: Git(cwd, tmp_path / "scratch"), name, asked.get(name, {}))
        assert "XYLOPHONE" not in str(raised.value)
        assert "\n" not in str(raised.value)
        assert re.search("names a repository outside|leads out of|names objects of another", str(raised.value))


def test_a_file_behind_a_link_is_not_blamed(repository: Path, tmp_path: Path, ask: Ask) -> None:
    (repository / "sub").mkdir()
    (repository / "sub" / "notes.txt").write_text("one\n")
    git(repository, "add", "sub")
    git(repository, "commit", "-qm", "A folder")
    shutil.rmtree(repository / "sub")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "notes.txt").write_text("XYLOPHONE\n")
    (repository / "sub").symlink_to(tmp_path / "private")
    with pytest.raises(GitError, match=r"^'sub/notes.txt' is not in the working tree$"):
        ask(Blame(path="sub/notes.txt"))
    for tool in (Diff(), Diff(paths=["sub/notes.txt"]), Status(), Blame(path="sub/notes.txt", revision="HEAD")):
        assert "XYLOPHONE" not in ask(tool)


def test_a_repository_in_a_named_folder_of_the_working_tree_is_read(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "--separate-git-dir", "own", "here")
    (tmp_path / "own").rename(tmp_path / "here" / "own")
    (tmp_path / "here" / ".git").write_text("gitdir: own\n")
    assert "## No commits yet" in Status().answer(Git(tmp_path / "here", tmp_path / "scratch"))
