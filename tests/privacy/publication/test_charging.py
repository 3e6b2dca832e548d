"""Who is found in the ledger again, and what a promise takes from a slow tracker: through
`Release.write` and `publish`, as their users do.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil import Cohort, Recording
from gazeveil.privacy.composition import BudgetError
from gazeveil.privacy.publication.gaze_prints import PeopleSeen
from gazeveil.privacy.publication.ledger import ReleaseLedger
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.release.publishing import publish
from gazeveil.release.recipe import Recipe
from tests.support.recordings import real

GROUPS = "k-same-synth:k=3"


def part(recording: Recording, first_s: float, seconds: float) -> Recording:
    """A cut, as another recording of its own."""
    since_s = (recording.t_ns - recording.t_ns[0]) / 1e9
    cut = slice(*np.searchsorted(since_s, [first_s, first_s + seconds]))
    return Recording(
        f"cut of {recording.person}",
        "cut",
        recording.t_ns[cut],
        recording.x_deg[cut],
        recording.y_deg[cut],
        recording.valid[cut],
        rate_hz=recording.rate_hz,
        space=recording.space,
    )


@pytest.fixture(scope="module")
def people() -> list[Recording]:
    return list(gazeveil.simulate(6, 3, 8.0, 120.0, seed=4))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_every_recording_of_a_person_is_remembered(
    place: int, people: list[Recording], tmp_path: Path
) -> None:
    ledger = ReleaseLedger.create(tmp_path / "releases.json")
    first = gazeveil.protect(Cohort(people), "gaussian:sigma_deg=5")
    first.write(tmp_path / "out", ledger=ledger.path)
    stimulus = sorted({r.stimulus for r in people})[place]
    again = [r.with_(person=f"x{r.person}") for r in people if r.stimulus == stimulus]
    second = gazeveil.protect(Cohort(again), GROUPS)
    with pytest.raises(BudgetError, match="out"):
        second.write(tmp_path / "again", ledger=ledger.path)
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("first_s", [0.0, 1.3, 3.21, 5.9])
def test_any_two_seconds_of_anybody_are_found(
    first_s: float, people: list[Recording], tmp_path: Path
) -> None:
    ledger = ReleaseLedger.create(tmp_path / "releases.json")
    gazeveil.protect(Cohort(people), GROUPS).write(tmp_path / "out", ledger=ledger.path)
    known = PeopleSeen(ledger.key)
    known.note_all(people)
    for recording in people:
        cut = part(recording, first_s, 2.0)
        seen = PeopleSeen(ledger.key)
        seen.note(cut)
        shared = seen.people[cut.person] & known.people[recording.person]
        assert len(shared) >= 2, recording.title


@pytest.mark.data
def test_any_two_seconds_of_real_gaze_are_found_and_nobody_else_s() -> None:
    cohort = gazeveil.read(real("gazecom"))
    chosen = [cohort[i] for i in range(0, len(cohort), max(1, len(cohort) // 20))]
    known = {}
    for recording in chosen:
        seen = PeopleSeen(b"key")
        seen.note(recording)
        known[recording.key] = seen.people[recording.person]
    for recording in chosen:
        middle_s = recording.duration_s / 2
        seen = PeopleSeen(b"key")
        cut = part(recording, middle_s, 2.0)
        seen.note(cut)
        if cut.valid.mean() < 0.9:
            continue  # two seconds with a blink hold less than two seconds of gaze
        shared = {key: len(seen.people[cut.person] & prints) for key, prints in known.items()}
        assert shared[recording.key] >= 2, recording.title
        assert all(n < 2 for key, n in shared.items() if key != recording.key), recording.title


def test_one_sample_of_the_slowest_tracker_is_what_a_promise_reckons_with(tmp_path: Path) -> None:
    slow = list(gazeveil.simulate(2, 1, 4.0, 30.0, seed=1))
    fast = [r.with_(person=f"f{r.person}") for r in gazeveil.simulate(4, 1, 4.0, 120.0, seed=2)]
    source = Cohort([*slow, *fast]).write(tmp_path / "in")
    choices = PublicationChoices(durations="common", rate_hz="120")
    recipe = Recipe(source, "kaleido:epsilon=1,w=60,r_deg=2", choices, battery="none")
    publish(recipe, gazeveil.read(source), tmp_path / "out")
    certificate = json.loads((tmp_path / "out" / "PRIVACY.json").read_text())
    (clause,) = (a for a in certificate["assumptions"] if "one sample of the tracker" in a)
    most = int(clause.rpartition("up to ")[2].split()[0])
    assert most >= 4  # four steps of 120 Hz for one sample of 30 Hz
