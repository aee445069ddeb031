"""The word that a text gives as its verdict, in one of a few plain forms; any other text gives none. Pure.

A gate opens on it. So the forms that count are listed. Words that deny a verdict matter in a label and in the line
before.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from teamchat.core.text.invisible import INVISIBLE
from teamchat.core.text.last_word import LONGEST, behind_last_letter, ending, first_of_last_word, folded
from teamchat.patterns import regex

_MOST_WORDS = 5  # words in a label
_TURNS = "\u200e\u200f\u061c"  # the marks with which Arabic and Hebrew set a word in another script
_AROUND = f"\"'“”„‘’«»‹›「」『』()[]{{}}`|✅🟢✓✔☑{_TURNS}"
_MEANS = frozenset("%&@/\\?？؟՞;⸮‽⁇⁈⁉﹖")  # punctuation that says something beside a word
_UNSEEN = regex(f"[{INVISIBLE}]")
_MARKUP = regex(r"[*`]+|(?<![^\W_])_+|_+(?![^\W_])")
_STRIKES_NOTHING = regex(r"<(?:del|s|strike)>")  # the end is missing
_FENCE = regex(r"\s*(?:`{3,}|~{3,})")
_LIST_SIGNS = regex(r"(?:[\s|]|#{1,6}(?=\s)|[-+•◦▪‣](?=\s)|[0-9]{1,9}[.)](?=\s)|\[[xX]\](?=\s))+")
_LABEL = regex(rf"(?P<label>.*?)(?:->|[:=–—→|]|(?<=\s)(?:-|is)(?=\s))[\s{re.escape(_AROUND)}]*\Z", re.IGNORECASE)
_UNTICKED = regex(r"\[(?:[^\w\[\]]|_)*\]|\([\s_]*\)")
_DEFINITION = regex(r"\s*\[[^\]]*\]:")  # a link or a footnote
_CROSSES = "❌❎✗✘✕✖☒☐🚫⛔🛑🔴👎"
_CROSSED = regex(f"[{_CROSSES}]")
_DENIED = regex(rf"[?؟՞!¬≠❓❔{_CROSSES}]")
# No end of a sentence are `...` and the points of `e.g.` and `vs.`.
_SENTENCE_END = regex(
    r"(?<!\S)(?!(?:(?:[^\W\d_]\.)+|(?:vs|resp|approx|incl|excl|cf|ca|bzw)\.)\s)\S*[^\s.]\.(?=\s)"
    r"|(?<=\S)[!?؟]+(?=\s)|(?<=[^\x00-\u2fff])[!?]|[。।۔]",
    re.IGNORECASE,
)
_HEADING_OR_ROW = regex(r"\s*#{1,6}\s|\s*\|.*\|\s*\Z")
_GOES_ON = regex(r"(?:[,/|]|(?<![^\W_])(?:or|nor|and|oder|ou|o|или|或|または))\s*\Z", re.IGNORECASE)
_ANSWER = regex(
    r"(?:\A|[:=–—]|\s-)\s*(?:none|nope?|nein|keine|non|aucune?|ningun[oa]|nessun[oa]|não|nej|нет|无|無|なし)\Z",
    re.IGNORECASE,
)
_LETTERS = regex(r"[^\W_]+")
_NEGATION = regex(
    r"(?<![^\W_])(?:not|no|non|never|nor|neither|none|nothing|nobody|nowhere|without|cannot|hardly|barely|scarcely|nope"
    r"|(?:reject|refus|deni|deny|prevent|lack|forb|withh|block|miss|expect|want|fals|wrong|untru|oppos|impossib|unabl|veto"
    r"|fails?|failed|hypothe|almost|far from|anything but|instead of|n/a)\w*"
    r"|(?:is|are|was|were|do|does|did|has|have|had|ca|could|wo|would|should|must)nt"
    r"|nicht|nichts|nie|niemals|nein|kein(?:e[nmrs]?)?|ohne|weder|niet|geen|nooit|zonder|pas|ne|ni|jamais|aucune?|sans"
    r"|nunca|jamás|ningún|ningun[oa]|sin|tampoco|não|nem|nenhuma?|nessun[oa]?|senza|né|inte|ikk?j?e|aldrig?|ingen|inget"
    r"|utan|uten|uden|nigdy|bez|żaden|není|nikdy|нет|не|ни|никогда|без|ні|немає|değil|yok|hayır|δεν|όχι|χωρίς|nincs"
    r"|nu|fără|không|chưa|chẳng|tidak|bukan|belum|tanpa|لا|ليست?|لم|لن|غير|بدون|نه|نیست|לא|אין|ללא|בלי)(?![^\W_])"
    r"|n['’ʼ]t(?![^\W_])|[不没沒未无無非否勿别別莫]|ない|なかった|ません|않|아니|못|없|नहीं|ไม่"
)


def verdict_in(text: str, words: Sequence[str]) -> str | None:
    """Find which of the words the last line with a letter or a digit gives; None if it gives none of them.

    Around the word may be Markdown, punctuation, list signs, table bars and ticks. With these off, it is the line or
    its last sentence, or stands there behind a label of at most five words and a sign. It counts for nothing behind a
    label that has a negation, in a line that has another of the words before the label's sign, and where the line
    before runs into it: with a negation, or by ending as in `FAIL or`.
    """
    text = _STRIKES_NOTHING.sub("", ending(text))
    end = behind_last_letter(text)
    *earlier, line = text[:end].splitlines() or [""]
    start = first_of_last_word(line)
    last = folded(line[start : start + LONGEST + 1])
    word = next((word for word in words if folded(word) == last), None)
    if word is None or _DEFINITION.match(line):
        return None
    before = _plain(line[max(start - LONGEST, 0) : start])
    sentence = _last_sentence(before)
    behind = _UNSEEN.sub("", text[end:].partition("\n")[0])
    if any(_UNTICKED.search(beside) for beside in (sentence, behind)) or not _is_decoration(behind):
        return None
    if _CROSSED.search(text, end):  # also on a line below
        return None
    if sentence == before and (start > LONGEST or _runs_on(earlier)):
        return None
    if _is_decoration(sentence, "!"):
        return word
    asked = before.removesuffix(sentence).rstrip().endswith(("?", "؟"))
    others = [other for other in words if other != word]
    return None if asked or not _ends_label(sentence) or any(_names(before, other) for other in others) else word


def _plain(text: str) -> str:
    """Remove Markdown, list signs at the beginning, and invisible characters."""
    text = _MARKUP.sub("", _UNSEEN.sub("", unicodedata.normalize("NFKC", text)))
    signs = _LIST_SIGNS.match(text)
    return text[signs.end() :] if signs else text


def _last_sentence(text: str) -> str:
    begin = 0
    for end in _SENTENCE_END.finditer(text):
        begin = end.end()
    return text[begin:].lstrip() if begin else text


def _is_decoration(text: str, but: str = "") -> bool:
    return all(
        character.isspace()
        or character in _AROUND
        or (unicodedata.category(character)[0] == "P" and character not in _MEANS and character not in but)
        for character in set(text)
    )


def _ends_label(text: str) -> bool:
    """Whether the text is a label and a sign."""
    match = _LABEL.match(text)
    if not match:
        return False
    label = match["label"].strip(f"{_AROUND} \t")
    if label and unicodedata.category(label[-1])[0] in "PS":  # such as `!=`
        return False
    if sum(bool(_LETTERS.search(word)) for word in label.split()) > _MOST_WORDS:
        return False
    return not (_DENIED.search(label) or _negates(label))


def _runs_on(earlier: Sequence[str]) -> bool:
    """Whether the line before the last one, as in `It does not` and `FAIL or`, goes on in that one."""
    line = next((line for line in reversed(earlier) if not _FENCE.match(line)), "")
    if _HEADING_OR_ROW.match(line):
        return False
    if _GOES_ON.search(line):
        return True
    rest = _last_sentence(_plain(line).rstrip(f"{_AROUND} \t") + " ").rstrip()
    return _negates(rest) and not _ANSWER.search(rest)


def _negates(text: str) -> bool:
    return _NEGATION.search(folded(text)) is not None


def _names(text: str, word: str) -> bool:
    """Whether the word is in the text; `needs work` is NEEDS-WORK there."""
    within, named = (" ".join(_LETTERS.findall(folded(part))) for part in (text, word))
    cased = named != named.upper()  # scripts without case, such as Chinese, have no spaces between words
    return f" {named} " in f" {within} " if cased else named in within
