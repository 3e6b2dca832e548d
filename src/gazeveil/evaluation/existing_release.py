"""A protected copy that is already there, judged as it is: somebody holds raw recordings and the
copy, and wants the attackers' rates.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.attacks import battery
from gazeveil.attacks.base import Attack
from gazeveil.attacks.renaming import find_renaming
from gazeveil.errors import DataError, ParameterError
from gazeveil.evaluation.columns import RATE
from gazeveil.evaluation.inference import Inference
from gazeveil.evaluation.results import Results
from gazeveil.evaluation.sources import look_at_samples
from gazeveil.evaluation.study import Study
from gazeveil.gaze.cohort import Cohort
from gazeveil.privacy.guarantee import no_promise
from gazeveil.privacy.mechanism import Claim, Mechanism
from gazeveil.privacy.release import Release

#: What can be asked about one copy: raw recordings against it, and it against itself.
SCENARIOS = ("raw/private", "release/release")


#: Rates that differ by no more than this share are one.
_SAME_RATE = 0.02


class CopyWarning(UserWarning):
    """Something about a protected copy that changes how its rates are read."""


@dataclass(frozen=True, eq=False)
class ExistingRelease(Mechanism[Cohort]):
    """Whatever made the copy; its release is the copy.

    Parameters
    ----------
    cohort : Cohort
        The copy, with the same names of people and stimuli as the raw recordings.
    independent : bool
        Whether its recordings are known to have noise of their own.
    """

    name: ClassVar[str] = "copy"
    kind: ClassVar[str] = "cohort"
    paper: ClassVar[str] = "as found"
    claims: ClassVar[Mapping[str, Claim]] = {
        "corrected": Claim(
            "none", "recording", "empirical", "what its certificate says, if it has one"
        )
    }

    cohort: Cohort = field(repr=False)
    independent: bool = False

    def release(self, data: Cohort, seed: int | None = None) -> Release[Cohort]:
        """The copy."""
        why = "a copy as it was found; what it promises stands in its certificate, if it has one"
        return Release(self.cohort, no_promise(self.name, why), self.provenance(seed))

    def parameters(self) -> dict[str, object]:
        """None: how the copy was made is not known."""
        return {}


def study_of_copy(raw: Cohort, copy: Cohort, attacks: tuple[Any, ...], **settings: Any) -> Study:
    """A study of a protected copy: raw recordings against the copy, and the copy against itself.

    Parameters
    ----------
    raw, copy : Cohort
        Recordings with the same names of people and stimuli; what only one of them has is left out.
    attacks : tuple of Attack or str
        Who attacks; names of batteries too. Of a battery those attackers are left out who make
        releases of their own.
    **settings
        Further parameters of :class:`~gazeveil.evaluation.study.Study`; `independent` says that
        recordings of the copy have noise of their own.

    Raises
    ------
    DataError
        If they have too little in common.
    ParameterError
        For attackers that would need to make releases themselves.
    """
    checks.known_options(
        "study_of_copy",
        settings,
        {"repetitions", "seed", "train", "split", "preparation", "name", "independent"},
    )
    independent = bool(settings.pop("independent", False))
    people = [p for p in raw.people if p in {k[0] for k in copy.keys}]
    stimuli = [s for s in raw.stimuli if s in copy.stimuli]
    if len(people) < 2:
        raise DataError(
            f"The raw recordings and the copy have {len(people) or 'no'}"
            f" {'person' if len(people) == 1 else 'people'} in common, and at least two are needed."
            " People need the same names in both: without them nobody can tell whether an attacker"
            " is right."
        )
    if not stimuli:
        raise DataError(
            "The raw recordings and the copy have no stimulus in common. Stimuli need the same"
            " names in both."
        )
    known, released = _at_one_rate(
        raw.select(people=people, stimuli=stimuli), copy.select(people=people, stimuli=stimuli)
    )
    usable = look_at_samples(released).usable
    if not usable:
        raise DataError(
            f"All gaze of the copy is lost: none of its {len(released)} recordings has two valid"
            " samples. Look at it with `gazeveil inspect`."
        )
    if len({key[0] for key in usable}) < 2:
        raise DataError(
            "The copy has valid gaze of one person, and an attacker needs two to tell apart. Look"
            " at it with `gazeveil inspect`."
        )
    copied = ExistingRelease(released, independent)
    study = Study(known, (copied,), attacks, scenarios=SCENARIOS, **settings)
    # A study holds the attackers of batteries first.
    named = len(study.attacks) - sum(not battery.is_battery(a) for a in attacks)
    for attack in study.attacks[named:]:
        _refuse_maker(attack)
    kept = [a for i, a in enumerate(study.attacks) if i >= named or not _makes_releases(a)]
    return replace(study, attacks=tuple(kept))


def _at_one_rate(raw: Cohort, copy: Cohort) -> tuple[Cohort, Cohort]:
    """Raw recordings at the rate of a slower copy, as an attacker would bring them: features of
    250 samples a second do not describe a copy of 60, though it hides nobody.
    """
    rates = {r.rate_hz for r in copy if np.isfinite(r.rate_hz) and r.rate_hz > 0}
    slowest = min(rates, default=0.0)
    if not slowest or max(rates) > slowest * (1 + _SAME_RATE):
        return raw, copy  # rates that differ within the copy are its own matter
    faster = [r.rate_hz for r in raw if r.rate_hz > slowest * (1 + _SAME_RATE)]
    if not faster:
        return raw, copy
    warnings.warn(
        f"The copy has {slowest:g} samples a second and raw recordings up to {max(faster):g}: these"
        " are brought to the copy's rate for the attack, as an attacker would.",
        CopyWarning,
        stacklevel=4,
    )
    items = [r.resample(slowest) if r.rate_hz > slowest * (1 + _SAME_RATE) else r for r in raw]
    return Cohort(items, raw.people, raw.skipped, raw.name, raw.read_as), copy


def doubt_about_names(results: Results) -> str:
    """The sentence for a copy whose people attackers take for one and the same other person each;
    empty where they do not.

    Without it a copy with exchanged names would be called safe, though everybody is recognised.
    """
    named = results.outcomes.filter(
        mechanism=ExistingRelease.name, scenario=SCENARIOS[0], metric=RATE
    ).drop_nulls("answer")
    by_repetition = named["repetition"].n_unique() > 1
    draws = named["repetition" if by_repetition else "attack"]
    if draws.n_unique() < 2:
        return ""
    found = find_renaming(
        draws.rank("dense").to_list(), named["part"].to_list(), named["answer"].to_list()
    )
    if not found.found:
        return ""
    return (
        f"Attackers take {found.renamed} of {found.people} people of the copy for one and the same"
        " other person each, again and again. So the names in the copy are not those of the raw"
        " recordings (pseudonyms? give the key with --key-file), and then these people are"
        " recognised, whatever the rates say; or the mechanism has people move as others do."
    )


def _makes_releases(attack: Attack | Inference) -> bool:
    return isinstance(attack, Attack) and (attack.knowledge != "black-box" or attack.views > 1)


def _refuse_maker(attack: Attack | Inference) -> None:
    if isinstance(attack, Inference):
        raise ParameterError(
            f"{attack} names nobody: ask for it with --kind.", name="attack", got=str(attack)
        )
    if _makes_releases(attack):
        raise ParameterError(
            f"{attack} makes releases of its own, and how the copy was made is not known. Use"
            " `gazeveil evaluate` with the mechanism instead.",
            name="attack",
            got=str(attack),
        )
