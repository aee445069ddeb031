from __future__ import annotations

import json
from importlib.resources import files

from teamchat.core.cassette.format import Entry, Header, schema
from tests.program import ROOT


def test_every_line_of_the_demo_is_as_the_models_have_it_to_the_letter() -> None:
    first, *rest = files("teamchat.cli").joinpath("demo.cassette").read_text(encoding="utf-8").splitlines()
    Header.model_validate_json(first)
    for line in rest:
        (key,) = json.loads(line)
        entry = Entry.model_validate_json(line, strict=True)
        assert entry.model_dump(mode="json", exclude_unset=True) == json.loads(line), key


def test_the_page_names_every_field_of_a_line() -> None:
    page = (ROOT / "docs" / "cassettes.md").read_text(encoding="utf-8")
    definitions = json.loads(schema())["$defs"]
    for name in ("Header", "HumanLine", "ResumeLine", "TurnLine", "CheckLine", "CutLine", "ErrorLine", "EndLine"):
        for field in definitions[name]["properties"]:
            assert f"`{field}`" in page, f"{name}.{field}"
