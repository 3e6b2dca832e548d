"""What synthetic recordings keep of real gaze: events, main sequence and density of each release
beside the original.

    python benchmarks/fidelity.py [--json FILE] [--page docs/explain/synthesis.md] [--repetitions 3]
    [--recordings NAME ...] [--mechanism TEXT ...]

Recordings are those under GAZEVEIL_DATA (gazecom, eyenavgs_nthu). Any mechanism that takes
recordings can be named, in the command line's form. Events are detected again in every release as
in the original, by I-VT (50 deg/s, 100 ms). Of each release, means over repetitions:

* quartiles of fixation durations and saccade amplitudes of everybody together, and their distance
  from the original: the largest difference of the two distribution functions (Kolmogorov-Smirnov),
  and the mean over people of the Wasserstein distance;
* fixations per second, and the main sequence: slope of log peak velocity on log amplitude, and peak
  velocity at the median amplitude of the original;
* density error: Jensen-Shannon divergence in bits on 60 x 60 cells, mean over stimuli and of all
  stimuli together (Ren et al. 2024, Table 4);
* the median distance from the person's own gaze at the same time, and the share of lost samples.

Two lines are no releases: `none` is the original itself, and `other half` compares each half of the
people (drawn anew each time) with the other: what differs between people anyhow, at half the number
of samples. `--page` writes the tables between two marks of a page.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp

import gazeveil
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import distance_deg
from gazeveil.privacy.registry import mechanism
from gazeveil.utility.events import EventFidelity, main_sequence
from gazeveil.utility.maps import Density
from lines import Lines, markdown, put_into

RECORDINGS = ("gazecom", "eyenavgs_nthu")

RELEASES = (
    "k-same-synth:k=4,detector=ivt,reading=published",
    "k-same-synth:k=4",
    "k-same-synth:k=4,match=crowd",
    "dpgazesynth:epsilon=1,r_deg=table,reading=published",
    "dpgazesynth:epsilon=1",
    "dpgazesynth-one-report:epsilon=1",
    "dpgazesynth-one-report:epsilon=3",
    "event-synth-pd:k=4,gamma=2,generator=ppca,detector=ivt,failed=drop,reading=published",
    "event-synth-pd:k=4,gamma=2",
    "clock-render:epsilon=1,r_deg=2",
    "clock-render:epsilon=10,r_deg=2",
)

OTHERS = "other half"

#: Column of the table -> how it is written.
COLUMNS = {
    "release": "{text}",
    "fixations (s)": "{fixation_q1:.2f}/{fixation_q2:.2f}/{fixation_q3:.2f}",
    "W (s)": "{fixation_duration_wasserstein_s:.3f}",
    "per s": "{fixations_per_s:.2f}",
    "saccades (deg)": "{saccade_q1:.1f}/{saccade_q2:.1f}/{saccade_q3:.1f}",
    "W (deg)": "{saccade_amplitude_wasserstein_deg:.1f}",
    "peak (deg/s)": "{peak_deg_s:.0f}",
    "JSD": "{jsd:.2f}",
    "away (deg)": "{away_deg:.1f}",
    "lost": "{lost:.0%}",
}


def data_folder() -> Path | None:
    """Where the real recordings are."""
    path = Path(
        os.environ.get("GAZEVEIL_DATA", Path(__file__).parent.parent.parent / "shared" / "data")
    )
    return path if path.exists() else None


def column(recording_set: RecordingSet, kind: str, name: str) -> NDArray[np.float64]:
    """A feature of all events."""
    table = recording_set.table(kind)
    return np.asarray(table.values[:, table.columns.index(name)], dtype=np.float64)


def movements(recording_set: RecordingSet, at_deg: float) -> dict[str, float]:
    """Quartiles, rate and main sequence of everybody together."""
    found: dict[str, float] = {}
    for kind, name in (("fixation", "duration"), ("saccade", "amplitude")):
        values = column(recording_set, kind, name)
        values = values[~np.isnan(values)]
        quartiles = np.percentile(values, (25, 50, 75)) if len(values) else np.full(3, np.nan)
        found |= {f"{kind}_q{i}": float(q) for i, q in enumerate(quartiles, start=1)}
    slope, intercept = main_sequence(
        column(recording_set, "saccade", "amplitude"),
        column(recording_set, "saccade", "ang_vel_max"),
    )
    assert recording_set.cohort is not None
    seconds = sum(len(r) / r.rate_hz for r in recording_set.cohort if r.rate_hz > 0)
    return {
        **found,
        "fixations_per_s": len(recording_set.table("fixation")) / seconds,
        "slope": slope,
        "peak_deg_s": float(np.exp(intercept + slope * np.log(at_deg))),
    }


def apart(raw: RecordingSet, released: RecordingSet) -> dict[str, float]:
    """Largest differences of distribution functions; 1 where one side has no event."""
    found = {}
    for kind, name in (("fixation", "duration"), ("saccade", "amplitude")):
        sides = [v[~np.isnan(v)] for v in (column(m, kind, name) for m in (raw, released))]
        found[f"{kind}_ks"] = (
            float(ks_2samp(*sides).statistic) if all(len(s) for s in sides) else 1.0
        )
    return found


def away_deg(raw: Cohort, released: Cohort) -> float:
    """Mean over recordings of the median distance from the person's own gaze at the same time since
    the start.
    """
    own, found = {r.key: r for r in raw}, []
    for r in released:
        if r.key not in own:
            continue
        mine = own[r.key] if own[r.key].rate_hz == r.rate_hz else own[r.key].resample(r.rate_hz)
        n = min(len(r), len(mine))
        both = r.valid[:n] & mine.valid[:n]
        if both.any():
            places = (v[:n][both] for v in (mine.x_deg, mine.y_deg, r.x_deg, r.y_deg))
            found.append(float(np.median(distance_deg(r.space, *places))))
    return float(np.mean(found)) if found else float("nan")


def compared(raw: RecordingSet, released: RecordingSet) -> dict[str, float]:
    """All figures of one release."""
    assert raw.cohort is not None
    assert released.cohort is not None
    at = float(np.nanmedian(column(raw, "saccade", "amplitude")))
    measured = {
        r.metric: r.value
        for u in (Density(), EventFidelity())
        for r in u.measure(raw, released, released, 0)
    }
    valid = np.concatenate([r.valid for r in released.cohort])
    return {
        **movements(released, at),
        **apart(raw, released),
        **measured,
        "away_deg": away_deg(raw.cohort, released.cohort),
        "lost": float(np.mean(~valid)),
    }


def halves(raw: RecordingSet, repetition: int) -> dict[str, float]:
    """Each half of the people beside the other."""
    order = np.random.default_rng([7, repetition]).permutation(raw.persons).tolist()
    sides = [
        raw.select(people=side) for side in (order[: len(order) // 2], order[len(order) // 2 :])
    ]
    both = [compared(*sides), compared(*reversed(sides))]
    return {
        name: float(np.nanmean([b[name] for b in both])) if name != "away_deg" else float("nan")
        for name in both[0]
    }


def rows(
    name: str, texts: Sequence[str], repetitions: int, lines: Lines
) -> list[Mapping[str, object]]:
    """The lines of one table."""
    folder = data_folder()
    assert folder is not None
    raw = RecordingSet(gazeveil.read(folder / name).load()).prepared(("fixation", "saccade"))
    assert raw.cohort is not None
    made: list[Mapping[str, object]] = []
    for text in ("none", OTHERS, *texts):
        if text == "none":
            runs = [compared(raw, raw)]
        elif text == OTHERS:
            runs = [halves(raw, r) for r in range(repetitions)]
        else:
            runs = [
                compared(raw, RecordingSet(mechanism(text).release(raw.cohort, seed=s).data.load()))
                for s in range(repetitions)
            ]
        figures = {k: round(float(np.mean([r[k] for r in runs])), 4) for k in runs[0]}
        told = {k: None if np.isnan(v) else v for k, v in figures.items()}  # JSON has no NaN
        lines.keep(
            {
                "figure": f"fidelity: {name}, {text}",
                "value": told["jsd"],
                "unit": "bits",
                "met": True,
                "repetitions": len(runs),
                **told,
            }
        )
        made.append({"text": text, **figures})
    return made


def written(tables: Mapping[str, Sequence[Mapping[str, object]]]) -> str:
    """The tables as Markdown."""
    parts = []
    for name, releases in tables.items():
        body = [
            [form.format(**line).replace("nan", "-") for form in COLUMNS.values()]
            for line in releases
        ]
        parts.append(f"**{name}**\n\n{markdown(list(COLUMNS), body)}")
    return "\n\n".join(parts)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--recordings", nargs="+", default=list(RECORDINGS))
    parser.add_argument("--mechanism", nargs="+", default=list(RELEASES))
    given = parser.parse_args()
    if data_folder() is None:
        print("GAZEVEIL_DATA names no folder: fidelity not measured", file=sys.stderr)
        return
    lines = Lines(given.json)
    tables = {
        name: rows(name, given.mechanism, given.repetitions, lines) for name in given.recordings
    }
    if given.page is not None:
        put_into(given.page, "fidelity", written(tables))
    else:
        print(written(tables))
    sys.exit(0 if lines.close() else 1)


if __name__ == "__main__":
    main()
