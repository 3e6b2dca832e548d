"""The 52 window features against a plain reference, by hand, and from
the published files' layout."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gazeveil.errors import DataError, FormatError, ParameterError
from gazeveil.features import mpii_features, table_from_mpii, window_features, without_minima
from gazeveil.features.definitions import WINDOW
from gazeveil.features.rows import saccade_codes
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.events import Events
from gazeveil.gaze.geometry import Screen, Space, Sphere, angle_deg, wrap_x
from gazeveil.gaze.recording import Recording

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
RATE = 50.0
STEP_NS = 20_000_000


def recording(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    space: Space = SCREEN,
    pupil: NDArray[np.float64] | None = None,
    **more: object,
) -> Recording:
    return Recording(
        "a",
        "clip",
        np.arange(len(x)) * STEP_NS,
        x,
        y,
        space=space,
        rate_hz=RATE,
        pupil=pupil,
        **more,
    )  # type: ignore[arg-type]


def scene(seed: int, seconds: int, sphere: bool) -> tuple[Recording, Events]:
    """Fixations, saccades and blinks at random, told and not detected."""
    rng = np.random.default_rng(seed)
    n = round(seconds * RATE)
    words = np.empty(n, dtype="<U12")
    x, y = np.empty(n), np.empty(n)
    at, here = 0, np.zeros(2)
    while at < n:
        for word, most in (("fixation", 30), ("saccade", 4), ("blink", 8)):
            if word == "blink" and rng.random() < 0.7:
                continue
            k = int(rng.integers(1, most + 1))
            there = here + (rng.normal(0, 4, 2) if word == "saccade" else 0)
            there = np.clip(there, -20, 20)
            for axis, out in enumerate((x, y)):
                out[at : at + k] = (
                    here[axis]
                    + (there - here)[axis] * np.arange(1, k + 1) / k
                    + rng.normal(0, 0.1, k)
                )[: max(0, n - at)]
            words[at : at + k] = word
            here, at = there, at + k
    pupil = rng.uniform(2, 6, n)
    pupil[rng.random(n) < 0.1] = np.nan
    lost = words == "blink"
    x[lost], y[lost] = np.nan, np.nan
    if sphere:
        x, y = wrap_x(x), y + 90
    gaze = recording(x, y, Sphere() if sphere else SCREEN, pupil)
    return gaze, Events.from_words(words, gaze.t_ns)


def reference(
    gaze: Recording, events: Events, start_s: float, window_s: float, nonzero: bool
) -> list[float]:
    """One window, the slow and obvious way."""
    inside = events.where(
        (events.onset / RATE < start_s + window_s - 1e-9)
        & ((events.offset + 1) / RATE > start_s + 1e-9)
    )
    fix, sac, blink = inside.of("fixation"), inside.of("saccade"), inside.of("blink")
    jumps = []
    for e in sac:
        a = e.onset - 1 if e.onset > 0 and gaze.valid[e.onset - 1] else e.onset
        v = gaze.space.vectors(gaze.x_deg[[a, e.offset]], gaze.y_deg[[a, e.offset]])
        dx = gaze.x_deg[e.offset] - gaze.x_deg[a]
        if isinstance(gaze.space, Sphere):
            dx = ((dx + 180) % 360 - 180) * np.cos(
                np.radians(90 - gaze.y_deg[[a, e.offset]].mean())
            )
        jumps.append((float(angle_deg(v[0], v[1])), dx, gaze.y_deg[e.offset] - gaze.y_deg[a]))
    size = np.array([j[0] for j in jumps])
    n_s, n_f, n_b = len(sac), len(fix), len(blink)
    kinds = [
        sum(size < 2),
        sum(size >= 2),
        sum(j[1] > 0 for j in jumps),
        sum(j[1] < 0 for j in jumps),
    ]
    row = [
        n_f / window_s,
        n_s / window_s,
        *(k / window_s for k in kinds),
        n_s / n_f if n_f else 0,
        *((k / n_s if n_s else 0) for k in kinds),
    ]
    row += [size.mean(), size.var(), size.max()] if n_s else [0, 0, 0]
    seconds = (fix.offset - fix.onset + 1) / RATE
    row += [seconds.mean(), seconds.var(), seconds.max()] if n_f else [0, 0, 0]
    spread, pupil = [], []
    for e in fix:
        part = slice(e.onset, e.offset + 1)
        x, y = gaze.x_deg[part], gaze.y_deg[part]
        if isinstance(gaze.space, Sphere):
            x = np.unwrap(x, period=360) * np.cos(np.radians(np.mean(90 - y)))
        spread.append((x.var(), y.var()))
        assert gaze.pupil is not None
        sizes = gaze.pupil[part][np.isfinite(gaze.pupil[part])]
        if len(sizes):
            pupil.append((sizes.mean(), sizes.var()))
    s, p = np.array(spread), np.array(pupil)
    row += [*s.mean(axis=0), *s.var(axis=0)] if n_f else [0] * 4
    row += [p[:, 0].mean(), p[:, 0].var(), p[:, 1].mean(), p[:, 1].var()] if len(p) else [0] * 4
    closed = (blink.offset - blink.onset + 1) / RATE
    row += [closed.mean(), closed.var(), n_b / window_s] if n_b else [0, 0, 0]
    codes = saccade_codes(np.array(jumps).reshape(-1, 3), 2.0).tolist()
    for n in (1, 2, 3, 4):
        count = Counter(tuple(codes[i : i + n]) for i in range(len(codes) - n + 1))
        ngrams = 24**n
        if not count:
            row += [0] * 6
            continue
        least = min(count.values()) if nonzero or len(count) == ngrams else 0
        mean = sum(count.values()) / ngrams
        var = sum(c * c for c in count.values()) / ngrams - mean**2
        row += [len(count), max(count.values()), least, max(count.values()) - least, mean, var]
    return [float(v) for v in row]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    sphere=st.booleans(),
    nonzero=st.booleans(),
    window=st.sampled_from([0.5, 2.0, 5.0]),
    step=st.sampled_from([0.1, 0.5, 3.0]),
)
def test_windows_equal_a_plain_reference(
    seed: int, sphere: bool, nonzero: bool, window: float, step: float
) -> None:
    gaze, events = scene(seed, 8, sphere)
    table = window_features(
        gaze, window, step, events=events, minimum="nonzero" if nonzero else "all"
    )
    starts = np.arange(0, 8 - window + 1e-9, step)
    assert table.keys.index.tolist() == list(range(len(starts)))
    expected = np.array([reference(gaze, events, s, window, nonzero) for s in starts])
    for i, name in enumerate(table.columns):
        np.testing.assert_allclose(
            table.values[:, i], expected[:, i], rtol=1e-7, atol=1e-9, err_msg=name
        )


def test_ngrams_by_hand() -> None:
    # Right 5, right 5, up 5 (large), right 1 (small): codes 0, 0, 4, 16.
    places = np.array([[0, 0], [5, 0], [10, 0], [10, -5], [11, -5]], dtype=float)
    x, y = np.repeat(places, 10, axis=0).T
    words = np.full(50, "fixation", dtype="<U12")
    words[[10, 20, 30, 40]] = "saccade"
    gaze = recording(x, y)
    table = window_features(gaze, 1.0, 1.0, events=Events.from_words(words, gaze.t_ns))
    row = dict(zip(table.columns, table.values[0].tolist(), strict=True))
    assert len(table) == 1
    assert [row[f"wb1_{s}"] for s in ("nonzero", "max", "min", "range")] == [3, 2, 0, 2]
    assert row["wb1_mean"] == pytest.approx(4 / 24)
    assert row["wb1_var"] == pytest.approx((4 + 1 + 1) / 24 - (4 / 24) ** 2)
    assert [row[f"wb{n}_nonzero"] for n in (2, 3, 4)] == [3, 2, 1]
    assert row["wb4_mean"] == pytest.approx(24**-4)
    assert row["large_saccade_share"] == 0.75
    assert row["right_saccade_share"] == 1.0  # straight up counts as right
    assert row["saccade_rate"] == 4.0


@pytest.mark.parametrize(
    ("direction", "amplitude", "code"),
    [
        (0, 5, 0),
        (11, 5, 0),
        (12, 5, 1),
        (90, 5, 4),
        (180, 5, 8),
        (-90, 5, 12),
        (-11, 5, 0),
        (-12, 5, 15),
        (0, 1, 16),
        (22, 1, 16),
        (23, 1, 17),
        (180, 1, 20),
        (-45, 1, 23),
        (0, 2, 0),
    ],
)
def test_codes_are_sectors_centred_on_the_directions(
    direction: float, amplitude: float, code: int
) -> None:
    rad = np.radians(direction)
    assert saccade_codes(np.array([[amplitude, np.cos(rad), -np.sin(rad)]]), 2.0).tolist() == [code]


def test_shifting_longitudes_changes_nothing() -> None:
    gaze, events = scene(5, 10, sphere=True)
    one = window_features(gaze, 4, 1, events=events)
    other = window_features(gaze.with_(x_deg=wrap_x(gaze.x_deg + 123.4)), 4, 1, events=events)
    np.testing.assert_allclose(one.values, other.values, rtol=1e-6, atol=1e-9)


def test_an_event_on_an_edge_belongs_to_the_window_it_overlaps() -> None:
    x = np.zeros(100)
    gaze = recording(x, x)
    # Samples 0 to 49 last exactly one second, so the second window does not see the first fixation.
    events = Events(
        np.array(["fixation", "fixation"]),
        [0, 50],
        [49, 99],
        np.array([0, 50]) * STEP_NS,
        np.array([49, 99]) * STEP_NS,
    )
    table = window_features(gaze, 1.0, 0.5, events=events)
    assert table.column("fixation_rate").tolist() == [1, 2, 1]
    assert table.column("fixation_duration_mean").tolist() == [1, 1, 1]


def test_an_empty_window_is_zero_and_finite() -> None:
    lost = np.full(100, np.nan)
    table = window_features(recording(lost, lost), 1.0, 1.0, events=Events.empty())
    assert table.values.shape == (2, 52)
    assert (table.values == 0).all()
    assert table.counts["recordings_without_pupil"] == 1


def test_a_recording_shorter_than_the_window_is_counted() -> None:
    short, long = (
        recording(np.zeros(10), np.zeros(10)),
        recording(np.zeros(200), np.zeros(200)).with_(person="b"),
    )
    table = window_features(Cohort([short, long]), 2.0, 1.0, events=lambda _: Events.empty())
    assert table.keys.person.tolist() == ["b"] * 3
    assert table.counts["short_recordings"] == 1


def test_one_wild_time_stamp_does_not_stretch_the_recording() -> None:
    gaze = recording(np.zeros(100), np.zeros(100))
    t, valid = gaze.t_ns.copy(), gaze.valid.copy()
    t[50], valid[50] = 10**15, False
    assert (
        len(window_features(gaze.with_(t_ns=t, valid=valid), 1.0, 0.5, events=Events.empty())) == 3
    )


def test_bounds_hold_any_window_and_the_pupil_unit() -> None:
    for window in (0.5, 10.0, 60.0):
        gaze, events = scene(3, 60, sphere=False)
        table = window_features(gaze, window, window, events=events)
        assert table.bounds is not None
        wb = [i for i, n in enumerate(table.columns) if n.startswith("wb")]
        assert (table.values[:, wb] <= table.bounds[wb, 1]).all()
    assert table.bound("pupil_mean_mean") == (0, 10_000)
    assert window_features(gaze.with_(metadata={"pupil_unit": "mm"}), events=events).bound(
        "pupil_mean_mean"
    ) == (0, 10)
    for unit in ("px", "eye-image px"):
        assert window_features(gaze, events=events, pupil_unit=unit).bound("pupil_mean_mean") == (
            0,
            200,
        )


def test_the_view_of_48_leaves_the_minima_out() -> None:
    gaze, events = scene(4, 5, sphere=False)
    table = without_minima(window_features(gaze, 2, 1, events=events))
    assert len(table.columns) == 48
    assert [WINDOW.index(n) for n in WINDOW if n not in table.columns] == [30, 36, 42, 48]
    assert WINDOW[8] == "large_saccade_share"
    assert WINDOW[27] == "blink_rate"
    assert len(WINDOW) == 52


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"window_s": 0},
            (
                "The 'window_s' parameter of window_features must be a positive finite number. Got"
                " 0 instead."
            ),
        ),
        (
            {"step_s": -1},
            (
                "The 'step_s' parameter of window_features must be a positive finite number. Got -1"
                " instead."
            ),
        ),
        (
            {"fixation_radius_deg": "1"},
            (
                "The 'fixation_radius_deg' parameter of window_features must be a positive finite"
                " number. Got '1' instead."
            ),
        ),
        (
            {"minimum": "non-zero"},
            "must be one of all, nonzero. Got 'non-zero' instead. Did you mean 'nonzero'?",
        ),
        (
            {"cohort": None},
            (
                "The 'cohort' parameter of window_features must be a Cohort or a Recording. Got"
                " None instead."
            ),
        ),
    ],
)
def test_what_is_not_allowed_is_refused(options: dict[str, object], message: str) -> None:
    gaze, _ = scene(1, 2, sphere=False)
    with pytest.raises(ParameterError, match=re.escape(message)):
        window_features(**{"cohort": gaze, **options})  # type: ignore[arg-type]


def rows(n: int, columns: int = 52) -> NDArray[np.float64]:
    return np.arange(n * columns, dtype=float).reshape(n, columns) / 10


def csv(values: NDArray[np.float64]) -> str:
    return "".join(
        ",".join("NaN" if np.isnan(v) else repr(float(v)) for v in row) + "\r\n" for row in values
    )


def test_mpii_files_become_one_table(tmp_path: Path) -> None:
    folder = tmp_path / "Eye_Movement_Features"
    folder.mkdir()
    second = rows(2)
    second[1, 20:] = np.nan
    (folder / "Data_P2_R1_Pami_Features_52.csv").write_text(csv(rows(3)), encoding="utf-8")
    (folder / "Data_P10_R3_Pami_Features_52.csv").write_text(csv(second), encoding="utf-8")
    (folder / "readme.txt").write_text("not a table", encoding="utf-8")
    table = mpii_features(tmp_path)
    assert table.columns == WINDOW
    assert table.keys.person.tolist() == ["P2"] * 3 + ["P10"] * 2
    assert table.keys.stimulus.tolist() == ["comic"] * 3 + ["textbook"] * 2
    assert table.keys.index.tolist() == [0, 1, 2, 0, 1]
    np.testing.assert_array_equal(table.values, np.concatenate((rows(3), second)))
    assert len(table.complete()) == 4
    assert table.bound("pupil_mean_mean") == (0, 200)


def test_mpiiprivaceye_columns_after_the_52nd_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "P7_R2_data.csv"
    path.write_text(csv(rows(2, 60)), encoding="utf-8")
    table = mpii_features(path)
    assert table.keys.stimulus.tolist() == ["R2", "R2"]
    np.testing.assert_array_equal(table.values, rows(2, 60)[:, :52])


def test_mpii_values_in_memory_make_the_same_table() -> None:
    keys = [("P1", "comic", "1", "", 0), ("P2", "comic", "1", "", 0)]
    table = table_from_mpii(rows(2), keys)
    assert table.keys.person.tolist() == ["P1", "P2"]
    with pytest.raises(
        DataError, match=re.escape("MPII features need at least 52 columns. Got shape (2, 3).")
    ):
        table_from_mpii(rows(2, 3), keys)
    with pytest.raises(DataError, match=re.escape("values of a FeatureTable need shape (2, 52)")):
        table_from_mpii(rows(3), keys)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Data_P1_R1_Pami_Features_52.csv", "1,2,3\n"),
        ("P1_R1_data.csv", "1,2,3\n"),
        ("P1_R1_data.csv", csv(rows(1, 60)) + csv(rows(1, 60)).replace("0.5,", "half,", 1)),
        ("nothing.txt", "x\n"),
    ],
)
def test_an_mpii_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError) as caught:
        mpii_features(path)
    assert name in str(caught.value)


def test_a_place_without_mpii_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="there are no feature files here"):
        mpii_features(tmp_path)
    with pytest.raises(FormatError, match="there is no such file or folder"):
        mpii_features(tmp_path / "gone")
