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

The file is its owner's alone, changed whole or not at all, by one process at once. The lock beside
it stays when the ledger goes: it says that there was one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import date
from fractions import Fraction
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any
from uuid import uuid4

from gazeveil.errors import DataError, FormatError
from gazeveil.privacy.composition import BudgetError
from gazeveil.privacy.guarantee import OF_PEOPLE, Guarantee
from gazeveil.privacy.promise.loss import Change, Loss, PromiseError
from gazeveil.privacy.promise.sentence import amounts
from gazeveil.privacy.publication.certificate import (
    JSON_NAME,
    PAGE_NAME,
    UNLISTED,
    beside,
    has_certificate,
)
from gazeveil.privacy.publication.gaze_prints import (
    KEY_BYTES,
    PeopleSeen,
    PersonPrint,
    same_person,
    under_two_names,
)
from gazeveil.privacy.publication.names import PublicNames
from gazeveil.privacy.rational import Number, exact, format_exact

FORMAT, VERSION = "gazeveil-release-ledger", 1

#: States of a release that counts.
_COUNTED = ("charged", "finished")


@dataclass(frozen=True)
class ReleaseCharge:
    """The cost of a release for everything of one person.

    Parameters
    ----------
    mechanism : str
        Name and reading.
    definition : str
        Of its guarantee.
    loss : Loss, optional
        What is lost at most if everything of one person is replaced; None where no bound is known.
    reason : str
        Why there is no bound.
    table : bool
        Whether a table of people's attributes is part of the release.
    pieces : bool
        Whether it holds pieces under names that do not last
        (:class:`~gazeveil.privacy.mechanism.PieceMechanism`).
    """

    mechanism: str
    definition: str
    loss: Loss | None
    reason: str = ""
    table: bool = False
    pieces: bool = False

    @property
    def groups(self) -> bool:
        """Whether it promises groups of people, which do not add up."""
        return self.definition in OF_PEOPLE

    def to_dict(self) -> dict[str, object]:
        """The charge as JSON has it; fractions as text."""
        loss = None if self.loss is None else {k: str(v) for k, v in asdict(self.loss).items()}
        return {**asdict(self), "loss": loss}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> ReleaseCharge:
        """What :meth:`to_dict` wrote.

        Raises
        ------
        FormatError
            For an entry that is not whole.
        """
        try:
            loss = stored["loss"]
            if loss is not None:
                numbers = {k: Fraction(v) for k, v in loss.items() if k != "measure"}
                loss = Loss(loss["measure"], **numbers)
            return cls(**{**stored, "loss": loss})
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise FormatError(
                "ledger", "an entry of the ledger is not whole", "Restore it from a copy."
            ) from error


def charge_of(guarantee: Guarantee, table: bool = False, pieces: bool = False) -> ReleaseCharge:
    """The charge of a release with this guarantee: whether a table of people's attributes goes with
    it, and whether it holds pieces under names that do not last.
    """
    name = guarantee.mechanism or guarantee.definition
    loss, reason = None, ""
    if guarantee.definition in OF_PEOPLE:
        reason = f"{name} promises groups of people, and such promises do not add up"
    else:
        metric = "space" if guarantee.change is None else guarantee.change.metric
        try:
            loss = guarantee.map(Change.person(metric=metric))
        except PromiseError as error:
            reason = str(error).rstrip(".")
    return ReleaseCharge(name, guarantee.definition, loss, reason, table, pieces)


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


def default_ledger() -> Path:
    """`$GAZEVEIL_HOME/releases.json`, or the same in `~/.gazeveil`."""
    home = Path(os.environ.get("GAZEVEIL_HOME") or Path.home() / ".gazeveil")
    return home / "releases.json"


class ReleaseLedger:
    """A ledger in a file.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    FormatError
        If it is missing or damaged: a ledger that cannot be read refuses every release.

    Examples
    --------
    >>> import tempfile, gazeveil
    >>> ledger = ReleaseLedger.create(Path(tempfile.mkdtemp()) / "releases.json")
    >>> cohort = gazeveil.simulate(2, 1, 2, 60, seed=1)
    >>> g = gazeveil.protect(cohort, "kaleido:epsilon=1,w=30,r_deg=2").guarantee
    >>> people = PeopleSeen(ledger.key).note_all(cohort).people
    >>> print(ledger.charge("first", charge_of(g), people))
    None of these people is in an earlier release of this ledger.
    >>> print(ledger.charge("second", charge_of(g), people))
    2 of these people are in 1 earlier release: together, everything of one person loses at most
    epsilon = 720.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.key = bytes.fromhex(str(_load(path).get("key", "")))

    @classmethod
    def create(cls, path: Path) -> ReleaseLedger:
        """Begin a new ledger with a key of its own.

        Raises
        ------
        DataError
            If there is one: two ledgers of the same people would each know half.
        """
        with _locked(path):
            if path.exists():
                raise DataError(
                    f"{path} exists already, and what it knows would be lost. Use it, or name"
                    " another file."
                )
            _begin(path)
        return cls(path)

    @classmethod
    def at(cls, path: Path | None = None) -> ReleaseLedger:
        """The ledger at a path, or the holder's own, which begins with its first release.

        Raises
        ------
        DataError
            If the holder's own was there and is gone: earlier releases would not count any more.
        """
        if path is not None:
            return cls(path)
        own = default_ledger()
        with _locked(own):
            if not own.exists():
                if _lock_of(own).stat().st_size:
                    raise DataError(
                        f"The ledger {own} is gone, and with it what was released before of whom."
                        " Restore it from a copy, or begin anew with"
                        f" `gazeveil verify --new-ledger {own}`: what was released before then"
                        " counts no more."
                    )
                _begin(own)
        return cls(own)

    @property
    def releases(self) -> list[dict[str, Any]]:
        """Everything that was charged, in order."""
        return list(_load(self.path)["releases"])

    def charge(
        self,
        release_id: str,
        charge: ReleaseCharge,
        people: Mapping[str, PersonPrint],
        budget: Number | None = None,
        out: Path | None = None,
    ) -> LedgerAnswer:
        """Note a release before anything of it is written.

        Parameters
        ----------
        release_id : str
            A release with the id of an earlier one goes on with it.
        charge : ReleaseCharge
            Its cost.
        people : mapping of name to PersonPrint
            Who is in it; names are not stored.
        budget : number, optional
            The largest epsilon that everything of one person may have lost, all releases together;
            rho where noise is Gaussian.
        out : Path, optional
            Where it goes, for a refusal of a later one that names it.

        Raises
        ------
        BudgetError
            If it may not be made, with the reason; nothing is noted.
        DataError
            If another release has the same id.
        """
        entry = {
            "id": release_id,
            "state": "charged",
            "charge": charge.to_dict(),
            "people": sorted(sorted(p) for p in people.values()),
            "certificate": None,
            "out": None if out is None else os.path.abspath(out),
            "date": f"{date.today():%Y-%m-%d}",
        }
        with _locked(self.path):
            stored = _load(self.path)
            counted = [e for e in stored["releases"] if e["state"] in _COUNTED]
            begun = [e for e in counted if e["id"] == release_id]
            if any(e[part] != entry[part] for e in begun for part in ("charge", "people")):
                raise DataError(
                    f"The ledger {self.path} has another release under the id '{release_id}'. Begin"
                    " anew instead of resuming."
                )
            answer = _answer(charge, people, [e for e in counted if e not in begun], budget)
            if not begun:
                stored["releases"].append(entry)
                _store(self.path, stored)
        return replace(answer, resumed=bool(begun))

    def finish(self, release_id: str, certificate_sha256: str | None) -> None:
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
        with _locked(self.path):
            stored = _load(self.path)
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
            _store(self.path, stored)

    def keep(self, release_id: str) -> bool:
        """Make a charge permanent, because its release may have been published. Returns whether
        there is one that counts.
        """
        states = [r["state"] for r in self.releases if r["id"] == release_id]
        if "charged" in states:
            self.finish(release_id, None)
        return any(state in _COUNTED for state in states)

    def _set(self, release_id: str, state: str, certificate: str | None) -> None:
        with _locked(self.path):
            stored = _load(self.path)
            for entry in stored["releases"]:
                if entry["id"] == release_id and entry["state"] in ("charged", state):
                    if entry["state"] == "charged":
                        entry["state"], entry["certificate"] = state, certificate
                        _store(self.path, stored)
                    return
        raise DataError(f"The ledger {self.path} has no open release '{release_id}'.")


# --- one release
# --------------------------------------------------------------------------------------------------


class Charging:
    """One release, who is in it, and the ledger of its holder.

    Parameters
    ----------
    ledger : ReleaseLedger, optional
        What was released before; without one nothing is counted, and the check for people with two
        names remains.
    budget : number, optional
        The most that everything of one person may lose, all releases together.
    instead_of : Path, optional
        An earlier release that was never shared: it and its charge are removed first.
    """

    def __init__(
        self,
        ledger: ReleaseLedger | None = None,
        budget: Number | None = None,
        instead_of: Path | None = None,
    ) -> None:
        self.ledger, self.budget, self.instead_of = ledger, budget, instead_of
        self.seen = PeopleSeen(None if ledger is None else ledger.key)

    def cancel(self, out: Path, names: PublicNames) -> None:
        """Take back the charge of an earlier run with these names, whose release never left its
        work folder. One that stands at `out` is counted, whatever happened after.
        """
        self.take_back(release_id(names, out), out)

    def take_back(self, release: str, out: Path) -> None:
        """Take a charge back where no release stands."""
        if self.ledger is not None and not beside(out, JSON_NAME).exists():
            with suppress(DataError):  # it was never charged
                self.ledger.cancel(release)


def release_id(names: PublicNames, out: Path) -> str:
    """Compute the identifier of a release in a ledger. Fresh pseudonyms or another place change it;
    a resumed run has the same. Unchanged names alone do not suffice: every release of the same
    recordings has them, and maps have none.
    """
    text = json.dumps([names.to_list(), os.path.abspath(out)], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@contextmanager
def charged(
    names: PublicNames,
    promise: Guarantee,
    out: Path,
    charging: Charging,
    *,
    table: bool = False,
    pieces: bool = False,
    resumed: bool = False,
    left: Callable[[], bool] = lambda: False,
) -> Iterator[str]:
    """Charge a release while it is written; what the ledger says, nothing without one. A person
    under two names is refused: a promise to each name is half of the promise to the person.

    Parameters
    ----------
    names : PublicNames
        Of its recordings.
    promise : Guarantee
        Of its gaze.
    out : Path
        Where it goes.
    charging : Charging
        Who is in it, and the ledger.
    table : bool
        Whether a table of people's attributes goes with it.
    pieces : bool
        Whether its names are those of pieces, not of people. All people examined are then in it.
    resumed : bool
        Whether it goes on with a run that was interrupted, and so with its charge.
    left : callable
        Whether something is left to go on with after a failure; if not, the charge is taken back.

    Raises
    ------
    BudgetError
        If it may not be made.
    """
    charge, people = charge_of(promise, table, pieces), charging.seen.of(names, pieces)
    ledger, release = charging.ledger, release_id(names, out)
    if ledger is None:
        check_one_name(charge, people)
        yield ""
        return
    if charging.instead_of is not None:
        ledger.withdraw(charging.instead_of)
    if not resumed and ledger.keep(release):
        # The same names at the same place, and yet not the same release: the other one may have
        # been killed after it stood, and moved away. Both count.
        release = uuid4().hex
    answer = ledger.charge(release, charge, people, charging.budget, out)
    try:
        yield str(answer)
    except BaseException:
        if not left():
            charging.take_back(release, out)
        raise
    ledger.finish(release, hashlib.sha256(beside(out, JSON_NAME).read_bytes()).hexdigest())


# --- the rules
# --------------------------------------------------------------------------------------------------


def _answer(
    charge: ReleaseCharge,
    people: Mapping[str, PersonPrint],
    earlier: Sequence[Mapping[str, Any]],
    budget: Number | None,
) -> LedgerAnswer:
    check_one_name(charge, people)
    charges = [ReleaseCharge.from_dict(r["charge"]) for r in earlier]
    prints = [[frozenset(p) for p in r["people"]] for r in earlier]
    owners: dict[int, list[tuple[int, int]]] = {}
    for number, everybody in enumerate(prints):
        for person, own in enumerate(everybody):
            for h in own:
                owners.setdefault(h, []).append((number, person))
    worst, met, shared = charge.loss, set(), 0
    for own in people.values():
        alike = {owner for h in own for owner in owners.get(h, ())}
        mine = sorted({i for i, p in alike if same_person(own, prints[i][p])})
        if not mine:
            continue
        shared += 1
        met.update(mine)
        try:
            together = _together(charge, [charges[i] for i in mine])
        except BudgetError as error:
            raise BudgetError(f"{error} {_ways_out([earlier[i] for i in mine])}") from None
        worst = together if worst is None else _larger(worst, together)
    for i in sorted(met):
        if charge.table and charges[i].table:
            _check_tables(people, prints[i])
    if budget is not None:
        _within(worst, charge, exact("ledger", "budget", budget, above=0))
    return LedgerAnswer(len(met), shared, worst)


def _ways_out(earlier: Sequence[Mapping[str, Any]]) -> str:
    """The earlier releases, and what can be done."""
    places = ", ".join(f"{r['out'] or 'an unknown folder'} ({r['date']})" for r in earlier)
    return (
        f"Earlier: {places}. If it was given to nobody, --instead-of FOLDER removes it and its"
        " charge; --compare tries settings without one. People who are in no earlier release can be"
        " published."
    )


def _together(charge: ReleaseCharge, earlier: Sequence[ReleaseCharge]) -> Loss:
    """The sum for a person who is in all of these."""
    refused = "Refused: people of this release are in an earlier one"
    for one, which in [(charge, "This release"), *((e, "An earlier release") for e in earlier)]:
        if one.pieces:
            raise BudgetError(
                f"{refused}. {which} ({one.mechanism}) holds pieces under names that do not last,"
                " and beside another release of the same people they can be joined again, whatever"
                " budget is left."
            )
        if one.groups:
            raise BudgetError(
                f"{refused}. {which} ({one.mechanism}) promises {one.definition}, which does not"
                " add up: two releases about the same people can single them out together."
            )
        if one.loss is None:
            raise BudgetError(
                f"{refused}, and {which.lower()} has no bound for a whole person, so there is no"
                f" sum: {one.reason}."
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


def _check_tables(people: Mapping[str, PersonPrint], earlier: Sequence[PersonPrint]) -> None:
    same = len(earlier) == len(people) and all(
        any(same_person(person, other) for other in earlier) for person in people.values()
    )
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


# --- the file
# --------------------------------------------------------------------------------------------------


def _begin(path: Path) -> None:
    key = os.urandom(KEY_BYTES).hex()
    _store(path, {"format": FORMAT, "version": VERSION, "key": key, "releases": []})
    with suppress(OSError):
        _lock_of(path).write_text("There is a ledger of releases beside this file.\n")


def _load(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise FormatError(
            path, "there is no ledger", "Begin one with `gazeveil verify --new-ledger FILE`."
        ) from error
    except (ValueError, RecursionError) as error:
        raise FormatError(path, "the ledger is damaged", "Restore it from a copy.") from error
    about = stored if isinstance(stored, dict) else {}
    releases = about.get("releases")
    if (about.get("format"), about.get("version")) != (FORMAT, VERSION) or not isinstance(
        releases, list
    ):
        raise FormatError(path, "this is not a ledger of releases", "Name another file.")
    return about


def _store(path: Path, content: Mapping[str, Any]) -> None:
    """Write a ledger; a crash leaves the old one or the new one.

    Raises
    ------
    DataError
        If the disk refuses it.
    """
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            # In one piece and without line breaks: the standard library writes that in C.
            file.write(json.dumps(content))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    except OSError as error:
        raise DataError(
            f"The ledger {path} cannot be written ({(error.strerror or str(error)).lower()}), and"
            " without it nothing more is released. Look at the permissions and the free space."
        ) from error
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a ledger against changes by other processes."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(_lock_of(path), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
