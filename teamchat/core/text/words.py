"""The words that a text is searched by, and the search as FTS5 understands it.

FTS5's `unicode61` takes a run of a script without spaces, such as Chinese or Thai, for one word, with what is glued to
it. So those characters are set apart where a text is indexed (`spaced`), and searched in adjacent pairs or as phrases.
"""

from __future__ import annotations

from collections import Counter
from heapq import nlargest
from itertools import chain, islice
from operator import add, itemgetter

from teamchat.patterns import regex

TOKENIZER = "porter unicode61 remove_diacritics 2"  # porter finds `tokens` by `token`
MOST = (64, 32, 16)  # words of the first text, the second, ...
LONGEST = 64  # characters of a word; a longer one is data
_CJK = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
_THAI_TO_KHMER = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # and Lao, Burmese
APART = f"{_CJK}\U00020000-\U0003ffff{_THAI_TO_KHMER}"
"""The characters of scripts that are written without spaces, and of Korean, for a class of a pattern."""
_APART = regex(f"[{APART}]")
_RUN = regex(rf"[{APART}]++|[^\W_{APART}]++")
_COMMON = """
    a about after all also an and any are as at be because been before but by can could did do does doing done for
    from get give go had has have he her here him his how if in into is it its just let like make me more most my
    need no not now of on one only or other our out over please said say see she should so some such tell than
    thank thanks that the their them then there these they this those to too up us use very want was we were what
    when where which while who why will with would yes you your
"""
STOP = frozenset(_COMMON.split())
"""English words that say nothing about a text's subject. In other languages bm25 gives common words no weight."""


def spaced(text: str) -> str:
    """`text` with each character of these scripts a word of its own."""
    return text if text.isascii() else _APART.sub(r" \g<0> ", text)


def match_query(*texts: str | None) -> str | None:
    """What FTS5 is asked for these texts (three at most): any of their words. None when there is none to search by."""
    words = chain.from_iterable(_most_common(text or "", most) for text, most in zip(texts, MOST, strict=False))
    # a quoted string is taken for words, whatever stands in it: no text can be syntax
    return " OR ".join(f'"{spaced(word).strip()}"' for word in dict.fromkeys(words)) or None


def _most_common(text: str, count: int) -> list[str]:
    """The words that come most often, those that come equally often in their order."""
    counted = dict[str, int]()  # no Counter: each word that comes once costs it a call
    for written, times in Counter(_RUN.findall(text)).items():  # a long text has few different ones
        run = written.casefold()
        if not run.isascii() and _APART.match(run):
            run = "".join(filter(str.isalnum, run))  # FTS5 drops tones and other marks, too
            for pair in map(add, run, islice(run, 1, None)) if len(run) > 1 else run:
                counted[pair] = counted.get(pair, 0) + times
        elif run not in STOP and (len(run) > 1 or run.isdigit()) and len(run) <= LONGEST:
            counted[run] = counted.get(run, 0) + times
    return [word for word, _ in nlargest(count, counted.items(), key=itemgetter(1))]
