"""What a mechanism promises, and what its release of one recording and of one stimulus looks like;
for reports.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gazeveil.errors import GazeveilError
from gazeveil.evaluation.plan import Content, seed_of, table_names
from gazeveil.evaluation.releases import ReleaseCache, protect
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort, natural
from gazeveil.gaze.geometry import Sphere, smooth_map
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.heatmaps import viewer_weights
from gazeveil.privacy.mechanism import Mechanism

#: Longest trace, in seconds.
TRACE_S = 10.0

#: Cells of a map from top to bottom; columns follow from the space.
MAP_ROWS = 90

_BLUR_DEG = 2.0


def example(cache: ReleaseCache) -> Content:
    """The promise of the cache's mechanism, a trace of one recording, and a map of one stimulus;
    what there is no samples for is missing.

    Raises
    ------
    DataError
        If the mechanism refuses the study's recordings.
    """
    content: Content = {}
    if cache.mechanism is not None:
        g = promise(cache.raw, cache.mechanism, cache.study.tables)
        sentence = str(g[0])
        if g[1] > 1:
            sentence += f" {g[1]} tables are released, each under this promise."
        content["guarantee"] = {
            "plain": g[0].plain,
            "sentence": sentence,
            "status": g[0].status,
            "definition": g[0].definition,
            "unit": g[0].unit,
        }
    chosen = _chosen(cache.raw)
    if chosen is None or (cache.mechanism is not None and cache.mechanism.kind == "table"):
        return content
    recording, seen = chosen
    released, origins = seen, None
    if cache.mechanism is not None:
        seed = seed_of(cache.study.seed, "release", cache.mechanism, 0, "first")
        try:
            protected = protect(RecordingSet(seen, None, cache.raw.pipeline), cache.mechanism, seed)
        except GazeveilError:
            return content  # some mechanisms need more people or stimuli than an example has
        released = protected.cohort if protected.cohort is not None else seen
        origins = protected.origins
    if origins is not None:
        # The first piece that was made for the recording; its times count from the stimulus.
        own = [r for r in released if origins[r.person] == recording.key]
        twin, begin_ns = min(own, key=lambda r: int(r.t_ns[0]), default=None), 0
    else:
        twin = next((r for r in released if r.key == recording.key), None)
        begin_ns = int(recording.t_ns[0]) if len(recording) else 0
    if twin is not None:
        content["trace"] = _trace(twin, begin_ns)
    content["map"] = _map([r for r in released if r.stimulus == recording.stimulus], recording)
    space = recording.space
    wide, high = space.width_deg, space.height_deg
    extent = (
        (0.0, wide, 0.0, high)
        if isinstance(space, Sphere)
        else (-wide / 2, wide / 2, -high / 2, high / 2)
    )
    content |= {
        "title": f"{recording.person}, {recording.stimulus}",
        "viewers": len({r.person for r in seen if r.stimulus == recording.stimulus}),
        "space": "sphere" if isinstance(space, Sphere) else "screen",
        "extent": list(extent),
    }
    return content


def promise(raw: RecordingSet, mechanism: Mechanism[Any], tables: str) -> tuple[Guarantee, int]:
    """What a real release would promise (noise from the operating system, thrown away), and of how
    many tables it is made.
    """
    if mechanism.kind == "table":
        names = table_names(tables, raw)
        return mechanism.release(raw.table(names[0])).guarantee, len(names)
    assert raw.cohort is not None  # a plan has no stream mechanism without samples
    if mechanism.kind == "stream":
        # A stream's promise is known before any sample: it depends on rate and space alone.
        kinds = {(r.rate_hz, repr(r.space)): r for r in raw.cohort}
        return mechanism.release(Cohort([r.slice(0, 2) for r in kinds.values()])).guarantee, 1
    return mechanism.release(raw.cohort).guarantee, 1


def _chosen(raw: RecordingSet) -> tuple[Recording, Cohort] | None:
    """The stimulus most people saw, and of those the recording with the fewest lost samples."""
    if raw.cohort is None:
        return None
    viewers: dict[str, int] = {}
    for key in raw.keys:
        viewers[key[1]] = viewers.get(key[1], 0) + 1
    stimulus = min(viewers, key=lambda s: (-viewers[s], natural(s)))
    seen = [r for r in raw.cohort if r.stimulus == stimulus and len(r)]
    if not seen:
        return None
    best = min(seen, key=lambda r: (-float(r.valid.mean()), natural(r.person), r.session))
    same = [r for r in seen if r.space == best.space]
    return best, Cohort(
        same, {p: a for p, a in raw.people.items() if any(r.person == p for r in same)}
    )


def _trace(recording: Recording, start_ns: int) -> Content:
    t = (recording.t_ns - start_ns) / 1e9
    rows = t <= TRACE_S
    shown = np.where(recording.valid, 1.0, np.nan)
    return {
        "t_s": np.round(t[rows], 6).tolist(),
        "x_deg": [
            None if v != v else round(v, 4) for v in (recording.x_deg * shown)[rows].tolist()
        ],
        "y_deg": [
            None if v != v else round(v, 4) for v in (recording.y_deg * shown)[rows].tolist()
        ],
        "valid": recording.valid[rows].tolist(),
    }


def _map(recordings: Iterable[Recording], like: Recording) -> list[list[float]]:
    space = like.space
    columns = max(1, round(MAP_ROWS * space.width_deg / space.height_deg))
    total = np.zeros((MAP_ROWS, columns))
    for recording in recordings:
        total += viewer_weights(recording, MAP_ROWS, columns)
    blurred = smooth_map(total, space, _BLUR_DEG if isinstance(space, Sphere) else _BLUR_DEG / 2)
    mass = float(blurred.sum())
    rows: list[list[float]] = np.round(blurred / mass if mass else blurred, 9).tolist()
    return rows
