"""The inference attacks behind one call: each takes raw recordings and a release of them.

====================== ===========================================================================
kind                   what the attacker wants
====================== ===========================================================================
`attributes`           gender, age or another attribute of everybody in the release
`membership`           who of the people with raw recordings is in the release
`record-linkage`       which pseudonym of the release belongs to which raw recordings
`demographics`         the same, after a filter by generalised age and gender
`reconstruction`       positions of single fixations, from counts in rectangles
`relinking`            which pieces of a release belong together
`known-looks`          whose a piece is, from a few looks that are known from elsewhere
`stimulus-risk`        names, from each stimulus alone: which of them gives people away
====================== ===========================================================================
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.attacks.infer.attributes import infer
from gazeveil.attacks.infer.membership import membership
from gazeveil.attacks.infer.reconstruction import achieved, exact_answers, rebuild, snapped_answers
from gazeveil.attacks.infer.record_linkage import TRAINED, demographic_attack, link_records
from gazeveil.attacks.infer.stimulus_risk import ATTACKS, stimulus_risk
from gazeveil.attacks.pieces.evidence import SCORES
from gazeveil.attacks.pieces.known_looks import found_by_looks
from gazeveil.attacks.pieces.relink import RELINKED_BY, relinked_share
from gazeveil.attacks.registry import attack as attack_by_name
from gazeveil.attacks.result import AttackResult, mean_interval
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.demographics import Demographics


@dataclass(frozen=True)
class InferenceResult:
    """What an inference attack of a kind in :data:`KINDS` found: results by metric, the headline
    first, and further facts as JSON has them.
    """

    kind: str
    results: tuple[AttackResult, ...]
    details: Mapping[str, object] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """The result as JSON has it; None where there is no number."""
        rows = [
            {
                name: None if isinstance(value, float) and math.isnan(value) else value
                for name, value in asdict(result).items()
            }
            for result in self.results
        ]
        return {"kind": self.kind, "results": rows, "details": dict(self.details)}


@dataclass(frozen=True)
class InferenceAttack(ABC):
    """Base of the inference attacks: a frozen value of parameters.

    Class attributes
    ----------------
    name, kind, summary : str
        As in `gazeveil attack --kind`; what it wants, in one line.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    summary: ClassVar[str]

    #: Whether it takes releases of pieces, whose names do not last: "no", "yes" (and no others) or
    #: "any".
    pieces: ClassVar[str] = "no"

    @abstractmethod
    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Attack a release.

        Parameters
        ----------
        raw : RecordingSet
            Raw recordings with true names: what the attacker knows, and the truth.
        release : RecordingSet
            The release. Names serve to judge the answer alone.
        seed : int
            Of the attacker's own randomness.

        Raises
        ------
        DataError
            If the recordings do not suffice for the attack.
        """


@dataclass(frozen=True)
class AttributeInference(InferenceAttack):
    """Guess an attribute of everybody; the attacker learns from raw recordings of the others.
    `features` is as in :func:`gazeveil.attacks.infer.attributes.infer`, `draws` the permutations of
    the test.
    """

    name: ClassVar[str] = "attributes"
    kind: ClassVar[str] = "attributes"
    summary: ClassVar[str] = "guesses gender, age or another attribute of everybody in the release"

    attribute: str = "gender"
    features: str = "summary"
    draws: int = 999

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Learn the attribute from raw recordings and guess it from the release."""
        inferred = infer(
            raw, release, self.attribute, seed, self.features, raw.people, draws=self.draws
        )
        guesses = dict(zip(inferred.people, inferred.guesses.tolist(), strict=True))
        details = {"attribute": self.attribute, "guesses": guesses, "left_out": inferred.left_out}
        return InferenceResult(self.kind, inferred.results, details)


@dataclass(frozen=True)
class MembershipInference(InferenceAttack):
    """Tell who is in the release. The raw recordings must hold people who are not in it, too.
    `features` is as in :func:`gazeveil.attacks.infer.membership.membership`.
    """

    name: ClassVar[str] = "membership"
    kind: ClassVar[str] = "membership"
    summary: ClassVar[str] = "tells who of the people with raw recordings is in the release"

    features: str = "summary"

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Score everybody with raw recordings; people named in the release are the members."""
        judged = membership(release, raw, set(release.persons), self.features)
        return InferenceResult(
            self.kind, (judged.auc, *judged.hits), {"scores": dict(judged.scores)}
        )


@dataclass(frozen=True)
class RecordLinkage(InferenceAttack):
    """Find each person's pseudonym, alone and by the best one-to-one matching of all. `attack` is
    who compares, as in `gazeveil attack --attack`.
    """

    name: ClassVar[str] = "record-linkage"
    kind: ClassVar[str] = "record-linkage"
    summary: ClassVar[str] = "finds the pseudonym of each person with raw recordings"

    attack: str = "linkage"

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Identify the people of the raw recordings in the release."""
        linked = link_records(attack_by_name(self.attack), release, raw, seed)
        return InferenceResult(self.kind, (linked.alone, linked.together), {"attack": self.attack})


@dataclass(frozen=True)
class DemographicLinkage(InferenceAttack):
    """Filter by generalised age and gender, then compare gaze (David-John et al. 2023).

    Parameters
    ----------
    attack : str
        Who compares, as in `gazeveil attack --attack`.
    k : int
        Least people that share the generalised attributes.
    attributes : tuple of str
        Which attributes are released.
    trained : {"all", "group"}
        Whether the attacker learns from everybody or from those who pass the filter.
    """

    name: ClassVar[str] = "demographics"
    kind: ClassVar[str] = "demographics"
    summary: ClassVar[str] = "filters by generalised age and gender, then compares gaze"

    attack: str = "linkage"
    k: int = 4
    attributes: tuple[str, ...] = ("age", "gender")
    trained: str = "all"

    def __post_init__(self) -> None:
        checks.one_of(self.name, "trained", self.trained, TRAINED)

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Generalise the attributes of the raw recordings' people and identify within groups."""
        people = {p: raw.people.get(p, {}) for p in raw.persons}
        released = Demographics(self.k, attributes=self.attributes).release(people, seed=seed).data
        result, _ = demographic_attack(
            attack_by_name(self.attack), release, raw, released, seed, self.trained
        )
        return InferenceResult(self.kind, (result,), {"attack": self.attack, "k": self.k})


@dataclass(frozen=True)
class FixationReconstruction(InferenceAttack):
    """Rebuild fixations from counts in rectangles of an app's choice, and compare with the truth.

    Parameters
    ----------
    finest_deg : float
        Side of cells at which the attacker is content, in degrees.
    grid_deg : float, optional
        Public grid to which rectangles are widened, in degrees; None takes them as they are.
    most_queries : int
        Questions per recording.
    """

    name: ClassVar[str] = "reconstruction"
    kind: ClassVar[str] = "reconstruction"
    summary: ClassVar[str] = "rebuilds positions of fixations from counts in rectangles"

    finest_deg: float = 0.1
    grid_deg: float | None = None
    most_queries: int = 100_000

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Rebuild each released recording's fixations; the raw recording's are the truth."""
        truth, answered = _fixations(raw), _fixations(release)
        shared = sorted(set(truth) & set(answered))
        if not shared:
            raise DataError(
                "The raw recordings and the release share no recording with fixations. Give a"
                " release with the same names of people and stimuli."
            )
        n = len(shared)
        pairs = [self._rebuilt(answered[key], truth[key]) for key in shared]
        errors = [error for error, _, _ in pairs]
        shares = [share for _, share, _ in pairs]
        protocol = "counts of released fixations in rectangles, interval over recordings"
        results = tuple(
            AttackResult(metric, float(np.mean(v)), *mean_interval(v), n, protocol=protocol)
            for metric, v in (("median_error_deg", errors), ("fixations_found", shares))
        )
        details = {"queries": sum(queries for _, _, queries in pairs), "recordings": n}
        return InferenceResult(self.kind, results, details)

    def _rebuilt(self, released: Floats, true: Floats) -> tuple[float, float, int]:
        """Median error in degrees, share of true fixations found, and number of questions."""
        low, high = released.min(axis=0) - 1.0, released.max(axis=0) + 1.0
        area = (float(low[0]), float(low[1]), float(high[0]), float(high[1]))
        answer = (
            exact_answers(released[:, 0], released[:, 1])
            if self.grid_deg is None
            else snapped_answers(released[:, 0], released[:, 1], area, self.grid_deg)
        )
        rebuilt = rebuild(answer, area, self.finest_deg, self.most_queries, self.grid_deg)
        match = achieved(rebuilt.positions_deg, true)
        return match.median_deg, match.found / (match.found + match.missed), rebuilt.queries


def _fixations(material: RecordingSet) -> dict[RecordingKey, Floats]:
    """Mean positions in degrees of the fixations of every recording that has some."""
    if material.cohort is None:
        raise DataError("Reconstruction needs recordings of samples, not tables of features.")
    positions = {}
    for recording in material.cohort:
        events = material.pipeline.events_of(recording)
        chosen = np.flatnonzero(events.kind == "fixation")
        means = [_mean(recording, int(events.onset[i]), int(events.offset[i])) for i in chosen]
        usable = np.array([m for m in means if np.isfinite(m).all()], dtype=np.float64)
        if len(usable):
            positions[recording.key] = usable
    return positions


def _mean(recording: Recording, onset: int, offset: int) -> tuple[float, float]:
    inside = slice(onset, offset + 1)
    x, y = recording.x_deg[inside], recording.y_deg[inside]
    valid = np.isfinite(x) & np.isfinite(y)
    return (float(x[valid].mean()), float(y[valid].mean())) if valid.any() else (math.nan, math.nan)


@dataclass(frozen=True)
class PieceRelinking(InferenceAttack):
    """Join pieces of neighbouring windows, learnt on the release's other stimuli.

    Parameters
    ----------
    by : {"place", "style", "both", "label"}
        By what pieces are joined; `label`: by the order of names or recordings.
    scores : {"fusion", "steps", "rocket", "linkage"}
        Whose scores say how alike two pieces are in style.
    """

    name: ClassVar[str] = "relinking"
    kind: ClassVar[str] = "relinking"
    summary: ClassVar[str] = "joins pieces of neighbouring windows"
    pieces: ClassVar[str] = "yes"

    by: str = "place"
    scores: str = "fusion"

    def __post_init__(self) -> None:
        checks.one_of(self.name, "by", self.by, RELINKED_BY)
        checks.one_of(self.name, "scores", self.scores, SCORES)

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Join the pieces of the release; the raw recordings are not looked at."""
        share = relinked_share(release, self.by, self.scores, seed)
        return InferenceResult(self.kind, (share,), {"by": self.by})


@dataclass(frozen=True)
class KnownLooks(InferenceAttack):
    """Tell whose a piece is by looks that are known from elsewhere, drawn `draws` times for each
    piece.
    """

    name: ClassVar[str] = "known-looks"
    kind: ClassVar[str] = "known-looks"
    summary: ClassVar[str] = "tells whose a piece is by looks that are known from elsewhere"
    pieces: ClassVar[str] = "any"

    draws: int = 4

    def __post_init__(self) -> None:
        checks.count(self.name, "draws", self.draws)

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Draw looks from raw recordings and find the piece that fits them best."""
        return InferenceResult(self.kind, found_by_looks(raw, release, seed, self.draws))


@dataclass(frozen=True)
class StimulusComparison(InferenceAttack):
    """Name people from each stimulus alone, and say which stimuli differ from the mean. `attacks`
    has `+` between them, `seconds` is the first part of each recording (0 for all), `draws` the
    permutations of the test.
    """

    name: ClassVar[str] = "stimulus-risk"
    kind: ClassVar[str] = "stimulus-risk"
    summary: ClassVar[str] = "names people from each stimulus alone, and compares the stimuli"

    attacks: str = "+".join(ATTACKS)
    seconds: float = 0.0
    draws: int = 4999

    def __post_init__(self) -> None:
        checks.not_negative(self.name, "seconds", self.seconds)
        checks.count(self.name, "draws", self.draws)
        for text in self.attacks.split("+"):
            attack_by_name(text)

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Name people by every stimulus; the rates of single stimuli are among the details."""
        risk = stimulus_risk(
            raw, release, self.attacks.split("+"), self.seconds or None, seed, self.draws
        )
        n, apart = len(risk.stimuli), risk.apart
        counted = AttackResult(
            "stimuli_apart",
            float(apart.count),
            math.nan,
            math.nan,
            n,
            0.0,
            apart.p_any,
            f"of {n} stimuli, adjusted for all; any difference at all: p {apart.p_any:.2g}",
        )
        share = risk.person_share[np.isfinite(risk.person_share)]
        shown = AttackResult(
            "person_share",
            float(share.mean()) if len(share) else math.nan,
            *mean_interval(share),
            len(share),
            0.0,
            protocol="of the variance of features, without an attacker; interval over stimuli",
        )
        results = (*(risk.mean(w) for w in ("across", "within", "control")), counted, shown)
        least = apart.least_difference
        details = {
            "stimuli": risk.rows(),
            "left_out": list(risk.left_out),
            "least_difference": None if math.isnan(least) else least,
        }
        return InferenceResult(self.kind, results, details)


#: Kind -> class, as in `gazeveil attack --kind`.
KINDS: dict[str, type[InferenceAttack]] = {
    c.kind: c
    for c in (
        AttributeInference,
        MembershipInference,
        RecordLinkage,
        DemographicLinkage,
        FixationReconstruction,
        PieceRelinking,
        KnownLooks,
        StimulusComparison,
    )
}
