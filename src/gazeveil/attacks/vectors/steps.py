"""`steps` vectors: movement, lost samples and places, at many time scales.

Seven kinds of numbers for each recording, some 750 in all: steps between means over 0.02 to 3.2 s;
the same steps against those of the other people; lost samples, pauses and lengths; how long places
are held, where they are; the power in bands of frequency; a coarse map; and the distance to the
other people's mean path.
"""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

import numpy as np

from gazeveil.arrays import Floats, frozen
from gazeveil.attacks.vectors import movement, places
from gazeveil.attacks.vectors.paths import (
    Path,
    crowds,
    mean_direction,
    path_of_sums,
    sample_weights,
    slot_sums,
    steps_of_sums,
)
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.recording import Recording

#: Lengths of slots in seconds; each a whole multiple of the first.
SLOTS_S = (0.02, 0.04, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)

#: Slots in which people are compared with the others, of the spectrum and of the map.
_CROWD_S = (0.2, 0.8)
_SPECTRUM_S = 0.04
_MAP_S = 0.2

# How many of the first slots each slot is.
_MANY = {slot_s: round(slot_s / SLOTS_S[0]) for slot_s in SLOTS_S}

# Numbers of a recording without the others, and the paths that are compared with theirs.
_Alone = tuple[list[Floats], dict[float, Path] | None]

# Several splits ask for parts of one release: what a recording shows alone is worked out once. Of
# other sets it is not kept, because their vectors are, and paths of thousands of recordings weigh
# as much again.
_KEPT: WeakKeyDictionary[RecordingSet, list[_Alone]] = WeakKeyDictionary()

#: A slot needs this many sample periods, else most of its steps are unknown.
_PERIODS = 0.9


def vectors(recording_set: RecordingSet) -> RecordingVectors:
    """Vectors of the recordings of a recording set that has samples; those of a recording
    without any sample are NaN.
    """
    keys = recording_set.keys
    own = _each_alone(recording_set)
    wide = [paths_of for _, paths_of in own]
    among = _among_others(wide, [key[0] for key in keys], [key[1] for key in keys])
    columns, blocks = _columns()
    values = np.empty((len(keys), len(columns)))
    for row, (mine, _), others in zip(values, own, among, strict=True):
        np.concatenate([*mine, *others], out=row)
    return RecordingVectors(keys, frozen(values), columns, blocks)


def _columns() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of all numbers, and the kind of each."""
    kinds: tuple[tuple[str, Iterable[str]], ...] = (
        ("steps", (f"{name}_{slot_s}" for slot_s in SLOTS_S for name in movement.NAMES)),
        ("missing", places.MISSING_NAMES),
        ("held", places.HELD_NAMES),
        ("spectrum", places.SPECTRUM_NAMES),
        ("map", places.MAP_NAMES),
        ("crowd", (f"{name}_{s}" for s in _CROWD_S for name in places.CROWD_NAMES)),
        ("relative", (f"relative_{name}_{s}" for s in _CROWD_S for name in movement.NAMES)),
    )
    named = [(name, kind) for kind, names in kinds for name in names]
    return tuple(n for n, _ in named), tuple(k for _, k in named)


def _each_alone(recording_set: RecordingSet) -> list[_Alone]:
    """What each recording shows without the others: of a part, what the whole has of it, and of
    sets put together, what each of them has.
    """
    if recording_set in _KEPT:
        return _KEPT[recording_set]
    scale = recording_set.noise_scale_deg
    origins = recording_set.made_of or {}
    whole = recording_set.part_of
    if whole is not None:
        origins = {key: (whole, key) for key in recording_set.keys}
    # Samples weigh by their noise, so that another scale gives other numbers.
    sources = {source for source, _ in origins.values() if source.noise_scale_deg == scale}
    known = {source: dict(zip(source.keys, _each_alone(source), strict=True)) for source in sources}
    if whole in known:
        _KEPT[whole] = list(known[whole].values())
    every = []
    for item in recording_set.cohort.items if recording_set.cohort is not None else ():
        source, key = origins.get(item.key, (recording_set, item.key))
        if source in known:
            every.append(known[source][key])
        else:
            recording = item.load() if isinstance(item, Handle) else item
            every.append(_alone(recording, sample_weights(recording, scale)))
    return every


def _alone(recording: Recording, weights: Floats | None) -> _Alone:
    """What a recording shows without the others, and the paths that are compared with theirs."""
    steps = np.full((len(SLOTS_S), len(movement.NAMES)), np.nan)
    power = np.full(len(places.SPECTRUM_NAMES), np.nan)
    of_time = [places.missing_statistics(recording), places.held_statistics(recording)]
    if len(recording) == 0 or not recording.valid.any():
        return [steps.ravel(), *of_time, power], None
    sums = slot_sums(recording, SLOTS_S[0], weights)
    shown = [i for i, slot_s in enumerate(SLOTS_S) if not slot_s * recording.rate_hz < _PERIODS]
    if shown:
        # All lengths of slots at once: there are thousands of recordings, and most of the time of
        # eight short paths was that of calling what is compiled.
        many = np.array([_MANY[SLOTS_S[i]] for i in shown], dtype=np.int64)
        of_shown = np.full((len(shown), len(movement.NAMES)), np.nan)
        movement.fill_step_statistics(*steps_of_sums(recording.space, sums, many), of_shown)
        steps[shown] = of_shown
    fine = path_of_sums(recording.space, sums, _MANY[_SPECTRUM_S])
    power = places.spectrum(fine.offsets_deg(mean_direction(fine.vectors)), _SPECTRUM_S)
    kept = {s: path_of_sums(recording.space, sums, _MANY[s]) for s in {*_CROWD_S, _MAP_S}}
    return [steps.ravel(), *of_time, power], kept


def _among_others(
    wide: list[dict[float, Path] | None], people: list[str], stimuli: list[str]
) -> list[list[Floats]]:
    """Map, place beside the others and steps against theirs, of each recording."""
    maps = _maps(wide)
    beside = np.full((len(wide), len(_CROWD_S), len(places.CROWD_NAMES)), np.nan)
    relative = np.full((len(wide), len(_CROWD_S), len(movement.NAMES)), np.nan)
    by_stimulus: dict[str, list[int]] = {}
    for i, stimulus in enumerate(stimuli):
        if wide[i] is not None:
            by_stimulus.setdefault(stimulus, []).append(i)
    for members in by_stimulus.values():
        for s, slot_s in enumerate(_CROWD_S):
            own = [mine[slot_s] for i in members if (mine := wide[i]) is not None]
            others = crowds(own, [people[i] for i in members])
            for i, path, crowd in zip(members, own, others, strict=True):
                beside[i, s] = places.beside_crowd(path, crowd)
                against = np.diff(path.offsets_deg(crowd).T, axis=1)
                relative[i, s] = movement.step_statistics(against.T)
    return [[maps[i], beside[i].ravel(), relative[i].ravel()] for i in range(len(wide))]


def _maps(wide: list[dict[float, Path] | None]) -> Floats:
    """Coarse maps around everybody's centre and spread."""
    out = np.full((len(wide), len(places.MAP_NAMES)), np.nan)
    there = [(i, path[_MAP_S]) for i, path in enumerate(wide) if path is not None]
    if not there:
        return out
    middle = mean_direction(np.concatenate([p.vectors for _, p in there]))
    offsets = [p.offsets_deg(middle) for _, p in there]
    everywhere = np.concatenate(offsets)
    everywhere = everywhere[np.isfinite(everywhere).all(axis=1)]
    if len(everywhere) == 0:
        return out
    centre, spread = everywhere.mean(axis=0), everywhere.std(axis=0)
    for (i, _), own in zip(there, offsets, strict=True):
        out[i] = places.coarse_map(own, centre, spread)
    return out
