"""One small program that behaves like an agent CLI, well or badly: `agent.py STEP ARGS... [+ STEP ARGS...]...`

Steps run in order, and then it exits with 0. What it is given beyond a step's own arguments is ignored, so that flags
of a real CLI may follow. A step is a function below, its arguments are the function's. With AGENT_PIDS set, its pid and
those of all its children are appended to that file, so that a test can see that none survives; beside it stands a file
`.hangs` once it hangs.

The tests start it thousands of times: what takes long to import is imported by the steps that need it.
"""

from __future__ import annotations

import os
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Step = TypeVar("Step", bound=Callable[..., None])

FOREVER_S = 600.0  # longer than any test may take
PATIENCE_S = 60.0
TOLD = 9  # the descriptor on which a shell says what it has started
MEGABYTE = 1_000_000
STEPS: dict[str, Callable[..., None]] = {}


def step(function: Step) -> Step:
    STEPS[function.__name__.replace("_", "-")] = function
    return function


def write(data: bytes, stream: int = 1) -> None:
    while data:
        data = data[os.write(stream, data) :]


def record(pid: int) -> None:
    if path := os.environ.get("AGENT_PIDS"):
        append(path, f"{pid}\n".encode())


def append(path: str, data: bytes = b"") -> None:
    """Add to the end of a file, which is made if it is not there."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(file, data)
    os.close(file)


# --- what it says


@step
def say(text: str) -> None:
    """The text without a newline: a line without an end if nothing follows."""
    write(text.encode(errors="surrogateescape"))


@step
def reply(text: str) -> None:
    say(text + "\n")


@step
def err(text: str) -> None:
    write(text.encode(errors="surrogateescape") + b"\n", 2)


@step
def words(delay: str, text: str) -> None:
    """The text word by word, one line each."""
    for word in text.split():
        reply(word)
        time.sleep(float(delay))


@step
def raw(digits: str) -> None:
    """Any bytes, given in hexadecimal: invalid UTF-8, NULs, escape sequences."""
    write(bytes.fromhex(digits))


@step
def trickle(digits: str) -> None:
    """The same byte by byte, slowly enough for a reader to see the pieces."""
    for byte in bytes.fromhex(digits):
        write(bytes([byte]))
        time.sleep(0.002)


@step
def junk(count: str) -> None:
    for number in range(int(count)):
        write(b"\x1b[31m{not json \xff\x00 %d}}\n" % number)


# --- how much it says


@step
def one_line(megabytes: str) -> None:
    write(b"x" * (int(megabytes) * MEGABYTE) + b"\n")


@step
def inflated(digits: str, megabytes: str) -> None:
    """What `raw` would write, with so many megabytes of text in place of each `@@`."""
    write(bytes.fromhex(digits).replace(b"@@", b"x" * (int(megabytes) * MEGABYTE)))


@step
def flood(megabytes: str, *, streams: tuple[int, ...] = (1,)) -> None:
    """Lines of 100 bytes, in blocks of a megabyte on each stream in turn."""
    block = (b"y" * 99 + b"\n") * (MEGABYTE // 100)
    for _ in range(int(megabytes)):
        for stream in streams:
            write(block, stream)


@step
def again(text: str, megabytes: str) -> None:
    """The text again and again, in one line of so many megabytes."""
    block = text.encode() * (MEGABYTE // len(text))
    for _ in range(int(megabytes)):
        write(block)


@step
def say_file(path: str) -> None:
    """What is in the file."""
    with open(path, "rb") as file:
        write(file.read())


@step
def flood_err(megabytes: str) -> None:
    flood(megabytes, streams=(2,))


@step
def flood_both(megabytes: str) -> None:
    flood(megabytes, streams=(1, 2))


@step
def endless() -> None:
    """Writes as fast as it can until it is ended."""
    until = time.monotonic() + FOREVER_S
    while time.monotonic() < until:
        write(b"y\n" * 50_000)


# --- how long it takes, and how it ends


@step
def sleep(seconds: str) -> None:
    time.sleep(float(seconds))


@step
def hang() -> None:
    if path := os.environ.get("AGENT_PIDS"):
        append(f"{path}.hangs")
    until = time.monotonic() + FOREVER_S
    while time.monotonic() < until:
        time.sleep(1)
    os._exit(99)


@step
def deaf() -> None:
    """Ignores every polite signal."""
    import signal

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    reply("deaf")


@step
def obey(code: str) -> None:
    """Says which signal came and exits with `code`; to be followed by `hang`."""
    import signal

    def leave(number: int, _frame: object) -> None:
        reply(f"caught {signal.Signals(number).name}")
        os._exit(int(code))

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    reply("ready")


@step
def exit_with(code: str) -> None:
    os._exit(int(code))


@step
def die(name: str) -> None:
    import signal

    number = signal.Signals[name]
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    hang()


# --- what it does with its prompt (by default it never reads it)


def prompt() -> str:
    return sys.stdin.buffer.read().decode(errors="surrogateescape")


@step
def stdin_facts() -> None:
    """One JSON line: what kind of file stdin is, where it stood at the start, and what was in it."""
    import hashlib

    kind, start = os.fstat(0).st_mode, os.lseek(0, 0, os.SEEK_CUR)
    data = sys.stdin.buffer.read()
    facts = {
        "regular": stat.S_ISREG(kind),
        "start": start,
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "at_end": not os.read(0, 1),
    }
    event(**facts)


@step
def close_stdin() -> None:
    os.close(0)


@step
def read_slowly(delay: str) -> None:
    """Reads its prompt in ten pieces, and says on stderr how much there was."""
    size = os.fstat(0).st_size // 10 + 1
    total = 0
    while data := os.read(0, size):
        total += len(data)
        time.sleep(float(delay))
    err(f"read {total}")


# --- its children; each step ends when they are what they are to be, so that nothing has to be waited for


def await_(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < until:
        time.sleep(0.005)


def sleeps(pid: int) -> bool:
    """Whether the child has become `sleep`: before, it is a copy of its parent."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as comm:
            return comm.read() == b"sleep\n"
    except OSError:
        return False


def spawn(script: str, *, own_session: bool, fds: tuple[int, ...] = ()) -> int:
    import subprocess

    child = subprocess.Popen(["/bin/sh", "-c", script], start_new_session=own_session, pass_fds=fds)
    record(child.pid)
    child.returncode = 0  # nobody waits for it, on purpose
    return child.pid


def speaks() -> Callable[[], bool]:
    """Whether stdout, a file, has grown since."""
    size = os.fstat(1).st_size
    return lambda: os.fstat(1).st_size > size


@step
def child() -> None:
    """A child in the agent's own process group."""
    pid = spawn(f"exec sleep {FOREVER_S:.0f}", own_session=False)
    await_(lambda: sleeps(pid))


@step
def grandchild() -> None:
    """A child in a session of its own that holds stdout, ignores polite signals and goes on."""
    pid = spawn(f"trap '' INT TERM HUP; echo from the child; exec sleep {FOREVER_S:.0f}", own_session=True)
    await_(lambda: sleeps(pid))


@step
def chatterer() -> None:
    """A child in a session of its own that goes on writing to stdout."""
    spoken = speaks()
    spawn("while :; do echo still here; sleep 0.02; done", own_session=True)
    await_(spoken)


@step
def tool() -> None:
    """What agent CLIs run for a shell command: a shell in its own session that has children itself."""
    ours, theirs = os.pipe()
    os.dup2(theirs, TOLD)
    sleep = f"sleep {FOREVER_S:.0f} & echo $! >&{TOLD}"
    spawn(f"{sleep}; (setsid {sleep}); wait", own_session=True, fds=(TOLD,))
    with os.fdopen(ours) as lines:
        pids = [int(lines.readline()) for _ in range(2)]
    for pid in pids:
        record(pid)
    await_(lambda: all(map(sleeps, pids)))


@step
def daemon() -> None:
    """A child that cuts every tie: two forks, a session of its own, its parent gone."""
    ours, theirs = os.pipe()  # which closes when the daemon is no longer a copy of this program
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            record(os.getpid())
            os.execv("/bin/sleep", ["sleep", f"{FOREVER_S:.0f}"])  # noqa: S606 (it becomes the daemon)
        os._exit(0)
    os.close(theirs)
    os.wait()
    os.read(ours, 1)
    os.close(ours)


# --- the agent CLIs' own events (cut down to the fields that matter)


def event(**fields: object) -> None:
    reply(in_json(fields))


def in_json(value: object) -> str:
    """What `json` would write of it, which takes longer to import than all the rest of this program."""
    from _json import encode_basestring

    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return str(encode_basestring(value))
        case dict():
            return "{" + ", ".join(f"{in_json(key)}: {in_json(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(in_json, value)) + "]"
        case _:
            return repr(value)


def pieces(text: str) -> list[str]:
    """The text in up to three parts, as it streams."""
    size = len(text) // 3 + 1
    return [text[at : at + size] for at in range(0, len(text), size)]


@step
def claude_init() -> None:
    told = {"session_id": "5e551017-0000-4000-8000-000000000001", "model": "claude-fake-1"}
    event(type="system", subtype="init", **told, claude_code_version="2.1.197")


@step
def claude_request(tokens: str) -> None:
    """A request to its model begins, with so many tokens of input."""
    message = {"id": "msg_1", "usage": {"input_tokens": int(tokens), "output_tokens": 1}}
    event(type="stream_event", event={"type": "message_start", "message": message}, parent_tool_use_id=None)


@step
def claude_delta(text: str) -> None:
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    event(type="stream_event", event=delta, parent_tool_use_id=None)


@step
def claude_text(text: str) -> None:
    event(type="assistant", message={"role": "assistant", "content": [{"type": "text", "text": text}]})


@step
def claude_tool(name: str) -> None:
    """A tool call that stays open."""
    call = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {"command": "make test"}}
    event(type="assistant", message={"role": "assistant", "content": [call]})


@step
def claude_tool_end(output: str) -> None:
    tool_result(output, failed=False)


@step
def claude_tool_fail(output: str) -> None:
    tool_result(output, failed=True)


def tool_result(output: str, *, failed: bool) -> None:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": output, "is_error": failed}
    event(type="user", message={"role": "user", "content": [result]})


@step
def claude_retry(status: str) -> None:
    names = {401: "authentication_failed", 429: "rate_limit", 500: "server_error"}
    code = int(status)
    count = {"attempt": 1, "max_retries": 10, "retry_delay_ms": 60000}
    event(type="system", subtype="api_retry", **count, error_status=code, error=names[code])


@step
def claude_result(text: str) -> None:
    usage = {"input_tokens": 11, "output_tokens": 7, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 3}
    event(
        type="result",
        subtype="success",
        is_error=False,
        num_turns=1,
        result=text,
        total_cost_usd=0.0025,
        usage=usage,
        permission_denials=[],
        terminal_reason="completed",
    )


@step
def claude_like(text: str) -> None:
    """A whole turn of `claude -p --output-format stream-json`. `{prompt}` in the text is what came on stdin."""
    text = text.replace("{prompt}", prompt())
    claude_init()
    for piece in pieces(text):
        claude_delta(piece)
    claude_text(text)
    claude_result(text)


@step
def codex_like(text: str) -> None:
    """A whole turn of `codex exec --json`."""
    text = text.replace("{prompt}", prompt())
    event(type="thread.started", thread_id="01a1ffbb-0000-7000-8000-000000000002")
    event(type="turn.started")
    event(type="item.completed", item={"id": "item_0", "type": "agent_message", "text": text})
    event(type="turn.completed", usage={"input_tokens": 11, "cached_input_tokens": 3, "output_tokens": 7})


@step
def gemini_like(text: str) -> None:
    """A whole turn of `gemini --output-format stream-json`."""
    given = prompt()
    event(type="init", session_id="8ad16fc7-0000-4000-8000-000000000003", model="gemini-fake-1")
    event(type="message", role="user", content=given)
    for piece in pieces(text.replace("{prompt}", given)):
        event(type="message", role="assistant", content=piece, delta=True)
    stats = {"total_tokens": 18, "input_tokens": 11, "output_tokens": 7, "cached": 3, "tool_calls": 0}
    event(type="result", status="success", stats=stats)


def main(argv: list[str]) -> None:
    record(os.getpid())
    while argv:
        function = STEPS[argv[0]]
        needed = 1 + function.__code__.co_argcount
        function(*argv[1:needed])
        rest = argv[needed:]
        argv = rest[1:] if rest[:1] == ["+"] else []
    os._exit(0)  # everything is written already; children are nobody's business


if __name__ == "__main__":
    main(sys.argv[1:])
