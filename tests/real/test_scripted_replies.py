"""The scripted model itself: every protocol streams a whole reply, and every way of failing is what it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection, RemoteDisconnected
from urllib.parse import urlsplit

import pytest

from teamchat.runners.base import Vendor
from tests.real.model.replies import Ending, Reply, Tokens, ToolUse
from tests.real.model.server import ModelServer, prompt, system_text, tool_results
from tests.runners.processes import PATIENCE_S

pytestmark = pytest.mark.real
PATHS: dict[Vendor, str] = {
    "claude": "/v1/messages?beta=true",
    "codex": "/v1/responses",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
}
LAST = {"claude": "message_stop", "codex": "response.completed", "gemini": '"finishReason": "STOP"'}
VENDORS = list(PATHS)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


class Client:
    """A client that has gone no further than the response's headers."""

    def __init__(self, server: ModelServer, vendor: Vendor, body: object = None, timeout_s: float = PATIENCE_S) -> None:
        self.connection = HTTPConnection(urlsplit(server.url).netloc, timeout=timeout_s)
        self.connection.request("POST", PATHS[vendor], json.dumps({"stream": True} if body is None else body))

    def __enter__(self) -> HTTPConnection:
        return self.connection

    def __exit__(self, *_: object) -> None:
        self.connection.close()


def ask(server: ModelServer, vendor: Vendor, body: object = None) -> str:
    with Client(server, vendor, body) as connection:
        return connection.getresponse().read().decode()


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_whole_reply_has_text_tools_usage_and_an_end(server: ModelServer, vendor: Vendor) -> None:
    tool = ToolUse("look", {"at": "note"})
    server.script(vendor, [Reply(("Hel", "lo"), "hm", (tool,), tokens=Tokens(input=70, cached=30, output=40))])
    sent = ask(server, vendor)
    assert all(f'"{piece}"' in sent for piece in ("Hel", "lo", "hm", "look"))
    assert all(str(number) in sent for number in (30, 40))
    assert LAST[vendor] in sent


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_empty_reply_still_ends(server: ModelServer, vendor: Vendor) -> None:
    server.script(vendor, [Reply()])
    assert LAST[vendor] in ask(server, vendor)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 529])
def test_an_http_error_has_its_status_and_message(server: ModelServer, vendor: Vendor, status: int) -> None:
    server.script(vendor, [Reply(status=status, message="so it is", retry_after_s=3)])
    with Client(server, vendor) as connection:
        response = connection.getresponse()
        assert (response.status, response.headers["retry-after"]) == (status, "3")
        assert "so it is" in response.read().decode()


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_clean_end_in_mid_stream_lacks_the_last_event(server: ModelServer, vendor: Vendor) -> None:
    server.script(vendor, [Reply("half", ending="close")])
    sent = ask(server, vendor)
    assert "half" in sent
    assert LAST[vendor] not in sent


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_error_event_comes_after_the_text(server: ModelServer, vendor: Vendor) -> None:
    server.script(vendor, [Reply("half", ending="error", message="so it is")])
    before, _, after = ask(server, vendor).partition("half")
    assert "so it is" not in before
    assert "so it is" in after


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_reset_in_mid_stream_is_a_reset(server: ModelServer, vendor: Vendor) -> None:
    server.script(vendor, [Reply("half", ending="reset", delay_s=0.1)])
    with Client(server, vendor) as connection, pytest.raises(ConnectionResetError):
        connection.getresponse().read()


@pytest.mark.parametrize(("ending", "seen"), [("close", RemoteDisconnected), ("reset", ConnectionResetError)])
def test_without_text_a_reply_breaks_off_before_the_headers(
    server: ModelServer, ending: Ending, seen: type[Exception]
) -> None:
    server.script("claude", [Reply(ending=ending)])
    with Client(server, "claude") as connection, pytest.raises(seen):
        connection.getresponse()


def test_a_stall_is_silence_with_or_without_text_before_it(server: ModelServer) -> None:
    server.script("claude", [Reply(ending="stall"), Reply("half", ending="stall")])
    with Client(server, "claude", timeout_s=0.3) as connection, pytest.raises(TimeoutError):
        connection.getresponse()
    with Client(server, "claude") as connection:
        response = connection.getresponse()
        assert b"message_start" in response.read1()
        connection.sock.settimeout(0.3)
        with pytest.raises(TimeoutError):
            response.read()


def test_an_endless_reply_goes_on_until_the_client_leaves(server: ModelServer) -> None:
    server.script("claude", [Reply("again", ending="endless", delay_s=0.01)])
    with Client(server, "claude") as connection:
        response = connection.getresponse()
        heard = b""
        while heard.count(b"again") < 5 and (more := response.read1()):
            heard += more
    assert heard.count(b"again") >= 5


def test_replies_come_in_order_and_the_last_one_repeats(server: ModelServer) -> None:
    server.script("claude", [Reply("first"), Reply("second")])
    assert "first" in ask(server, "claude")
    assert all("second" in ask(server, "claude") for _ in range(2))


def test_a_function_answers_by_what_it_was_asked(server: ModelServer) -> None:
    server.script("claude", lambda request: Reply(prompt(request).upper()))
    asked = {"stream": True, "messages": [{"role": "user", "content": "hello"}]}
    assert "HELLO" in ask(server, "claude", asked)


def test_claude_gets_one_document_when_it_asks_for_no_stream(server: ModelServer) -> None:
    server.script("claude", [Reply(("Hel", "lo"), tools=(ToolUse("look"),))])
    message = json.loads(ask(server, "claude", {"stream": False}))
    assert [block["type"] for block in message["content"]] == ["text", "tool_use"]
    assert (message["content"][0]["text"], message["stop_reason"]) == ("Hello", "tool_use")


def test_the_log_tells_system_text_prompt_and_tool_results_apart(server: ModelServer) -> None:
    result = {"type": "tool_result", "content": [{"type": "text", "text": "found"}]}
    user = [{"type": "text", "text": "<system-reminder>x"}, {"type": "text", "text": "go"}, result]
    body = {
        "stream": True,
        "system": [{"type": "text", "text": "be good"}],
        "messages": [{"role": "user", "content": user}],
    }
    ask(server, "claude", body)
    (turn,) = server.turns("claude")
    assert (system_text(turn), prompt(turn), tool_results(turn)) == ("be good", "go", ["found"])
