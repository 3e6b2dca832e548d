"""The five papers, the studies that come with the package, and the papers' published figures with
what answers them: a cell of a study, a formula, or nothing.

`published_figures.csv` holds the figures with table, figure or section; those of the supplement of
davidjohn2023 have the location `Supplement ...`.

How the cell that answers a published figure is found among the results of a study.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cache
from pathlib import Path

from gazeveil import checks
from gazeveil.errors import GazeveilError
from gazeveil.evaluation.report.findings import number_of
from gazeveil.evaluation.results import Results
from gazeveil.evaluation.study import RATE
from gazeveil.papers.protocols import attack, utility

#: Key of a paper -> its citation.
CITATIONS = {
    "davidjohn2021": "David-John, Hosfelt, Butler, Jain: A privacy-preserving approach to streaming"
    " eye-tracking data. IEEE TVCG 2021.",
    "bozkir2021": "Bozkir, Günlü, Fuhl, Schaefer, Kasneci: Differential privacy for eye tracking"
    " with temporal correlations. PLOS ONE 2021.",
    "davidjohn2022": "David-John, Butler, Jain: For Your Eyes Only: Privacy-preserving eye-tracking"
    " datasets. ETRA 2022.",
    "davidjohn2023": "David-John, Butler, Jain: Privacy-preserving datasets of eye-tracking samples"
    " with applications in XR. IEEE TVCG 2023, with its supplement.",
    "ren2024": "Ren, Fan, Xu, Wang, Dong, Wen: DPGazeSynth: Enhancing eye-tracking virtual reality"
    " privacy with differentially private data synthesis. 2024.",
}

FOLDER = Path(__file__).parent / "studies"


def check_key(owner: str, key: object) -> str:
    """A paper's key, or a refusal that lists them."""
    return checks.one_of(owner, "paper", key, CITATIONS)


def study_names() -> tuple[str, ...]:
    """Names as :func:`study_path` takes them, such as `davidjohn2021/fig4`."""
    files = (path.relative_to(FOLDER).with_suffix("") for path in FOLDER.rglob("*.toml"))
    return tuple(sorted(name.as_posix() for name in files))


def study_path(name: str) -> Path:
    """The file of a study of :func:`study_names`.

    Raises
    ------
    ParameterError
        For another name.
    """
    return FOLDER / f"{checks.one_of('reproduce', 'study', name, study_names())}.toml"


#: The reading that alone may stand beside a published figure, for mechanisms whose studies have
#: several. Kaleido's pseudocode to the letter halves its budget for ever, so that after some
#: seconds every sample lies opposite to the true one; the papers' figures cannot come from it.
BESIDE = {
    "kaleido": "corrected",
    "k-same-synth": "published",
    "event-synth-pd": "published",
    "dpgazesynth": "published",
}

Parameters = Mapping[str, str]


@dataclass(frozen=True)
class PublishedFigure:
    """One published figure, as text of the paper.

    Parameters
    ----------
    id, source : str
        `PF0001`..., and the paper.
    dataset, mechanism, parameter, model, metric, value, unit : str
        What it is about, in the paper's words.
    origin : str
        `paper-table`, `paper-text`, `figure-vector` (curve coordinates), `figure-pixel` (bar
        heights) or `derived`.
    location : str
        Table, figure or section.
    """

    id: str
    source: str
    dataset: str
    mechanism: str
    parameter: str
    model: str
    metric: str
    value: str
    unit: str
    origin: str
    location: str

    @property
    def number(self) -> float:
        """The value as a number; NaN for ranges and lists."""
        try:
            return float(self.value)
        except ValueError:
            return math.nan

    @property
    def parameters(self) -> dict[str, str]:
        """`epsilon=10; w=50; r=2deg` as a mapping; words without `=` are left out."""
        return {
            k.strip(): v.strip()
            for k, s, v in (p.partition("=") for p in self.parameter.split(";"))
            if s
        }

    @property
    def about(self) -> str:
        """What it is, in a few words."""
        return ", ".join(
            filter(
                None,
                (
                    self.location,
                    self.dataset,
                    " ".join(filter(None, (self.mechanism, self.parameter))),
                    self.model,
                    self.metric,
                ),
            )
        )


@cache
def published_figures(paper: str) -> tuple[PublishedFigure, ...]:
    """The published figures of a paper, in the order of its tables and figures."""
    check_key("figures", paper)
    with (Path(__file__).with_name("published_figures.csv")).open(
        encoding="utf-8", newline=""
    ) as stream:
        return tuple(
            f
            for f in (PublishedFigure(**row) for row in csv.DictReader(stream))
            if f.source == paper
        )


def unprinted(
    paper: str,
    location: str,
    dataset: str,
    metric: str,
    mechanism: str = "none",
    parameter: str = "",
    value: str = "",
    model: str = "RBFN",
) -> PublishedFigure:
    """A place of a picture whose value the paper does not print, or prints elsewhere."""
    unit = "%" if metric == "identification rate" else ""
    return PublishedFigure(
        "-".join((paper, location, dataset, mechanism, parameter)).replace(" ", ""),
        *(paper, dataset, mechanism, parameter, model, metric, value, unit, "picture", location),
    )


@dataclass(frozen=True)
class CellQuery:
    """Where a study holds the answer to a figure.

    Parameters
    ----------
    cohort : str
        Label of the study's part: the dataset, or `dataset, variant`.
    metric : str
        As in the results.
    mechanism : str
        Name; `none` for the baseline.
    parameters : mapping
        Those that must agree; others may be anything.
    scenario, events, reading : str
        Empty for any; the published reading goes first.
    attack, utility : str
        Name, with `:parameter=value` where these must agree; one of them is empty.
    scale : float
        Published unit per unit of the results: 100 for percent.
    inverse : bool
        Whether the figure is one over the value of the results.
    above_raw : bool
        Whether the figure is the difference to the baseline.
    other_model : str
        Why numbers never compare even on the paper's own recordings (another model, another unit);
        empty where they do.
    tolerance : str
        One of the keys of :data:`gazeveil.papers.grading.TOLERANCES`.
    why : str
        Why ours differs where it does, if that is known.
    """

    cohort: str
    metric: str
    mechanism: str = "none"
    parameters: Parameters = field(default_factory=dict, hash=False)
    scenario: str = ""
    events: str = ""
    reading: str = ""
    attack: str = ""
    utility: str = ""
    scale: float = 1.0
    inverse: bool = False
    above_raw: bool = False
    other_model: str = ""
    tolerance: str = ""
    why: str = ""

    @property
    def baseline(self) -> CellQuery:
        """The unprotected cell it is measured against."""
        return CellQuery(
            self.cohort,
            self.metric,
            scenario="raw/raw",
            attack=self.attack,
            utility=self.utility,
            scale=self.scale,
        )


@dataclass(frozen=True)
class Formula:
    """A figure that needs no recordings: ours is computed by the package alone."""

    ours: object
    digits: int = 1
    note: str = ""


@dataclass(frozen=True)
class NotComparable:
    """A figure nothing here can answer, and why."""

    reason: str


Asked = CellQuery | Formula | NotComparable

#: One row of a comparison: id, what, published, ours, low, high, kind, verdict, reason, and the
#: figures of other attackers `beside`.
Row = dict[str, object]


@dataclass(frozen=True)
class Order:
    """A claim that some cells stand in an order.

    Parameters
    ----------
    id, what : str
        A name and the claim in words.
    cells : sequence of CellQuery
        From the smallest to the largest.
    published : str
        The paper's values, or its words.
    claimed : bool
        Whether it is the paper that claims it; what we add is shown and never graded.
    why : str
        Why it may not hold here, if that is known.
    """

    id: str
    what: str
    cells: Sequence[CellQuery]
    published: str
    claimed: bool = True
    why: str = ""


def row_of(name: str, what: str, published: object, kind: str) -> Row:
    """A row of a comparison without a figure of ours and without a verdict."""
    nothing = dict.fromkeys(("ours", "low", "high"))
    row: Row = {"id": name, "what": what, "published": published}
    return {**row, **nothing, "kind": kind, "verdict": "", "reason": "", "beside": {}}


@dataclass(frozen=True)
class Identity:
    """A claim that needs no recordings, in words, with the paper's value and the package's."""

    id: str
    what: str
    published: object
    ours: object
    equal: bool


def people_in(paper: str, dataset: str) -> int:
    """How many people a paper says that a dataset has; 0 where it does not say."""
    of_dataset = (f for f in published_figures(paper) if f.dataset == dataset)
    return int(next((f.number for f in of_dataset if f.metric == "participants"), 0))


@dataclass(frozen=True)
class Estimate:
    """A figure of a study with its interval, in the published unit."""

    value: float
    low: float
    high: float

    def scaled(self, by: float, minus: float = 0.0) -> Estimate:
        """In another unit, and above another value."""
        return Estimate(*((v - minus) * by for v in (self.value, self.low, self.high)))

    def inverse(self) -> Estimate:
        """One over it; nothing below zero has one."""
        return Estimate(*(1 / v if v > 0 else math.nan for v in (self.value, self.high, self.low)))


class Lookup:
    """The figures of some results, to be asked for by :class:`CellQuery`."""

    def __init__(self, results: Results) -> None:
        self._by: dict[tuple[str, str, str], list[dict[str, object]]] = {}
        for row in results.frame.iter_rows(named=True):
            self._by.setdefault(
                (str(row["cohort"]), str(row["mechanism"]), str(row["metric"])), []
            ).append(row)
        #: The strongest attacker of each release, chosen on other repetitions.
        self._strongest = results.strongest_against().to_dicts() if results.frame.height else []
        #: What each cohort of the results is: `dataset`, `real`, `people`, `stimuli`.
        self.parts = parts(results)
        #: Which part of the paper the study mirrors; empty for all of it.
        self.figure = str(results.study.get("figure") or "")
        #: Whether it is the short form, which grades nothing.
        self.quick = bool(results.study.get("quick"))

    def real(self, cohort: str) -> bool:
        """Whether a part holds the dataset it is named after, rather than simulated people."""
        return bool(self.parts.get(cohort, {}).get("real", False))

    def people(self, cohort: str) -> int:
        """How many people a part has; many where the study does not say."""
        return int(str(self.parts.get(cohort, {}).get("people") or 1_000_000))

    def find(self, cell: CellQuery) -> Estimate | None:
        """The figure of a cell in the published unit; None where this study did not measure it."""
        row = self._row(cell)
        if row is None:
            return None
        estimate = Estimate(*(number_of(row.get(n)) for n in ("value", "low", "high")))
        minus = 0.0
        if cell.above_raw:
            raw = self.find(cell.baseline)
            if raw is None:
                return None
            minus = raw.value / cell.scale
        return (estimate.inverse() if cell.inverse else estimate).scaled(cell.scale, minus)

    def beside(self, cell: CellQuery) -> dict[str, Estimate]:
        """What linkage, and the strongest attacker that was tried, find in the release of a cell
        that is a rate; the latter is chosen on the other repetitions.
        """
        row = self._row(cell) if cell.metric == RATE else None
        if row is None:
            return {}
        found: dict[str, Estimate] = {}
        others = {"linkage": {"attack": "linkage"}, "labels carried": {"events": "carried"}}
        for name, changed in others.items():
            estimate = self.find(replace(cell, **changed))  # type: ignore[arg-type]
            if estimate is not None and cell.events != "carried":
                found[name] = estimate
        keys = ("cohort", "mechanism", "reading", "parameters", "events")
        for best in self._strongest:
            if all(best[k] == row[k] for k in keys) and best["chosen"] is not None:
                ends = (number_of(best[n]) for n in ("chosen", "chosen_low", "chosen_high"))
                found[f"strongest of {best['tried']}"] = Estimate(*ends).scaled(cell.scale)
        return found

    def or_else(self, cell: CellQuery, instead: CellQuery) -> CellQuery:
        """`cell` where the study measured the same of raw recordings, else the other: a
        study without the paper's network has ours.
        """
        return instead if self.find(cell.baseline) is None else cell

    def _row(self, cell: CellQuery) -> dict[str, object] | None:
        """The papers' own reading first, and events found again before events carried along."""
        rows = [
            row
            for row in self._by.get((cell.cohort, cell.mechanism, cell.metric), [])
            if _agrees(row, cell) and row["value"] is not None
        ]
        return min(
            rows,
            key=lambda r: (
                r["reading"] not in ("published", "", None),
                r["events"] == "carried",
                len(str(r["attack"] or r["utility"])),
            ),
            default=None,
        )


def parts(results: Results) -> dict[str, dict[str, object]]:
    """What each cohort of the results is; empty where the study does not say."""
    listed = results.study.get("parts", [])
    assert isinstance(listed, list | tuple)
    known = {str(p["cohort"]): dict(p) for p in listed}
    others = (str(c) for c in results.frame["cohort"].unique(maintain_order=True).to_list())
    return {**known, **{c: {} for c in others if c not in known}}


def shape(figure: PublishedFigure, label: str, lookup: Lookup) -> Formula | NotComparable:
    """How many people or stimuli a part has, which says something of the paper only where the
    recordings are the paper's own.
    """
    part = lookup.parts.get(label, {})
    ours = part.get("people" if figure.metric == "participants" else "stimuli")
    if ours is None:
        return NotComparable("this study has no such part")
    if not lookup.real(label):
        return NotComparable(f"simulated here, {ours} by choice")
    return Formula(ours, 0) if ours == figure.number else NotComparable(f"{ours} are here")


def same_text(text: str, got: str, what: str = "attack") -> bool:
    """Whether an attack or utility as written in results is the one wanted; parameters that are not
    named may be anything.

    Examples
    --------
    >>> same_text("linkage", "linkage:features=extended"), same_text("linkage", "rbfn")
    (True, False)
    >>> same_text("linkage:features=summary", "linkage")
    True
    """
    name, parameters = pairs(text)
    if name != got.partition(":")[0]:
        return False
    values = _written(got, what) if parameters else {}
    return all(same(v, values.get(k)) for k, v in parameters.items())


@cache
def _written(text: str, what: str) -> dict[str, str]:
    """All parameters of an attack or utility, those left to their defaults too; texts no registry
    knows stand for themselves.
    """
    build: Callable[[str], object] = attack if what == "attack" else utility
    try:
        built = build(text)
    except GazeveilError:
        return pairs(text)[1]
    return {f.name: str(getattr(built, f.name)) for f in fields(built)}  # type: ignore[arg-type]


def pairs(text: str) -> tuple[str, dict[str, str]]:
    """`name:a=1,b=2` taken apart."""
    name, _, rest = text.partition(":")
    return name, {
        k.strip(): v.strip() for k, s, v in (p.partition("=") for p in rest.split(",")) if s
    }


def same(a: str, b: str | None) -> bool:
    """Whether two values of a parameter are the same, as numbers where they are numbers."""
    if b is None:
        return False
    try:
        return Fraction(a) == Fraction(b)
    except (ValueError, ZeroDivisionError):
        return a == b


def _agrees(row: Mapping[str, object], cell: CellQuery) -> bool:
    for name in ("scenario", "events", "reading"):
        wanted = getattr(cell, name)
        if wanted and row[name] != wanted:
            return False
    for name, wanted in (("attack", cell.attack), ("utility", cell.utility)):
        if (row[name] is None) != (not wanted) or (
            wanted and not same_text(wanted, str(row[name]), name)
        ):
            return False
    got = pairs(":" + str(row["parameters"] or ""))[1]
    return all(same(v, got.get(k)) for k, v in cell.parameters.items())
