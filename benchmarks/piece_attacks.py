"""What attackers of pieces find: each piece by itself, pieces joined again, known looks.

    PYTHONPATH=. python benchmarks/piece_attacks.py names gazecom/
    PYTHONPATH=. python benchmarks/piece_attacks.py names gazecom/ -m mosaic:epsilon=10,r_deg=2
    PYTHONPATH=. python benchmarks/piece_attacks.py gaps gazecom/
    PYTHONPATH=. python benchmarks/piece_attacks.py looks gazecom/

Without a mechanism the pieces are raw but for their names (the tests' own mechanism, the strongest
leak there is): an attack that does not find people there finds nobody anywhere. `names` is a study
with two independent releases in each split; `gaps` and `looks` take one release each.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.pieces import RawPieces

import gazeveil
from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.pieces.relink import PieceRelinking
from gazeveil.attacks.result import AttackResult, people_interval
from gazeveil.evaluation.releases import protect
from gazeveil.evaluation.run import evaluate
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording, RecordingKey
from lines import markdown

NAMING = (
    "steps",
    "fusion",
    "relink:by=none",
    "relink:by=place",
    "relink:by=style",
    "relink",
    "relink:names=known",
)

_METRICS = ("identification_rate", "bound_rate", "flipped_rate", "dealt_rate")

#: Seconds between pieces; mosaic's are whole slots of a quarter of a second.
RAW_GAPS_S = (0.0, 0.25, 0.5, 1.0, 2.0)
MOSAIC_GAPS_S = ("1/4", "1", "2")

MOSAIC = "mosaic:epsilon=10,r_deg=2,paths="


#: Numbers of looks that the attacker knows.
LOOKS = (1, 3, 10)

# Distance at which a look begins to speak against a piece, and that of a lost sample, in degrees.
_NEAR_DEG, _LOST_DEG = 2.0, 10.0


class KnownLooks:
    """Tell whose a piece is by looks that are known from elsewhere.

    The attacker stood beside a viewer or saw a screen recording, and so knows a few places and
    times, here those of the raw recording. The released piece of that time that fits them best is
    chosen; where names last, whole recordings take the place of pieces.
    """

    def __init__(self, draws: int = 4) -> None:
        self.draws = draws

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> list[AttackResult]:
        """The share of pieces that fit better than all others of the same window, ties shared."""
        assert raw.cohort is not None
        rng = np.random.default_rng(seed)
        seen = {r.key: r for r in raw.cohort}
        right: dict[str, list[Floats]] = {}
        chances: list[float] = []
        for released, owners in _groups(release):
            lasting = release.piece_windows is None
            for person, own in self._credit(released, owners, lasting, seen, rng):
                right.setdefault(person, []).append(own)
                chances.append(1.0 / len(released))
        shares = np.array([np.mean(right[p], axis=0) for p in sorted(right)])
        return [
            AttackResult(
                f"found_by_{count}_look{'s' if count > 1 else ''}",
                float(own.mean()),
                *people_interval(own),
                len(own),
                float(np.mean(chances)),
            )
            for count, own in zip(LOOKS, shares.T, strict=True)
        ]

    def _credit(
        self,
        released: list[Recording],
        owners: list[RecordingKey],
        lasting: bool,
        seen: dict[RecordingKey, Recording],
        rng: np.random.Generator,
    ) -> Iterator[tuple[str, Floats]]:
        """Each person of a group with the share of draws in which their piece fits best, by number
        of looks.
        """
        clocks = [r.t_ns - (r.t_ns[0] if lasting else 0) for r in released]
        vectors = [r.vectors for r in released]
        for place, owner in enumerate(owners):
            own = seen.get(owner)
            if own is None:
                continue
            t_ns = own.t_ns - own.t_ns[0]
            shown = lasting | ((t_ns >= clocks[0][0]) & (t_ns <= clocks[0][-1]))
            usable = np.flatnonzero(own.valid & shown)
            if not len(usable):
                continue
            looks = rng.choice(usable, (self.draws, max(LOOKS)))
            known = own.vectors[looks]
            fits = np.stack(
                [_fit(v, c, t_ns[looks], known) for v, c in zip(vectors, clocks, strict=True)]
            )
            yield owner[0], np.array([_won(fits[..., :n], place) for n in LOOKS])


def _groups(release: RecordingSet) -> Iterator[tuple[list[Recording], list[RecordingKey]]]:
    """Released pieces of each window, or of each stimulus where names last, with the raw recordings
    that they were made for.
    """
    groups: dict[tuple[str, int], list[Recording]] = {}
    windows, origins = release.piece_windows, release.origins
    for r in release.cohort or ():
        if len(r):
            place = windows[r.key][:2] if windows is not None else (r.stimulus, 0)
            groups.setdefault(place, []).append(r)
    for members in groups.values():
        if len(members) > 1:
            yield members, [r.key if origins is None else origins[r.person] for r in members]


def _fit(vectors: Floats, clock_ns: Ints, at_ns: Ints, known: Floats) -> Floats:
    """How well one piece fits each look, shape (draws, looks): 0 at the place itself."""
    nearest = np.clip(np.searchsorted(clock_ns, at_ns, side="right") - 1, 0, len(clock_ns) - 1)
    cosine = np.clip((vectors[nearest] * known).sum(axis=-1), -1.0, 1.0)
    apart_deg = np.nan_to_num(np.degrees(np.arccos(cosine)), nan=_LOST_DEG)
    fit: Floats = -np.log1p((apart_deg / _NEAR_DEG) ** 2)
    return fit


def _won(fits: Floats, place: int) -> float:
    """Share of draws in which a piece fits best, ties shared."""
    total = fits.sum(axis=-1)
    best = total == total.max(axis=0)
    return float(np.mean(best[place] / best.sum(axis=0)))


def names(cohort: Cohort, mechanism: str, repetitions: int) -> list[tuple[str, ...]]:
    """Shares of pieces that get the right name, split by split."""
    made: Any = mechanism or RawPieces()
    results = evaluate(
        cohort,
        mechanisms=[made],
        attacks=list(NAMING),
        scenarios=["private/private"],
        repetitions=repetitions,
        executor=1,
    )
    for failure in results.failures:
        print(failure["sentence"])
    frame = results.frame.filter(mechanism=mechanism.partition(":")[0] or "raw-pieces")
    return [
        (f"`{r['attack']}` {r['metric']}", *_figure(r["value"], r["low"], r["high"], r["chance"]))
        for r in frame.iter_rows(named=True)
        if r["metric"] in _METRICS
    ]


def gaps(raw: RecordingSet) -> list[tuple[str, ...]]:
    """Shares of pieces that are joined rightly by place, by gap."""
    made: dict[str, Any] = {f"raw pieces, {g} s": RawPieces(gap_s=g) for g in RAW_GAPS_S}
    for paths in ("own", "stitch"):
        for gap in MOSAIC_GAPS_S:
            text = f"{MOSAIC}{paths},gap_s={gap}"
            made[f"`{text}`"] = gazeveil.mechanism(text)
    return [
        (name, *_said(PieceRelinking().run(raw, protect(raw, m, 1)).results[0]))
        for name, m in made.items()
    ]


def looks(raw: RecordingSet) -> list[tuple[str, ...]]:
    """Shares of pieces that known looks single out."""
    texts = (f"{MOSAIC}own", f"{MOSAIC}stitch", "clock-render:epsilon=10,r_deg=2,form=offline")
    made = {"raw pieces": RawPieces(), **{f"`{t}`": gazeveil.mechanism(t) for t in texts}}
    return [
        (f"{name} {result.metric}", *_said(result))
        for name, m in made.items()
        for result in KnownLooks().run(raw, protect(raw, m, 1))
    ]


def _said(result: AttackResult) -> tuple[str, str, str]:
    return _figure(result.value, result.low, result.high, result.chance)


def _figure(
    value: float, low: float | None, high: float | None, chance: float
) -> tuple[str, str, str]:
    interval = "" if low is None or high is None else f"{100 * low:.1f}\N{EN DASH}{100 * high:.1f}"
    return f"{100 * value:.1f}", interval, f"{100 * chance:.1f}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("names", "gaps", "looks"))
    parser.add_argument("source", type=Path)
    parser.add_argument("-m", "--mechanism", default="", help="for names; default raw pieces")
    parser.add_argument("-r", "--repetitions", type=int, default=3, help="splits, for names")
    given = parser.parse_args()
    cohort = gazeveil.read(given.source).load()
    if given.what == "names":
        rows = names(cohort, given.mechanism, given.repetitions)
    else:
        rows = (gaps if given.what == "gaps" else looks)(RecordingSet(cohort))
    print(markdown(("what", "%", "95 %", "guessing"), rows))


if __name__ == "__main__":
    main()
