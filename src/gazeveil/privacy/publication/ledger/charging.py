"""The ledger's part of a publication: people are recognised while recordings are looked at, the
release is charged before anything is written, and noted as finished when it stands.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from gazeveil.errors import DataError
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.publication.certificate import JSON_NAME, beside
from gazeveil.privacy.publication.ledger.charge import PersonPrint, charge_of, prints_of
from gazeveil.privacy.publication.ledger.ledger import ReleaseLedger, check_one_name
from gazeveil.privacy.publication.names import PublicNames
from gazeveil.privacy.rational import Number

_KEY_BYTES = 32


class PeopleSeen:
    """Who is in a release, recognised by their recorded gaze.

    Parameters
    ----------
    key : bytes, optional
        Secret; left out, a fresh one that is not stored.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = os.urandom(_KEY_BYTES) if key is None else key
        self.people: dict[str, PersonPrint] = {}

    def note_all(self, recordings: Recording | Iterable[Recording]) -> PeopleSeen:
        """Look at recordings."""
        for recording in [recordings] if isinstance(recordings, Recording) else recordings:
            self.note(recording)
        return self

    def note(self, recording: Recording) -> None:
        """A recording that was looked at."""
        prints = prints_of(recording, self._key)
        self.people[recording.person] = self.people.get(recording.person, frozenset()) | prints

    def of(self, names: PublicNames, pieces: bool) -> Mapping[str, PersonPrint]:
        """Those of them who have these names; all where names are those of pieces or of maps."""
        named = {} if pieces else {p: self.people[p] for p in names.people if p in self.people}
        return named or self.people


class Charging:
    """One release and the ledger of its holder.

    Parameters
    ----------
    ledger : ReleaseLedger
        What was released before.
    budget : number, optional
        The most that everything of one person may lose, all releases together.
    instead_of : Path, optional
        An earlier release that was never shared: it and its charge are removed first.
    """

    def __init__(
        self, ledger: ReleaseLedger, budget: Number | None = None, instead_of: Path | None = None
    ) -> None:
        self.ledger, self.budget, self.instead_of = ledger, budget, instead_of
        self.seen = PeopleSeen(ledger.key)
        self._open = ""

    def charge(
        self,
        names: PublicNames,
        out: Path,
        guarantee: Guarantee,
        table: bool,
        pieces: bool = False,
        resumed: bool = False,
    ) -> str:
        """Charge the release that has these names; what the ledger says.

        Parameters
        ----------
        names : PublicNames
            Of its recordings.
        out : Path
            Where it goes.
        guarantee : Guarantee
            Of its gaze.
        table : bool
            Whether a table of people's attributes goes with it.
        pieces : bool
            Whether its names are those of pieces, not of people. All people examined are then in
            it.
        resumed : bool
            Whether it goes on with a run that was interrupted, and so with its charge.

        Raises
        ------
        BudgetError
            If it may not be made.
        """
        if self.instead_of is not None:
            self.ledger.withdraw(self.instead_of)
        people = self.seen.of(names, pieces)
        charge = charge_of(guarantee, table, pieces)
        release = release_id(names, out)
        if not resumed and self.ledger.keep(release):
            # The same names at the same place, and yet not the same release: the other one may
            # have been killed after it stood, and moved away. Both count.
            release = uuid4().hex
        answer = self.ledger.charge(release, charge, people, self.budget, out)
        self._open = release
        return str(answer)

    def finish(self, out: Path) -> None:
        """The release stands."""
        with beside(out, JSON_NAME).open("rb") as file:
            self.ledger.finish(self._open, hashlib.file_digest(file, "sha256").hexdigest())

    def cancel(self, out: Path, names: PublicNames | None = None) -> None:
        """Take a charge back whose release never left its work folder.

        Parameters
        ----------
        out : Path
            Where the release was to go. One that stands there is counted, whatever happened after.
        names : PublicNames, optional
            Of an earlier run; left out, this one.
        """
        release = self._open if names is None else release_id(names, out)
        if release and not beside(out, JSON_NAME).exists():
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
    seen: PeopleSeen,
    charging: Charging | None,
    *,
    table: bool = False,
    pieces: bool = False,
    resumed: bool = False,
    left: Callable[[], bool] = lambda: False,
) -> Iterator[str]:
    """Charge a release while it is written; what the ledger says. Without a ledger the check for
    people with two names remains. A promise to each name is half of the promise to the person.

    Parameters
    ----------
    names, promise, out, table, pieces, resumed
        As of :meth:`Charging.charge`.
    seen : PeopleSeen
        Who is in it.
    charging : Charging, optional
        The ledger.
    left : callable
        Whether something is left to go on with after a failure; if not, the charge is taken back.

    Raises
    ------
    BudgetError
        If it may not be made.
    """
    if charging is None:
        check_one_name(charge_of(promise, table, pieces), seen.of(names, pieces))
        yield ""
        return
    answer = charging.charge(names, out, promise, table, pieces, resumed)
    try:
        yield answer
    except BaseException:
        if not left():
            charging.cancel(out)
        raise
    charging.finish(out)
