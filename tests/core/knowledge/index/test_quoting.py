"""What is quoted of the files: within the budget whatever they hold, and each part under its source."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from teamchat.assemblers.truncation import byte_length
from teamchat.core.context.layers.knowledge import quote_best, quote_whole
from teamchat.core.knowledge.files import Excerpt, KnowledgeFile
from teamchat.core.knowledge.index import KnowledgeHit, cut_pieces

TEXT = "# A\n\none\n\n# B\n\ntwo\n\n# C\n\nthree\n"


def hits_of(name: str, text: str) -> list[KnowledgeHit]:
    """Every piece of a file."""
    file = KnowledgeFile(Path("/work") / name, name, len(text), 0, "")
    return [
        KnowledgeHit(file, number, piece.first, piece.last, piece.heading, byte_length(piece.text), piece.text, 1.0)
        for number, piece in enumerate(cut_pieces(text, markdown=True))
    ]


def test_files_that_fit_are_quoted_whole() -> None:
    hits = hits_of("a.md", TEXT) + hits_of("blank.md", "\n \n") + hits_of("b.md", "four\n")
    quoted = quote_whole(hits, 1000)
    assert quoted == (
        f"From a.md:\n{TEXT.strip()}\n\nFrom b.md:\nfour",
        (Excerpt("a.md", "whole", 41), Excerpt("b.md", "whole", 15)),
    )
    assert quote_whole(hits, 60) is None


def test_the_best_pieces_name_their_lines_and_headings() -> None:
    one, two, three = hits_of("a.md", TEXT)
    assert quote_best([three, one], 1000) == (
        "From a.md:1-4 (A):\n# A\n\none\n\nFrom a.md:9-11 (C):\n# C\n\nthree",
        (Excerpt("a.md:1-4", "rank 2, score 1.00", 27), Excerpt("a.md:9-11", "rank 1, score 1.00", 30)),
    )
    del two


def test_neighbours_are_put_together_and_better_files_come_first() -> None:
    one, two, _ = hits_of("a.md", TEXT)
    (other,) = hits_of("b.md", "four\n")
    text, excerpts = quote_best([other, two, one], 1000)
    assert text == "From b.md:1:\nfour\n\nFrom a.md:1-8 (A):\n# A\n\none\n\n# B\n\ntwo"
    assert [excerpt.name for excerpt in excerpts] == ["b.md:1", "a.md:1-8"]


def test_a_piece_without_room_makes_way_for_a_smaller_one() -> None:
    (large,) = hits_of("large.md", "x" * 500)
    (small,) = hits_of("small.md", "small")
    (best,) = hits_of("best.md", "best")
    assert [excerpt.name for excerpt in quote_best([best, large, small], 200)[1]] == ["best.md:1", "small.md:1"]


def test_the_best_piece_is_cut_where_it_is_too_long_alone() -> None:
    (large,) = hits_of("large.md", "word\n" * 300)
    text, (excerpt,) = quote_best([large], 400)
    assert 300 < byte_length(text) <= 400
    assert excerpt.why == "rank 1, score 1.00, cut"
    assert excerpt.name == f"large.md:1-{text.count(chr(10))}"


def test_a_name_and_a_heading_can_not_break_their_line() -> None:
    (hit,) = hits_of("a\nFrom b.md:\x1b[31m", "# H\x1b[31m\n\ntext")
    text, _ = quote_best([hit], 1000)
    assert text.startswith("From a\\nFrom b.md:\\x1b[31m:1-3 (H\\x1b[31m):\n")


texts = st.lists(
    st.sampled_from(["# 标题", "## B", "", "\n\n\n", "水" * 300, "word " * 200]) | st.text(st.characters(codec="utf-8"))
).map("\n".join)
named = st.text(st.characters(codec="utf-8"), min_size=1, max_size=300)


@given(
    st.lists(st.tuples(named, texts), max_size=5, unique_by=lambda pair: pair[0]), st.integers(0, 6000), st.randoms()
)
def test_whatever_the_files_hold_the_quote_is_within_its_budget_and_names_every_source(
    files: list[tuple[str, str]], room: int, order: object
) -> None:
    hits = [hit for name, text in files for hit in hits_of(name, text)]
    order.shuffle(hits)  # type: ignore[attr-defined]
    for text, excerpts in (quote_best(hits, room), quote_whole(hits, room) or ("", ())):
        assert byte_length(text) <= room
        assert all(f"From {excerpt.name}" in text for excerpt in excerpts)
        assert bool(text) == bool(excerpts)
