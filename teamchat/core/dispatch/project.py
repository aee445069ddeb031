"""The identity of a git repository on two machines: the address it is fetched from, and its first commit."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from teamchat.core.checkpoint.find import known_reason
from teamchat.core.checkpoint.git import GitFailed, GitProgram, git_environment
from teamchat.core.dispatch.order import Project
from teamchat.core.errors import CheckpointFailed, HostUnavailable
from teamchat.patterns import regex

LONGEST_S = 20.0  # a long history is walked to its beginning
_SCP = regex(r"(?:[^@/:\s]+@)?([^@/:\s]+):(?!//)(\S+)")  # git@host:path


def project_of(folder: Path) -> Project:
    """Find the project that `folder` is in. Raises `HostUnavailable` for a folder that no other machine could know."""
    reason = known_reason(folder)
    git = GitProgram(folder, git_environment(users_own=True), LONGEST_S)
    try:
        if reason:
            raise HostUnavailable(f"{folder} is no project that a host could know: {reason}", "git init")
        git("rev-parse", "--show-toplevel")  # a bare repository has none
        prefix = os.fsdecode(git("rev-parse", "--show-prefix")).removesuffix("\n")
        remotes = _remotes(git)
        root = _root(git)
    except (GitFailed, CheckpointFailed, ValueError) as error:
        raise HostUnavailable(f"{folder} is no project that a host could know: {error}") from None
    if not remotes and root is None:
        raise HostUnavailable(
            f"{folder} is a repository without a commit or a remote, by which a host could know it",
            "git commit --allow-empty -m 'Begin'",
        )
    if not is_text(prefix):
        raise HostUnavailable(f"{folder} is no folder that a host could know: its name is no UTF-8")
    return Project(remotes, root, prefix.rstrip("/"))


def head_of(folder: Path) -> str | None:
    """Return the commit at which the clone is, as another clone may know it; None where there is none."""
    git = GitProgram(folder, git_environment(users_own=True), LONGEST_S)
    try:
        return git("rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip() or None
    except (GitFailed, CheckpointFailed, ValueError):
        return None


def is_text(name: str) -> bool:
    """Whether the name is UTF-8, as all that two machines say to each other."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _remotes(git: GitProgram) -> tuple[str, ...]:
    try:
        lines = os.fsdecode(git("config", "--get-regexp", r"^remote\..*\.url$")).splitlines()
    except GitFailed:
        return ()  # there is none
    known = (common_name(line.partition(" ")[2]) for line in lines)
    return tuple(dict.fromkeys(name for name in known if name and is_text(name)))


def _root(git: GitProgram) -> str | None:
    """Return the first commit; None without one, and for a shallow clone, whose history begins anywhere."""
    try:
        if git("rev-parse", "--is-shallow-repository").strip() != b"false":
            return None
        commits = git("rev-list", "--max-parents=0", "HEAD").decode().split()
    except GitFailed:
        return None
    return min(commits, default=None)


def common_name(url: str) -> str | None:
    """Reduce an address to the part that a repository's clones share: without scheme, user, password, port and `.git`.

    Returns None for a path of this machine, and for a server without a path, which many repositories have in common.
    """
    if "://" in url:
        try:
            parts = urlsplit(url)
        except ValueError:
            return None  # half of an IPv6 address, for example
        if parts.scheme == "file" or not parts.hostname:
            return None
        host, path = parts.hostname, parts.path
    elif match := _SCP.fullmatch(url):
        host, path = match[1].lower(), match[2]
    else:
        return None
    path = path.strip("/").removesuffix(".git")
    return f"{host}/{path}" if path else None
