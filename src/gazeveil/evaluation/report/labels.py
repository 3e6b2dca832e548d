"""Names and numbers as a reader says them: mechanisms, attackers, scenarios, shares of people,
intervals.

Everything here returns plain text. What comes from data is escaped where it is put into a page, not
here.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, dataclass, fields
from functools import cache

from gazeveil.errors import GazeveilError

#: Scenarios, train/test, in words that follow "an attacker who".
SCENARIOS = {
    "raw/raw": "learned from raw recordings and names raw recordings",
    "private/raw": "learned from the release and names raw recordings",
    "raw/private": "holds raw recordings with names and asks who is in the release",
    "private/private": "learned from one release and names another, independent one",
    "release/release": "learned from one part of a release and names the rest of the same release",
}

_ATTACKS = {
    "rbfn": "the papers' RBF network",
    "linkage": "linkage",
    "forest": "random forest",
    "svm": "support vector machine",
    "knn": "nearest neighbours",
    "tree": "decision tree",
    "lda": "linear discriminant analysis",
    "boosting": "gradient boosting",
    "steps": "step statistics",
    "rocket": "random convolutions",
    "fusion": "fusion of attackers",
    "relink": "pieces joined again",
    "ekyt": "deep network (EKYT)",
}

#: Parameters that make an attacker another one than its frozen self.
_STRONGER = ("denoiser", "knowledge", "draws")

_STATUS = {
    "proved": ("✓", "promise proved"),
    "claimed": ("?", "promise claimed, not proved"),
    "empirical": ("≈", "empirical, rests on experiments"),
    "refuted": ("✗", "promise refuted"),
    "none": ("-", "no promise"),
}

#: Words for the statuses of guarantees: (sign, words), so that none is told by colour alone.
STATUSES = _STATUS


@dataclass(frozen=True)
class AttackParts:
    """An attack's text, taken apart.

    Parameters
    ----------
    name : str
        Its name.
    own : tuple of (str, str)
        Its own parameters.
    stronger : dict
        What it does beyond its frozen self: `denoiser`, `knowledge`, `draws`.
    """

    name: str
    own: tuple[tuple[str, str], ...]
    stronger: dict[str, str]

    @property
    def plain(self) -> bool:
        """Whether it is frozen: no denoiser, no knowledge of the mechanism."""
        return not self.stronger

    @property
    def frozen(self) -> str:
        """The text of its frozen self."""
        return self.name + (":" + ",".join(f"{k}={v}" for k, v in self.own) if self.own else "")


@cache
def attack_parts(text: str) -> AttackParts:
    """Take an attack's text apart.

    Examples
    --------
    >>> attack_parts("linkage:features=extended,denoiser=lowpass").frozen
    'linkage:features=extended'
    """
    name, _, rest = text.partition(":")
    pairs = [(k, v) for k, _, v in (p.partition("=") for p in rest.split(",") if p)]
    return AttackParts(
        name,
        tuple(p for p in pairs if p[0] not in _STRONGER),
        {k: v for k, v in pairs if k in _STRONGER},
    )


def attack_label(text: str) -> str:
    """An attacker as a reader calls it.

    Examples
    --------
    >>> attack_label("linkage:features=extended,knowledge=white-box")
    'linkage (extended features), retrained on its own releases'
    """
    parts = attack_parts(text)
    own = ", ".join(
        f"{v} {k}" if k == "features" else f"{k}={v}" for k, v in parts.own if k != "reading"
    )
    label = _ATTACKS.get(parts.name, parts.name)
    if parts.name == "rbfn":
        # The papers train on all events of everybody; the default draws some and balances.
        label += " as published" if ("reading", "published") in parts.own else ", balanced"
    label += f" ({own})" if own else ""
    extra = []
    if "denoiser" in parts.stronger:
        extra.append("behind a low-pass filter")
    knowledge = parts.stronger.get("knowledge")
    if knowledge == "white-box":
        extra.append("retrained on its own releases")
    elif knowledge == "exemplars":
        extra.append("retrained on protected examples")
    elif knowledge:
        extra.append(knowledge)
    return ", ".join([label, *extra])


@cache
def mechanism_label(mechanism: str, reading: str, parameters: str) -> str:
    """A mechanism as a reader calls it: its label, the parameters that are not the defaults, and
    its reading where that is not `corrected`.

    Examples
    --------
    >>> mechanism_label("gaussian", "corrected", "sigma_deg=10")
    'Gaussian noise (10 deg)'
    >>> mechanism_label("k-same-select", "published", "k=4")
    'k-same-select as published (k=4)'
    """
    if mechanism == "none":
        return "no protection"
    label, defaults = _described(mechanism)
    pairs = [
        (k, v)
        for k, _, v in (p.partition("=") for p in parameters.split(",") if p)
        if defaults.get(k) != v
    ]
    shown = [_parameter(k, v, alone=len(pairs) == 1) for k, v in pairs]
    read = {"corrected": "", "": "", "published": " as published"}.get(reading, f" {reading}")
    return label + read + (f" ({', '.join(shown)})" if shown else "")


def _parameter(name: str, value: str, *, alone: bool) -> str:
    for suffix in ("_deg", "_ms", "_s", "_hz"):
        if name.endswith(suffix):
            plain = f"{value} {suffix[1:]}"
            return plain if alone else f"{name.removesuffix(suffix)}={plain}"
    return f"{name}={value}" if value else name


@cache
def _described(mechanism: str) -> tuple[str, dict[str, str]]:
    """The label and the default parameters of a mechanism."""
    from gazeveil.privacy.registry import get

    try:
        cls = get(mechanism)
    except GazeveilError:
        return mechanism, {}  # a third-party mechanism: all its parameters are shown
    defaults = {f.name: str(f.default) for f in fields(cls) if f.default is not MISSING}
    return getattr(cls, "label", mechanism), defaults


def percent(rate: float) -> str:
    """A fraction of 1 in percent.

    Examples
    --------
    >>> percent(0.2917), percent(0.004), percent(float("nan"))
    ('29 %', '0.4 %', 'unknown')
    """
    if not math.isfinite(rate):
        return "unknown"
    return f"{100 * rate:.1f} %" if 0 < abs(rate) < 0.0095 else f"{100 * rate:.0f} %"


def interval(low: float, high: float) -> str:
    """A 95 % interval of a rate, or nothing where there is none."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{100 * low:.0f} to {100 * high:.0f} %"


def share(rate: float, n: int) -> str:
    """Count recognised people: the mean over repetitions, with a decimal where it is no whole one.

    Examples
    --------
    >>> share(7 / 24, 24), share(0.9, 12), share(0, 24), share(0.99, 24), share(1, 24)
    ('7 of 24', '10.8 of 12', 'none of 24', 'nearly all 24', 'all 24')
    """
    count = math.floor(rate * n + 0.5)
    if count == 0:
        return f"none of {n}" if rate == 0 else f"hardly any of {n}"
    if count == n:
        return f"all {n}" if rate == 1 else f"nearly all {n}"
    return f"{by_guessing(rate, n)} of {n}"


def by_guessing(chance: float, n: int) -> str:
    """How many people guessing finds.

    Examples
    --------
    >>> by_guessing(1 / 24, 24), by_guessing(0.1, 15)
    ('1', '1.5')
    """
    expected = chance * n
    return (
        "unknown"
        if not math.isfinite(expected)
        else (f"{expected:.0f}" if abs(expected - round(expected)) < 0.05 else f"{expected:.1f}")
    )


def number_text(value: float) -> str:
    """A figure with three digits that count; a dash where there is none."""
    if not math.isfinite(value):
        return "-"
    return "0" if value == 0 else f"{value:.3g}"


def probability(p: float) -> str:
    """A p-value."""
    if not math.isfinite(p):
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def points(difference: float) -> str:
    """A difference of rates in percentage points, with its sign."""
    return f"{100 * difference:+.0f}" if math.isfinite(difference) else "-"


_UTILITIES = {
    "aoi": "areas of interest",
    "document": "document type",
    "prediction": "gaze prediction",
    "privacy-sensitivity": "privacy sensitivity",
    "saliency": "saliency map",
    "scanpath": "scanpaths",
    "signal": "samples",
}

_METRICS = {
    "accuracy": "accuracy",
    "f1_macro": "macro F1",
    "kl": "KL divergence",
    "jsd": "Jensen-Shannon divergence",
    "cc": "correlation",
    "sim": "similarity",
    "nss": "NSS",
    "nmse": "NMSE",
    "rmse": "RMSE",
}

_UNITS = {"_deg_s": "deg/s", "_deg": "deg", "_s": "s", "_ms": "ms", "_hz": "Hz", "_px": "px"}


def metric_label(utility: str, metric: str) -> str:
    """A utility figure as a reader calls it, with its unit.

    Examples
    --------
    >>> metric_label("aoi", "dwell_rmse_s")
    'areas of interest: dwell RMSE (s)'
    >>> metric_label("events", "peak_velocity_error_deg_s")
    'events: peak velocity error (deg/s)'
    """
    unit = next((u for s, u in _UNITS.items() if metric.endswith(s)), "")
    stem = metric[: -len(next(s for s in _UNITS if metric.endswith(s)))] if unit else metric
    name = _METRICS.get(stem, " ".join("RMSE" if w == "rmse" else w for w in stem.split("_")))
    return f"{utility_label(utility)}: {name}" + (f" ({unit})" if unit else "")


def utility_label(text: str) -> str:
    """A utility as a reader calls it.

    Examples
    --------
    >>> utility_label("document:split=people")
    'document type (split=people)'
    """
    name, _, rest = text.partition(":")
    return _UTILITIES.get(name, name) + (f" ({rest.replace(',', ', ')})" if rest else "")
