"""Inference attacks in a study: they stand among its attacks, and like a utility that does not
train they are given the raw recordings and one release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from gazeveil.attacks.base import Attack
from gazeveil.attacks.infer.kinds import KINDS, InferenceAttack
from gazeveil.attacks.registry import attack as attack_by_name
from gazeveil.errors import ParameterError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.registry import build, parse
from gazeveil.utility.base import Utility, UtilityResult

#: Names of rates in a study's results, whose `identification_rate` is over split recordings.
_RATES = {"record-linkage": ("linkage_rate", "matching_rate"), "demographics": ("linkage_rate",)}

#: Errors of the attacker: more of them is better for people.
_ERRORS = ("mae", "median_error_deg")


@dataclass(frozen=True)
class InferredResult(UtilityResult):
    """A figure of an inference attack with its own interval and number of people or recordings."""

    low: float = math.nan
    high: float = math.nan
    n: int = 0


@dataclass(frozen=True)
class Inference(Utility):
    """An inference attack, to be measured by a study.

    Parameters
    ----------
    attack : InferenceAttack
        Any of :data:`gazeveil.attacks.infer.kinds.KINDS` but membership.
    """

    attack: InferenceAttack

    name: ClassVar[str] = "inference"
    needs: ClassVar[tuple[str, ...]] = ("fixation", "saccade")
    trains: ClassVar[bool] = False
    #: It compares whole recordings, so that a study needs no split for it.
    same_stimulus: ClassVar[bool] = True

    def can(self, recording_set: RecordingSet) -> bool:
        """Whether a release holds what this attack looks at."""
        samples = self.attack.kind == "reconstruction"
        return super().can(recording_set) and not (samples and recording_set.cohort is None)

    def measure(
        self, raw: RecordingSet, train: RecordingSet, test: RecordingSet, seed: int
    ) -> tuple[UtilityResult, ...]:
        """What the attacker finds in the release `test`; see :class:`Utility`."""
        results = self.attack.run(raw, test, seed).results
        metrics = _RATES.get(self.attack.kind, tuple(r.metric for r in results))
        return tuple(
            InferredResult(
                metric,
                r.value,
                np.empty(0),
                "person",
                (),
                r.chance,
                "higher" if metric in _ERRORS else "lower",
                r.protocol,
                r.low,
                r.high,
                r.n,
            )
            for metric, r in zip(metrics, results, strict=True)
        )

    def __str__(self) -> str:
        """The command line's form: the kind, and the parameters that are not the defaults."""
        parameters = {f.name: getattr(self.attack, f.name) for f in fields(self.attack)}
        defaults = {f.name: f.default for f in fields(self.attack)}
        rest = ",".join(f"{k}={v}" for k, v in parameters.items() if v != defaults[k])
        return self.attack.kind + (f":{rest}" if rest else "")


def attacker(text: str) -> Attack | Inference:
    """An attacker of a study by its text: one that names people, or an inference attack.

    Examples
    --------
    >>> str(attacker("attributes:attribute=age")), str(attacker("linkage"))
    ('attributes:attribute=age', 'linkage')
    """
    kind = text.partition(":")[0]
    if kind == "membership":
        raise ParameterError(
            "'membership' needs people who are not in the release, and a study protects"
            " everybody's recordings. Use `gazeveil attack --kind membership`.",
            name="attacks",
            got=text,
        )
    if kind not in KINDS:
        return attack_by_name(text)
    return Inference(build("attack", KINDS[kind], parse(text, "attack")[1]))
