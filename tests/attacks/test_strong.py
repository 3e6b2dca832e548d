"""The strong attackers: steps, rocket, fusion, and one-to-one matching. Who is found, who must not
be, what is chosen where, and whatever else comes.

Batteries: who is in them, and how their names become attackers.

Choosing an attacker on other repetitions: what the choice sees, and what it does to luck.

Curves of an attack: gallery size in closed form, age of the template.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import gazeveil
from gazeveil.attacks import evidence, kernel_ridge, registry
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.curves import found_among, gallery_curve
from gazeveil.attacks.evidence import held_out_scores, matching_credit
from gazeveil.attacks.identify.fusion import match_steps
from gazeveil.attacks.registry import attack, attacks
from gazeveil.attacks.result import chosen_on_others, identification
from gazeveil.attacks.vectors import movement, places
from gazeveil.attacks.vectors.convolutions import convolution_vectors
from gazeveil.attacks.vectors.paths import Path, crowds, paths, slot_sums, steps_of_sums
from gazeveil.attacks.vectors.steps import vectors as step_vectors
from gazeveil.errors import DataError, ParameterError
from gazeveil.evaluation.releases import protect
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Recording
from tests.support.places import ROOT
from tests.support.recordings import real_cohort
from tests.support.small_attacks import Place

SCREEN = Screen(1280, 720, 400.0, 225.0, 450.0)
STRONG = ("steps", "rocket", "fusion")


def recording(person="p", stimulus="s", n=500, rate_hz=100.0, seed=0, space=SCREEN, **changes):
    rng = np.random.default_rng(seed)
    walk = np.cumsum(rng.normal(size=(n, 2)) * 0.3, axis=0)
    middle = (180.0, 90.0) if isinstance(space, Sphere) else (0.0, 0.0)
    t_ns = (np.arange(n) * 1e9 / rate_hz).astype(np.int64)
    given = {
        "t_ns": t_ns,
        "x_deg": middle[0] + walk[:, 0],
        "y_deg": middle[1] + walk[:, 1],
        "space": space,
        "rate_hz": rate_hz,
        **changes,
    }
    return Recording(person, stimulus, **given)


def mover(person, stimulus, seed, noise_deg, rate_hz=120.0, seconds=15.0):
    """Somebody who jumps about, each in their own measure: how often, how far, how level."""
    rng = np.random.default_rng([seed, person, stimulus])
    n = int(seconds * rate_hz)
    look = np.cumsum(rng.random(n) < (1.0 + 0.5 * person) / rate_hz)
    wide = 2.0 + person % 4, 1.0 + person % 3
    place = (rng.normal(size=(n, 2)) * wide)[look] + noise_deg * rng.normal(size=(n, 2))
    return recording(f"p{person}", f"s{stimulus}", n, rate_hz, x_deg=place[:, 0], y_deg=place[:, 1])


@pytest.fixture(scope="module")
def sides():
    """Four stimuli to learn from and two to ask about, of eight people, behind noise."""
    return tuple(
        RecordingSet(Cohort([mover(p, s, 1, 1.0) for p in range(8) for s in stimuli]))
        for stimuli in (range(4), range(4, 6))
    )


def renamed(part, names):
    return RecordingSet(Cohort([r.with_(person=names[r.person]) for r in part.cohort]))


# --- who is found


@pytest.mark.parametrize("name", STRONG)
def test_people_are_found_through_noise_above_chance(name, sides):
    scores = attack(name).identify(*sides, seed=1)
    assert scores.known == scores.probes == sides[0].persons
    assert scores.credit().mean() >= 0.5  # guessing gives 1 in 8; 4 of 8 by guessing: p < 0.01


@pytest.mark.parametrize("name", STRONG)
def test_names_of_the_probe_change_nothing_but_the_order_of_rows(name, sides):
    """Whoever is chosen, and with which weights and penalties, is chosen without the answer."""
    gallery, probe = sides
    people = list(probe.persons)
    turned = dict(zip(people, people[3:] + people[:3], strict=True))
    straight = attack(name).identify(gallery, probe, seed=1)
    shuffled = attack(name).identify(gallery, renamed(probe, turned), seed=1)
    at = {p: i for i, p in enumerate(shuffled.probes)}
    rows = [at[turned[p]] for p in straight.probes]
    np.testing.assert_allclose(shuffled.values[rows], straight.values, atol=1e-6)


def test_gaussian_noise_on_real_people_hides_less_than_the_rbf_network_says():
    cohort = real_cohort("gazecom")
    stimuli = sorted(cohort.stimuli)
    kept = set(stimuli[:7])
    mechanism = gazeveil.mechanism("gaussian:sigma_deg=10,losses=keep")
    first, second = (protect(RecordingSet(cohort), mechanism, seed) for seed in (1, 2))
    gallery, probe = first.where(lambda k: k[1] in kept), second.where(lambda k: k[1] not in kept)
    rate = attack("steps").identify(gallery, probe, 1).credit().mean()
    network = attack("rbfn").identify(gallery, probe, 1).credit().mean()
    assert rate >= 0.3
    assert rate > network


def test_labels_dealt_anew_within_stimuli_leave_steps_at_chance():
    """A control: 16 people of whom nothing can be learnt, 20 deals. The rate of 320 decisions
    that guess (1/16) exceeds 0.13 with probability below 1e-6.
    """
    rng = np.random.default_rng(5)
    hits = []
    base = step_vectors(RecordingSet(gazeveil.simulate(16, 4, seconds=8, rate_hz=60, seed=4)))
    for _ in range(20):
        keys = list(base.keys)
        for stimulus in sorted(set(base.stimuli.tolist())):
            rows = [i for i, k in enumerate(keys) if k[1] == stimulus]
            names = rng.permutation([keys[i][0] for i in rows]).tolist()
            for i, name in zip(rows, names, strict=True):
                keys[i] = (name, *keys[i][1:])
        dealt = RecordingVectors(tuple(keys), base.values, base.columns, base.blocks)
        learnt = np.isin(dealt.stimuli, sorted(set(dealt.stimuli.tolist()))[:3])
        hits.append(match_steps(dealt.where(learnt), dealt.where(~learnt)).credit().mean())
    assert np.mean(hits) < 0.13


# --- the numbers


def test_step_statistics_are_those_of_a_plain_reckoning():
    rng = np.random.default_rng(1)
    steps = rng.normal(size=(200, 2)) * (3.0, 1.0)
    steps[17] = np.nan
    got = dict(zip(movement.NAMES, movement.step_statistics(steps), strict=True))
    known = steps[np.isfinite(steps).all(axis=1)]
    length = np.hypot(*known.T)
    assert got["length_q50"] == pytest.approx(np.log(np.median(length)))
    assert got["length_rms"] == pytest.approx(np.log(np.sqrt((length**2).mean()) + 0.01))
    assert got["x_sd"] == pytest.approx(known[:, 0].std())
    assert got["y_mean_abs"] == pytest.approx(np.abs(known[:, 1]).mean())
    assert got["xy"] == pytest.approx(np.corrcoef(known.T)[0, 1])
    sector = np.round(np.arctan2(known[:, 1], known[:, 0]) / (np.pi / 4)).astype(int) % 8
    assert got["way_0"] == pytest.approx(length[sector == 0].sum() / length.sum())
    assert got["count_3"] == pytest.approx((sector == 3).mean())
    before, after = steps[:-1, 0], steps[1:, 0]
    both = np.isfinite(before) & np.isfinite(after)
    assert got["x_lag1"] == pytest.approx(np.corrcoef(before[both], after[both])[0, 1])
    a, b = (np.arctan2(s[:, 1], s[:, 0]) for s in (steps[:-1], steps[1:]))
    weight = np.sqrt(np.hypot(*steps[:-1].T) * np.hypot(*steps[1:].T))
    pairs = np.isfinite(weight)
    cosine = (weight * np.cos(b - a))[pairs].sum() / weight[pairs].sum()
    assert got["turn_cos1"] == pytest.approx(cosine)


def test_missing_statistics_count_runs_and_stretches():
    valid = np.ones(100, dtype=bool)
    valid[10:20] = valid[50] = False
    got = dict(
        zip(
            places.MISSING_NAMES,
            places.missing_statistics(recording(n=100, valid=valid)),
            strict=True,
        )
    )
    assert got["lost_share"] == pytest.approx(0.11)
    assert got["lost_runs"] == 2
    assert got["lost_run_q100"] == pytest.approx(np.log(100.0))
    assert (got["blinks"], got["looks_away"]) == (1, 0)
    assert np.isnan(places.missing_statistics(recording(n=1))).all()


def test_coarse_slots_are_means_of_fine_ones_and_weights_count():
    r = recording(n=400, rate_hz=200.0)
    both = paths(r, (0.02, 0.1))
    alone = paths(r, (0.1,))[0.1]
    np.testing.assert_allclose(both[0.1].vectors, alone.vectors, atol=1e-12)
    weights = np.zeros(400)
    weights[::20] = 1.0
    np.testing.assert_allclose(
        paths(r, (0.1,), weights)[0.1].vectors, SCREEN.vectors(r.x_deg[::20], r.y_deg[::20])
    )


def test_a_path_over_the_seam_of_the_sphere_has_small_steps():
    r = recording(space=Sphere(), x_deg=np.linspace(350, 370, 500) % 360, y_deg=np.full(500, 90.0))
    assert np.abs(paths(r, (0.1,))[0.1].steps_deg()).max() < 1.0


@pytest.mark.parametrize("task", ["free-viewing", "reading"])
def test_steps_of_all_slots_at_once_are_those_of_each_path(task):
    recording = next(iter(gazeveil.simulate(1, 1, 7.3, 90.0, task=task, seed=4)))
    recording = recording.with_(valid=recording.valid & (np.arange(len(recording)) // 50 != 2))
    slots_s = (0.02, 0.1, 0.8, 7.4)
    every = paths(recording, slots_s)
    many = np.array([1, 5, 40, 370])
    steps_deg, ends = steps_of_sums(recording.space, slot_sums(recording, 0.02), many)
    out = np.full((4, len(movement.NAMES)), np.nan)
    movement.fill_step_statistics(steps_deg, ends, out)
    # The last path is one slot, and has no step.
    assert np.diff(ends).tolist() == [len(every[s].vectors) - 1 for s in slots_s]
    assert ends[-1] == ends[-2]
    for k, slot_s in enumerate(slots_s):
        alone = every[slot_s].steps_deg()
        np.testing.assert_array_equal(steps_deg[:, ends[k] : ends[k + 1]], alone.T)
        np.testing.assert_array_equal(out[k], movement.step_statistics(alone))
    assert np.isfinite(out[:2]).all()


def test_the_crowd_is_everybody_else_and_oneself_where_one_is_alone():
    a, b, c = (Path(SCREEN, SCREEN.vectors([x] * 3, [0.0] * 3)) for x in (0.0, 4.0, 8.0))
    of_a = crowds([a, b, c], ["a", "b", "c"])[0]
    assert SCREEN.degrees(of_a)[0] == pytest.approx([6.0] * 3, abs=0.05)
    assert SCREEN.degrees(crowds([b], ["b"])[0])[0] == pytest.approx([4.0] * 3)


def test_power_lies_in_the_band_of_the_movement():
    t = np.arange(500) * 0.04
    power = places.spectrum(np.stack((np.sin(2 * np.pi * 2.0 * t), 0 * t), axis=1), 0.04)
    edges = np.geomspace(0.1, 12.5, 11)
    assert np.argmax(power[:10]) == np.searchsorted(edges, 2.0) - 1


def test_convolutions_of_a_recording_do_not_depend_on_the_others_of_the_probe(sides):
    gallery, probe = sides
    whole = convolution_vectors(gallery, probe, "fine")[1]
    one = probe.where(lambda k: k == probe.keys[0])
    alone = convolution_vectors(gallery, one, "fine")[1]
    np.testing.assert_array_equal(alone.values[0], whole.values[0])
    shares = whole.values[np.isfinite(whole.values)]
    assert shares.min() >= 0.0
    assert shares.max() <= 1.0
    assert shares.std() > 0.1


def test_filters_are_those_of_the_definition(sides):
    """Nine taps of weight -1, three of them with 3 more, at a dilation; times above a threshold."""
    from gazeveil.attacks.vectors import convolutions

    rng = np.random.default_rng(2)
    series, heavy = rng.normal(size=(1, 60)), np.array([[0, 4, 7]])
    kernel = -np.ones(9)
    kernel[[0, 4, 7]] += 3.0
    plain = np.array([kernel @ series[0, t : t + 17 : 2] for t in range(60 - 16)])
    out = np.empty((1, 1, 3), dtype=np.int32)
    levels = np.array([[[-1.0, 0.3, 2.0]]], dtype=np.float32)
    convolutions._count_above(series.astype(np.float32), 2, heavy, levels, out)
    assert out[0, 0].tolist() == [(plain > level).sum() for level in (-1, 0.3, 2)]


# --- learning


def test_ridge_is_the_textbook_solution_in_both_forms():
    rng = np.random.default_rng(3)
    for features in (5, 80):
        x, z = rng.normal(size=(40, features)), rng.normal(size=(7, features))
        labels = kernel_ridge.TrainingLabels(np.arange(40) % 4, 4, np.arange(40) % 3)
        got = kernel_ridge.ridge_scores(x, z, labels)
        size = (x**2).sum(axis=1).mean()
        textbook = [
            z @ np.linalg.solve(x.T @ x + c * size * np.eye(features), x.T @ labels.targets)
            for c in kernel_ridge.PENALTIES
        ]
        assert min(np.abs(got - scores).max() for scores in textbook) < 1e-9


def test_the_penalty_is_the_one_under_which_held_out_people_stand_out_most():
    rng = np.random.default_rng(7)
    labels = kernel_ridge.TrainingLabels(np.arange(60) % 6, 6, np.arange(60) // 6 % 5)
    chosen = set()
    for noise in (0.1, 3.0):
        x = rng.normal(size=(6, 90))[labels.of] + noise * rng.normal(size=(60, 90))
        size = (x**2).sum(axis=1).mean()
        gains = []
        for c in kernel_ridge.PENALTIES:
            gain = 0.0
            for k in range(5):
                out = labels.fold == k
                gram = x[~out] @ x[~out].T + c * size * np.eye((~out).sum())
                scores = x[out] @ x[~out].T @ np.linalg.solve(gram, labels.targets[~out])
                gain += kernel_ridge.margins(scores, labels.of[out]).sum()
            gains.append(gain)
        found = kernel_ridge._penalty(kernel_ridge._by_features(x), labels, size)
        assert found == pytest.approx(kernel_ridge.PENALTIES[int(np.argmax(gains))] * size)
        chosen.add(round(found / size, 6))
    assert len(chosen) == 2


def test_the_kernel_is_that_of_the_definition_and_landmarks_come_near_it(monkeypatch):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(30, 6))
    among, asked = kernel_ridge.kernel_products(x, x[:5])
    np.testing.assert_allclose(among[:5], asked, atol=1e-12)
    apart = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    width = np.median(apart[~np.eye(30, dtype=bool)])
    kernel = np.exp(-apart / width)
    centring = np.eye(30) - 1 / 30
    np.testing.assert_allclose(among, centring @ kernel @ centring, atol=1e-12)
    g, p = kernel_ridge.kernel_features(x, x[:5])
    np.testing.assert_allclose(g @ g.T, among, atol=1e-6)
    np.testing.assert_allclose(p @ g.T, asked, atol=1e-6)
    labels = kernel_ridge.TrainingLabels(np.arange(30) % 3, 3, np.arange(30) % 5)
    exact = kernel_ridge.kernel_scores(x, x[:5], labels)
    np.testing.assert_allclose(kernel_ridge.ridge_scores(g, p, labels), exact, atol=1e-5)
    monkeypatch.setattr(kernel_ridge, "LANDMARKS", 20)
    few, _ = kernel_ridge.kernel_features(x, x[:5])
    assert few.shape == (30, 20)
    assert np.abs(few @ few.T - among).mean() < 0.05
    near = kernel_ridge.kernel_scores(x, x[:5], labels)
    assert np.corrcoef(near.ravel(), exact.ravel())[0, 1] > 0.8


def test_weights_go_to_what_knows_people():
    rng = np.random.default_rng(5)
    own = np.arange(60) % 12
    knows = rng.normal(size=(60, 12))
    knows[np.arange(60), own] += 2.0
    noise = rng.normal(size=(60, 12))
    weights = evidence.fusion_weights([noise, knows], own)
    assert weights[1] > 5 * weights[0]
    assert evidence.fusion_weights([noise], own).tolist() == [1.0]
    assert evidence.fusion_weights([noise[:0], knows[:0]], own[:0]).tolist() == [1.0, 1.0]


def test_held_out_decisions_ask_about_stimuli_that_were_not_learnt():
    keys = tuple((f"p{i}", f"s{j}", "1", "") for i in range(4) for j in range(5))
    vectors = RecordingVectors(keys, np.random.default_rng(0).normal(size=(20, 2)), ("a", "b"))
    seen = []

    def matcher(gallery, probe):
        seen.append((set(gallery.stimuli.tolist()), set(probe.stimuli.tolist())))
        known = tuple(sorted(set(gallery.persons.tolist())))
        return Scores(known, known, np.eye(len(known)))

    held_out, own = held_out_scores(vectors, matcher)
    assert all(not (learnt & asked) for learnt, asked in seen)
    assert set.union(*(asked for _, asked in seen)) == {f"s{j}" for j in range(5)}
    assert (held_out.argmax(axis=1) == own).all()
    single = vectors.where(vectors.stimuli == "s0")
    assert held_out_scores(single, matcher)[1].size == 0

    def blind(gallery, probe):
        raise DataError("nothing known")

    knows_nobody, same = held_out_scores(vectors, blind)
    assert (knows_nobody == 0.0).all()
    assert (same == own).all()


# --- matching


def test_matching_gives_every_name_once_and_beats_independent_decisions():
    values = np.array([[9.0, 8.0, 0.0], [7.0, 1.0, 0.0], [0.0, 5.0, 4.9]])
    scores = Scores(("a", "b", "c"), ("b", "a", "c"), values)
    assert scores.credit().tolist() == [0.0, 1.0, 0.0]
    assert matching_credit(scores, 0).tolist() == [1.0, 1.0, 1.0]


def test_equal_scores_are_a_guess_for_the_matching_too():
    """Names and probes in one order must not become a match: 400 draws of 10 people, a mean of
    0.1 with standard error 0.005; 0.13 would be six of them.
    """
    people = tuple(f"p{i}" for i in range(10))
    scores = Scores(people, people, np.zeros((10, 10)))
    rates = [matching_credit(scores, seed).mean() for seed in range(400)]
    assert 0.07 < np.mean(rates) < 0.13


# --- bad input


@pytest.mark.parametrize("name", STRONG)
def test_where_nothing_is_known_it_is_said_in_one_sentence_or_a_guess(name):
    people = [recording(f"p{i}", f"s{j}", seed=9 * i + j) for i in range(3) for j in range(2)]
    gone = [r.with_(valid=np.zeros(500, dtype=bool)) for r in people]
    for gallery, probe in ((people, gone), (gone, people), (gone, gone)):
        sides = RecordingSet(Cohort(gallery)), RecordingSet(Cohort(probe))
        try:
            scores = attack(name).identify(*sides, seed=1)
        except DataError as error:
            assert re.fullmatch(r"[A-Z][^.]*\.", str(error))  # noqa: PT017 either way is right
        else:
            assert np.ptp(scores.values, axis=1).max() == 0.0


@pytest.mark.parametrize("seconds", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_short_recordings_are_judged_or_refused(seconds):
    n = int(60 * seconds)
    sides = [
        RecordingSet(Cohort([recording(f"p{i}", s, n, 60.0, seed=i) for i in range(3)]))
        for s in "ab"
    ]
    for name in STRONG:
        try:
            assert np.isfinite(attack(name).identify(*sides, seed=1).values).all()
        except DataError as error:
            assert "ecordings" in str(error)  # noqa: PT017 either way is right


@pytest.mark.parametrize("name", STRONG)
def test_one_recording_each_unequal_rates_and_a_lost_recording_are_judged(name):
    gallery = [recording(f"p{i}", "s", seed=i, rate_hz=100.0 + 25 * i) for i in range(4)]
    probe = [recording(f"p{i}", "t", seed=i, rate_hz=60.0) for i in range(4)]
    probe[2] = probe[2].with_(valid=np.zeros(500, dtype=bool))
    scores = attack(name).identify(RecordingSet(Cohort(gallery)), RecordingSet(Cohort(probe)), 1)
    assert np.isfinite(scores.values).all()
    assert scores.probes == ("p0", "p1", "p2", "p3")


def built(name: str) -> list[Attack]:
    return [attack(text) for text in registry.battery(name)]


@pytest.mark.parametrize("name", ["quick", "strong", "all"])
def test_a_battery_lists_attackers_by_the_texts_they_print(name: str) -> None:
    texts = registry.battery(name)
    assert [str(a) for a in built(name)] == list(texts)
    assert len(set(texts)) == len(texts) > 1
    assert "rbfn" in texts  # what the papers use, so that everybody is compared with it


def test_each_battery_holds_the_smaller_ones() -> None:
    quick, strong, everybody = (set(registry.battery(n)) for n in ("quick", "strong", "all"))
    assert quick < strong < everybody


@pytest.mark.parametrize("name", ["strong", "all"])
def test_the_large_batteries_attack_with_all_kinds_of_knowledge_and_behind_a_filter(
    name: str,
) -> None:
    members = built(name)
    assert {a.knowledge for a in members} == {"black-box", "exemplars", "white-box"}
    assert "lowpass" in {a.denoiser for a in members}
    # A release of tables has no samples: more than one of them must do without.
    assert sum("samples" not in a.needs and a.denoiser == "none" for a in members) > 2


def test_nobody_is_wanted_by_a_name_that_is_not_a_mistake() -> None:
    written = {t.partition(":")[0] for texts in registry.BATTERIES.values() for t in texts}
    planned = {"steps", "rocket", "fusion", "ekyt"}
    assert written <= {*attacks(), *planned}


def test_an_attacker_that_is_not_installed_is_left_out_of_a_battery(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "attacks", lambda: ("rbfn", "ekyt"))
    monkeypatch.setattr(registry, "find_spec", lambda _: None)
    assert registry.battery("quick") == ("rbfn",)
    assert "ekyt" not in registry.battery("all")
    monkeypatch.setattr(registry, "find_spec", lambda _: object())
    assert "ekyt" in registry.battery("all")


def test_names_and_batteries_are_joined_without_repeats() -> None:
    own = Place()
    assert registry.unfold(["quick", own, "lda"]) == ("rbfn", "linkage", own, "lda")
    # An attacker that is named in another way is still the same one.
    assert registry.unfold(["rbfn:knowledge=black-box", "quick"]) == (
        "linkage",
        "rbfn:knowledge=black-box",
    )
    assert registry.unfold(["quick", "strong", "quick"])[:2] == registry.battery("quick")
    assert registry.unfold(["none"]) == registry.unfold([]) == ()
    assert set(registry.unfold(["quick", "strong"])) == set(registry.battery("strong"))


def test_the_page_of_attackers_lists_the_batteries() -> None:
    page = (ROOT / "docs" / "reference" / "attacks" / "index.md").read_text(encoding="utf-8")
    lines = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    assert set(lines) == set(registry.BATTERIES)
    for name, texts in registry.BATTERIES.items():
        written = lines[name].split("|")[2]
        own = re.findall(r"`([^`]+)`", written)
        above = registry.BATTERIES["strong"] if name == "all" else ()
        assert [*above, *own] == list(texts), name


def test_the_choice_does_not_see_the_repetition_it_is_judged_by() -> None:
    rng = np.random.default_rng(1)
    credit = rng.integers(0, 2, size=(4, 5, 6)).astype(np.float64)
    before = chosen_on_others(credit)
    for repetition in range(5):
        # Other attackers' credit in this repetition does not change who is chosen for it.
        rates = np.delete(credit.mean(axis=2), repetition, axis=1).mean(axis=1)
        best = int(np.argmax(rates))
        changed = credit.copy()
        changed[np.arange(4) != best, repetition] = 1 - credit[np.arange(4) != best, repetition]
        np.testing.assert_array_equal(chosen_on_others(changed)[repetition], before[repetition])
        np.testing.assert_array_equal(before[repetition], credit[best, repetition])


def test_guessing_attackers_stay_at_chance_where_the_largest_of_them_does_not() -> None:
    # 10 attackers guess among 20 people, 400 studies of 2 repetitions: the mean of the chosen one
    # is 0.05 with a standard error of 0.0017; 4 of them are missed once in 16,000 runs.
    rng = np.random.default_rng(2)
    credit = (rng.random((400, 10, 2, 20)) < 0.05).astype(np.float64)
    chosen = np.array([chosen_on_others(c).mean() for c in credit])
    largest = credit.mean(axis=(2, 3)).max(axis=1)
    assert abs(chosen.mean() - 0.05) < 4 * 0.0017
    assert largest.mean() > 0.09


def test_who_was_not_asked_is_not_chosen() -> None:
    credit = np.array([[[1.0], [1.0], [np.nan]], [[0.0], [0.0], [0.5]]])
    np.testing.assert_array_equal(chosen_on_others(credit), [[1.0], [1.0], [0.5]])


def test_one_repetition_leaves_nothing_to_choose_on() -> None:
    assert np.isnan(chosen_on_others(np.ones((3, 1, 4)))).all()
    assert chosen_on_others(np.empty((0, 0, 0))).shape == (0, 0)


def random_scores(n=9, gain=1.0, ties=False, seed=1):
    rng = np.random.default_rng(seed)
    names = tuple(map(str, range(n)))
    values = rng.normal(size=(n, n)) + gain * np.eye(n)
    return Scores(names, names, np.round(values) if ties else values)


def by_drawing_every_gallery(scores, size):
    """The mean credit over every gallery of that size that holds the person asked about."""
    n = len(scores.known)
    total = []
    for row in range(n):
        for others in itertools.combinations([i for i in range(n) if i != row], size - 1):
            gallery = (row, *others)
            one = Scores(
                tuple(scores.known[i] for i in gallery),
                (scores.probes[row],),
                scores.values[row : row + 1, gallery],
            )
            total.append(one.credit()[0])
    return np.mean(total)


@pytest.mark.parametrize("ties", [False, True])
def test_the_closed_form_equals_drawing_every_gallery(ties):
    scores = random_scores(ties=ties)
    curve = gallery_curve([scores])
    assert [p.at for p in curve] == list(range(2, 10))
    for point in curve:
        assert point.result.value == pytest.approx(by_drawing_every_gallery(scores, int(point.at)))


def test_at_full_size_the_curve_is_the_identification_rate_with_its_interval():
    scores = [random_scores(seed=s, ties=True) for s in range(3)]
    last, whole = gallery_curve(scores)[-1].result, identification(scores)
    assert last.value == pytest.approx(whole.value)
    assert (last.low, last.high, last.chance) == (whole.low, whole.high, whole.chance)


def test_a_blind_attacker_has_chance_at_every_size():
    names = tuple(map(str, range(30)))
    blind = [Scores(names, names, np.zeros((30, 30)))]
    assert all(p.result.value == pytest.approx(1 / p.at) for p in gallery_curve(blind))


def test_larger_galleries_are_harder():
    rates = [p.result.value for p in gallery_curve([random_scores(n=40)])]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > rates[-1] + 0.2


def test_large_galleries_stay_exact():
    assert found_among(0, 0, 5000, 4000) == 1.0
    assert found_among(1, 0, 5000, 4000) == pytest.approx(1 - 3999 / 4999)
    assert found_among(5000, 0, 5000, 2) == 0.0


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: registry.battery("stong"), ParameterError, "strong"),
        (lambda: registry.unfold(["none", "linkage"]), ParameterError, "nobody attacks, and 'link"),
        (lambda: registry.unfold(["none", "quick"]), ParameterError, "nobody attacks, and 'quick'"),
        (lambda: chosen_on_others(np.ones((2, 3))), DataError, r"people. Got shape \(2, 3\)"),
        (lambda: gallery_curve([random_scores()], sizes=[10]), ParameterError, "from 2 to 9"),
        (
            lambda: gallery_curve([Scores(("a",), ("a",), np.ones((1, 1)))]),
            DataError,
            "at least two people",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
