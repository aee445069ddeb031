"""The reading of replies by `until`: a review, or the people that the doer asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from teamchat.core.engine.processes.replies import written_object
from teamchat.core.engine.processes.until_round import PLANNER, REVIEWER
from teamchat.core.engine.workflow import DOER, Fault, Finding, Part, Process, Review, ReviewFinding, Tried
from teamchat.core.routing.requests import RouteRequest
from teamchat.patterns import regex

MOST_FINDINGS = 200
LONGEST_TEXT = 2_000  # characters of a finding that are kept; the message has all of it
LONGEST_NAME = 300  # characters of a file's name in a finding
_VERDICT = regex(r'"verdict"\s*+:\s*+"([A-Za-z]{1,20})"')


def read(process: Process, part: Part, text: str, requests: Sequence[RouteRequest]) -> Finding | None:
    """Read a review, or the people that the doer asks: it can call nobody else."""
    if part.role == DOER:
        others = {process.do, *process.review, *process.excluded}
        return Tried(asks=tuple(request for request in requests if request.target not in others))
    if part.role == PLANNER:
        return Tried()
    return read_review(text, part.number) if part.role == REVIEWER else None


def read_review(text: str, round_: int | None = None) -> Review | Fault:
    """Read the review in a reply, or say what is wrong with it. With `round_`, it must be of that round."""
    written = written_object(text)
    if isinstance(written, Fault):
        return written
    value = written.value
    if wrong := _wrong(text, value, round_):
        return Fault(wrong)
    read_all = [_finding(finding) for finding in value.get("findings", [])]
    if wrong := next(
        (f"finding {number} {fault}" for number, fault in enumerate(read_all, 1) if isinstance(fault, str)), ""
    ):
        return Fault(wrong)
    findings = tuple(finding for finding in read_all[:MOST_FINDINGS] if isinstance(finding, ReviewFinding))
    return Review(value["verdict"] == "PASS", findings, len(read_all) - len(findings))


def _wrong(text: str, value: dict[str, Any], round_: int | None) -> str | None:
    """Say what is wrong with the object of a review, its findings aside."""
    verdict, findings = value.get("verdict"), value.get("findings", [])
    wrong = None
    if verdict not in ("PASS", "FAIL"):
        wrong = '"verdict" is neither "PASS" nor "FAIL"'
    elif {word.upper() for word in _VERDICT.findall(text)} - {verdict}:
        wrong = "it has two verdicts"
    elif round_ is not None and value.get("round", round_) != round_:
        wrong = f'"round" is not {round_}'
    elif not isinstance(findings, list):
        wrong = '"findings" is not a list'
    elif verdict == "FAIL" and not findings:
        wrong = "it says FAIL without a finding"
    return wrong


def _finding(written: object) -> ReviewFinding | str:
    """Read a finding, or say what is wrong with it."""
    if isinstance(written, str):
        written = {"text": written}
    if not isinstance(written, dict):
        return "is neither an object nor a text"
    text, file, severity = (written.get(key) or "" for key in ("text", "file", "severity"))
    if not isinstance(text, str) or not text.strip():
        return 'has no "text"'
    if not isinstance(file, str) or not isinstance(severity, str):
        return 'has a "file" or a "severity" that is no text'
    line = written.get("line")
    if isinstance(line, str) and line.strip().isdecimal():
        line = float(line)
    number = int(line) if isinstance(line, float) and line.is_integer() and 0 < line < 1e9 else None
    return ReviewFinding(text.strip()[:LONGEST_TEXT], file[:LONGEST_NAME], number, severity[:40])
