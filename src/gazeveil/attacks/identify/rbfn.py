"""The papers' attacker: two radial basis function networks, one of fixations and one of saccades
(George and Routray 2016; David-John et al. 2021 and 2022, Ren et al. 2024,
David-John et al. 2023).

The network is :class:`gazeveil.attacks.identify.rbf_network.RBFNetwork`; a person's score is the
mean score of the person's events, fused over the two kinds. `table="windows"` is the form
David-John et al. 2022 gives for reading: one network on the 52 window features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gazeveil import checks
from gazeveil.arrays import Floats, Ints, Texts
from gazeveil.attacks.identify.event_attack import EventAttack, Fitted

if TYPE_CHECKING:
    from gazeveil.attacks.identify.rbf_network import RBFNetwork

#: The solvers of the network, as in :mod:`gazeveil.attacks.identify.rbf_network`, which is imported
#: on use.
SOLVERS = ("auto", "pinv", "ridge", "reduced")


@dataclass(frozen=True, kw_only=True)
class RBFN(EventAttack):
    """RBF networks on events or windows.

    Parameters
    ----------
    prototypes : int
        Per person and kind; 32 in the code David-John et al. 2021 builds on.
    solver : {"auto", "pinv", "ridge", "reduced"}
        How the output weights are found. `auto` is the papers' pseudo-inverse up to 2,048
        prototypes over all people (64 people of 32), and `reduced` above, which has at most so
        many and whose time grows with the recordings alone.
    table : {"events", "windows"}
        Two networks on fixations and saccades, or one on windows; the caps of events then hold for
        windows.
    kinds, weights, vote, train_events, test_events, balance
        As in :class:`gazeveil.attacks.identify.event_attack.EventAttack`. The papers' own least
        squares have `balance=False`.

    Examples
    --------
    >>> str(RBFN(weights="0.4/0.6"))
    'rbfn:weights=0.4/0.6'
    """

    name: ClassVar[str] = "rbfn"
    needs: ClassVar[tuple[str, ...]] = ("fixation", "saccade")

    prototypes: int = 32
    solver: str = "auto"
    table: str = "events"

    def check(self) -> None:
        """Check the parameters."""
        super().check()
        self.store("prototypes", checks.count(self.name, "prototypes", self.prototypes))
        checks.one_of(self.name, "solver", self.solver, SOLVERS)
        checks.one_of(self.name, "table", self.table, ("events", "windows"))
        if self.table == "windows" and self.kinds != "both":
            checks.refuse(
                self.name,
                "kinds",
                "'both' where table is 'windows', which hold both kinds of events",
                self.kinds,
                "Leave it out.",
            )

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables it looks at."""
        return super().tables if self.table == "events" else ("window",)

    def learn(self, values: Floats, people: Texts, seed: int) -> Fitted:
        """Fit one network."""
        from gazeveil.attacks.identify.rbf_network import RBFNetwork

        network = RBFNetwork(
            self.prototypes, solver=self.solver, balance=self.balance, random_state=seed
        )
        network.fit(values, people)
        return network.classes_, NetworkScorer(network)


@dataclass(frozen=True, eq=False)
class NetworkScorer:
    """Scores of a fitted network.

    Parameters
    ----------
    network : RBFNetwork
        The network.
    """

    network: RBFNetwork

    def __call__(self, values: Floats) -> Floats:
        """Scores of rows."""
        return self.network.scores(values)

    def means(self, values: Floats, groups: Ints, count: int) -> Floats:
        """Mean scores of groups of rows."""
        return self.network.mean_scores(values, groups, count)
