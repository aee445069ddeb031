"""Every recorded run of the real CLIs is judged as a person who reads it would judge it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from teamchat.runners.agent_events import FailureKind, Note
from tests.runners.captures import RUNNERS, Cli, captures, lines, replay

# By hand, from reading the recordings; whatever is not named here is a success.
FAILURES: dict[Cli, dict[FailureKind, str]] = {
    "claude": {
        FailureKind.GONE: "nopersist_resume resume_other_cwd resume_unknown",
        FailureKind.LOGIN: "e401 e403 noauth retries0_401",
        FailureKind.RATE_LIMIT: "credit_low e429_forever",
        FailureKind.BUDGET: "max_budget",
        FailureKind.TOO_LARGE: "prompt_too_long",
        FailureKind.REFUSED: "perm_bypass_mode skip_perms_root",
        FailureKind.INTERRUPTED: "sig_stream_SIGINT_group sig_tool_SIGINT_group sig_tool_SIGINT_pid "
        "sig_stream_SIGINT_pid_2.1.260 sig_stream_SIGINT_pid_2.1.330",
        FailureKind.OVERLOADED: """
            connrefused drop_before_forever drop_mid_forever e500_forever e529_forever_retries2 eof_mid error_event
            hang_before nonstream_fallback_off retries0_refused retries2_500 retries2_500_nopartial
            sig_backoff_SIGINT_pid sig_backoff_SIGTERM_pid timeout_before""",
        FailureKind.AGENT: """
            bad_claude_json badflag badmode e400 empty_reply epipe invalid_model max_tokens max_turns
            noverbose partial_without_stream pty_nothing pty_typed_stdin resume_notuuid
            session_id_reuse sig_stream_SIGHUP_pid sig_stream_SIGINT_pid
            sig_stream_SIGKILL_group sig_stream_SIGKILL_pid sig_stream_SIGTERM_group sig_stream_SIGTERM_pid
            sig_tool_SIGHUP_pid sig_tool_SIGKILL_group sig_tool_SIGKILL_pid sig_tool_SIGTERM_group
            sig_tool_SIGTERM_pid sig_wait_SIGINT_pid sig_wait_SIGTERM_pid ss_empty_slash ss_user_slash
            stdin_closed_noprompt stdin_devnull_noprompt stdin_empty stdin_open stdin_slash_bare stdin_slash_clear
            stdin_slash_compact stdin_slash_config stdin_slash_context stdin_slash_disable stdin_slash_disable_cost
            stdin_slash_disable_help stdin_slash_help stdin_slash_memory stdin_slash_model stdin_slash_quit
            stdin_slash_safe stdin_slash_status stdin_slash_unknown stdin_slash_usage stdin_ws stream_watchdog
            sys_both sys_file_missing timeout_mid watchdog_both watchdog_byte""",
    },
    "codex": {
        FailureKind.GONE: "ephemeral_resume resume_unknown",
        FailureKind.LOGIN: "e401 e403 noauth noauth_login_required retries0_401",
        FailureKind.RATE_LIMIT: "e429_forever insufficient_quota",
        FailureKind.TOO_LARGE: "context_length stdin_size_11000000 stdin_size_5000000",
        FailureKind.REFUSED: "nogitcheck_flag_absent",
        FailureKind.OVERLOADED: """
            connrefused connrefused_bounded connrefused_bounded_fast drop_before_forever drop_mid_forever e500_forever
            eof_mid error_event hang_mid idle_timeout retries0_500""",
        FailureKind.AGENT: """
            C_after_resume argprompt_stdin_open bad_config badflag e400 empty_reply epipe hang_before
            hang_before_idle invalid_model last_message_fail max_tokens nobody_home_ro pty_nothing
            resume_sandbox_after same_session_parallel_1 sig_backoff_SIGINT_pid
            sig_backoff_SIGTERM_group sig_stream_SIGHUP_pid sig_stream_SIGINT_group sig_stream_SIGINT_pid
            sig_stream_SIGINT_pid_native sig_stream_SIGKILL_group sig_stream_SIGKILL_pid
            sig_stream_SIGKILL_pid_native sig_stream_SIGTERM_group sig_stream_SIGTERM_pid
            sig_stream_SIGTERM_pid_native sig_tool_SIGHUP_pid sig_tool_SIGINT_group sig_tool_SIGINT_pid
            sig_tool_SIGINT_pid_nosandbox sig_tool_SIGINT_pid_ws1 sig_tool_SIGINT_pid_ws2 sig_tool_SIGKILL_group
            sig_tool_SIGKILL_group_nosandbox sig_tool_SIGKILL_group_ws1 sig_tool_SIGKILL_group_ws2
            sig_tool_SIGKILL_pid sig_tool_SIGTERM_group sig_tool_SIGTERM_group_nosandbox sig_tool_SIGTERM_group_ws1
            sig_tool_SIGTERM_group_ws2 sig_tool_SIGTERM_pid sig_tool_SIGTERM_pid_nosandbox sig_tool_SIGTERM_pid_ws1
            sig_tool_SIGTERM_pid_ws2 sig_wait_SIGINT_pid sig_wait_SIGTERM_group stdin_bad_utf8 stdin_closed_noprompt
            stdin_devnull_noprompt stdin_empty stdin_open stdin_ws""",
    },
    "gemini": {
        FailureKind.GONE: "resume_other_cwd resume_unknown",
        FailureKind.LOGIN: "e401 e403 key_notype noauth noauth_notype",
        FailureKind.RATE_LIMIT: "e429_forever quota_day",
        FailureKind.TOO_LARGE: "stdin_size_11000000",
        FailureKind.REFUSED: "geminimd_untrusted untrusted_yolo",
        FailureKind.OVERLOADED: """
            connrefused drop_before_forever drop_mid_forever e500_forever eof_mid error_event hang_before retries1_500
            retries1_refused retries2_500 sig_backoff_SIGINT_group sig_backoff_SIGTERM_group ss_max1 ss_max2
            sysset_500 us_max1_skiptrust""",
        FailureKind.AGENT: """
            bad_settings badflag drop_mid_once_json drop_mid_once_text e400 empty_reply epipe hang_mid invalid_model
            list_sessions loop_detected loop_detected_short nobody_home_ro pty_nothing pty_typed_stdin
            screen_json session_id_reuse sig_stream_SIGHUP_pid
            sig_stream_SIGINT_group sig_stream_SIGINT_pid sig_stream_SIGINT_pid_norelaunch sig_stream_SIGKILL_group
            sig_stream_SIGKILL_pid sig_stream_SIGKILL_pid_norelaunch sig_stream_SIGTERM_group
            sig_stream_SIGTERM_group_norelaunch sig_stream_SIGTERM_pid sig_stream_SIGTERM_pid_norelaunch
            sig_tool_SIGHUP_pid sig_tool_SIGINT_group sig_tool_SIGINT_pid sig_tool_SIGINT_pid_norelaunch
            sig_tool_SIGKILL_group sig_tool_SIGKILL_pid sig_tool_SIGKILL_pid_norelaunch sig_tool_SIGTERM_group
            sig_tool_SIGTERM_group_norelaunch sig_tool_SIGTERM_pid sig_tool_SIGTERM_pid_norelaunch
            sig_wait_SIGINT_group sig_wait_SIGTERM_group stdin_closed_noprompt stdin_devnull_noprompt stdin_empty
            stdin_open stdin_size_5000000 stdin_slash_model stdin_slash_proj stdin_slash_quit sysmd_missing""",
    },
    "opencode": {
        FailureKind.GONE: "resume_unknown",
        FailureKind.LOGIN: "e401 e403",
        FailureKind.RATE_LIMIT: "credit_low",
        FailureKind.TOO_LARGE: "context_length",
        FailureKind.OVERLOADED: "connrefused e500_forever",
        FailureKind.AGENT: """
            badflag e400 empty_reply invalid_model noauth sig_stream_SIGTERM_group sig_tool_SIGKILL_group
            sig_tool_SIGTERM_group stdin_empty""",
    },
}
CLIS: tuple[Cli, ...] = ("claude", "codex", "gemini", "opencode")
CASES = [(cli, name) for cli in CLIS for name in captures(cli)]


def expected_kind(cli: Cli, name: str) -> FailureKind | None:
    return next((kind for kind, names in FAILURES[cli].items() if name in names.split()), None)


def events_of(data: bytes) -> Iterator[dict[str, object]]:
    """The JSON objects of a stream, read without the code under test."""
    for line in lines(data):
        if line.startswith(b"{"):
            yield json.loads(line)


def expected_reply(cli: Cli, stdout: bytes) -> str:
    reply = ""
    for event in events_of(stdout):
        match event:
            case {"type": "result", "result": str(text)} if cli == "claude":
                reply = text
            case {"type": "item.completed", "item": {"type": "agent_message", "text": str(text)}}:
                reply = text
            case {"type": "message", "role": "assistant", "content": str(text)} if cli == "gemini":
                reply += text
            case {"type": "tool_use" | "tool_result"} if cli == "gemini":
                reply = ""
            case {"type": "text", "part": {"text": str(text)}}:
                reply += text
            case {"type": "step_start"}:
                reply = ""
    return reply


@pytest.mark.parametrize(("cli", "name"), CASES)
def test_a_recorded_run_gets_the_verdict_it_deserves(cli: Cli, name: str) -> None:
    _, verdict = replay(cli, name)
    assert (verdict.failure.kind if verdict.failure else None) == expected_kind(cli, name)


@pytest.mark.parametrize("cli", CLIS)
def test_the_table_of_failures_names_only_recorded_runs(cli: Cli) -> None:
    named = [name for names in FAILURES[cli].values() for name in names.split()]
    assert len(named) == len(set(named))
    assert set(named) <= set(captures(cli))


@pytest.mark.parametrize("cli", CLIS)
def test_no_run_that_was_killed_or_exited_with_a_code_is_a_success(cli: Cli) -> None:
    ended_badly = [found.name for found in captures(cli).values() if found.exit_code != 0 or found.timed_out]
    assert len(ended_badly) > 10
    assert [name for name in ended_badly if replay(cli, name)[1].failure is None] == []


@pytest.mark.parametrize(("cli", "name"), [case for case in CASES if expected_kind(*case) is None])
def test_the_reply_is_what_the_cli_calls_its_answer(cli: Cli, name: str) -> None:
    _, verdict = replay(cli, name)
    assert verdict.text == expected_reply(cli, captures(cli)[name].stdout)
    assert verdict.text.strip()


@pytest.mark.parametrize(("cli", "name"), [case for case in CASES if expected_kind(*case) is not None])
def test_a_failure_says_one_clean_line_and_how_to_log_in(cli: Cli, name: str) -> None:
    _, verdict = replay(cli, name)
    assert verdict.failure is not None
    reason = verdict.failure.reason
    assert reason.isprintable()
    assert len(reason) < 600
    assert not any(noise in reason for noise in ("STARTUP", "Ripgrep", "    at ", '{"error"', "[API Error"))
    assert (verdict.failure.hint is not None) == (verdict.failure.kind is FailureKind.LOGIN)


@pytest.mark.parametrize(
    ("cli", "name", "reason"),
    [
        ("claude", "noauth", "is not logged in, or the login was refused: Not logged in · Please run /login"),
        ("claude", "badflag", "reported an error: unknown option '--nope'"),
        ("claude", "max_turns", "reported an error: Reached maximum number of turns (1)"),
        ("claude", "max_budget", "used up its budget: Reached maximum budget ($0.0001)"),
        ("claude", "empty_reply", "finished without an answer"),
        ("claude", "sig_stream_SIGTERM_pid", "was ended by SIGTERM before it had finished its answer"),
        ("claude", "sig_tool_SIGINT_pid", "was interrupted"),
        ("codex", "e400", "reported an error: mock says 400"),
        ("codex", "connrefused", "got no answer from its model's service: Connection failed: error sending request"),
        ("codex", "sig_stream_SIGKILL_pid", "was ended by SIGKILL before it had finished its answer"),
        ("gemini", "e429_forever", "reached a rate limit or quota: mock says 429"),
        ("gemini", "e500_forever", "got no answer from its model's service: mock says 500"),
        ("gemini", "badflag", "reported an error: Unknown argument: nope"),
        ("opencode", "e400", "reported an error: messages: something is wrong"),
        ("opencode", "e500_forever", "got no answer from its model's service: Internal server error"),
        ("opencode", "sig_tool_SIGTERM_group", "was ended by SIGTERM before it had finished its answer"),
        ("opencode", "stdin_empty", "reported an error: You must provide a message or a command"),
        ("gemini", "loop_detected_short", "reported an error: Loop detected, stopping execution"),
    ],
)
def test_reasons_read_on_after_the_name_of_the_member(cli: Cli, name: str, reason: str) -> None:
    _, verdict = replay(cli, name)
    assert verdict.failure is not None
    assert verdict.failure.reason == reason


@pytest.mark.parametrize(
    ("cli", "name", "partial"),
    [
        ("claude", "drop_mid_forever", "one two "),
        ("claude", "sig_stream_SIGKILL_pid", "start tick0 tick1 tick2 tick3 "),
        ("codex", "max_tokens", "one two three "),
        ("gemini", "drop_mid_forever", "one two three "),
    ],
)
def test_the_partial_text_of_a_failed_run_is_kept(cli: Cli, name: str, partial: str) -> None:
    _, verdict = replay(cli, name)
    assert verdict.text == partial


def test_error_messages_of_the_cli_are_no_partial_text() -> None:
    for name in ("noauth", "e500_forever", "invalid_model"):
        _, verdict = replay("claude", name)
        assert not verdict.text


@pytest.mark.parametrize("cli", CLIS)
def test_lines_that_are_no_events_become_notes(cli: Cli) -> None:
    parser = RUNNERS[cli].parser()
    assert [type(event) for event in parser.feed(b"Memory is currently empty.")] == [Note]
    assert list(parser.feed(b"")) == []
