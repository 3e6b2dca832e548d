"""A second release of the same people adds up or is refused, whatever they are called now, and
nothing is counted twice.
"""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import stat
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import gazeveil
from gazeveil.errors import DataError, FormatError
from gazeveil.privacy.composition import BudgetError
from gazeveil.privacy.publication.gaze_prints import PeopleSeen, PersonPrint
from gazeveil.privacy.publication.ledger import (
    ReleaseCharge,
    ReleaseLedger,
    charge_of,
    default_ledger,
)

KALEIDO = "kaleido:epsilon=1,w=30,r_deg=2"


@pytest.fixture(scope="module")
def cohort() -> gazeveil.Cohort:
    return gazeveil.simulate(4, 2, 3.0, 60.0, seed=1)


@pytest.fixture(scope="module")
def strangers() -> gazeveil.Cohort:
    return gazeveil.simulate(4, 2, 3.0, 60.0, seed=2)


@pytest.fixture
def ledger(tmp_path: Path) -> ReleaseLedger:
    return ReleaseLedger.create(tmp_path / "releases.json")


def charged(
    cohort: gazeveil.Cohort, mechanism: str = KALEIDO, table: bool = False
) -> ReleaseCharge:
    return charge_of(gazeveil.protect(cohort, mechanism).guarantee, table)


def prints(cohort: gazeveil.Cohort, ledger: ReleaseLedger) -> dict[str, PersonPrint]:
    return PeopleSeen(ledger.key).note_all(cohort).people


def disguised(cohort: gazeveil.Cohort, how: str) -> gazeveil.Cohort:
    """The same gaze that looks like another dataset."""
    recordings = list(cohort)
    if how == "renamed":
        recordings = [r.with_(person=f"x{r.person}", session="9") for r in reversed(recordings)]
    elif how == "one recording each":
        recordings = [r for r in recordings if r.stimulus == recordings[0].stimulus]
    elif how == "cut":
        part = slice(40, 150)
        recordings = [
            gazeveil.Recording(
                r.person,
                r.stimulus,
                t_ns=r.t_ns[part],
                x_deg=r.x_deg[part],
                y_deg=r.y_deg[part],
                valid=r.valid[part],
                rate_hz=r.rate_hz,
                space=r.space,
            )
            for r in recordings
        ]
    elif how == "rounded":
        recordings = [
            r.with_(x_deg=np.round(r.x_deg, 6), y_deg=np.round(r.y_deg, 6)) for r in recordings
        ]
    elif how == "other times":
        recordings = [r.with_(t_ns=r.t_ns * 2, rate_hz=30.0) for r in recordings]
    return gazeveil.Cohort(recordings)


@pytest.mark.parametrize(
    "how", ["as it was", "renamed", "one recording each", "cut", "rounded", "other times"]
)
def test_people_are_recognised_by_their_gaze(
    how: str, cohort: gazeveil.Cohort, ledger: ReleaseLedger
) -> None:
    charge = charged(cohort)
    ledger.charge("a", charge, prints(cohort, ledger))
    answer = ledger.charge("b", charge, prints(disguised(cohort, how), ledger))
    assert (answer.earlier, answer.people) == (1, 4)
    assert answer.together.amount == 2 * charge.loss.amount
    third = ledger.charge("c", charge, prints(cohort, ledger))
    assert third.together.amount == 3 * charge.loss.amount


@pytest.mark.parametrize("name", [KALEIDO, "k-same-synth:k=2", "smoothing"])
def test_nobody_is_in_a_release_under_two_names(
    name: str, cohort: gazeveil.Cohort, ledger: ReleaseLedger
) -> None:
    twice = [*cohort, cohort[0].with_(person="somebody else", stimulus="again")]
    people = prints(gazeveil.Cohort(twice), ledger)
    charge = charged(cohort, name)
    if name == "smoothing":  # promises nothing to anybody
        assert ledger.charge("a", charge, people).earlier == 0
        return
    with pytest.raises(BudgetError, match="'somebody else' share recorded gaze"):
        ledger.charge("a", charge, people)
    assert ledger.releases == []


def test_other_people_add_nothing(
    cohort: gazeveil.Cohort, strangers: gazeveil.Cohort, ledger: ReleaseLedger
) -> None:
    ledger.charge("a", charged(cohort), prints(cohort, ledger))
    answer = ledger.charge("b", charged(strangers), prints(strangers, ledger))
    assert (answer.earlier, answer.people) == (0, 0)
    assert answer.together == charged(strangers).loss


def test_who_is_in_both_pays_for_both(
    cohort: gazeveil.Cohort, strangers: gazeveil.Cohort, ledger: ReleaseLedger
) -> None:
    known, new = cohort[0], strangers[0].with_(person="new")
    mixed = gazeveil.Cohort([known, new])
    ledger.charge("a", charged(cohort), prints(cohort, ledger))
    answer = ledger.charge("b", charged(mixed), prints(mixed, ledger))
    assert answer.people == 1


def test_epsilon_and_rho_add_up_exactly(cohort: gazeveil.Cohort, ledger: ReleaseLedger) -> None:
    pure, gaussian = charged(cohort), charged(cohort, "gaussian:sigma_deg=5")
    people = prints(cohort, ledger)
    ledger.charge("a", pure, people)
    together = ledger.charge("b", gaussian, people).together
    assert together.rho == gaussian.loss.amount + pure.loss.amount**2 / 2
    assert isinstance(together.amount, Fraction)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("k-same-synth:k=2", "k-same-synth:k=2"),
        ("k-same-synth:k=2", KALEIDO),
        (KALEIDO, "k-same-synth:k=2"),
        ("event-synth-pd:k=2,gamma=4", "k-same-synth:k=2"),
    ],
)
def test_groups_do_not_add_up(
    first: str, second: str, cohort: gazeveil.Cohort, ledger: ReleaseLedger
) -> None:
    people = prints(cohort, ledger)
    ledger.charge("a", charged(cohort, first), people)
    with pytest.raises(BudgetError, match="does not add up: two releases about the same people"):
        ledger.charge("b", charged(cohort, second), people)
    assert len(ledger.releases) == 1


def test_what_has_no_bound_has_no_sum(cohort: gazeveil.Cohort, ledger: ReleaseLedger) -> None:
    people = prints(cohort, ledger)
    ledger.charge("a", charged(cohort), people)
    for mechanism, why in (
        ("spatial:L=64", "rounding is not random"),
        ("kaleido:epsilon=1,w=30,r_deg=2,reading=published", "refuted"),
    ):
        with pytest.raises(BudgetError, match=f"has no bound.*{why}"):
            ledger.charge("b", charged(cohort, mechanism), people)


def test_a_budget_is_kept(cohort: gazeveil.Cohort, ledger: ReleaseLedger) -> None:
    charge, people = charged(cohort), prints(cohort, ledger)
    twice = 2 * charge.loss.amount
    ledger.charge("a", charge, people, budget=twice)
    ledger.charge("b", charge, people, budget=twice)
    with pytest.raises(BudgetError, match=f"epsilon = {3 * charge.loss.amount}.*budget is {twice}"):
        ledger.charge("c", charge, people, budget=twice)
    with pytest.raises(BudgetError, match="has no bound"):
        ledger.charge("d", charged(cohort, "spatial:L=64"), {}, budget=1)


def test_two_tables_must_be_of_the_same_people(
    cohort: gazeveil.Cohort, ledger: ReleaseLedger
) -> None:
    charge, people = charged(cohort, table=True), prints(cohort, ledger)
    ledger.charge("a", charge, people)
    ledger.charge("b", charge, people)
    fewer = dict(list(people.items())[1:])
    with pytest.raises(BudgetError, match="what differs between two tables"):
        ledger.charge("c", charge, fewer)
    ledger.charge("d", charged(cohort), fewer)


def test_a_crash_is_not_counted_twice(cohort: gazeveil.Cohort, ledger: ReleaseLedger) -> None:
    charge, people = charged(cohort), prints(cohort, ledger)
    ledger.charge("a", charge, people)
    again = ReleaseLedger(ledger.path).charge("a", charge, people)  # resumed after a crash
    assert again.resumed
    assert again.together == charge.loss
    ledger.finish("a", "00")
    ledger.finish("a", "00")
    assert [r["state"] for r in ledger.releases] == ["finished"]
    answer = ledger.charge("b", charge, people)
    assert answer.together.amount == 2 * charge.loss.amount
    with pytest.raises(DataError, match="another release under the id"):
        ledger.charge("b", charged(cohort, "gaussian:sigma_deg=5"), people)


def test_only_an_open_charge_can_be_taken_back(
    cohort: gazeveil.Cohort, ledger: ReleaseLedger
) -> None:
    charge, people = charged(cohort), prints(cohort, ledger)
    ledger.charge("a", charge, people)
    ledger.cancel("a")
    assert ledger.charge("b", charge, people).earlier == 0
    ledger.finish("b", "00")
    with pytest.raises(DataError, match="no open release"):
        ledger.cancel("b")
    with pytest.raises(DataError, match="no open release"):
        ledger.finish("c", "00")


def _charge_often(path: Path, name: str, charge: ReleaseCharge, times: int) -> None:
    ledger = ReleaseLedger(path)
    for i in range(times):
        ledger.charge(f"{name}{i}", charge, {"p": frozenset({1, 2, 3, 4})})


def test_two_processes_charge_one_after_the_other(
    cohort: gazeveil.Cohort, ledger: ReleaseLedger
) -> None:
    charge = charged(cohort)
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=_charge_often, args=(ledger.path, name, charge, 10)) for name in "ab"
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(ledger.releases) == 20


def test_a_killed_process_leaves_a_whole_ledger(
    cohort: gazeveil.Cohort, ledger: ReleaseLedger
) -> None:
    charge = charged(cohort)
    context = multiprocessing.get_context("fork")
    for n in range(5):
        before = len(ledger.releases)
        arguments = (ledger.path, f"k{n}-", charge, 10_000)
        worker = context.Process(target=_charge_often, args=arguments)
        worker.start()
        worker.join(0.05 + 0.02 * n)
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        entries = ledger.releases
        assert len(entries) >= before
        ids = [e["id"] for e in entries]
        assert len(set(ids)) == len(ids)
        ledger.charge(f"after{n}", charge, {"p": frozenset({9, 8, 7})})  # the lock is free again


def test_the_file_is_the_owners_alone_and_names_nobody(
    cohort: gazeveil.Cohort, ledger: ReleaseLedger
) -> None:
    named = gazeveil.Cohort([r.with_(person=f"anna-{r.person}") for r in cohort])
    ledger.charge("a", charged(named), prints(named, ledger))
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    assert "anna" not in ledger.path.read_text("utf-8")


def test_a_dataset_of_fixations_alone_is_recognised(
    cohort: gazeveil.Cohort, ledger: ReleaseLedger
) -> None:
    def fixations(r: gazeveil.Recording) -> gazeveil.Recording:
        found = gazeveil.detect(r).of("fixation")
        middle = (found.onset + found.offset) // 2
        empty = np.empty(0)
        return gazeveil.Recording(
            r.person,
            r.stimulus,
            t_ns=empty.astype(np.int64),
            x_deg=empty,
            y_deg=empty,
            valid=empty.astype(bool),
            events=replace(found, x_deg=r.x_deg[middle], y_deg=r.y_deg[middle]),
        )

    alone = PeopleSeen(ledger.key).note_all([fixations(r) for r in cohort]).people
    assert all(alone.values())
    ledger.charge("a", charged(cohort), alone)
    assert ledger.charge("b", charged(cohort), alone).people == len(alone)


def test_another_key_gives_other_prints(cohort: gazeveil.Cohort) -> None:
    one, other = (
        PeopleSeen(b"1" * 32).note_all(cohort).people,
        PeopleSeen(b"2" * 32).note_all(cohort).people,
    )
    for person in one:
        assert one[person]
        assert not one[person] & other[person]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "x"}'])
def test_a_damaged_ledger_refuses(text: str, ledger: ReleaseLedger) -> None:
    ledger.path.write_text(text, "utf-8")
    with pytest.raises(FormatError, match=r"damaged|not a ledger"):
        ReleaseLedger(ledger.path)


def test_an_entry_that_is_not_whole_refuses(cohort: gazeveil.Cohort, ledger: ReleaseLedger) -> None:
    ledger.charge("a", charged(cohort), prints(cohort, ledger))
    stored = json.loads(ledger.path.read_text("utf-8"))
    stored["releases"][0]["charge"]["loss"]["amount"] = "-1"
    ledger.path.write_text(json.dumps(stored), "utf-8")
    with pytest.raises(FormatError, match="not whole"):
        ledger.charge("b", charged(cohort), prints(cohort, ledger))


def test_a_ledger_is_never_overwritten(ledger: ReleaseLedger, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="exists already"):
        ReleaseLedger.create(ledger.path)
    with pytest.raises(FormatError, match="there is no ledger"):
        ReleaseLedger(tmp_path / "none.json")


def test_the_own_ledger_begins_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAZEVEIL_HOME", str(tmp_path / "home"))
    assert default_ledger() == tmp_path / "home" / "releases.json"
    assert ReleaseLedger.at().releases == []
    assert ReleaseLedger.at().key == ReleaseLedger(default_ledger()).key


PIECES = "mosaic:epsilon=1,r_deg=2,piece_s=2,gap_s=0,crowd=3"


def test_an_own_ledger_that_is_gone_is_not_begun_anew_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAZEVEIL_HOME", str(tmp_path))
    with monkeypatch.context() as full:

        def refuse(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        full.setattr("gazeveil.privacy.publication.ledger.tempfile.mkstemp", refuse)
        with pytest.raises(DataError, match=r"releases.json cannot be written \(no space left"):
            ReleaseLedger.at()
    first = ReleaseLedger.at()  # that there was no room is not that there was a ledger
    kept = first.path.read_bytes()
    first.path.unlink()
    with pytest.raises(DataError, match=r"is gone, .* Restore it from a copy, or begin anew"):
        ReleaseLedger.at()
    first.path.write_bytes(kept)
    assert ReleaseLedger.at().key == first.key
    first.path.unlink()
    assert ReleaseLedger.create(first.path).key != first.key
    assert ReleaseLedger.at().releases == []


@pytest.mark.parametrize("order", [("pieces", "kaleido"), ("kaleido", "pieces"), ("pieces",) * 2])
def test_pieces_are_released_once_whatever_budget_is_left(
    ledger: ReleaseLedger,
    cohort: gazeveil.Cohort,
    strangers: gazeveil.Cohort,
    order: tuple[str, str],
) -> None:
    of_pieces = charge_of(gazeveil.protect(cohort, PIECES).guarantee, pieces=True)
    charges = {
        "pieces": of_pieces,
        "kaleido": charge_of(gazeveil.protect(cohort, KALEIDO).guarantee),
    }
    people = PeopleSeen(ledger.key).note_all(cohort).people
    ledger.charge("first", charges[order[0]], people, budget=10**9)
    with pytest.raises(BudgetError, match="names that do not last"):
        ledger.charge("second", charges[order[1]], people, budget=10**9)
    ledger.charge("others", charges[order[1]], PeopleSeen(ledger.key).note_all(strangers).people)
