"""Names of people, looked for wherever they may stand once they are known."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SHORTEST, _LONG_NUMBER = 3, 8
_LETTER = re.compile(r"[^\W\d_]")
_PART = re.compile(r"[^\W\d_]{4,}")
#: Two or three words with capitals: first name and surname.
_FULL_NAME = re.compile(r"[^\W\d_][\w.'-]*(?: [^\W\d_][\w.'-]*){1,2}")
_COMMON = frozenset({"recording", "study", "project", "test", "image", "gaze", "labor", "trial"})


def name_pattern(names: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern that finds any of some names as a word of its own, or None without names.

    Names of fewer than three characters and numbers of fewer than eight would be found everywhere
    and are left out. Of a first name and a surname, each of at least four letters is looked for as
    well.

    Examples
    --------
    >>> pattern = name_pattern(["Anna Schmidt", "7"])
    >>> [m[0] for m in pattern.finditer("17 schmidt_run2, Anna Schmidt, Annalena")]
    ['schmidt', 'Anna Schmidt']
    """
    words: set[str] = set()
    for name in names:
        plain = name.strip()
        if len(plain) >= _LONG_NUMBER or (len(plain) >= _SHORTEST and _LETTER.search(plain)):
            words.add(plain)
            if _is_full_name(plain):
                words.update(_PART.findall(plain))
    if not words:
        return None
    longest_first = sorted(words, key=lambda w: (-len(w), w))
    # A blank of a name is often gone or another sign in file names.
    inside = "|".join(r"[\W_]{0,2}".join(map(re.escape, word.split())) for word in longest_first)
    return re.compile(rf"(?<![^\W_])(?:{inside})(?![^\W_])", re.IGNORECASE)


def _is_full_name(text: str) -> bool:
    words = text.split()
    return (
        _FULL_NAME.fullmatch(text) is not None
        and all(word[0].isupper() for word in words)
        and not any(word.lower() in _COMMON for word in words)
    )
