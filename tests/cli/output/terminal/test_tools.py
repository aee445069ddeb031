from __future__ import annotations

import pytest

from teamchat.cli.output.terminal.tools import action, changed, mark
from teamchat.runners.agent_events import ToolCall, ToolResult
from teamchat.runners.untrusted.file_changes import lines_of

AT = "/work/notes"


@pytest.mark.parametrize(
    ("name", "summary", "line", "now"),
    [
        ("Read", f"{AT}/app.py", "read    app.py", "reading app.py"),
        ("read_file", "app.py", "read    app.py", "reading app.py"),
        ("Edit", f"{AT}/src/app.py", "edit    src/app.py", "editing src/app.py"),
        ("replace", f"{AT}/app.py", "edit    app.py", "editing app.py"),
        ("file_change", f"update {AT}/app.py", "edit    app.py", "editing app.py"),
        ("file_change", f"add {AT}/a.py, add {AT}/b.py", "write   a.py, b.py", "writing a.py, b.py"),
        ("file_change", f"delete {AT}/a.py", "delete  a.py", "deleting a.py"),
        (
            "apply_patch",
            '{"patchText": "*** Begin Patch\\n*** Update File: app.py\\n@@"}',
            "edit    app.py",
            "editing app.py",
        ),
        ("Write", "/elsewhere/x", "write   /elsewhere/x", "writing /elsewhere/x"),
        ("Bash", "pytest -q", "ran     pytest -q", "running `pytest -q`"),
        ("run_shell_command", f"cd {AT} && pytest {AT}/tests", "ran     pytest tests", "running `pytest tests`"),
        ("command_execution", "ls", "ran     ls", "running `ls`"),
        ("bash", "ls", "ran     ls", "running `ls`"),
        ("Grep", "needle", "search  needle", "searching needle"),
        ("list_directory", AT, "list    .", "listing ."),
        ("WebFetch", "http://a.b", "fetch   http://a.b", "fetching http://a.b"),
        ("TodoWrite", '{"todos": []}', "plan", "planning"),
        ("mcp__git__commit", "all", "use     git.commit all", "using git.commit all"),
        ("collab_tool_call", "spawn_agent Look.", "agent   spawn_agent Look.", "asking an agent: spawn_agent Look."),
        ("mcp_tool_call", "git.commit {}", "use     git.commit {}", "using git.commit {}"),
        ("Own", "thing", "use     Own thing", "using Own thing"),
        ("Bash", "a\x1b[2Jb\nc", "ran     ab c", "running `ab c`"),
    ],
)
def test_the_tools_of_every_vendor_are_told_in_human_words(name: str, summary: str, line: str, now: str) -> None:
    does = action(ToolCall("1", name, summary), AT)
    assert (does.line, does.now) == (line, now)


@pytest.mark.parametrize(
    ("name", "result", "marked"),
    [
        ("Bash", ToolResult("1", "fine"), ""),
        ("Bash", ToolResult("1", "Exit code 2\nno such file", failed=True), "✗ exit 2"),
        ("Bash", ToolResult("1", "was blocked", failed=True), "✗ failed"),
        ("run_shell_command", ToolResult("1", "Output: x\nExit Code: 1\nSignal: (none)"), "✗ exit 1"),
        ("run_shell_command", ToolResult("1", "Output: x\nExit Code: 0"), ""),
        ("command_execution", ToolResult("1", "no", failed=True, exit_code=3), "✗ exit 3"),
        ("Read", ToolResult("1", "Exit Code: 1 stands in it"), ""),
        ("Edit", ToolResult("1", "not found", failed=True), "✗ failed"),
    ],
)
def test_a_call_that_failed_is_marked_with_its_exit_code(name: str, result: ToolResult, marked: str) -> None:
    assert mark(ToolCall("1", name, ""), result) == marked


@pytest.mark.parametrize(
    ("arguments", "lines", "told"),
    [
        ({"old_string": "a\nb\nc", "new_string": "a\nx\ny\nc"}, (2, 1), "+2 −1"),
        ({"oldString": "a", "newString": "a\nb"}, (1, 0), "+1"),
        ({"old_string": "a\nb", "new_string": "a"}, (0, 1), "−1"),
        ({"old_string": "a", "new_string": "a"}, (0, 0), "+0"),
        ({"edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "", "new_string": "c"}]}, (2, 1), "+2 −1"),
        ({"edits": [{"old_string": "a"}]}, None, ""),
        ({"old_string": 1, "new_string": "a"}, None, ""),
        ({"file_path": "x", "content": "y"}, None, ""),
        (None, None, ""),
    ],
)
def test_the_lines_of_an_edit_follow_from_what_it_replaces(
    arguments: object, lines: tuple[int, int] | None, told: str
) -> None:
    assert lines_of(arguments) == lines
    assert changed(lines) == told
