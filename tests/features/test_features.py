"""Features of events against plain numpy and scipy, and what must not change them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import gazeveil
from gazeveil.errors import DataError, ParameterError
from gazeveil.features import event_features, fixation_and_saccade_features
from gazeveil.features.definitions import (
    EVENT,
    FIXATION,
    SACCADE,
    SUBSETS,
    Feature,
    window_definitions,
)
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Screen, Space, Sphere, angle_deg, unwrap_x, wrap_x
from gazeveil.gaze.recording import Recording
from tests.support.places import ROOT
from tests.support.recordings import real

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
RATE = 250.0


def recording(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    space: Space = SCREEN,
    valid: NDArray[np.bool_] | None = None,
) -> Recording:
    return Recording(
        "a", "clip", np.arange(len(x)) * 4_000_000, x, y, valid, space=space, rate_hz=RATE
    )


def events(*spans: tuple[str, int, int]) -> Events:
    kind, onset, offset = ([s[k] for s in spans] for k in range(3))
    return Events(
        np.array(kind),
        np.array(onset),
        np.array(offset),
        np.array(onset) * 4_000_000,
        np.array(offset) * 4_000_000,
    )


def bundle(v: NDArray[np.float64]) -> list[float]:
    flat = v.std() < 1e-12 * max(1.0, np.abs(v).max()) or v.std() < 1e-9 * RATE**2
    return [
        v.mean(),
        float(np.median(v)),
        v.max(),
        v.std(),
        0.0 if flat else stats.skew(v),
        0.0 if flat else stats.kurtosis(v),
    ]


def reference(gaze: Recording, spans: list[tuple[int, int]]) -> list[dict[str, float]]:
    """All measures of events of one kind, the slow and obvious way."""
    rows: list[dict[str, float]] = []
    before = None
    for a, b in spans:
        at = a + np.flatnonzero(gaze.valid[a : b + 1])
        y = gaze.y_deg[at]
        x = gaze.x_deg[at]
        if isinstance(gaze.space, Sphere):
            x = unwrap_x(x) * np.cos(np.radians(np.mean(90.0 - y)))
        v = gaze.space.vectors(gaze.x_deg[at], y)
        steps = angle_deg(v[:-1], v[1:])
        per_s = RATE / np.diff(at)
        vel, vel_x, vel_y = steps * per_s, -np.diff(x) * per_s, -np.diff(y) * per_s
        acc, acc_x, acc_y = (np.diff(s) * RATE for s in (vel, vel_x, vel_y))
        direction = float(np.degrees(np.arctan2(x[-1] - x[0], y[-1] - y[0])))
        duration = (b - a + 1) / RATE
        centre = v.sum(axis=0)
        row = {
            "duration": duration,
            "std_x": x.std(),
            "std_y": y.std(),
            "path_len": steps.sum(),
            "path_len_2": steps.sum(),
            "angle_prev": 0.0 if before is None else direction - before[0],
            "dist_prev": 0.0 if before is None else float(angle_deg(centre, before[1])),
            "skew_x": stats.skew(x),
            "skew_y": stats.skew(y),
            "kurt_x": stats.kurtosis(x),
            "kurt_y": stats.kurtosis(y),
            "dispersion": np.ptp(x) + np.ptp(y),
            "avg_vel": steps.sum() / duration,
            "saccadic_ratio": vel.max() / duration,
            "saccade_angle": direction,
            "amplitude": float(angle_deg(v[0], v[-1])),
        }
        for name, series in (
            ("ang_vel", vel),
            ("ang_acc", acc),
            ("vel_x", vel_x),
            ("vel_y", vel_y),
            ("acc_x", acc_x),
            ("acc_y", acc_y),
        ):
            row |= {
                f"{name}_{s}": value
                for s, value in zip(
                    ("mean", "median", "max", "std", "skew", "kurt"), bundle(series), strict=True
                )
            }
        rows.append(row)
        before = (direction, centre)
    return rows


def walk(
    seed: int, n: int, space: Space, step_deg: float = 0.5
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    x, y = np.cumsum(rng.normal(0, step_deg, (2, n)), axis=1)
    if isinstance(space, Sphere):
        return wrap_x(x + 359.0), np.clip(y + rng.uniform(30, 150), 5, 175)
    return np.clip(x, -40, 40), np.clip(y, -40, 40)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    lengths=st.lists(st.integers(4, 40), min_size=1, max_size=5),
    sphere=st.booleans(),
    lost=st.floats(0, 0.3),
)
@pytest.mark.parametrize("kind", ["fixation", "saccade", "all"])
def test_features_equal_a_plain_reference(
    kind: str, seed: int, lengths: list[int], sphere: bool, lost: float
) -> None:
    space: Space = Sphere() if sphere else SCREEN
    n = sum(lengths)
    x, y = walk(seed, n, space)
    valid = np.random.default_rng(seed + 1).random(n) >= lost
    ends = np.cumsum(lengths)
    spans = [(int(e - k), int(e - 1)) for e, k in zip(ends, lengths, strict=True)]
    word = "saccade" if kind == "all" else kind
    gaze = recording(x, y, space, valid)
    table = event_features(gaze, kind=kind, events=events(*((word, a, b) for a, b in spans)))
    enough = [i for i, (a, b) in enumerate(spans) if valid[a : b + 1].sum() >= 4]
    assert table.keys.index.tolist() == enough
    assert table.counts["short_events"] == len(spans) - len(enough)
    expected = reference(gaze, [spans[i] for i in enough])
    wanted = np.array([[row[c] for c in table.columns] for row in expected]).reshape(
        len(enough), len(table.columns)
    )
    np.testing.assert_allclose(table.values, wanted, rtol=1e-6, atol=1e-6)


def test_two_straight_saccades_by_hand() -> None:
    # 1 deg per sample to the right, then back down: near the centre of a screen degrees add up to a
    # few parts in 10 000.
    x = np.concatenate((np.arange(5.0), np.full(5, 4.0))) - 2
    y = np.concatenate((np.zeros(5), np.arange(5.0)))
    table = event_features(
        recording(x, y), kind="saccade", events=events(("saccade", 0, 4), ("saccade", 5, 9))
    )
    first, second = ({n: table.column(n)[i] for n in table.columns} for i in (0, 1))
    assert first["duration"] == pytest.approx(0.02)
    assert first["saccade_angle"] == pytest.approx(90)
    assert second["saccade_angle"] == pytest.approx(0)
    assert second["angle_prev"] == pytest.approx(-90)
    assert first["angle_prev"] == first["dist_prev"] == 0
    assert first["vel_x_mean"] == pytest.approx(-250)  # previous minus next
    assert first["vel_y_mean"] == 0
    assert first["dispersion"] == pytest.approx(4)
    assert first["amplitude"] == pytest.approx(4, rel=1e-3)
    assert first["saccadic_ratio"] == pytest.approx(250 / 0.02, rel=2e-3)
    assert first["vel_x_skew"] == first["acc_x_kurt"] == 0  # nothing varies


def test_the_previous_event_is_the_last_of_the_same_kind() -> None:
    x = np.repeat([0.0, 3.0, 3.0, 7.0], 5) + np.tile([0, 0.1, 0, 0.1, 0.05], 4)
    spans = events(
        ("fixation", 0, 4), ("saccade", 5, 9), ("fixation", 10, 14), ("fixation", 15, 19)
    )
    table = event_features(recording(x, np.zeros(20)), kind="all", events=spans)
    np.testing.assert_allclose(table.column("dist_prev"), [0, 0, 3, 4], atol=0.02)
    assert table.keys.index.tolist() == [0, 1, 2, 3]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), shift=st.floats(-720, 720))
def test_longitude_zero_is_no_special_place(seed: int, shift: float) -> None:
    x, y = walk(seed, 60, Sphere())
    spans = events(
        ("fixation", 0, 19), ("saccade", 20, 29), ("fixation", 30, 49), ("saccade", 50, 59)
    )
    here, there = (
        event_features(recording(wrap_x(x + s), y, Sphere()), events=spans).values
        for s in (0.0, shift)
    )
    np.testing.assert_allclose(here, there, rtol=1e-6, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), sphere=st.booleans())
def test_a_mirrored_saccade_has_mirrored_features(seed: int, sphere: bool) -> None:
    space: Space = Sphere() if sphere else SCREEN
    x, y = walk(seed, 30, space)
    mirrored = wrap_x(-x) if sphere else -x
    spans = events(("saccade", 0, 14), ("saccade", 15, 29))
    one, other = (
        event_features(recording(a, y, space), kind="saccade", events=spans) for a in (x, mirrored)
    )
    for name in one.columns:
        if name in ("vel_x_max", "acc_x_max"):
            continue  # the largest of the mirrored series is the smallest of the other
        odd = name in ("saccade_angle", "angle_prev") or (
            name[:5] in ("vel_x", "acc_x") and not name.endswith(("std", "kurt"))
        )
        np.testing.assert_allclose(
            other.column(name),
            one.column(name) * (-1 if odd else 1),
            rtol=1e-6,
            atol=1e-6,
            err_msg=name,
        )


def test_a_motionless_eye_has_finite_features() -> None:
    for space, place in ((SCREEN, 0.0), (Sphere(), 90.0)):
        still = np.full(20, place)
        table = event_features(
            recording(still, still, space), events=events(("fixation", 0, 9), ("saccade", 10, 19))
        )
        assert np.isfinite(table.values).all()
        assert (table.values[:, 1:] == 0).all()


def test_the_sets_have_the_published_sizes() -> None:
    sizes = {
        kind: {name: len(columns) for name, columns in sets.items()}
        for kind, sets in SUBSETS.items()
    }
    assert sizes["fixation"] == {"all": 12, "published": 12, "reading": 9, "random-dot": 9}
    assert sizes["saccade"] == {"all": 46, "published": 45, "reading": 43, "random-dot": 40}
    assert sizes["all"]["all"] == 52
    reading, dots = (set(SUBSETS["fixation"][s]) for s in ("reading", "random-dot"))
    assert reading - dots == {"std_y"}
    assert dots - reading == {"duration"}


def test_a_subset_picks_the_columns_with_their_bounds() -> None:
    x, y = walk(1, 20, SCREEN)
    spans = events(("saccade", 0, 19))
    whole, part = (
        event_features(recording(x, y), kind="saccade", subset=s, events=spans)
        for s in ("all", "reading")
    )
    assert part.columns == SUBSETS["saccade"]["reading"]
    for name in part.columns:
        assert part.column(name) == whole.column(name)
        assert part.bound(name) == whole.bound(name)


def test_one_pass_gives_both_tables() -> None:
    x, y = walk(2, 40, SCREEN)
    spans = events(("fixation", 0, 19), ("saccade", 20, 39))
    fixations, saccades = fixation_and_saccade_features(recording(x, y), events=spans)
    np.testing.assert_array_equal(
        fixations.values, event_features(recording(x, y), kind="fixation", events=spans).values
    )
    np.testing.assert_array_equal(
        saccades.values, event_features(recording(x, y), kind="saccade", events=spans).values
    )


def test_events_without_samples_are_counted_not_measured() -> None:
    none = np.empty(0)
    place = Events(
        np.array(["fixation", "fixation"]),
        [-1, -1],
        [-1, -1],
        [0, 300_000_000],
        [200_000_000, 500_000_000],
        [0.0, 1.0],
        [0.0, 1.0],
    )
    gaze = Recording(
        "a", "clip", np.empty(0, dtype=np.int64), none, none, space=SCREEN, events=place
    )
    table = event_features(gaze, kind="fixation")
    assert len(table) == 0
    assert table.counts["events_without_samples"] == 2
    assert table.columns == SUBSETS["fixation"]["all"]


def test_a_detector_is_run_where_no_events_are_given() -> None:
    x = np.concatenate(
        (np.zeros(100), np.linspace(0, 8, 10), np.full(100, 8.0))
    ) + np.random.default_rng(0).normal(0, 0.01, 210)
    table = gazeveil.event_features(
        Cohort([recording(x, np.zeros(210))]), kind="saccade", method="ivt", setting="ren2024"
    )
    assert len(table) == 1
    assert table.column("amplitude")[0] == pytest.approx(8, abs=1)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"kind": "fixations"},
            ParameterError,
            (
                "The 'kind' parameter of event_features must be one of all, fixation, saccade. Got"
                " 'fixations' instead. Did you mean 'fixation'?"
            ),
        ),
        (
            {"kind": "all", "subset": "reading"},
            ParameterError,
            (
                "The 'subset' parameter of event_features must be one of all, published. Got"
                " 'reading' instead."
            ),
        ),
        (
            {"cohort": [1, 2]},
            ParameterError,
            "must be a Cohort or a Recording. Got [1, 2] instead.",
        ),
        (
            {"events": events(("fixation", 0, 99))},
            DataError,
            (
                "An event ends at sample 99, but recording (person 'a', stimulus 'clip', session"
                " '1') has 20 samples."
            ),
        ),
        ({"events": {}}, DataError, "The events given have no entry for recording (person 'a'"),
        (
            {"events": 3},
            ParameterError,
            (
                "must be Events, a mapping of recording key to Events, or a function that makes"
                " them. Got 3 instead."
            ),
        ),
        (
            {"events": events(("fixation", 0, 9)), "setting": "george"},
            ParameterError,
            "event_features with events= has no option 'setting'.",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(
    changes: dict[str, object], error: type[Exception], message: str
) -> None:
    x, y = walk(3, 20, SCREEN)
    with pytest.raises(error, match=re.escape(message)):
        event_features(**{"cohort": recording(x, y), **changes})  # type: ignore[arg-type]


def test_a_recording_without_rate_is_refused() -> None:
    x, y = walk(3, 20, SCREEN)
    gaze = recording(x, y).with_(rate_hz=float("nan"))
    with pytest.raises(DataError, match=r"The rate of recording .* is not known"):
        event_features(gaze, events=events(("fixation", 0, 9)))


STATISTICS = ("mean", "median", "max", "std", "skew", "kurt")
SERIES = tuple(f.name.removesuffix("_median") for f in SACCADE if f.name.endswith("_median"))
GRAMS = tuple(f.name.removeprefix("wb1") for f in window_definitions() if f.name[:3] == "wb1")


def bounds(feature: Feature) -> str:
    return f"{feature.low:g} to {feature.high:g}"


def page_rows(heading: str) -> list[str]:
    """The rows of a section of the page."""
    if heading == "## Windows":
        family = window_definitions()
        found = {f.name: f for f in family}
        rows = [
            f"| {i} | `{f.name}` | {f.meaning} | {f.unit} | {bounds(f)} |"
            for i, f in enumerate(family)
            if not f.name.startswith("wb")
        ]
        for gram in GRAMS:
            of_each = [found[f"wb{n}{gram}"] for n in (1, 2, 3, 4)]
            assert {f.unit for f in of_each} == {"1"}
            said = of_each[0].meaning.replace("1-grams", "n-grams").replace("wb1", "wbN")
            cells = " | ".join(bounds(f) for f in of_each)
            rows.append(f"| `wbN{gram}` | {said.replace('all 24 ', 'all 24^n ')} | {cells} |")
        return rows
    family = FIXATION if heading == "## Fixations" else SACCADE
    found = {f.name: f for f in family}
    statistics = {f"{s}_{kind}" for s in SERIES for kind in STATISTICS}
    rows = [
        f"| `{f.name}` | {f.meaning} | {f.unit} | {bounds(f)} |"
        for f in family
        if f.name not in statistics and (family is FIXATION or f not in shared())
    ]
    for series in SERIES if family is SACCADE else ():
        mean, median, largest, std, skew, kurt = (found[f"{series}_{k}"] for k in STATISTICS)
        assert bounds(mean) == bounds(median)
        assert (bounds(skew), bounds(kurt)) == ("-5 to 5", "-2 to 30")
        cells = f"{bounds(mean)} | {bounds(largest)} | {bounds(std)}"
        of = mean.meaning.removeprefix("mean of the ")
        rows.append(f"| `{series}` | {of} | {mean.unit} | {cells} |")
    return rows


def shared() -> list[Feature]:
    """Features of saccades that are defined as those of fixations."""
    defined = {(f.name, f.meaning, f.unit) for f in FIXATION}
    return [f for f in SACCADE if (f.name, f.meaning, f.unit) in defined]


def section(heading: str) -> str:
    page = (ROOT / "docs" / "reference" / "features.md").read_text(encoding="utf-8")
    return page[page.index(heading) :].split("\n## ")[0]


@pytest.mark.parametrize("heading", ["## Fixations", "## Saccades", "## Windows"])
def test_the_page_says_what_the_code_has(heading: str) -> None:
    rows = [line for line in section(heading).splitlines() if re.match(r"\| (\d+ \| )?`", line)]
    assert rows == page_rows(heading)


def test_the_page_says_what_saccades_share_with_fixations() -> None:
    said = ", ".join(f"`{f.name}` {bounds(f)}" for f in shared())
    assert f"{len(shared())} are as".replace("7", "Seven") in section("## Saccades")
    assert f"{said}." in section("## Saccades")


def test_the_page_says_what_the_vector_of_both_kinds_has() -> None:
    words = re.findall(r"`(\w+)`", section("## Both kinds"))
    n_scalars = len(EVENT) - len(SERIES) * len(STATISTICS)
    scalars = [f.name for f in EVENT[:n_scalars]]
    assert n_scalars == 16
    assert words[:n_scalars] == scalars
    narrow = {f.name: [g for g in (*FIXATION, *SACCADE) if g.name == f.name] for f in EVENT} | {
        "path_len_2": [f for f in SACCADE if f.name == "path_len"]
    }
    wider = {"avg_vel": "0 to 1000"}
    wider |= {f"{s}_skew": "-15 to 15" for s in SERIES} | {f"{s}_kurt": "-2 to 200" for s in SERIES}
    for feature in EVENT:
        low = min(f.low for f in narrow[feature.name])
        high = max(f.high for f in narrow[feature.name])
        assert bounds(feature) == wider.get(feature.name, f"{low:g} to {high:g}")
    assert all(of_all in section("## Both kinds") for of_all in wider.values())


@pytest.fixture(scope="module")
def gazecom() -> Cohort:
    """Twelve people on clips that all of them saw, at most six."""
    root = real("gazecom")
    cohort = gazeveil.read(root, format="gazecom")
    clips: dict[str, set[str]] = {}
    for person, clip, _, _ in cohort.keys:
        clips.setdefault(person, set()).add(clip)
    people = sorted(clips, key=lambda p: -len(clips[p]))[:12]
    common = sorted(set.intersection(*(clips[p] for p in people)))[:6]
    return cohort.select(people=people, stimuli=common).load()


def hand_labels(gaze: Recording) -> Events:
    return Events.from_words(gaze.labels["handlabeller_final"], gaze.t_ns, source="hand")


@pytest.mark.parametrize("kind", ["fixation", "saccade", "all"])
def test_public_bounds_hold_real_events(gazecom: Cohort, kind: str) -> None:
    table = event_features(gazecom, kind=kind, events=hand_labels)
    assert len(table) > 500
    assert table.bounds is not None
    inside = (table.values >= table.bounds[:, 0]) & (table.values <= table.bounds[:, 1])
    assert inside.all(axis=1).mean() >= 0.99


def identified(vectors: NDArray[np.float64]) -> float:
    """Share of (person, clip) whose nearest mean of the other clips, by cosine, is that person's;
    vectors (people, clips, features).
    """
    people, clips, _ = vectors.shape
    hits = 0
    for clip in range(clips):
        rest = np.delete(vectors, clip, axis=1)
        scale = rest.reshape(-1, rest.shape[2]).std(axis=0) + 1e-12
        known, probe = rest.mean(axis=1) / scale, vectors[:, clip] / scale
        cosine = (
            (probe @ known.T)
            / np.linalg.norm(probe, axis=1)[:, None]
            / np.linalg.norm(known, axis=1)
        )
        hits += int((cosine.argmax(axis=1) == np.arange(people)).sum())
    return hits / (people * clips)


def test_features_carry_identity_and_shuffled_people_none(gazecom: Cohort) -> None:
    fixations, saccades = fixation_and_saccade_features(gazecom, method="ivt")
    people, clips = sorted(gazecom.people), list(gazecom.stimuli)
    means = np.zeros((len(people), len(clips), len(fixations.columns) + len(saccades.columns)))
    at = 0
    for table in (fixations, saccades):
        for (person, clip, _, _), rows in table.recordings().items():
            # Medians: a few lost samples must not decide who somebody is.
            means[people.index(person), clips.index(clip), at : at + len(table.columns)] = (
                np.median(table.values[rows], axis=0)
            )
        at += len(table.columns)
    means -= means.mean(axis=0)
    chance = 1 / len(people)
    assert identified(means) > 4 * chance
    rng = np.random.default_rng(7)
    shuffled = [
        identified(
            np.stack([means[rng.permutation(len(people)), c] for c in range(len(clips))], axis=1)
        )
        for _ in range(40)
    ]
    # Forty shuffles of people x clips draws each: four standard errors of a binomial mean.
    error = 4 * np.sqrt(chance * (1 - chance) / (40 * len(people) * len(clips)))
    assert abs(np.mean(shuffled) - chance) < error + 0.02
