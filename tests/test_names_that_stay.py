"""Every name the design promises, called exactly as written there. This file only grows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazeveil
from gazeveil.io import registry
from tests.support import command_line

FORMATS = """parquet csv arff eyelink-asc tobii-tsv tobii-glasses3 pupil-core pupil-invisible
pupil-neon pupil-neon-native smi vive-pro-eye pico unity-hmd bids 360-em gazecom gazebase
gazebase-vr et-dk2
vr-saliency vr-eyetracking dgaze ehtask mpiidpeye mpiiprivaceye salient360 eyenavgs osie
webqamgaze neuroliaa irf hmr""".split()  # noqa: SIM905 - as the design lists them
FORMATS += ["eyelink-edf", "gazepoint", "varjo"]
FORMATS += ["tobii-glasses2", "tobii-sdk"]
FORMATS += ["eyelink-report", "gorilla", "jspsych", "iohub", "xdf"]
VERBS = [
    "demo",
    "inspect",
    "simulate",
    "events",
    "features",
    "protect",
    "scrub",
    "attack",
    "evaluate",
    "audit",
]
VERBS += [
    "reproduce",
    "randomize",
    "curate",
    "serve",
    "relay",
    "check",
    "train",
    "verify",
    "advise",
]
VERBS += ["publish", "list"]
VERBS += ["explore"]

STREAMS: dict[str, dict[str, object]] = {
    "gaussian": {"sigma_deg": 2},
    "temporal": {"K": 3, "hold": False},
    "spatial": {"L": 64, "steps": "table"},
    "smoothing": {},
    "kalman": {},
    "kaleido": {"epsilon": 1, "w": 50, "r_deg": 2, "h": 2, "t_skip_ms": 50, "l_thresh_deg": 1},
    "kaleido-uniform": {
        "epsilon": 1,
        "w": 50,
        "r_deg": 2,
        "h": 2,
        "t_skip_ms": 50,
        "l_thresh_deg": 1,
    },
    "clock-render": {"epsilon": 10, "r_deg": 2, "slot_s": 0.25},
}


@pytest.fixture(scope="module")
def cohort() -> gazeveil.Cohort:
    return gazeveil.simulate(2, 2, 5.0, 250.0, seed=1)


def test_the_public_surface_is_sorted_and_whole() -> None:
    assert gazeveil.__all__ == sorted(gazeveil.__all__)
    for name in gazeveil.__all__:
        assert getattr(gazeveil, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = gazeveil.nonsense  # type: ignore[attr-defined]


def test_importing_costs_less_than_half_a_second_and_pulls_nothing_heavy() -> None:
    names = "numpy", "numba", "polars", "scipy", "sklearn", "matplotlib", "torch", "cryptography"
    heavy = f"sorted({set(names)} & set(sys.modules))"
    code = (
        "import time; t = time.process_time(); import gazeveil, sys; print(time.process_time() -"
        f" t, {heavy})"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split(maxsplit=1)
    assert float(out[0]) < 0.5
    assert out[1].strip() == "[]"


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_of_the_design_is_there(name: str) -> None:
    assert registry.get(name).name == name


def test_read_and_write(cohort: gazeveil.Cohort, tmp_path: Path) -> None:
    cohort.write(tmp_path / "cohort")
    back = gazeveil.read(tmp_path / "cohort", format=None)
    assert isinstance(back, gazeveil.Cohort)
    assert len(back) == len(cohort) == 4
    assert set(back.people) == set(cohort.people)
    assert back.stimuli == cohort.stimuli
    assert list(back.skipped) == []


def test_simulate_counts_and_spaces() -> None:
    for task in ["free-viewing", "video", "search", "tracking"]:
        assert isinstance(
            gazeveil.simulate(1, 1, 1.0, 60.0, task=task, space=None, seed=None)[0].space,
            gazeveil.Sphere,
        )
    for task in ["reading", "random-saccade"]:
        assert isinstance(
            gazeveil.simulate(people=1, stimuli=1, seconds=1.0, rate_hz=60.0, task=task)[0].space,
            gazeveil.Screen,
        )
    assert len(gazeveil.simulate(1, 3, 1.0, 60.0, task="reading", alike=0.6, seed=1)) == 3
    assert len(gazeveil.simulate(3, 2, 1.0, 60.0)) == 6


def test_recording_fields(cohort: gazeveil.Cohort) -> None:
    r = cohort[0]
    assert all(isinstance(getattr(r, n), str) for n in ("person", "stimulus", "session", "task"))
    assert r.t_ns.dtype == np.int64
    assert r.x_deg.dtype == r.y_deg.dtype == np.float64
    assert r.valid.dtype == np.bool_
    assert r.rate_hz == 250.0
    screen = gazeveil.Screen(
        width_px=1280, height_px=720, width_mm=400, height_mm=225, distance_mm=450
    )
    gazeveil.Recording(
        person="p",
        stimulus="s",
        session="1",
        task="t",
        rate_hz=100.0,
        t_ns=np.arange(3),
        x_deg=np.zeros(3),
        y_deg=np.zeros(3),
        valid=np.ones(3, dtype=bool),
        space=screen,
        left_deg=np.zeros((3, 2)),
        right_deg=np.zeros((3, 2)),
    )


def test_cohort_selects(cohort: gazeveil.Cohort) -> None:
    person, stimulus = next(iter(cohort.people)), cohort.stimuli[0]
    assert len(cohort.select(people=[person], stimuli=[stimulus])) == 1
    assert gazeveil.Cohort(list(cohort), people=None).people.keys() == cohort.people.keys()


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("auto", {}),
        ("auto", {"pso": "separate"}),
        ("auto", {"pso": "saccade"}),
        ("auto", {"pso": "fixation"}),
        ("ivt", {}),
        ("ivt", {"setting": "george"}),
        ("ivt", {"setting": "ren2024"}),
        ("idt", {}),
        ("idt", {"dispersion": "range"}),
        ("idt", {"dispersion": "pairwise"}),
        ("dorr", {}),
        ("is5t", {}),
        ("online", {}),
    ],
)
def test_detect_by_every_method(
    cohort: gazeveil.Cohort, method: str, parameters: dict[str, object]
) -> None:
    recording = cohort[0]
    events = gazeveil.detect(recording, method=method, **parameters)
    assert isinstance(events, gazeveil.Events)
    assert set(events.kind.tolist()) <= {
        "fixation",
        "saccade",
        "pursuit",
        "blink",
        "pso",
        "noise",
        "undefined",
    }
    assert (events.onset >= 0).all()
    assert (events.offset < len(recording)).all()
    np.testing.assert_array_equal(events.onset_ns, recording.t_ns[events.onset])
    np.testing.assert_array_equal(events.offset_ns, recording.t_ns[events.offset])


def test_feature_tables(cohort: gazeveil.Cohort) -> None:
    for table in (
        gazeveil.event_features(cohort),
        gazeveil.window_features(cohort, window_s=2.0, step_s=1.0),
    ):
        assert isinstance(table, gazeveil.FeatureTable)
        assert table.values.dtype == np.float64
        assert table.values.shape == (len(table), len(table.columns))
        assert table.bounds is not None
        assert table.bounds.shape == (len(table.columns), 2)
        for name in ("person", "stimulus", "session", "task", "index"):
            assert len(getattr(table.keys, name)) == len(table)
        first = table.columns[0]
        bounds = table.with_bounds({first: (-1.0, 2.0)}).bounds
        assert bounds is not None
        assert bounds[0].tolist() == [-1.0, 2.0]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    done = command_line.gazeveil(verb, "--help")
    assert done.code == 0
    assert "Example" in done.out


def test_the_parts_of_others_have_a_public_door() -> None:
    for name in ("Guarantee", "Release", "Mechanism", "Results", "errors"):
        assert name in gazeveil.__all__
    assert callable(gazeveil.register)
    assert callable(gazeveil.check_mechanism)


def test_protect_takes_what_each_kind_of_mechanism_takes(cohort: gazeveil.Cohort) -> None:
    table = gazeveil.event_features(cohort, kind="fixation")
    for data, text in (
        (cohort, "gaussian:sigma_deg=5"),
        (cohort[0], "gaussian:sigma_deg=5"),
        (table, "lpa:epsilon=1"),
        (cohort, "heatmap-laplace:epsilon=1"),
        ({str(i): {"age": 20, "gender": "f"} for i in range(4)}, "demographics:k=4"),
    ):
        release = gazeveil.protect(data, text, seed=None, keep=())
        assert isinstance(release, gazeveil.Release)
        assert str(release.guarantee)


def test_data_frames_go_out_and_come_back(cohort: gazeveil.Cohort) -> None:
    events, table = gazeveil.detect(cohort[0]), gazeveil.event_features(cohort)
    for value in (cohort[0], cohort, events, table):
        for frame in (value.to_polars(), value.to_pandas()):
            assert len(type(value).from_frame(frame)) == len(value)
    assert callable(gazeveil.Results.from_frame)
    assert callable(gazeveil.Results.to_polars)
    assert callable(gazeveil.Results.to_pandas)


PICTURES = """before_after events_ribbon front heat_map main_sequence scanpath
trace""".split()  # noqa: SIM905 - as the manual lists them


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_there(name: str) -> None:
    assert name in gazeveil.plot.__all__
    assert callable(getattr(gazeveil.plot, name))


def test_attack_takes_raw_recordings_and_a_release(cohort: gazeveil.Cohort) -> None:
    release = gazeveil.protect(cohort, "gaussian:sigma_deg=5", seed=1)
    results = gazeveil.attack(
        cohort, release, attacks="linkage", repetitions=1, seed=0, executor=1, train=0.5
    )
    assert set(results.frame["scenario"]) == {"raw/raw", "raw/private", "release/release"}


@pytest.mark.parametrize(("name", "parameters"), list(STREAMS.items()))
def test_stream_mechanisms_release_what_their_sessions_release(
    cohort: gazeveil.Cohort, name: str, parameters: dict[str, object]
) -> None:
    assert name in gazeveil.mechanisms()
    mechanism: Any = gazeveil.mechanism(name, **parameters)
    recording = cohort[0]
    release = mechanism.release(recording, seed=3)
    session = mechanism.open(recording.rate_hz, recording.space, seed=3)
    pushed = session.push(recording.t_ns, recording.x_deg, recording.y_deg, recording.valid)
    for got, wanted in zip(pushed, ("t_ns", "x_deg", "y_deg", "valid"), strict=True):
        np.testing.assert_array_equal(got, getattr(release.data, wanted))
    assert all(len(a) <= 1 for a in mechanism.open(recording.rate_hz).push(0, 1.0, 2.0, True))
    assert isinstance(mechanism.release(cohort, seed=3).data, gazeveil.Cohort)
    # A promise is a map from a stated change to a loss; what promises nothing proves nothing.
    if release.guarantee.definition != "none":
        own = mechanism.release(recording).guarantee
        small, large = gazeveil.Change.sample(move_deg=1), gazeveil.Change.person(move_deg=1)
        assert own.map(large).amount >= own.map(small).amount > 0
    assert release.guarantee.status == (
        "empirical" if release.guarantee.definition == "none" else "claimed"
    )
    assert str(release.guarantee)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("k-same-synth", {"k": 2}),
        ("event-synth-pd", {"k": 2, "gamma": 2, "epsilon0": 1, "attempts": 100}),
    ],
)
def test_synthesis_takes_the_parameters_of_the_design(
    cohort: gazeveil.Cohort, name: str, parameters: dict[str, object]
) -> None:
    required = {key: value for key, value in parameters.items() if key in {"k", "gamma"}}
    assert gazeveil.mechanism(name, **parameters) == gazeveil.mechanism(name, **required)
    release = gazeveil.mechanism(name, **parameters).release(cohort, seed=1)
    assert isinstance(release.data, gazeveil.Cohort)
    assert len(release.data) == len(cohort)


SYNTHESIS: dict[str, dict[str, object]] = {
    "k-same-synth": {"k": 2},
    "event-synth-pd": {"k": 2, "gamma": 2, "epsilon0": 1, "attempts": 100},
    "dpgazesynth": {
        "epsilon": 1,
        "G": 60,
        "r_deg": None,
        "window_s": 0.5,
        "split": ("3/5", "1/5", "1/5"),
        "cap": 6,
    },
    "dpgazesynth-one-report": {
        "epsilon": 1,
        "G": 60,
        "r_deg": None,
        "window_s": 0.5,
        "split": ("3/5", "1/5", "1/5"),
        "cap": 6,
    },
}


@pytest.mark.parametrize(("name", "parameters"), list(SYNTHESIS.items()))
def test_cohort_mechanisms_release_cohorts_of_the_same_names_and_lengths(
    cohort: gazeveil.Cohort, name: str, parameters: dict[str, object]
) -> None:
    assert name in gazeveil.mechanisms()
    mechanism = gazeveil.mechanism(name, **parameters)
    assert mechanism.kind == "cohort"
    release = mechanism.release(cohort, seed=3)
    assert isinstance(release.data, gazeveil.Cohort)
    assert sorted((r.key, len(r)) for r in release.data) == sorted((r.key, len(r)) for r in cohort)
    assert release.guarantee.status in {"proved", "claimed"}
    if name != "dpgazesynth-one-report":
        assert (
            gazeveil.mechanism(name, **parameters, reading="published")
            .release(cohort, seed=3)
            .guarantee.status
            == "refuted"
        )


@pytest.mark.parametrize("form", ["stream", "offline"])
def test_clock_render_is_there_in_both_forms(cohort: gazeveil.Cohort, form: str) -> None:
    made: Any = gazeveil.mechanism("clock-render", epsilon=1, r_deg=2, slot_s=0.25, form=form)
    lengths = sorted((r.key, len(r)) for r in made.release(cohort, seed=3).data)
    assert lengths == sorted((r.key, len(r)) for r in cohort)


COLUMNS = """cohort mechanism reading parameters events scenario attack utility metric value
low high n chance repetitions seed""".split()  # noqa: SIM905 - as the design lists them
UTILITIES = [
    "aoi",
    "saliency",
    "prediction",
    "document",
    "gender",
    "privacy-sensitivity",
    "activity",
    "task",
    "signal",
    "density",
    "events",
]


@pytest.mark.parametrize(
    "name", ["rbfn", "linkage", "forest", "svm", "knn", "tree", "lda", "boosting"]
)
def test_every_attack_of_the_design_is_there(name: str) -> None:
    from gazeveil.attacks.registry import attack

    assert str(attack(name)) == name


@pytest.mark.parametrize("name", UTILITIES)
def test_every_utility_of_the_design_is_there(name: str) -> None:
    from gazeveil.utility.registry import utilities

    assert name in utilities()


@pytest.mark.parametrize(
    "text",
    [
        "prediction:model=kalman",
        "prediction:model=dgaze,reading=published,head=none,steps=10",
        "activity:classifier=ehtask,reading=published,head=none,steps=10",
    ],
)
def test_the_papers_networks_keep_their_words(text: str) -> None:
    from gazeveil.utility.registry import utility

    assert str(utility(text)) == text


def test_files_of_weights_keep_their_name() -> None:
    from gazeveil.models.ekyt.weights import FORMAT, load_ekyt

    # Files that somebody keeps say what they are.
    assert FORMAT == "gazeveil-ekyt-1"
    assert callable(load_ekyt)


def test_stimuli_are_compared_by_these_names() -> None:
    from gazeveil.attacks.infer import KINDS

    chosen: dict[str, Any] = {"attacks": "linkage+steps", "seconds": 10.0, "draws": 99}
    assert KINDS["stimulus-risk"](**chosen).kind == "stimulus-risk"


def test_evaluate_as_the_design_has_it(tmp_path: Path) -> None:
    people = gazeveil.simulate(4, 4, 6.0, 120.0, seed=2)
    results = gazeveil.evaluate(
        people,
        mechanisms=[gazeveil.mechanism("gaussian", sigma_deg=5), "temporal:K=2"],
        attacks=["linkage"],
        utilities=["density"],
        scenarios=["private/raw", "raw/private", "private/private", "release/release"],
        repetitions=1,
        seed=0,
        executor=None,
    )
    assert results.frame.columns[:16] == COLUMNS
    assert set(results.frame["scenario"]) == {
        "raw/raw",
        "private/raw",
        "raw/private",
        "private/private",
        "release/release",
    }
    assert set(results.frame["mechanism"]) == {"none", "gaussian", "temporal"}
    assert set(results.frame["events"]) == {"redetected"}
    assert {"identification_rate", "rank1", "eer", "d_prime", "jsd"} <= set(results.frame["metric"])
    assert all(
        (row["attack"] is None) != (row["utility"] is None)
        for row in results.frame.iter_rows(named=True)
    )
    rates = results.frame.filter(metric="identification_rate")
    assert ((rates["value"] >= 0) & (rates["value"] <= 1)).all()
    results.write(tmp_path / "out")
    assert (tmp_path / "out" / "results.parquet").is_file()
    results.report(tmp_path / "out")
    assert (tmp_path / "out" / "report.html").is_file()


@pytest.mark.parametrize("name", ["quick", "strong", "all", "none"])
def test_every_battery_is_there_in_python_and_on_the_command_line(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    from gazeveil.attacks.registry import BATTERIES, DEFAULT, battery

    assert name in BATTERIES
    assert DEFAULT == "strong"
    assert bool(battery(name)) is (name != "none")
    for verb in ("evaluate", "attack"):
        said = command_line.gazeveil(verb, "--help").out
        assert "--attacks" in said
        assert name in said
        assert ("--no-attacks" in said) is (verb == "evaluate")


def test_results_compare_the_strongest_attacker_with_one_attack() -> None:
    results = gazeveil.evaluate(
        gazeveil.simulate(3, 3, 6.0, 120.0, seed=2),
        attacks="quick",
        utilities=["density"],
        repetitions=2,
        executor=1,
    )
    assert {a for a in results.frame["attack"] if a} == {"rbfn", "linkage"}
    (row,) = results.strongest_against("rbfn").to_dicts()
    assert {"strongest", "value", "chosen", "other", "difference", "called_safe", "tried"} <= set(
        row
    )
    assert (row["other"], row["tried"]) == ("rbfn", 2)
    assert set(results.called_safe("rbfn")) == {"releases", "called_safe"}
    assert results.study["battery"] == "quick battery"


def test_the_baseline_needs_no_mechanism() -> None:
    results = gazeveil.evaluate(
        gazeveil.simulate(3, 3, 6.0, 120.0, seed=2),
        mechanisms=[],
        attacks=["linkage"],
        repetitions=1,
        executor=1,
    )
    assert set(zip(results.frame["mechanism"], results.frame["scenario"], strict=True)) == {
        ("none", "raw/raw")
    }


def test_serve_starts_alone_and_answers_strangers_with_401_403_or_404(tmp_path: Path) -> None:
    import httpx

    from tests.support.gatekeeper_running import Process, free_port

    port = free_port()
    with Process(
        tmp_path / "home", port
    ) as service:  # gazeveil serve --port N, with $GAZEVEIL_HOME
        assert f"http://127.0.0.1:{port}/" in service.link
        assert list((tmp_path / "home").glob("*.sqlite"))
        with httpx.Client(base_url=service.address) as stranger:
            for path in ("/openapi.json", "/health", "/"):
                assert stranger.get(path).status_code == 200, path
            assert stranger.get("/metrics").status_code in (401, 403, 404)
            paths = [
                p for p in stranger.get("/openapi.json").json()["paths"] if p.startswith("/v1")
            ]
            assert len(paths) > 10
            for path in (*paths, "/v1/nothing", "/etc/passwd"):
                assert stranger.get(path.replace("{", "").replace("}", "")).status_code in (
                    401,
                    403,
                    404,
                    405,
                ), path
        assert service.owner().get("/v1/apps").status_code == 200
        again = httpx.get(service.link)
        assert again.status_code in (401, 403, 404, 410), "the owner's link works once"


def test_the_gatekeeper_embeds_without_the_web() -> None:
    from gazeveil.gatekeeper import Gatekeeper, Ledger, Policy
    from gazeveil.gatekeeper.policy.grant import PRESETS

    policy = Policy({"shop": PRESETS["count"].grant()}, consent=True)
    with Ledger.open("sqlite://") as ledger, Gatekeeper(policy, ledger, rate_hz=120.0) as keeper:
        shop = keeper.app("shop")
        shelf = shop.register_area("shelf", 150, 70, 40, 30)
        keeper.push(
            np.arange(240) * 8_333_333,
            np.full(240, 170.0),
            np.full(240, 85.0),
            np.ones(240, dtype=bool),
        )
        keeper.lost()
        (fixation,) = shop.get_fixations(shelf.id)
        assert shop.get_dwell_time(fixation.number) == fixation.duration_ms
        assert shop.get_saccades(shelf.id) == ()
        assert shop.metrics(shelf.id).fixations == 1


@pytest.mark.parametrize("name", ["kaleido", "kaleido-uniform"])
def test_r_from_regions_keeps_its_words(name: str) -> None:
    for rule in ("largest", "median"):
        made = gazeveil.mechanism(f"{name}:epsilon=1,w=50,r_deg={rule},regions=areas.toml")
        assert made.parameters()["regions"] == "areas.toml"
