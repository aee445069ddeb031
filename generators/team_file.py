"""docs/teamchat.schema.json and the tables of docs/team-file.md, from the models that read a team file.

A key's description is the docstring below it in the models' module. `{agents}` there stands for the built-in
agents, `{cost}` for those that report what a turn cost, `{stall}` for those whose silence may be of another length.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from typing import Any

from teamchat.core.agents import AGENT_TYPES, CLIS
from teamchat.core.team import schema as model
from teamchat.runners.base import FIRST_BYTE_S
from teamchat.runners.untrusted.json import listed

TABLES = {  # how a reader knows a table, by the model that reads it
    "TeamTable": "[team]",
    "LimitsTable": "[team.limits]",
    "MemberTable": "[[members]]",
    "KnowledgeTable": "[knowledge]",
    "ExperienceTable": "[experience]",
    "AgentTable": "[agents.NAME]",
    "ProcessTable": "[processes.NAME]",
    "CheckTable": "[checks.NAME]",
    "HooksTable": "[hooks]",
}

STALL = {row.name: row.runner.stall_s / 60 for row in CLIS}  # minutes
OTHERS = AGENT_TYPES["terminal"].runner.stall_s / 60
STALLS = [f"{minutes:g}m for `{name}`" for name, minutes in STALL.items() if minutes != OTHERS]
NAMES = {
    "{stall}": ", ".join((*STALLS, f"{OTHERS:g}m for others")),
    "{first_byte}": f"{FIRST_BYTE_S:g} s, and no limit for a plain program, which may answer at its end",
    "{agents}": ", ".join(f"`{row.name}`" for row in CLIS),
    "{cost}": listed(*(f"`{row.name}`" for row in CLIS if row.reports_cost)),
}
WORDS = {"array": "list of {}", "object": "table of {}", "integer": "whole number", "boolean": "`true`, `false`"}


def schema_text() -> str:
    """The text of docs/teamchat.schema.json."""
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "teamchat.toml"}
    return json.dumps({**about, **schema()}, indent=1, ensure_ascii=False) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of a team file, as an editor wants it: with descriptions, without nulls, which TOML has not."""
    whole = model.TeamFile.model_json_schema()
    told = descriptions()
    for name, table in whole["$defs"].items():
        for key, about in table["properties"].items():
            about.update({"description": told[name][field_of(name, key)]})
    cleaned: dict[str, Any] = without_nulls(whole)
    return cleaned


def field_of(table: str, key: str) -> str:
    """The field's name in the code for a key of the file: another one if the key is an alias."""
    fields = getattr(model, table).model_fields
    return str(next(name for name, field in fields.items() if key in {name, field.alias, field.validation_alias}))


def descriptions() -> dict[str, dict[str, str]]:
    """The docstrings below the fields, by class and field."""
    classes = [node for node in ast.parse(inspect.getsource(model)).body if isinstance(node, ast.ClassDef)]
    return {node.name: dict(documented(node)) for node in classes}


def documented(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in zip(node.body, node.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, with_names(" ".join(text.split()))


def with_names(text: str) -> str:
    for place, names in NAMES.items():
        text = text.replace(place, names)
    return text


def without_nulls(part: Any) -> Any:
    """A schema without the choice of null and without the titles that pydantic derives from names."""
    if isinstance(part, list):
        return [without_nulls(one) for one in part if one != {"type": "null"}]
    if not isinstance(part, dict):
        return part
    kept = {key: without_nulls(value) for key, value in part.items() if not made_up(key, value)}
    choices = kept.pop("anyOf", [])
    return {**choices[0], **kept} if len(choices) == 1 else {**kept, **({"anyOf": choices} if choices else {})}


def made_up(key: str, value: object) -> bool:
    return (key == "title" and isinstance(value, str)) or (key == "default" and value is None)


def tables() -> str:
    """The tables of keys of docs/team-file.md."""
    found = schema()["$defs"]
    return "\n".join(
        f"### `{heading}`\n\n| key | value | default | meaning |\n|---|---|---|---|\n{''.join(rows(found[name]))}"
        for name, heading in TABLES.items()
    )


def rows(table: dict[str, Any]) -> Iterator[str]:
    for key, about in table["properties"].items():
        if "$ref" not in about:  # a table of its own
            yield f"| `{key}` | {kind(about)} | {default(key, table, about)} | {about['description']} |\n"


def kind(about: dict[str, Any]) -> str:
    """The values that a key takes: "string", "list of strings", or the allowed words."""
    if words := about.get("enum"):
        return ", ".join(f"`{word}`" for word in words)
    if choices := about.get("anyOf"):
        return " or ".join(kind(choice) for choice in choices)
    inner = about.get("items") or about.get("additionalProperties")
    return WORDS.get(about["type"], "{}").format(f"{kind(inner)}s" if inner else about["type"])


def default(key: str, table: dict[str, Any], about: dict[str, Any]) -> str:
    if key in table.get("required", ()):
        return "required"
    return f"`{json.dumps(about['default'])}`" if "default" in about else ""
