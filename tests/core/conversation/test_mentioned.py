"""The `@paths` of a person's message: an image goes with it, and a file is up to the member's CLI."""

from __future__ import annotations

from pathlib import Path

import pytest

from teamchat.core.conversation.mentioned import illustrated, with_labels
from teamchat.core.errors import UsageError
from teamchat.core.store.images import LARGEST_IMAGE
from tests.images import png

SHOT = "a shot.png"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    for name in ("red.png", SHOT):
        (tmp_path / name).write_bytes(png())
    (tmp_path / "text.png").write_text("text")
    return tmp_path


def test_images_become_labels_and_what_was_pasted_moves_with_the_text(folder: Path) -> None:
    text = f'See @red.png, and @"{folder}/{SHOT}":\na\n@red.png\nb\nthen @red.png'
    begin, end = text.index("a\n@"), text.index("b\nthen")
    shown = illustrated(text, len(text), ((begin, end),), folder)
    assert shown.text == 'See [image: red.png], and @"{0}":\na\n@red.png\nb\nthen [image: red.png]'.replace(
        '@"{0}"', "[image: a shot.png]"
    )
    assert [image.name for image in shown.images] == ["red.png", SHOT, "red.png"]
    assert [shown.text[a:b] for a, b in shown.pasted] == ["a\n@red.png\n"]
    assert shown.typed == len(shown.text)


@pytest.mark.parametrize(
    "text",
    [
        "a@red.png",
        "`@red.png`",
        "red.png",
        "@text.png",
        "@gone",
        "/review @red.png",
        "[NEXT: max] /review @red.png",
        "@.",
    ],
)
def test_what_is_no_mention_of_an_image_stays(folder: Path, text: str) -> None:
    shown = illustrated(text, len(text), (), folder)
    assert (shown.text, shown.images, shown.missing) == (text, (), ())


def test_only_what_was_typed_counts_and_what_is_missing_is_named(folder: Path) -> None:
    shown = illustrated("@gone.png\n\n@red.png", len("@gone.png"), (), folder)
    assert (shown.text, shown.images, shown.missing) == ("@gone.png\n\n@red.png", (), ("gone.png",))


def test_an_image_that_is_too_large_and_more_than_ten_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="at most 10 images, and there are 11"):
        illustrated("@red.png " * 11, 99, (), folder)
    (folder / "red.png").write_bytes(png() + bytes(LARGEST_IMAGE))
    with pytest.raises(UsageError, match=r"red\.png has 5,\d{3},\d{3} bytes, and an image may have 5,242,880"):
        illustrated("@red.png", 8, (), folder)


def test_a_long_path_of_an_image_is_shown_as_its_label() -> None:
    assert with_labels('@"/tmp/a b.png" @red.png @/etc/hosts') == "[image: a b.png] @red.png @/etc/hosts"
