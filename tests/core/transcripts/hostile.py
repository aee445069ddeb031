"""Transcripts of agents that try to run something, to fetch something, or to pass for something else."""

from __future__ import annotations

import random
from typing import get_args

from teamchat.core.messages import ConversationMessage, Routing, Speaker
from teamchat.core.transcripts.transcript import (
    ChangedFile,
    MemberTurn,
    RanCheck,
    SaidEntry,
    StepKind,
    Transcript,
    TranscriptStep,
)
from tests.core.transcripts.examples import BEGAN

HOSTILE = [
    "<script>ran(1)</script>",
    "<img src=x onerror=ran(1)>",
    "<svg/onload=ran(1)>",
    "</pre><script>ran(1)</script>",
    "</style><script>ran(1)</script>",
    "</script><script>ran(1)</script>",
    "</title><script>ran(1)</script>",
    "--><script>ran(1)</script><!--",
    '"><script>ran(1)</script>',
    "'><img src=x onerror=ran(1)>",
    '" onmouseover="ran(1)" autofocus onfocus="ran(1)',
    "[a](javascript:ran(1))",
    "[a](JaVaScRiPt:ran(1))",
    "[a](data:text/html,<script>ran(1)</script>)",
    "[a](vbscript:ran(1))",
    "[a]( javascript:ran(1))",
    "[a](&#106;avascript:ran(1))",
    "[a](\\x01javascript:ran(1))",
    "<javascript:ran(1)>",
    '<https://x.invalid/"onclick=ran(1)>',
    "![a](https://x.invalid/a.png)",
    "![a](javascript:ran(1))",
    '![a](x "onerror=ran(1)")',
    "[a]: javascript:ran(1)\n\n[a]",
    '[a](https://x.invalid/"onclick="ran(1))',
    "[a](https://x.invalid 't\" onclick=\"ran(1)')",
    "```html\n<script>ran(1)</script>\n```",
    '```"><script>ran(1)</script>\nx\n```',
    "```js onload=ran(1)\nran(1)\n```",
    "~~~ </code></pre><script>ran(1)</script>\n~~~",
    "`<script>ran(1)</script>`",
    "|a|\n|-|\n|<img src=x onerror=ran(1)>|",
    "<iframe srcdoc='<script>parent.ran(1)</script>'>",
    "<object data=javascript:ran(1)>",
    "<meta http-equiv=refresh content=0>",
    "<base href=https://x.invalid/>",
    "<form action=javascript:ran(1)><button autofocus>",
    "<a href=javascript:ran(1) id=search>",
    "<input id=search>",
    "<details open ontoggle=ran(1)>",
    "<style>@import 'https://x.invalid/a.css'</style>",
    "<link rel=stylesheet href=https://x.invalid/a.css>",
    "&lt;script&gt;ran(1)&lt;/script&gt;",
    "&#60;script&#62;ran(1)&#60;/script&#62;",
    "\\<script>ran(1)</script>",
    "<scr\0ipt>ran(1)</script>",
    "<script\x0b>ran(1)</script>",
    "\u2028<script>ran(1)</script>",
    "<math><mtext></mtext><script>ran(1)</script>",
    "<!--[if gte IE 4]><script>ran(1)</script><![endif]-->",
    "<![CDATA[<script>ran(1)</script>]]>",
    "${ran(1)}",
    "{{ran(1)}}",
    "`${ran(1)}`",
    "\u202e<script>ran(1)</script>",
    "\x1b]8;;javascript:ran(1)\x07x\x1b]8;;\x07",
    "@import url(https://x.invalid);",
    "};ran(1);{",
    "*/ran(1)/*",
    "url(https://x.invalid/a.png)",
    ".c31{background:url(https://x.invalid)}",
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x1b]52;c;cm0=\x07",
    "\x9b31m",
    "\x1bP+q\x1b\\",
    "\r\x1b[A\x1b[Jkai",
    "\x07\x08\x7f",
    "\ufffe\uffff",
    "\ud7ff",
    "a\x85b\u2029c",
    "]]>",
    "<text>",
    "&#0;",
]


def hostile(seed: int) -> Transcript:
    """A transcript every text of which is hostile."""
    chance = random.Random(seed)  # noqa: S311 (no secret)

    def text() -> str:
        return chance.choice(("", "\n\n", " ")).join(chance.sample(HOSTILE, chance.randint(1, 4)))

    def turn() -> MemberTurn:
        steps = tuple(
            TranscriptStep(1, kind, text(), text(), text(), failed=bool(seed % 2)) for kind in get_args(StepKind)
        )
        files = (ChangedFile(text(), "changed", 1, 2), ChangedFile(text()))
        return MemberTurn(
            seed, text(), text(), "read", BEGAN, "failed", text(), 1.0, text(), text(), steps, files, input_tokens=5
        )

    def said(number: int) -> SaidEntry:
        speaker = Speaker(text(), text(), role_title=text(), type=("ai", "human")[number % 2])
        routing = Routing((text(), text()), (text(),))
        message = ConversationMessage(text(), speaker, routing, BEGAN, stands_for=text(), id=f"{text()} {number}")
        return SaidEntry(message, turn() if number % 2 else None, (text(),), undone=number == 3)

    def check() -> RanCheck:
        files = (ChangedFile(text(), "changed", 1, 2), ChangedFile(text()))
        return RanCheck(1, text(), "red", BEGAN, text(), text(), output=text(), files=files)

    return Transcript(text(), text(), text(), BEGAN, (*map(said, range(4)), turn(), check()), text())
