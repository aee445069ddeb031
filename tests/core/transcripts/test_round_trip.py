"""What is exported, imported and exported again is the same."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from msgspec.structs import replace

from teamchat.core.conversation.sessions.branch import branch
from teamchat.core.store.checking import problems
from teamchat.core.store.database import Database
from teamchat.core.store.sessions import remove_session
from teamchat.core.transcripts.collect import collect, redactor, without_secrets
from teamchat.core.transcripts.json_form import to_json, to_lines
from teamchat.core.transcripts.reading import Imported, read, store
from teamchat.core.transcripts.transcript import Transcript
from tests.core.transcripts.examples import EXAMPLE
from tests.core.transcripts.strategies import transcripts


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with closing(Database(tmp_path_factory.mktemp("store") / "store.db")) as opened:
        yield opened


NUMBERS = itertools.count()


def stored(db: Database, transcript: Transcript) -> Transcript:
    """The transcript after an import under a name of its own and an export, with its name again."""
    session = store(db, transcript, f"n{next(NUMBERS)}")
    found = collect(db, session, str)
    return replace(found, session=transcript.session, entries=tuple(found.entries))


@given(transcript=transcripts)
def test_a_transcript_is_read_from_json_as_it_was_written(transcript: Transcript) -> None:
    data = json.dumps(to_json(transcript)).encode()

    assert read(data) == Imported(transcript)


@given(transcript=transcripts)
def test_a_transcript_is_read_from_lines_as_it_was_written(transcript: Transcript) -> None:
    data = "\n".join(json.dumps(line, ensure_ascii=False) for line in to_lines(transcript)).encode()

    assert read(data) == Imported(transcript)


@given(transcript=transcripts)
def test_a_transcript_is_stored_and_collected_again_as_it_was(db: Database, transcript: Transcript) -> None:
    assert stored(db, transcript) == transcript


@given(transcript=transcripts)
def test_a_transcript_without_secrets_has_none_to_remove(transcript: Transcript) -> None:
    env = {"API_KEY": "000000", "TOKEN": "aaaaaaa"}
    clean, _ = without_secrets(transcript, redactor(env, None))

    assert without_secrets(clean, redactor(env, None)) == (clean, 0)


@given(transcript=transcripts)
def test_a_branch_of_an_imported_conversation_has_its_turns(db: Database, transcript: Transcript) -> None:
    session = store(db, transcript, f"n{next(NUMBERS)}")
    if not session.messages:
        return

    made = branch(db, session)

    shown = [said for said in transcript.said if not said.undone]
    whole = [said for said in collect(db, made, str).said if not said.undone]
    assert whole == shown


def test_an_imported_session_leaves_a_healthy_store_and_can_be_deleted(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "store.db")) as db:
        session = store(db, EXAMPLE, None)
        assert list(problems(db)) == []
        remove_session(db, session.id)
        assert db.rows("SELECT number FROM imported_entries") == []
        assert db.rows("SELECT id FROM messages") == []
