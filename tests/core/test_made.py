"""Values that are made of others with some of the same fields."""

from __future__ import annotations

from types import MappingProxyType, SimpleNamespace

from msgspec import Struct, field

from teamchat.core.made import made_of


class Made(Struct, frozen=True):
    name: str
    words: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    number: int = 1


class Other(Struct, frozen=True):
    name: str
    number: int
    more: str = ""


def test_a_value_has_the_fields_that_both_have_and_those_that_are_given() -> None:
    assert made_of(Made, Other("max", 2, "more"), words=("a",)) == Made("max", ("a",), number=2)
    assert made_of(Made, Other("max", 2), number=3) == Made("max", number=3)


def test_lists_and_dicts_of_a_table_cannot_be_changed_afterwards() -> None:
    made = made_of(Made, SimpleNamespace(name="max", words=["a", "b"], env={"A": "1"}, strange=True))
    assert made.words == ("a", "b")
    assert isinstance(made.env, MappingProxyType)
    assert made.env == {"A": "1"}


def test_a_dict_of_a_value_stays_one() -> None:
    assert made_of(Made, Made("max", env={"A": "1"})).env == {"A": "1"}
