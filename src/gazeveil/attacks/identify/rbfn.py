"""The papers' attacker: two radial basis function networks, one of fixations and one of saccades
(George and Routray 2016; David-John et al. 2021 and 2022, Ren et al. 2024,
David-John et al. 2023).

The network is that of :mod:`gazeveil.attacks.identify.radial_network`; a person's score is the mean
score of the person's events, fused over the two kinds. `table="windows"` is the form
David-John et al. 2022 gives for reading: one network on the 52 window features.

`reading="published"` is the papers' training to the letter: all events of everybody, so that who
has most events weighs most, the pseudo-inverse, and no floor under a cluster's sigma. The default
draws at most so many events of each person and gives everybody the same weight, which finds far
more people where numbers of events differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import ClassVar

from gazeveil import checks
from gazeveil.arrays import Floats, Texts
from gazeveil.attacks.identify.event_attack import EventAttack, Fitted
from gazeveil.attacks.identify.radial_network import FLOOR, SOLVERS, RadialNetwork

READINGS = ("published", "corrected")

#: What the published reading sets.
PUBLISHED: Mapping[str, object] = MappingProxyType(
    {"train_events": 0, "test_events": 0, "balance": False, "solver": "pinv"}
)


@dataclass(frozen=True, kw_only=True)
class RBFN(EventAttack):
    """RBF networks on events or windows.

    Parameters
    ----------
    prototypes : int
        Per person and kind; 32 in the code David-John et al. 2021 builds on.
    solver : {"auto", "pinv", "reduced"}
        How the output weights are found. `auto` is the papers' pseudo-inverse up to 2,048
        prototypes over all people (64 people of 32), and `reduced` above, which has at most so
        many and whose time grows with the recordings alone.
    table : {"events", "windows"}
        Two networks on fixations and saccades, or one on windows; the caps of events then hold for
        windows.
    weights, train_events, test_events, balance
        As in :class:`gazeveil.attacks.identify.event_attack.EventAttack`.
    reading : {"published", "corrected"}
        `published` sets what :data:`PUBLISHED` says and takes sigma as it is; `weights` stay the
        caller's, because the papers differ in them.

    Examples
    --------
    >>> str(RBFN(weights="0.4/0.6"))
    'rbfn:weights=0.4/0.6'
    >>> RBFN(reading="published").balance
    False
    """

    name: ClassVar[str] = "rbfn"
    needs: ClassVar[tuple[str, ...]] = ("fixation", "saccade")

    prototypes: int = 32
    solver: str = "auto"
    table: str = "events"
    reading: str = "corrected"

    def check(self) -> None:
        """Check the parameters."""
        super().check()
        checks.count(self.name, "prototypes", self.prototypes)
        checks.one_of(self.name, "solver", self.solver, SOLVERS)
        checks.one_of(self.name, "table", self.table, ("events", "windows"))
        if checks.one_of(self.name, "reading", self.reading, READINGS) == "published":
            self._store_published()

    def _store_published(self) -> None:
        defaults = {f.name: f.default for f in fields(self)}
        for name, value in PUBLISHED.items():
            given = getattr(self, name)
            if given not in (value, defaults[name]):
                checks.refuse(
                    self.name,
                    name,
                    f"{value} where reading is 'published', which is the papers' own",
                    given,
                    "Leave it out, or leave out the reading.",
                )
            self.store(name, value)

    def __str__(self) -> str:
        """The command line's form, without what the reading sets."""
        name, _, parameters = super().__str__().partition(":")
        own = parameters.split(",")
        if self.reading == "published":
            own = [p for p in own if p not in {f"{k}={v}" for k, v in PUBLISHED.items()}]
        return f"{name}:{','.join(own)}" if parameters else name

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables it looks at."""
        return super().tables if self.table == "events" else ("window",)

    def learn(self, values: Floats, people: Texts, seed: int) -> Fitted:
        """Fit one network."""
        network = RadialNetwork(
            self.prototypes,
            solver=self.solver,
            floor=0.0 if self.reading == "published" else FLOOR,
            balance=self.balance,
            random_state=seed,
        )
        network.fit(values, people)
        return network.classes_, network.mean_scores
