"""Fill in docs/reference/attacks/others.md: what the attacks beyond identification find.

The prose of that page is written by hand; what stands between its `<!-- NAME -->` and `<!-- end
-->` lines comes from here. Run as `python docs/reference/attacks/others.py [NAME ...]`; without
names all parts are made. GazeCom and WebQAmGaze are looked for under GAZEVEIL_DATA (default
../shared/data); a part whose recordings are missing keeps its old figures. A few minutes on one
core.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from protocols import (
    by_tasks,
    fingerprint,
    k_same_within,
    last_session,
    map_membership,
    membership_game,
    template_age,
)

import gazeveil
from gazeveil.attacks.base import Attack
from gazeveil.attacks.curves import gallery_curve
from gazeveil.attacks.infer.people import AttributeInference, RecordLinkage, demographic_attack
from gazeveil.attacks.registry import attack
from gazeveil.attacks.result import AttackResult
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.simulate import DEFAULT_SCREEN
from gazeveil.privacy.demographics import Demographics
from gazeveil.privacy.registry import mechanism

HERE = Path(__file__).parent
DATA = Path(
    os.environ.get("GAZEVEIL_DATA", HERE / ".." / ".." / ".." / "shared" / "data")
).resolve()
TABLES = ("fixation", "saccade")
SEED = 1


class MissingError(Exception):
    """Recordings that are not here."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def share(result: AttackResult) -> str:
    """A rate in per cent with its interval."""
    return f"{100 * result.value:.0f} % [{100 * result.low:.0f}, {100 * result.high:.0f}]"


def plain(result: AttackResult) -> str:
    """A figure with its interval."""
    return f"{result.value:.2f} [{result.low:.2f}, {result.high:.2f}]"


def linkage() -> Attack:
    """The attacker of this page."""
    return attack("linkage")


@cache
def gazecom() -> RecordingSet:
    """24 people x 10 clips, with tables."""
    if not (DATA / "gazecom").is_dir():
        raise MissingError("gazecom")
    return RecordingSet(gazeveil.read(DATA / "gazecom").load()).prepared(TABLES)


@cache
def days() -> RecordingSet:
    """Simulated people with five sessions."""
    return RecordingSet(
        gazeveil.simulate(
            24,
            6,
            seconds=20,
            rate_hz=250,
            task="video",
            space=DEFAULT_SCREEN,
            sessions=5,
            seed=SEED,
        ).load()
    ).prepared(TABLES)


def tables_by(name: str, **parameters: object) -> Callable[[RecordingSet, int], RecordingSet]:
    """Publishes tables of events by a mechanism."""
    chosen = mechanism(name, **parameters)
    return lambda recording_set, seed: RecordingSet(
        tables={n: chosen.release(recording_set.table(n), seed=seed).data for n in TABLES}
    )


def splits(recording_set: RecordingSet, count: int = 5) -> list[tuple[list[str], list[str]]]:
    """Random splits of the stimuli, three quarters and one quarter."""
    found = []
    for s in range(count):
        mixed = (
            np.random.default_rng([SEED, s]).permutation(np.array(recording_set.stimuli)).tolist()
        )
        cut = round(0.75 * len(mixed))
        found.append((mixed[:cut], mixed[cut:]))
    return found


def gallery() -> str:
    """Gallery size on GazeCom."""
    recording_set = gazecom()
    noisy = [
        RecordingSet(
            mechanism("gaussian", sigma_deg=10).release(recording_set.cohort, seed=s).data
        ).prepared(TABLES)
        for s in (1, 2)
    ]
    sizes = (2, 4, 8, 12, 24)
    rows = []
    for name, left, right in (
        ("raw", recording_set, recording_set),
        ("Gaussian 10 deg, two releases", noisy[0], noisy[1]),
    ):
        scores = [
            linkage().identify(left.select(stimuli=a), right.select(stimuli=b), SEED)
            for a, b in splits(recording_set)
        ]
        rows.append([name, *(share(p.result) for p in gallery_curve(scores, sizes))])
    return table(
        ["GazeCom, linkage", *(f"{m} people" for m in sizes)],
        [*rows, ["chance", *(f"{100 / m:.0f} %" for m in sizes)]],
    )


def ageing() -> str:
    """Template age on simulated sessions."""
    points = template_age(linkage(), days(), seed=SEED, repetitions=2)
    held, mixed = last_session(linkage(), days(), seed=SEED, repetitions=3)
    rows = [
        [f"sessions {int(p.at)} apart" if p.at else "the same session", share(p.result)]
        for p in points
    ]
    return table(
        ["time between gallery and probe", "found"],
        [
            *rows,
            ["last session held out", share(held)],
            ["random recordings of the same number held out", share(mixed)],
        ],
    )


def attributes() -> str:
    """Gender and age."""
    rows = []
    people = RecordingSet(
        gazeveil.simulate(150, 4, seconds=15, rate_hz=120, task="video", seed=SEED).load()
    ).prepared(TABLES)
    noisy = RecordingSet(
        mechanism("gaussian", sigma_deg=5).release(people.cohort, seed=SEED).data,
        people=people.people,
    ).prepared(TABLES)
    for name, recording_set in (("simulated, raw", people), ("simulated, Gaussian 5 deg", noisy)):
        gender, age = (
            AttributeInference(what, "extended").run(recording_set, recording_set, SEED)
            for what in ("gender", "age")
        )
        rows += _inferred(name, gender.results) + _inferred(name, age.results)
    if (DATA / "webqamgaze").is_dir():
        web = RecordingSet(gazeveil.read(DATA / "webqamgaze").load())
        age = AttributeInference("age").run(web, web, SEED)
        rows += _inferred(f"WebQAmGaze, {len(age.details['guesses'])} people", age.results)
    return table(["people", "attribute", "figure", "value", "chance", "p"], rows)


def _inferred(name: str, results: Sequence[AttackResult]) -> list[list[str]]:
    rows = []
    for r in results:
        if r.metric == "mae":
            continue
        p = "" if np.isnan(r.p_value) else f"{r.p_value:.3f}"
        rows.append([name, r.protocol.split(" of ")[0], r.metric, plain(r), f"{r.chance:.2f}", p])
    return rows


def membership() -> str:
    """Membership on GazeCom."""
    recording_set = gazecom()
    rows = []
    cases: list[tuple[str, Callable[[RecordingSet, int], RecordingSet]]] = [
        ("raw", lambda m, s: m),
        (
            "Gaussian 5 deg",
            lambda m, s: RecordingSet(
                mechanism("gaussian", sigma_deg=5).release(m.cohort, seed=s).data
            ),
        ),
        ("k-same-select k=2", tables_by("k-same-select", k=2)),
        ("k-same-select k=4", tables_by("k-same-select", k=4)),
        ("k-same-select k=4, published", tables_by("k-same-select", k=4, reading="published")),
        ("dp-k-same k=4, epsilon=1", tables_by("dp-k-same", k=4, epsilon=1)),
        ("marginals k=4", tables_by("marginals", k=4)),
    ]
    for name, publish in cases:
        rows.append(_membership(name, membership_game(recording_set, publish, SEED, 8)))
    people = list(recording_set.persons)
    members = np.random.default_rng(SEED).permutation(np.array(people))[:12].tolist()
    assert recording_set.cohort is not None
    for epsilon in (1_000_000, 100, 10, 1):
        maps = (
            mechanism("heatmap-laplace", epsilon=epsilon)
            .release(recording_set.cohort.select(people=members), seed=SEED)
            .data
        )
        found = map_membership(maps, recording_set.cohort, members).results
        name = (
            "heat maps, hardly any noise"
            if epsilon > 1000
            else f"heatmap-laplace epsilon={epsilon}"
        )
        rows.append(_membership(name + ", the very recordings", found))
    return table(
        [
            "GazeCom, 12 of 24 people published",
            "area under the curve",
            "found at 0.1 % false alarms",
            "chance",
        ],
        rows,
    )


def _membership(name: str, results: Sequence[AttackResult]) -> list[str]:
    area, hits = results[:2]
    return [name, plain(area), share(hits), f"{100 * hits.chance:.1f} %"]


def joining() -> str:
    """Joins on GazeCom."""
    recording_set = gazecom()
    assert recording_set.cohort is not None
    rows = []
    a, b = splits(recording_set)[0]
    for sigma in (2, 5):
        made = [
            RecordingSet(
                mechanism("gaussian", sigma_deg=sigma).release(recording_set.cohort, seed=s).data
            )
            for s in range(2)
        ]
        for name, first in (
            (f"two Gaussian {sigma} deg releases", made[0]),
            (f"raw and Gaussian {sigma} deg", recording_set),
        ):
            found = RecordLinkage("linkage:features=extended").run(
                made[1].select(stimuli=b), first.select(stimuli=a), SEED
            )
            rows.append([name, *(share(r) for r in found.results)])
    joined = table(
        ["GazeCom, linkage on extended features", "each name alone", "all names at once"], rows
    )
    rows = []
    counts = (1, 2, 4, 8)
    clips = list(recording_set.stimuli)
    for reading in ("published", "corrected"):
        for k in (2, 4, 8):
            release = tables_by("k-same-select", k=k, reading=reading)(
                recording_set.select(stimuli=clips[:8]), SEED
            )
            points = by_tasks(
                linkage(), release, recording_set.select(stimuli=clips[8:]), counts, SEED
            )
            rows.append(
                [f"{reading}, k={k}", *(share(p.result) for p in points), f"{100 / k:.0f} %"]
            )
    released = table(["k-same-select, clips released", *map(str, counts), "1/k"], rows)
    return f"{joined}\n\n{released}"


def fingerprints() -> str:
    """FPA on pure noise."""
    rng = np.random.default_rng(SEED)
    names = [(f"p{p:02}", f"document {d}", "1", "") for p in range(20) for d in range(3)]
    keys = Keys.of_recordings(names, [np.arange(128)] * len(names))
    nothing = FeatureTable(
        rng.normal(size=(len(keys), 48)),
        tuple(f"f{i}" for i in range(48)),
        keys,
        [[-10.0, 10.0]] * 48,
    )
    rows = []
    for reading in ("published", "corrected"):
        for k in (1, 3, 5, None):
            fpa = mechanism("fpa", epsilon=0.48, k=k, reading=reading)
            releases = [
                RecordingSet(tables={"fixation": fpa.release(nothing, seed=s).data}) for s in (1, 2)
            ]
            found = fingerprint(linkage(), releases[0], releases[1], SEED)
            rows.append(
                [
                    f"{reading}, k={'chosen by the mechanism' if k is None else k}",
                    *(share(r) for r in found),
                ]
            )
    return table(
        [
            "FPA, epsilon 0.48, 20 people of pure noise",
            "two halves of one release",
            "halves of two releases",
        ],
        rows,
    )


def demographics() -> str:
    """David-John et al.'s (2023) attack on simulated people."""
    cohort = gazeveil.simulate(
        31, 8, seconds=20, rate_hz=250, task="video", space=DEFAULT_SCREEN, seed=SEED
    ).load()
    recording_set = RecordingSet(cohort).prepared(TABLES)
    clips = list(recording_set.stimuli)
    shown, held = recording_set.select(stimuli=clips[:6]), recording_set.select(stimuli=clips[6:])
    rows = []
    for k in (4, 6, 8, 15):
        released = Demographics(k).release(cohort.people).data
        alone, _ = demographic_attack(linkage(), shown, held, released, SEED)
        row = [str(k), f"{100 * alone.chance:.0f} %", share(alone)]
        across = tables_by("k-same-select", k=k)(shown, SEED)
        within = RecordingSet(
            tables={n: k_same_within(shown.table(n), released, k, seed=SEED) for n in TABLES}
        )
        row += [
            share(demographic_attack(linkage(), gallery, held, released, SEED)[0])
            for gallery in (across, within)
        ]
        rows.append([*row, f"{100 / k:.0f} %"])
    return table(
        [
            "k",
            "demographics alone",
            "and gaze",
            "and gaze, k-same over everybody",
            "and gaze, k-same inside the ranges",
            "1/k",
        ],
        rows,
    )


PARTS: dict[str, Callable[[], str]] = {
    "gallery": gallery,
    "ageing": ageing,
    "attributes": attributes,
    "membership": membership,
    "joining": joining,
    "fingerprints": fingerprints,
    "demographics": demographics,
}


def filled(page: str, name: str, text: str) -> str:
    """The page with one part replaced."""
    begin = page.index(f"<!-- {name} -->")
    end = page.index("<!-- end -->", begin)
    return page[:begin] + f"<!-- {name} -->\n{text}\n" + page[end:]


def main() -> None:
    """Make the parts asked for."""
    page = HERE / "others.md"
    for name in sys.argv[1:] or PARTS:
        begin = time.perf_counter()
        try:
            text = PARTS[name]()
        except MissingError as missing:
            print(f"{name}: kept, the recordings {missing} are not here", flush=True)
            continue
        page.write_text(filled(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")
        print(f"{name}: {time.perf_counter() - begin:.0f} s\n{text}\n", flush=True)


if __name__ == "__main__":
    main()
