"""What attackers worked out about a pair of recording sets, for other attackers who ask the same.

`fusion` adds up what `steps` and `rocket` say, and all of them are run on the same sets: each
judgement is made once and forgotten with the sets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from gazeveil.features.recording_set import RecordingSet

T = TypeVar("T")

_Of = WeakKeyDictionary[RecordingSet, dict[str, Any]]
_KEPT: WeakKeyDictionary[RecordingSet, _Of] = WeakKeyDictionary()


def remembered(gallery: RecordingSet, probe: RecordingSet, name: str, make: Callable[[], T]) -> T:
    """The value of `make()`, which is called once for each gallery, probe (the gallery again for
    what is about it alone) and name, which says all that the value depends on beside the sets. An
    error is raised again each time.
    """
    kept = _KEPT.setdefault(gallery, WeakKeyDictionary()).setdefault(probe, {})
    if name not in kept:
        kept[name] = make()
    value: T = kept[name]
    return value


def forget_pairs() -> None:
    """Let go of what is about two sets: nobody asks about them again. What is about a gallery alone
    stays as long as the gallery does.
    """
    # Lists of references are made in one step, whatever threads do beside.
    for held in _KEPT.keyrefs():
        gallery = held()
        pairs = None if gallery is None else _KEPT.get(gallery)
        for other in [] if pairs is None else pairs.keyrefs():
            probe = other()
            if pairs is not None and probe is not None and probe is not gallery:
                pairs.pop(probe, None)
