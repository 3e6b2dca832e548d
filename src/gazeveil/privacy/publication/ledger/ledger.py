"""The ledger of a data holder: what was released of whom, and whether one more release may follow.

A release is charged before anything of it is written, under an id of its own. A crash between the
charge and the end leaves the charge: `--resume` finds it under the same id and pays nothing again.
So a release is never left out. One that is begun anew instead of resumed is counted anew; the
charge of the first is taken back only where it is certain that nothing of it was published.

Rules, for every person who is in two releases (:mod:`gazeveil.privacy.composition`):

1. Losses add up, exactly; the sum must stay within the budget, where one is given.
2. Promises about groups (k-anonymity, plausible deniability) do not add up with anything.
3. What has no bound for a whole person has no sum.
4. Two tables of attributes must be of the same people: what differs between them singles out.
5. No person is in one release under two names: a promise about a person counts names.
6. Pieces under names that do not last are released once: a second release of the same people, of
   whatever kind, shows which pieces belong together.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from gazeveil.errors import DataError
from gazeveil.privacy.composition import BudgetError
from gazeveil.privacy.promise.loss import Loss, PromiseError
from gazeveil.privacy.promise.sentence import amounts
from gazeveil.privacy.publication.certificate import (
    JSON_NAME,
    PAGE_NAME,
    UNLISTED,
    beside,
    has_certificate,
)
from gazeveil.privacy.publication.ledger import ledger_file
from gazeveil.privacy.publication.ledger.charge import (
    PersonPrint,
    ReleaseCharge,
    same_person,
    under_two_names,
)
from gazeveil.privacy.rational import Number, exact, format_exact


def default_ledger() -> Path:
    """`$GAZEVEIL_HOME/releases.json`, or the same in `~/.gazeveil`."""
    home = Path(os.environ.get("GAZEVEIL_HOME") or Path.home() / ".gazeveil")
    return home / "releases.json"


@dataclass(frozen=True)
class LedgerAnswer:
    """What the ledger says to a release that it allows.

    Parameters
    ----------
    earlier : int
        How many earlier releases share people with it.
    people : int
        How many of its people are in earlier ones.
    together : Loss, optional
        The largest loss of its people, this release included; None where it has no bound and shares
        no people.
    resumed : bool
        Whether it was charged before, so that nothing was added now.
    """

    earlier: int
    people: int
    together: Loss | None
    resumed: bool = False

    def __str__(self) -> str:
        if not self.earlier:
            return "None of these people is in an earlier release of this ledger."
        assert self.together is not None
        releases = "1 earlier release" if self.earlier == 1 else f"{self.earlier} earlier releases"
        return (
            f"{self.people} of these people are in {releases}: together, everything of one person"
            f" loses at most {amounts(self.together)}."
        )


class ReleaseLedger:
    """A ledger in a file.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    FormatError
        If it is missing or damaged.

    Examples
    --------
    >>> import tempfile, gazeveil
    >>> from gazeveil.privacy.publication.ledger import charge_of, people_prints
    >>> ledger = ReleaseLedger.create(Path(tempfile.mkdtemp()) / "releases.json")
    >>> cohort = gazeveil.simulate(2, 1, 2, 60, seed=1)
    >>> g = gazeveil.protect(cohort, "kaleido:epsilon=1,w=30,r_deg=2").guarantee
    >>> people = people_prints(cohort, ledger.key)
    >>> print(ledger.charge("first", charge_of(g), people))
    None of these people is in an earlier release of this ledger.
    >>> print(ledger.charge("second", charge_of(g), people))
    2 of these people are in 1 earlier release: together, everything of one person loses at most
    epsilon = 720.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        stored = ledger_file.load(path)
        self.key = bytes.fromhex(str(stored.get("key", "")))

    @classmethod
    def create(cls, path: Path) -> ReleaseLedger:
        """Begin a new ledger.

        Raises
        ------
        DataError
            If the file exists.
        """
        ledger_file.create(path)
        return cls(path)

    @classmethod
    def at(cls, path: Path | None = None) -> ReleaseLedger:
        """The ledger at a path, or the holder's own, which begins with its first release.

        Raises
        ------
        DataError
            If the holder's own was there and is gone.
        """
        if path is not None:
            return cls(path)
        own = default_ledger()
        ledger_file.find_or_create(own)
        return cls(own)

    @property
    def releases(self) -> list[dict[str, Any]]:
        """Everything that was charged, in order."""
        return list(ledger_file.load(self.path)["releases"])

    def ask(
        self,
        charge: ReleaseCharge,
        people: Mapping[str, PersonPrint],
        budget: Number | None = None,
        besides: str = "",
    ) -> LedgerAnswer:
        """Whether a release may follow what was released before; nothing is noted.

        Parameters
        ----------
        charge : ReleaseCharge
            Its cost.
        people : mapping of name to PersonPrint
            Who is in it; names are not stored.
        budget : number, optional
            The largest epsilon that everything of one person may have lost, all releases together;
            rho where noise is Gaussian.
        besides : str
            Id of a release that does not count: itself.

        Raises
        ------
        BudgetError
            If it may not, with the reason.
        """
        earlier = [
            r
            for r in self.releases
            if r["id"] != besides and r["state"] not in ("cancelled", "withdrawn")
        ]
        return _answer(charge, people, earlier, budget)

    def charge(
        self,
        release_id: str,
        charge: ReleaseCharge,
        people: Mapping[str, PersonPrint],
        budget: Number | None = None,
        out: Path | None = None,
    ) -> LedgerAnswer:
        """Note a release before anything of it is written; `out` is where it goes, for a refusal
        that names it.

        Raises
        ------
        BudgetError
            If it may not be made; nothing is noted.
        DataError
            If another release has the same id.
        """
        with ledger_file.locked(self.path):
            stored = ledger_file.load(self.path)
            prints = sorted(sorted(p) for p in people.values())
            for entry in stored["releases"]:
                if entry["id"] == release_id and entry["state"] in ("charged", "finished"):
                    if entry["charge"] != charge.to_dict() or entry["people"] != prints:
                        raise DataError(
                            f"The ledger {self.path} has another release under the id"
                            f" '{release_id}'. Begin anew instead of resuming."
                        )
                    answer = self.ask(charge, people, budget, besides=release_id)
                    return LedgerAnswer(answer.earlier, answer.people, answer.together, True)
            answer = self.ask(charge, people, budget)
            stored["releases"].append(
                {
                    "id": release_id,
                    "state": "charged",
                    "charge": charge.to_dict(),
                    "people": prints,
                    "certificate": None,
                    "out": None if out is None else os.path.abspath(out),
                    "date": f"{date.today():%Y-%m-%d}",
                }
            )
            ledger_file.store(self.path, stored)
        return answer

    def finish(self, release_id: str, certificate_sha256: str) -> None:
        """Note that a release is whole, and which certificate it has."""
        self._set(release_id, "finished", certificate_sha256)

    def cancel(self, release_id: str) -> None:
        """Take a charge back; only where nothing of the release ever left the work folder."""
        self._set(release_id, "cancelled", None)

    def withdraw(self, release: Path) -> None:
        """Remove a release that was never shared, and take its charge back.

        Parameters
        ----------
        release : Path
            Its folder or, of maps and tables, its file.

        Raises
        ------
        DataError
            If no release of this ledger is there.
        """
        stands = has_certificate(release)
        certificate = beside(release, JSON_NAME).read_bytes() if stands else b""
        found = hashlib.sha256(certificate).hexdigest()
        with ledger_file.locked(self.path):
            stored = ledger_file.load(self.path)
            mine = [e for e in stored["releases"] if stands and e["certificate"] == found]
            if not mine:
                raise DataError(f"{release} holds no release that the ledger {self.path} knows.")
            root = release if release.is_dir() else release.parent
            certifying = [beside(release, name) for name in (*UNLISTED, PAGE_NAME)]
            files = {*certifying, *(root / name for name in json.loads(certificate)["files"])}
            others = {p for p in release.rglob("*") if not p.is_dir()} - files
            if others:
                raise DataError(f"{min(others)} is no file of the release {release}. Move it away.")
            # The files first: a crash in between leaves a charge, never a release without one.
            for file in files:
                file.unlink(missing_ok=True)
            if release.is_dir():
                shutil.rmtree(release)
            for entry in mine:
                entry["state"] = "withdrawn"
            ledger_file.store(self.path, stored)

    def keep(self, release_id: str) -> bool:
        """Make a charge permanent, because its release may have been published. Returns whether
        there is one that counts.
        """
        states = [r["state"] for r in self.releases if r["id"] == release_id]
        if "charged" in states:
            self._set(release_id, "finished", None)
        return "charged" in states or "finished" in states

    def _set(self, release_id: str, state: str, certificate: str | None) -> None:
        with ledger_file.locked(self.path):
            stored = ledger_file.load(self.path)
            for entry in stored["releases"]:
                if entry["id"] == release_id and entry["state"] == "charged":
                    entry["state"], entry["certificate"] = state, certificate
                    ledger_file.store(self.path, stored)
                    return
                if entry["id"] == release_id and entry["state"] == state:
                    return
        raise DataError(f"The ledger {self.path} has no open release '{release_id}'.")


def _answer(
    charge: ReleaseCharge,
    people: Mapping[str, PersonPrint],
    earlier: list[dict[str, Any]],
    budget: Number | None,
) -> LedgerAnswer:
    check_one_name(charge, people)
    before = [(ReleaseCharge.from_dict(r["charge"]), _prints(r)) for r in earlier]
    owners: dict[int, list[tuple[int, int]]] = {}
    for number, (_, prints) in enumerate(before):
        for person, own in enumerate(prints):
            for h in own:
                owners.setdefault(h, []).append((number, person))
    worst, met, shared = charge.loss, set(), 0
    for own in people.values():
        alike = {owner for h in own for owner in owners.get(h, ())}
        mine = sorted({i for i, p in alike if same_person(own, before[i][1][p])})
        if not mine:
            continue
        shared += 1
        met.update(mine)
        try:
            together = _together(charge, [before[i][0] for i in mine])
        except BudgetError as error:
            raise BudgetError(f"{error} {_ways_out([earlier[i] for i in mine])}") from None
        worst = together if worst is None else _larger(worst, together)
    for i in sorted(met):
        _check_tables(charge, people, *before[i])
    if budget is not None:
        _within(worst, charge, exact("ledger", "budget", budget, above=0))
    return LedgerAnswer(len(met), shared, worst)


def _ways_out(earlier: list[dict[str, Any]]) -> str:
    """The earlier releases, and what can be done."""
    places = [f"{r['out'] or 'an unknown folder'} ({r['date']})" for r in earlier if "out" in r]
    named = f"Earlier: {', '.join(places)}. " if places else ""
    return (
        f"{named}If it was given to nobody, --instead-of FOLDER removes it and its charge;"
        " --compare tries settings without one. People who are in no earlier release can be"
        " published."
    )


def _prints(entry: Mapping[str, Any]) -> list[PersonPrint]:
    return [frozenset(p) for p in entry["people"]]


def _is_in(person: PersonPrint, others: list[PersonPrint]) -> bool:
    return any(same_person(person, other) for other in others)


def _together(charge: ReleaseCharge, earlier: list[ReleaseCharge]) -> Loss:
    """The sum for a person who is in all of these."""
    for one, which in [(charge, "This release"), *((e, "An earlier release") for e in earlier)]:
        if one.pieces:
            raise BudgetError(
                f"Refused: people of this release are in an earlier one. {which}"
                f" ({one.mechanism}) holds pieces under names that do not last, and beside another"
                " release of the same people they can be joined again, whatever budget is left."
            )
        if one.groups:
            raise BudgetError(
                f"Refused: people of this release are in an earlier one. {which}"
                f" ({one.mechanism}) promises {one.definition}, which does not add up: two releases"
                " about the same people can single them out together."
            )
        if one.loss is None:
            raise BudgetError(
                f"Refused: people of this release are in an earlier one, and {which.lower()} has no"
                f" bound for a whole person, so there is no sum: {one.reason}."
            )
    try:
        return reduce(add, [c.loss for c in (charge, *earlier) if c.loss is not None])
    except PromiseError as error:
        raise BudgetError(
            f"Refused: the promises of these releases do not add up. {error}"
        ) from None


def _larger(a: Loss, b: Loss) -> Loss:
    """The larger of two losses about one release and sums with it."""
    if a.measure == b.measure:
        return max(a, b, key=lambda loss: (loss.amount, loss.delta))
    # A sum of pure losses with a rho is a rho; the pure one is part of it.
    return b if b.measure == "concentrated" else a


def check_one_name(charge: ReleaseCharge, people: Mapping[str, PersonPrint]) -> None:
    """Refuse a release that makes a promise to people, and in which a person has two names.

    Raises
    ------
    BudgetError
        If two of the people share recorded gaze.
    """
    if charge.loss is None and not charge.groups:
        return  # nothing is said of a person
    if (same := under_two_names(people)) is not None:
        one, other = same
        raise BudgetError(
            f"Refused: '{one}' and '{other}' share recorded gaze, so one person has two names, and"
            " what the release promises to a person would be promised to half of one. Give both"
            " one name, or leave one out."
        )


def _check_tables(
    charge: ReleaseCharge,
    people: Mapping[str, PersonPrint],
    earlier: ReleaseCharge,
    prints: list[PersonPrint],
) -> None:
    if not (charge.table and earlier.table):
        return
    same = len(prints) == len(people) and all(_is_in(p, prints) for p in people.values())
    if not same:
        raise BudgetError(
            "Refused: an earlier release has a table of attributes of some of these people, and"
            " what differs between two tables singles people out. Publish the same people, or"
            " leave the table out."
        )


def _within(worst: Loss | None, charge: ReleaseCharge, budget: Fraction) -> None:
    if worst is None:
        raise BudgetError(
            f"Refused: a budget was given, and this release has no bound: {charge.reason}."
        )
    if worst.amount > budget:
        raise BudgetError(
            f"Refused: everything of one person would have lost {amounts(worst)}, all releases"
            f" together, and the budget is {format_exact(budget)}. Nothing was released."
        )
