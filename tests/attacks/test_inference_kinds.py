"""The inference attacks behind one call: raw recordings and a release in, one result out."""

from __future__ import annotations

import json

import pytest

import gazeveil
from gazeveil.attacks.base import InferenceAttack
from gazeveil.attacks.infer.kinds import KINDS
from gazeveil.evaluation.releases import protect
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort
from tests.support.pieces import RawPieces


@pytest.fixture(scope="module")
def raw() -> RecordingSet:
    cohort = gazeveil.simulate(8, 3, seconds=8, rate_hz=100, seed=3)
    people = {
        p: {"gender": "fm"[i % 2], "age": 20 + 5 * i} for i, p in enumerate(sorted(cohort.people))
    }
    return RecordingSet(Cohort(cohort.items, people), people=people)


def test_every_kind_has_a_name_and_a_purpose_in_one_line() -> None:
    assert set(KINDS) == {
        "attributes",
        "membership",
        "record-linkage",
        "demographics",
        "relinking",
        "known-looks",
        "stimulus-risk",
    }
    for kind, attack in KINDS.items():
        assert issubclass(attack, InferenceAttack)
        assert attack.name == attack().kind == kind
        assert attack.summary
        assert "\n" not in attack.summary


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_takes_raw_recordings_and_a_release(raw: RecordingSet, kind: str) -> None:
    people = raw.persons[:5] if kind == "membership" else raw.persons
    release = raw.select(people=people)
    if KINDS[kind].pieces == "yes":
        release = protect(raw, RawPieces(piece_s=2.0), 1)
    quick = {"attacks": "linkage", "draws": 99} if kind == "stimulus-risk" else {}
    result = KINDS[kind](**quick).run(raw, release, seed=1)
    assert result.kind == kind
    assert result.results
    told = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert [r["metric"] for r in told["results"]] == [r.metric for r in result.results]


def test_an_unprotected_release_gives_its_people_away(raw: RecordingSet) -> None:
    for kind in ("record-linkage", "demographics"):
        assert KINDS[kind]().run(raw, raw, seed=1).results[0].value == 1.0
