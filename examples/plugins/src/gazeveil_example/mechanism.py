"""`randomized-response`: each person's answer to one question, kept or replaced (Warner 1965).

With m public answers and the probability `keep` in (1/m, 1), the true answer is released with
probability `keep`, each other one with probability (1 - keep) / (m - 1).

**Proof.** For two true answers a, b of one person and any released answer, the ratio of the
probabilities is at most keep (m - 1) / (1 - keep). People are randomized independently, so the
release is epsilon-locally private for a person with epsilon = ln(keep (m - 1) / (1 - keep)),
rounded up. Draws are whole numbers from the operating system, so the probabilities are exact. Who
takes part and every other attribute are not covered: the other attributes are dropped.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from gazeveil import Change, Guarantee, Loss, Mechanism, Release
from gazeveil.errors import DataError, ParameterError
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.mechanism import Claim, PlotRecipe
from gazeveil.privacy.promise.privacy_map import UnitMap


@dataclass(frozen=True)
class RandomizedResponse(Mechanism[Mapping[str, Mapping[str, object]]]):
    """Randomized response on one attribute of people.

    Parameters
    ----------
    keep : number
        Probability of the true answer, e.g. `3/4`.
    attribute : str
        The attribute that is released.
    answers : str
        Its public answers, with a slash between them.
    """

    name: ClassVar[str] = "randomized-response"
    label: ClassVar[str] = "randomized response"
    kind: ClassVar[str] = "people"
    paper: ClassVar[str] = "Warner, Randomized response, JASA 1965"
    summary: ClassVar[str] = "Release one attribute of people, kept or replaced at random"
    plot: ClassVar[PlotRecipe] = PlotRecipe("gazeveil_example.mechanism:draw")
    claims: ClassVar[Mapping[str, Claim]] = MappingProxyType(
        {"corrected": Claim("epsilon-ldp", "user", "proved", "independent draws for each person")}
    )

    keep: Fraction | str = "3/4"
    attribute: str = "gender"
    answers: str = "f/m"

    def check(self) -> None:
        """Check the probability and the answers."""
        keep, count = Fraction(str(self.keep)), len(self.choices)
        if not Fraction(1, max(count, 1)) < keep < 1:
            raise ParameterError(
                f"The 'keep' parameter of {self.name} must lie above 1/{count} and below 1."
                f" Got {self.keep} instead.",
                name="keep",
                got=self.keep,
            )
        self.store("keep", keep)

    @property
    def choices(self) -> list[str]:
        """The public answers."""
        return self.answers.split("/")

    @property
    def epsilon(self) -> Fraction:
        """The loss of one person, rounded up."""
        keep = Fraction(self.keep)
        ratio = keep * (len(self.choices) - 1) / (1 - keep)
        return Fraction(math.ceil(math.log(ratio) * 10**9) + 1, 10**9)

    def release(
        self, data: Mapping[str, Mapping[str, object]], seed: int | None = None
    ) -> Release[Mapping[str, Mapping[str, object]]]:
        """Randomize everybody's answer."""
        if not isinstance(data, Mapping) or not data:
            raise DataError(f"'{self.name}' takes people and their attributes. Got {data!r}.")
        rng = random.SystemRandom() if seed is None else random.Random(seed)
        released = {
            person: {self.attribute: self._answer(person, attributes, rng)}
            for person, attributes in data.items()
        }
        promise = Guarantee(
            "epsilon-ldp",
            UnitMap.of("user", Loss.pure(self.epsilon)),
            Change.person(),
            mechanism=self.title,
            status="proved",
            reason="gazeveil_example/mechanism.py",
        )
        return Release(
            released, promise if seed is None else promise.tested(), self.provenance(seed)
        )

    def _answer(self, person: str, attributes: Mapping[str, object], rng: random.Random) -> str:
        truth = attributes.get(self.attribute)
        if truth not in self.choices:
            raise DataError(
                f"Person '{person}' has {self.attribute} {truth!r}. Allowed: {self.answers}."
            )
        keep = Fraction(self.keep)
        if rng.randrange(keep.denominator) < keep.numerator:
            return str(truth)
        return rng.choice([a for a in self.choices if a != truth])

    def audit_game(self, unit: str | None) -> Game:
        """One person who answers the first or the second choice."""

        def play(side: int, trials: int, seed: int | None) -> np.ndarray[Any, Any]:
            people = {str(i): {self.attribute: self.choices[side]} for i in range(trials)}
            released = self.release(people, seed).data
            numbers = [self.choices.index(str(a[self.attribute])) for a in released.values()]
            return np.array(numbers, dtype=np.float64)[:, None]

        return Game("user", float(self.epsilon), "One person with another answer.", play)


def draw(path: Path) -> None:
    """Draw how many people of 100 answer what, before and after."""
    import matplotlib.pyplot as plt

    people = {str(i): {"gender": "f" if i < 30 else "m"} for i in range(100)}
    released = RandomizedResponse().release(people, seed=1).data
    figure, axes = plt.subplots(figsize=(4, 3), layout="constrained")
    for place, (label, data) in enumerate({"true": people, "released": released}.items()):
        counts = [sum(a["gender"] == answer for a in data.values()) for answer in "fm"]
        axes.bar([place - 0.2, place + 2.8], counts, 0.4, label=label)
    axes.set(xticks=(0.3, 3.3), xticklabels=("f", "m"), ylabel="people")
    axes.legend()
    figure.savefig(path)
    plt.close(figure)
