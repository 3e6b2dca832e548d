"""`gazeveil.protect`: one call for every kind of mechanism, after a look at what it is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gazeveil import checks
from gazeveil.features import FeatureTable
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from gazeveil.privacy import registry
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.release import Release
from gazeveil.privacy.stream.mechanism import StreamMechanism

#: What each kind of mechanism takes: its types, and how they are called.
_TAKES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "stream": ((Recording, Cohort), "a Recording or a Cohort"),
    "cohort": ((Cohort,), "a Cohort"),
    "map": ((Cohort,), "a Cohort: a sum of maps does not say what one viewer adds"),
    "table": ((FeatureTable,), "a FeatureTable, as event_features and window_features make one"),
    "people": ((Cohort, Mapping), "a Cohort, or a mapping of person to attributes"),
}


def protect(
    data: Recording | Cohort | FeatureTable | Mapping[str, Mapping[str, object]],
    mechanism: Mechanism[Any] | str,
    seed: int | None = None,
    keep: Iterable[str] = (),
) -> Release[Any]:
    """Protect recordings, a feature table, heat maps or what is known about people.

    Parameters
    ----------
    data : Recording, Cohort, FeatureTable, or mapping of person to attributes
        What the mechanism's kind takes: `stream` a recording or a cohort, `cohort` and `map` a
        cohort, `table` a feature table, `people` a cohort or its `people`.
    mechanism : Mechanism or str
        A mechanism, or its text `name:parameter=value,...`.
    seed : int, optional
        For tests: repeatable noise, which gives no protection.
    keep : names of channels
        Passed on as they are; stream mechanisms alone.

    Returns
    -------
    Release
        `data` is a recording, a cohort, a feature table, heat maps by stimulus, or attributes by
        person; `guarantee` says what that promises.

    Raises
    ------
    ParameterError
        For data that a mechanism of this kind does not take.

    Examples
    --------
    >>> people = {name: {"age": 20 + i, "gender": "f"} for i, name in enumerate("abcd")}
    >>> protect(people, "demographics:k=4").data["a"]
    {'age': '20-23', 'gender': 'f'}
    """
    chosen = registry.mechanism(mechanism) if isinstance(mechanism, str) else mechanism
    if not isinstance(chosen, Mechanism):
        checks.refuse("protect", "mechanism", "a mechanism or its text", mechanism)
    types, accepted = _TAKES[chosen.kind]
    if not isinstance(data, types):
        checks.refuse(
            "protect",
            "data",
            f"{accepted}, for {chosen.name} of the kind '{chosen.kind}'",
            type(data).__name__,
            "A data frame becomes one with from_frame."
            if hasattr(data, "columns")
            else "`gazeveil.mechanisms()` lists the others.",
        )
    raw = data if isinstance(data, Cohort | Recording) else None
    if isinstance(chosen, StreamMechanism):
        return replace(chosen.release(data, seed=seed, keep=keep), raw=raw)
    kept = tuple(keep)
    if kept:
        checks.refuse(
            "protect",
            "keep",
            f"empty: {chosen.name} makes everything anew, so nothing of the raw data can be kept",
            kept,
            "Leave it out, or choose a mechanism of the kind 'stream'.",
        )
    if chosen.kind == "people" and isinstance(data, Cohort):
        data = data.people
    return replace(chosen.release(data, seed=seed), raw=raw)
