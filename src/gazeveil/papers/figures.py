"""The five papers, the studies that come with the package, and the papers' published figures with
what answers them: a cell of a study, a formula, or nothing.

`published_figures.csv` holds the figures with table, figure or section; those of the supplement of
davidjohn2023 have the location `Supplement ...`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from gazeveil import checks

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
    name = "-".join((paper, location, dataset, mechanism, parameter)).replace(" ", "")
    unit = "%" if metric == "identification rate" else ""
    return PublishedFigure(
        name, paper, dataset, mechanism, parameter, model, metric, value, unit, "picture", location
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
