"""What tells a participant in one second of raw gaze in a headset: a forest on VR-EyeTracking with
all measures of a piece, and without each kind of them.

    python benchmarks/vr_traits.py VR_EYETRACKING_FOLDER [VIDEOS]

Pieces of one second, in slots of a tenth. Kinds of measures: *height* (elevation, and that above
the other viewers' mean direction), *speed* (sizes of steps and their jitter), *lag* (the delay at
which the path is nearest that of the others), *offset* (from viewers within ten degrees, as a
calibration leaves it) and *share* (time near the others, distances to them). Half of the videos
train, the others are asked about; means of two splits, with 95 % CIs over participants.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.ensemble import ExtraTreesClassifier

import gazeveil

Floats = NDArray[np.float64]

SLOT_S, PIECE, SPLITS = 0.1, 10, 2
LAGS = range(-5, 6)
NEAR_DEG = 10.0
KINDS = {"height": 3, "speed": 6, "lag": 4, "offset": 3, "share": 6}
LEFT_OUT: tuple[tuple[str, ...], ...] = (
    (),
    *((kind,) for kind in KINDS),
    ("height", "offset"),
    ("height", "offset", "speed"),
    ("height", "offset", "speed", "share"),
)


def path(recording: gazeveil.Recording, slots: int) -> tuple[Floats, Floats]:
    """Directions in slots of a tenth of a second, and the median step between frames of each."""
    unit = recording.space.vectors(recording.x_deg, recording.y_deg)
    slot = ((recording.t_ns - recording.t_ns[0]) / 1e9 / SLOT_S).astype(int)
    good = recording.valid & (slot < slots)
    total = np.zeros((slots, 3))
    np.add.at(total, slot[good], unit[good])
    length = np.linalg.norm(total, axis=1, keepdims=True)
    step = np.zeros(len(slot))
    step[1:] = np.degrees(np.linalg.norm(np.diff(unit, axis=0), axis=1)) * recording.rate_hz
    frames = [step[good & (slot == s)] for s in range(slots)]
    fine = np.array([np.median(f) if len(f) else np.nan for f in frames])
    return np.where(length > 0, total / np.where(length > 0, length, 1), np.nan), fine


def angle(a: Floats, b: Floats) -> Floats:
    """Degrees between directions."""
    return np.degrees(np.arccos(np.clip((a * b).sum(axis=-1), -1, 1)))


def elevation(a: Floats) -> Floats:
    """Degrees above the horizon."""
    return np.degrees(np.arcsin(np.clip(a[..., 1], -1, 1)))


def azimuth(a: Floats) -> Floats:
    """Degrees around."""
    return np.degrees(np.arctan2(a[..., 0], a[..., 2]))


def measures(own: Floats, fine: Floats, others: Floats) -> list[Floats]:
    """Measures of each piece of a path beside those of the other viewers, (viewers, slots, 3)."""
    crowd = np.nanmean(others, axis=0)
    crowd /= np.linalg.norm(crowd, axis=1, keepdims=True)
    high, above = elevation(own), elevation(own) - elevation(crowd)
    step = np.append(angle(own[1:], own[:-1]), np.nan)
    away, each = angle(own, crowd), angle(own[None], others)
    beside = each < NEAR_DEG
    turned = (azimuth(own) - azimuth(others) + 180) % 360 - 180
    across = np.where(beside, turned * np.cos(np.radians(high)), np.nan)
    over = np.where(beside, high - elevation(others), np.nan)
    delayed = {}
    for lag in LAGS:
        moved = np.full_like(crowd, np.nan)
        moved[max(lag, 0) : len(crowd) + min(lag, 0)] = crowd[
            max(-lag, 0) : len(crowd) - max(lag, 0)
        ]
        delayed[lag] = angle(own, moved)
    found = []
    for at in range(0, len(own) - PIECE + 1, PIECE):
        rows = slice(at, at + PIECE)
        if np.isfinite(away[rows]).sum() < PIECE // 2:
            continue
        late = np.array([np.nanmean(delayed[lag][rows]) for lag in LAGS])
        near = [np.nanmean(away[rows] < limit) for limit in (10, 20, 40)]
        steps = step[rows][:-1]
        found.append(
            np.array(
                [
                    *(np.nanmean(high[rows]), np.nanmean(above[rows]), np.nanmedian(above[rows])),
                    *(np.nanmean(steps), np.nanmedian(steps), np.nanstd(steps)),
                    angle(own[at], own[at + PIECE - 1]),
                    *(np.nanmean(fine[rows]), np.nanmin(fine[rows])),
                    *(LAGS[int(np.nanargmin(late))], late[2] - late[5], late[8] - late[5]),
                    np.nanmin(late) - late[5],
                    *(np.nanmedian(across[:, rows]), np.nanmedian(over[:, rows])),
                    np.nanmean(np.abs(across[:, rows])),
                    *near,
                    *(np.nanmean(away[rows]), np.nanmean(np.nanmin(each[:, rows], axis=0))),
                    np.nanmean(beside[:, rows].sum(axis=0)),
                ]
            )
        )
    return found


def pieces(folder: str, most: int) -> tuple[Floats, NDArray[np.str_], NDArray[np.str_]]:
    """Measures of all pieces of the first videos, and person and video of each."""
    by_video: dict[str, list[gazeveil.Recording]] = defaultdict(list)
    cohort = gazeveil.read(folder, format="vr-eyetracking")
    for recording in cohort.select(stimuli=sorted(cohort.stimuli)[:most]):
        if recording.session == "1":
            by_video[recording.stimulus].append(recording)
    rows, people, videos = [], [], []
    for video, viewers in by_video.items():
        slots = int(max(np.ptp(r.t_ns) for r in viewers) / 1e9 / SLOT_S) + 1
        paths = [path(r, slots) for r in viewers]
        for i, recording in enumerate(viewers):
            others = np.stack([p for j, (p, _) in enumerate(paths) if j != i])
            mine = measures(*paths[i], others)
            rows += mine
            people += [recording.person] * len(mine)
            videos += [video] * len(mine)
    return np.nan_to_num(np.array(rows), nan=-99.0), np.array(people), np.array(videos)


def rate(values: Floats, people: NDArray[np.str_], videos: NDArray[np.str_]) -> Sequence[float]:
    """Share of pieces that get their name, with its CI over participants, in per cent."""
    each: dict[str, list[float]] = defaultdict(list)
    for seed in range(SPLITS):
        names = np.random.default_rng(seed).permutation(np.unique(videos))
        trains = np.isin(videos, names[: len(names) // 2])
        forest = ExtraTreesClassifier(100, min_samples_leaf=3, random_state=seed)
        forest.fit(values[trains], people[trains])
        right = forest.predict(values[~trains]) == people[~trains]
        for person in np.unique(people[~trains]):
            each[person].append(right[people[~trains] == person].mean())
    shares = 100 * np.array([np.mean(own) for own in each.values()])
    width = student.ppf(0.975, len(shares) - 1) * shares.std(ddof=1) / np.sqrt(len(shares))
    return shares.mean(), shares.mean() - width, shares.mean() + width


def main() -> None:
    """Print one line per kind of measures that is left out."""
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    values, people, videos = pieces(sys.argv[1], most)
    kinds = np.repeat(list(KINDS), list(KINDS.values()))
    print(f"{len(values):,} pieces, {len(set(people))} participants, {len(set(videos))} videos")
    for left_out in LEFT_OUT:
        found = rate(values[:, ~np.isin(kinds, left_out)], people, videos)
        words = f"without {', '.join(left_out)}" if left_out else "all measures"
        print(f"{words}: {found[0]:.1f} % ({found[1]:.1f} to {found[2]:.1f})", flush=True)


if __name__ == "__main__":
    main()
