"""The inference attacks by name: each takes raw recordings and a release of them.

====================== ===========================================================================
kind                   what the attacker wants
====================== ===========================================================================
`attributes`           gender, age or another attribute of everybody in the release
`membership`           who of the people with raw recordings is in the release
`record-linkage`       which pseudonym of the release belongs to which raw recordings
`demographics`         the same, after a filter by generalised age and gender
`relinking`            which pieces of a release belong together
`stimulus-risk`        names, from each stimulus alone: which of them gives people away
====================== ===========================================================================
"""

from __future__ import annotations

from gazeveil.attacks.base import InferenceAttack
from gazeveil.attacks.infer.people import (
    AttributeInference,
    DemographicLinkage,
    MembershipInference,
    RecordLinkage,
)
from gazeveil.attacks.infer.stimulus_risk import StimulusComparison
from gazeveil.attacks.pieces.relink import PieceRelinking

#: Kind -> class, as in `gazeveil attack --kind`.
KINDS: dict[str, type[InferenceAttack]] = {
    c.name: c
    for c in (
        AttributeInference,
        MembershipInference,
        RecordLinkage,
        DemographicLinkage,
        PieceRelinking,
        StimulusComparison,
    )
}
