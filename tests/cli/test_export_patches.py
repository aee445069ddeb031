"""The patches, the legend and the totals of `export --format html`."""

from __future__ import annotations

import html
import re

import pytest

from teamchat.cli.exporting.formats import spent_line
from teamchat.core.store.usage import UsageSums
from tests.cli.helpers import refused
from tests.cli.test_worktrees import commit, shell
from tests.cli.test_worktrees import tree as tree  # noqa: PLC0414 (a fixture)
from tests.core.checkpoint.worktree import WorkTree
from tests.program import run_here

KEY = "sk-ant-api03-" + "a1B2" * 20
PEM = "-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "-----END PRIVATE KEY-----"


def exported(*options: str) -> str:
    ran = run_here("export", "--format", "html", *options)
    assert ran.code == 0, ran.err
    return html.unescape(re.sub(r"</?(?:ins|del|b)>", "", ran.out))


def test_patches_have_no_secret_and_binary_files_only_by_name(tree: WorkTree) -> None:
    tree.write(".env", b"TOKEN=before\n")
    tree.git("add", ".env")
    commit(tree, "Add .env")
    pem = "\\n".join(PEM)
    does = f"printf -- '{pem}\\n{KEY}\\n' > notes.txt; printf '\\0\\1' > bin; echo HIDDEN=1 > .env"
    shell(tree.top, {"workspace": "shared"}, max=f"{does}; sed -i s/2/two/ app.txt")
    assert run_here("send", "Go").code == 0
    page = exported()
    assert "-b = 2\n+b = two\n" in page
    assert "+*" in page
    assert "Binary files /dev/null and b/bin differ" in page
    assert ".env: left out, as its name is one of secrets" in page
    for secret in (KEY, PEM[1], "HIDDEN=1", "TOKEN=before", "GIT binary patch"):
        assert secret not in page
    assert '<details class="patch"><summary>patch</summary>' in page
    assert "<td>max-agent</td><td></td><td>not bounded</td>" in page
    assert "cost unknown" in page
    assert "patch</summary>" not in exported("--patches", "none")
    for name in ("md", "json"):
        assert "b = two" not in run_here("export", "--format", name).out
    assert refused(run_here("export", "--format", "md", "--patches", "all")).startswith("--patches is for html")


def test_only_the_newest_turns_have_patches(tree: WorkTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teamchat.cli.export.PATCHES", 1)
    shell(tree.top, {"workspace": "shared"}, max="echo more >> app.txt")
    for _ in range(2):
        assert run_here("send", "Go").code == 0
    assert exported().count("patch</summary>") == 1
    assert exported("--patches", "all").count("patch</summary>") == 2


def test_totals_say_of_how_many_turns_they_are() -> None:
    known = UsageSums(5, 130.0, 5, 40_000, 5, 0.32, 2)
    assert spent_line(known) == "5 turns · 2m10s · 40k tokens · $0.32 (2 of 5 turns report a cost)"
    assert (
        spent_line(UsageSums(1, None, 0, None, 0, None, 0)) == "1 turn · time unknown · tokens unknown · cost unknown"
    )
