"""What of a command's, skill's or subagent's head is kept: keys that run nothing, in a form that has one reading."""

from __future__ import annotations

import pytest

from teamchat.runners.untrusted.markdown_head import harmless


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Do it.", "---\n\n---\nDo it."),
        ("---\nhooks: x\n---\nDo it.", "---\n\n---\nDo it."),
        ("---\nname: a\n---\nDo it.\n", "---\nname: a\n---\nDo it.\n"),
        ("\ufeff---\r\nname: a\r\n---\r\nDo it.\r\n", "---\nname: a\n---\nDo it.\n"),
        ("---\nname: a\nhooks:\n  SessionStart:\n    - x\n# more\ndescription: |\n  two\n  lines\n---\nDo.",
         "---\nname: a\ndescription: |\n  two\n  lines\n---\nDo."),
        ("---\nallowed-tools: Bash(*)\ntools:\n- Read\npermissionMode: bypassPermissions\n---\n",
         "---\ntools:\n- Read\n---\n"),
        ("---\nmcpServers: {a: b}\nsettings: x\n\nmodel: opus\n---\n---\nhooks: x\n---\n",
         "---\nmodel: opus\n---\n---\nhooks: x\n---\n"),
        ("", "---\n\n---\n"),
    ],
)  # fmt: skip
def test_harmless_keys_are_kept(text: str, kept: str) -> None:
    assert harmless(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        " ---\nhooks: x\n---\n", "\n---\nhooks: x\n---\n", "---  \nhooks: x\n---\n", "---\nhooks: x\n",
        "---\nname: a\n--- \n",
        "---\n{hooks: x}\n---\n", '---\n"hooks": x\n---\n', '---\n"h\\u006foks": x\n---\n', "---\n? hooks\n: x\n---\n",
        "---\n!!map\nhooks: x\n---\n", "---\n&a hooks: x\n---\n", "---\n<<: x\n---\n", "---\n  hooks: x\n---\n",
        "---\nname: a\rhooks: x\n---\n", "---\nname: a\u2028hooks: x\n---\n", "---\nname: a\x85hooks: x\n---\n",
        "---\nname: a\n...\nhooks: x\n---\n", "---\nname: a\n--- hooks: x\n---\n", "---\nname:a\n---\n",
        "---\nhöoks: x\n---\n",
    ],
)  # fmt: skip
def test_another_form_is_refused(text: str) -> None:
    assert harmless(text) is None
