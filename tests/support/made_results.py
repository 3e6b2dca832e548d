"""Results of a study that never ran: people recognised as often as asked, in the agreed form, for
tests of what reads results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gazeveil.attacks.result import rate_result
from gazeveil.evaluation.results import Results, frame_of, outcomes_of
from gazeveil.evaluation.study import mechanism_text

REPETITIONS = 5

#: (mechanism, reading, parameters, scenario) -> attack -> people found of 24.
FOUND: dict[tuple[str, str, str, str], dict[str, int]] = {
    ("none", "", "", "raw/raw"): {
        "rbfn": 22,
        "linkage": 23,
        "linkage:features=extended": 23,
        "forest": 20,
    },
    ("gaussian", "corrected", "sigma_deg=10", "private/private"): {
        "rbfn": 1,
        "linkage": 5,
        "linkage:features=extended": 7,
        "forest": 3,
    },
    ("gaussian", "corrected", "sigma_deg=10", "raw/private"): {
        "rbfn": 1,
        "linkage": 2,
        "linkage:features=extended": 2,
        "linkage:knowledge=white-box": 6,
        "linkage:features=extended,denoiser=lowpass": 4,
    },
    ("temporal", "corrected", "K=3", "private/private"): {
        "rbfn": 13,
        "linkage": 20,
        "linkage:features=extended": 21,
        "forest": 15,
    },
    ("k-same-select", "published", "k=4", "private/raw"): {
        "rbfn": 1,
        "linkage": 12,
        "linkage:features=extended": 11,
        "forest": 4,
    },
    ("k-same-select", "corrected", "k=4", "private/raw"): {
        "rbfn": 1,
        "linkage": 2,
        "linkage:features=extended": 1,
        "forest": 1,
    },
    ("kaleido", "corrected", "epsilon=1,w=50,r_deg=2", "private/private"): {
        "rbfn": 1,
        "linkage": 1,
        "linkage:features=extended": 2,
        "forest": 0,
    },
}

#: Mechanism -> (saliency KL, document accuracy).
USED = {
    "none": (0.0, 0.95),
    "gaussian": (0.21, 0.8),
    "temporal": (0.01, 0.93),
    "k-same-select": (None, 0.72),
    "kaleido": (0.9, 0.4),
}

#: Status -> promise in plain words.
PLAIN = {
    "claimed": "Claimed, not promised: moving a window changes any outcome's probability.",
    "refuted": "Nothing is promised: the claim of its paper is refuted.",
    "proved": "What is released under a pseudonym is shared by at least 4 participants. It does not"
    " hold against an attacker who has everyone else's raw data.",
    "empirical": "Nothing is proved.",
}

GUARANTEES = tuple(
    {
        "mechanism": mechanism,
        "plain": PLAIN.get(status, ""),
        "sentence": sentence,
        "status": status,
        "definition": definition,
        "unit": unit,
    }
    for mechanism, sentence, status, definition, unit in (
        (
            "gaussian:sigma_deg=10,reading=corrected",
            "gaussian (corrected): a claim.",
            "claimed",
            "rho-zcdp",
            "window",
        ),
        (
            "temporal:K=3,reading=corrected",
            "temporal makes no privacy promise.",
            "proved",
            "none",
            "user",
        ),
        (
            "k-same-select:k=4,reading=published",
            "Its paper claims; refuted.",
            "refuted",
            "k-anonymity",
            "user",
        ),
        (
            "k-same-select:k=4,reading=corrected",
            "It promises 4-anonymity.",
            "proved",
            "k-anonymity",
            "user",
        ),
        (
            "kaleido:epsilon=1,w=50,r_deg=2,reading=corrected",
            "Tested only.",
            "empirical",
            "epsilon-w-r-dp",
            "window",
        ),
    )
)


def results(
    found: Mapping[tuple[str, str, str, str], Mapping[str, int]] = FOUND,
    people: Sequence[str] | None = None,
    study: Mapping[str, object] | None = None,
) -> Results:
    """Results in which each attack finds as many people as asked, the first ones of the list."""
    names = list(people) if people is not None else [f"p{i + 1:02d}" for i in range(24)]
    rows, outcomes = [], []
    rng = np.random.default_rng(5)
    for (mechanism, reading, parameters, scenario), attacks in found.items():
        cell = {
            "mechanism": mechanism,
            "reading": reading,
            "parameters": parameters,
            "events": "redetected",
            "scenario": scenario,
        }
        common = {**cell, "cohort": "made", "repetitions": REPETITIONS, "seed": 1}
        for attack, count in attacks.items():
            result = rate_result(
                "identification_rate", count / len(names), len(names), 1 / len(names)
            )
            figures = {
                "value": result.value,
                "low": result.low,
                "high": result.high,
                "n": len(names),
                "chance": result.chance,
                "p_value": result.p_value,
            }
            rows += [
                {**common, "attack": attack, "metric": m, **figures}
                for m in ("identification_rate", "rank1")
            ]
            rows.append(
                {
                    **common,
                    "attack": attack,
                    "metric": "eer",
                    "value": 0.5 * (1 - count / len(names)),
                    "n": REPETITIONS,
                }
            )
            for repetition in range(REPETITIONS):
                for i, person in enumerate(names):
                    hit = i < count
                    answer = (
                        person
                        if hit
                        else names[(i + 1 + int(rng.integers(len(names) - 1))) % len(names)]
                    )
                    beaten = 0 if hit else int(rng.integers(1, len(names)))
                    told = {
                        "repetition": repetition,
                        "part": person,
                        "value": float(hit),
                        "answer": answer,
                        "beaten_by": beaten,
                    }
                    outcomes.append(
                        {**cell, "attack": attack, "metric": "identification_rate", **told}
                    )
        kl, accuracy = USED[mechanism]
        if kl is not None:
            rows.append(
                {
                    **common,
                    "utility": "saliency",
                    "metric": "kl",
                    "value": kl,
                    "low": 0.9 * kl,
                    "high": 1.2 * kl,
                    "n": 6,
                    "better": "lower",
                }
            )
        rows.append(
            {
                **common,
                "utility": "document",
                "metric": "accuracy",
                "value": accuracy,
                "low": accuracy - 0.05,
                "high": min(1, accuracy + 0.05),
                "n": 24,
                "chance": 1 / 3,
                "better": "higher",
            }
        )
    plan = {
        "name": "made",
        "title": "A study that never ran",
        "cohort": "24 people who do not exist",
        "seed": 1,
        "repetitions": REPETITIONS,
        "failures": [],
    }
    return Results(
        frame_of(rows), outcomes_of(outcomes), GUARANTEES, examples(), {**plan, **(study or {})}
    )


def examples() -> dict[str, object]:
    """A trace and a map, raw and under three mechanisms."""
    rng = np.random.default_rng(7)
    t = np.arange(0, 10, 1 / 120)
    x = (
        350
        + 15 * np.repeat(rng.normal(size=len(t) // 40 + 1), 40)[: len(t)]
        + 0.1 * rng.normal(size=len(t))
    ) % 360
    y = 90 + 8 * np.repeat(rng.normal(size=len(t) // 40 + 1), 40)[: len(t)]
    valid = np.ones(len(t), dtype=np.bool_)
    valid[200:230] = False
    raw = {"t_s": t, "x_deg": x, "y_deg": y, "valid": valid}
    noisy = {
        **raw,
        "x_deg": (x + 10 * rng.normal(size=len(t))) % 360,
        "y_deg": y + 10 * rng.normal(size=len(t)),
    }
    slow = {k: v[::3] for k, v in raw.items()}
    grid = np.exp(-((np.arange(32)[:, None] - 14) ** 2 / 40 + (np.arange(64)[None] - 36) ** 2 / 90))
    wide = np.exp(
        -((np.arange(32)[:, None] - 14) ** 2 / 140 + (np.arange(64)[None] - 36) ** 2 / 290)
    )
    texts = [
        mechanism_text("gaussian", "corrected", "sigma_deg=10"),
        mechanism_text("temporal", "corrected", "K=3"),
    ]
    return {
        "traces": {"none": raw, texts[0]: noisy, texts[1]: slow},
        "maps": {
            "none": grid,
            texts[0]: wide,
            texts[1]: grid,
            "heatmap-laplace:epsilon=1,reading=corrected": grid + 0.02 * rng.random((32, 64)),
        },
        "title": "p01, stimulus 3",
        "viewers": 24,
        "space": "sphere",
        "extent": (0.0, 360.0, 0.0, 180.0),
    }
