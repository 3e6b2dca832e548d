"""Files without participant names: no identification is possible, all else can be measured.

The runs of VR-Saliency may carry no viewer, and the rows of the public arrays of DGaze and EHTask
never do. An attacker needs two recordings of a participant, with different stimuli, to learn from.
"""

from __future__ import annotations

from collections.abc import Iterable

from gazeveil.gaze.recording import RecordingKey

_WHY = "the files do not say who looked (nobody has recordings of two stimuli under one name)"

NAMELESS = f"{_WHY}, so no attacker is asked"

SIMULATED_INSTEAD = f"{_WHY}, so people are simulated"


def are_nameless(keys: Iterable[RecordingKey]) -> bool:
    """Whether no participant has recordings of two stimuli, tasks or sessions.

    Examples
    --------
    >>> are_nameless([("run 1", "park", "1", ""), ("run 2", "park", "1", "")])
    True
    >>> are_nameless([("ann", "park", "1", ""), ("ann", "sea", "1", "")])
    False
    """
    seen: dict[str, RecordingKey] = {}
    return all(seen.setdefault(key[0], key) == key for key in keys)
