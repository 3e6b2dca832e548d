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
    """The value of `make()`, which is called once for each gallery, probe and name.

    Parameters
    ----------
    gallery, probe : RecordingSet
        What the value is about; the same set twice for what is about the gallery alone.
    name : str
        Of the value; says all that it depends on beside the sets.
    make : callable
        Works it out. An error is raised again each time.
    """
    kept = _KEPT.setdefault(gallery, WeakKeyDictionary()).setdefault(probe, {})
    if name not in kept:
        kept[name] = make()
    value: T = kept[name]
    return value
