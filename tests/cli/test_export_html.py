"""The HTML of `export`: read by a browser, in which nothing of what was said can run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from teamchat.cli.exporting.formats import ExportOptions, writer
from teamchat.cli.exporting.html import MOST_RENDERED, rendered
from teamchat.core.messages import ConversationMessage, Speaker
from teamchat.core.transcripts.transcript import SaidEntry, Transcript
from tests.chromium import ALARM, PROGRAM, Chromium, chromium
from tests.core.transcripts.examples import BEGAN, EXAMPLE, FAILED, TURN, conversation, keep
from tests.core.transcripts.hostile import HOSTILE, hostile
from tests.program import run_here
from tests.trials import TIMES, trials


def page(transcript: Transcript) -> str:
    return "".join(writer("html")(transcript, ExportOptions()))


# --- the text of the page


def test_it_is_one_file_that_names_no_other() -> None:
    html = page(EXAMPLE)

    assert not re.search(r"""(?:src|href)=(?!"#)|@import|url\(""", html)
    assert html.startswith("<!DOCTYPE html>\n")


def test_each_message_has_a_link_of_its_own() -> None:
    html = page(EXAMPLE)

    for name in ("msg-1", "msg-2", "msg-3"):
        assert f'<article id="{name}"' in html
        assert f'href="#{name}"' in html


def test_a_foreign_id_is_no_name_of_an_element() -> None:
    said = next(iter(EXAMPLE.said))
    html = page(replace(EXAMPLE, entries=(replace(said, message=replace(said.message, id="search")),)))

    assert re.findall(r'<article id="([^"]*)"', html) == ["n1"]
    assert html.count('id="search"') == 1


REL = 'rel="noopener noreferrer"'


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**a** `b`", "<p><strong>a</strong> <code>b</code></p>\n"),
        ("[a](https://x.example/?a&b)", f'<p><a href="https://x.example/?a&amp;b" {REL}>a</a></p>\n'),
        ("[a](javascript:x)", "<p>[a](javascript:x)</p>\n"),
        ("![a](https://x.example/)", f'<p>!<a href="https://x.example/" {REL}>a</a></p>\n'),
        ("<b>a</b>", "<p>&lt;b&gt;a&lt;/b&gt;</p>\n"),
        ("a\nb", "<p>a<br />\nb</p>\n"),
        ("```py\n1\n```", '<pre><code class="language-py"><span class="mi">1</span>\n</code></pre>\n'),
        ("```what\n<x>\n```", '<pre><code class="language-what">&lt;x&gt;\n</code></pre>\n'),
        ("a\x1b[31mb\u202ec", "<p>ab\\u202ec</p>\n"),
    ],
)
def test_markdown_becomes_html(text: str, html: str) -> None:
    assert rendered(text) == html


@pytest.mark.parametrize("text", [">" * 500 + " deep", "- " * 300 + "deep", "a" * (MOST_RENDERED + 1)])
def test_what_is_too_deep_or_long_is_shown_as_it_was_written(text: str) -> None:
    assert rendered(text) == f'<pre class="plain">{text.replace(">", "&gt;")}</pre>'


ELEMENT = re.compile(r"<[^>]*>")
ATTRIBUTE = (
    r'(?:href="https?://[^"<>]*"|(?:title|class|start)="[^"<>]*"|style="text-align:[a-z]+"|rel="noopener noreferrer")'
)
NAMES = "p|strong|em|code|pre|span|a|s|br|hr|ul|ol|li|blockquote|table|thead|tbody|tr|th|td|h[1-6]"
HARMLESS = re.compile(rf"</?(?:{NAMES})(?: {ATTRIBUTE})*(?: /)?>")
pieces = st.sampled_from([*HOSTILE, *"<>\"'&`[]()!\n#*_~|-:;=/\\ \t", "a", "https://x.example"])
fragments = st.lists(pieces, max_size=12).map("".join)


@given(text=fragments)
def test_only_elements_that_cannot_run_come_of_any_text(text: str) -> None:
    assert [element for element in ELEMENT.findall(rendered(text)) if not HARMLESS.fullmatch(element)] == []


PIECES = ("[", "*", "_a", "`", "![", "](", "<", "&", "~~", "> ", "- ", "|a", "\\", "[a](", "*a_ ", "1. ", "```\n")


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.timeout(60)
def test_no_text_takes_long(piece: str) -> None:
    assert rendered(piece * (MOST_RENDERED // len(piece)))


def test_a_conversation_is_exported_as_a_page() -> None:
    keep()

    ran = run_here("export", "-o", "talk.html")

    html = Path("talk.html").read_text(encoding="utf-8")
    assert (ran.code, ran.out) == (0, "")
    assert "Added <strong>--version</strong>:" in html
    assert "Never mind" not in html


# --- in a browser


needs_chromium = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("chromium")) as started:
        yield started


def opened(browser: Chromium, folder: Path, transcript: Transcript, fragment: str = "") -> None:
    file = folder / "talk.html"
    file.write_text(page(transcript), encoding="utf-8")
    browser.visit(file, fragment=fragment)


SHOWN = "[...document.querySelectorAll('article')].filter(one => one.checkVisibility()).map(one => one.id)"


def typed(browser: Chromium, words: str) -> list[str]:
    """The articles that are shown after these words are typed into the search box."""
    browser.evaluate("document.getElementById('search').select()")
    browser.call("Input.insertText", text=words)
    shown: list[str] = browser.evaluate(SHOWN)
    return shown


@needs_chromium
def test_the_page_searches(browser: Chromium, tmp_path: Path) -> None:
    opened(browser, tmp_path, EXAMPLE)
    assert browser.evaluate(SHOWN) == ["msg-1", "n2", "msg-2", "msg-3"]

    assert typed(browser, "VERSION") == ["msg-1", "msg-2"]
    assert browser.evaluate("document.getElementById('found').value") == "2 of 4"
    assert typed(browser, "version added") == ["msg-2"]
    assert typed(browser, "nowhere") == []
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="Escape")
    assert browser.evaluate(SHOWN) == ["msg-1", "n2", "msg-2", "msg-3"]
    assert browser.noted == []


OPEN = "[...document.querySelectorAll('details[open] > summary')].map(one => one.textContent)"


@needs_chromium
def test_tool_calls_are_folded_and_unfold(browser: Chromium, tmp_path: Path) -> None:
    opened(browser, tmp_path, EXAMPLE)
    output = "document.querySelector('.steps details pre').checkVisibility()"
    assert (browser.evaluate(OPEN), browser.evaluate(output)) == ([], False)

    browser.evaluate("document.querySelector('.steps summary').click()")
    browser.evaluate("document.querySelector('.steps details summary').click()")

    assert browser.evaluate(output) is True
    assert browser.evaluate("document.querySelector('.steps details pre').textContent") == "import typer\n"


@needs_chromium
def test_a_search_unfolds_what_it_finds_and_folds_it_again(browser: Chromium, tmp_path: Path) -> None:
    opened(browser, tmp_path, EXAMPLE)

    assert typed(browser, "import typer") == ["msg-2"]
    assert browser.evaluate(OPEN) == ["2 tool calls, 1 failed, 1 denied", "read notes/cli.py"]
    typed(browser, "Added")
    assert browser.evaluate(OPEN) == []


@needs_chromium
def test_a_link_leads_to_its_message(browser: Chromium, tmp_path: Path) -> None:
    opened(browser, tmp_path, conversation(*("word " * 400 for _ in range(20))), "#msg-15")

    top = browser.evaluate("document.getElementById('msg-15').getBoundingClientRect().top")
    assert 0 <= top < 200


@needs_chromium
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_screen(browser: Chromium, tmp_path: Path, width: int) -> None:
    long = "x" * 500
    wide = conversation(
        long, f"```\n{long}\n```", f"|{long}|b|\n|-|-|\n|{long}|c|", f"# {long}", f"`{long}`", "- " * 20 + "a"
    )
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
    try:
        opened(browser, tmp_path, replace(wide, entries=(*wide.entries, FAILED, *EXAMPLE.entries)))
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


CONTRAST = """(() => {
  const light = (colour) => {
    const canvas = document.createElement("canvas").getContext("2d");
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((one) => one / 255)
      .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const texts = "p, h1, h2, h2 b, a, summary, td, li, .tag, .at, .end, .failed, pre span:not(.w)";
  return Math.min(...[...document.querySelectorAll(texts)]
    .map((one) => light(getComputedStyle(one).color))
    .map((one) => (Math.max(one, paper) + 0.05) / (Math.min(one, paper) + 0.05)));
})()"""


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_on_light_and_on_dark_paper(browser: Chromium, tmp_path: Path, scheme: str) -> None:
    code = "```python\n# why\n@a\ndef f(x: int) -> str:\n    return f'{x}' + \"y\" * 0x1F or None\n```"
    names = [f"member{number}" for number in range(8)]
    said = (
        SaidEntry(ConversationMessage(code, Speaker(name, name, type="ai"), timestamp=BEGAN, id=name), TURN)
        for name in names
    )
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    opened(browser, tmp_path, replace(EXAMPLE, entries=(*EXAMPLE.entries, *said)))

    assert browser.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") is (scheme == "dark")
    assert browser.evaluate(CONTRAST) >= 4.5


OTHER_LINKS = "[...document.links].filter(one => !/^(#|https?:)/.test(one.getAttribute('href'))).length"


@needs_chromium
@pytest.mark.timeout(300 * TIMES)
def test_hostile_conversations_run_and_fetch_nothing(browser: Chromium, tmp_path: Path) -> None:
    for seed in range(trials(25)):
        opened(browser, tmp_path, hostile(seed))
        typed(browser, "script")
        browser.evaluate("document.querySelectorAll('article :not(a)').forEach(one => one.click())")
        assert browser.evaluate(OTHER_LINKS) == 0, seed
        assert browser.evaluate("document.scripts.length") == 1, seed
        assert browser.noted == [], seed


@needs_chromium
def test_the_watch_on_the_browser_sees_what_runs_and_is_fetched(browser: Chromium, tmp_path: Path) -> None:
    file = tmp_path / "bad.html"
    file.write_text(f"<img src='https://127.0.0.1:1/a.png' onerror='{ALARM}(\"1\")'><script>{ALARM}('2')</script>")

    browser.visit(file)
    browser.evaluate("new Promise(done => setTimeout(done, 100))")

    told = "\n".join(browser.noted)
    assert "fetched https://127.0.0.1:1/a.png" in told
    assert told.count("Runtime.bindingCalled") == 2
