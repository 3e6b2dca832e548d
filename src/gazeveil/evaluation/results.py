"""Results: what a study found, as two tables, the promises of its mechanisms and one example, on
disk as a folder.

The tables are sorted and written with fixed options, and nothing in them depends on the clock: the
same study gives the same bytes. What does depend on it (how long the run took) stands in a file of
its own, `run.json`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import numpy as np
import polars as pl

from gazeveil import checks
from gazeveil.arrays import Floats
from gazeveil.errors import DataError, FormatError
from gazeveil.evaluation.study import (
    AGAINST,
    BETWEEN,
    CELL,
    DEALT,
    FRAME,
    NONE,
    ONE_RELEASE,
    OUTCOMES,
    RATE,
)
from gazeveil.gaze.exchange import pandas_of
from gazeveil.io.adapters.frames import as_polars

if TYPE_CHECKING:
    import pandas as pd

    from gazeveil.plot.tradeoff import FrontSeries

Examples: TypeAlias = dict[str, Any]

_FILES = ("results.parquet", "outcomes.parquet", "study.json", "examples.json.gz")


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a study.

    Parameters
    ----------
    frame : polars.DataFrame
        One row per cell and metric, columns :data:`FRAME`; rates are fractions of 1; null where
        there is no such figure.
    outcomes : polars.DataFrame
        One row per cell, metric, repetition and person (or stimulus, recording), columns
        :data:`OUTCOMES`.
    guarantees : tuple of dict
        `mechanism` (its full text), `sentence`, `status`, `definition`, `unit`.
    examples : dict
        `traces` and `maps` by mechanism text (raw under `none`), `title`, `space`, `extent` (x0,
        x1, y0, y1 in degrees); as JSON has them, lost samples are None.
    study : dict
        The plan as JSON has it: name, cohort, seed, repetitions, `failures` (a list of `cell` and
        `sentence`), `times` in words, `published` (rows of a paper's figures beside ours).
    """

    frame: pl.DataFrame
    outcomes: pl.DataFrame = field(default_factory=lambda: outcomes_of(()))
    guarantees: tuple[dict[str, str], ...] = ()
    examples: Examples = field(default_factory=dict)
    study: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", _as("frame", self.frame, FRAME))
        outcomes = self.outcomes
        if "tied" not in outcomes.columns:  # of an earlier version
            outcomes = outcomes.with_columns(tied=pl.lit(None, pl.String))
        object.__setattr__(self, "outcomes", _as("outcomes", outcomes, OUTCOMES))
        object.__setattr__(self, "guarantees", tuple(dict(g) for g in self.guarantees))

    def __repr__(self) -> str:
        name = str(self.study.get("name", "")) or "study"
        return f"Results({name}: {self.frame.height} figures, {len(self.failures)} failures)"

    @property
    def failures(self) -> tuple[dict[str, str], ...]:
        """Cells that could not be computed, with the reason."""
        failures = self.study.get("failures", [])
        return tuple(failures) if isinstance(failures, list | tuple) else ()

    def strongest(self) -> pl.DataFrame:
        """The headline: per mechanism, parameters, events and scenario the attack that finds the
        most people.

        Returns
        -------
        polars.DataFrame
            Rows of :attr:`frame` with metric `identification_rate`, one per cell; of attacks that
            tie, the first by name.
        """
        best = (
            self._rates()
            .sort("value", "attack", descending=[True, False])
            .unique(subset=["cohort", *CELL], keep="first", maintain_order=True)
        )
        return best.sort("cohort", *CELL)

    def worst_case(self) -> pl.DataFrame:
        """Per mechanism, parameters and events the attack and scenario that find the most people.

        Where noise is common to both parts of one release the scenario `release/release` counts
        only if there is no other: such noise can itself identify people, so it says little about
        the mechanism.
        """
        keys = ["cohort", *(c for c in CELL if c != "scenario")]
        shared = ~pl.col("mechanism").is_in(self.independent)
        misleading = (pl.col("scenario") == ONE_RELEASE) & shared
        best = self.strongest().sort(
            misleading, "value", "scenario", descending=[False, True, False]
        )
        return best.unique(subset=keys, keep="first", maintain_order=True).sort(*keys)

    def paired(self, first: str, second: str) -> pl.DataFrame:
        """How much more the first attack finds than the second, person by person, in every cell
        both attacked.

        Parameters
        ----------
        first, second : str
            Attack texts as in the column `attack`.

        Returns
        -------
        polars.DataFrame
            The cell columns, then `first`, `second` (rates over the people both were asked about),
            `difference`, `low`, `high` (95 % over people; each person's credit is first averaged
            over the repetitions) and `n` (people).

        Raises
        ------
        ParameterError
            For an attack that is not in these results.
        """
        from gazeveil.attacks.result import paired_interval

        rates = self.outcomes.filter((pl.col("metric") == RATE) & pl.col("attack").is_not_null())
        known = rates["attack"].unique().to_list()
        sides = [
            checks.one_of("Results.paired", name, text, known)
            for name, text in (("first", first), ("second", second))
        ]
        # A person counts in a repetition only where both attackers were asked about them.
        # Results put together from several studies say in the outcomes too whose they are.
        keys = [*(["cohort"] if "cohort" in rates.columns else []), *CELL]
        asked = [
            rates.filter(pl.col("attack") == text).select(
                *keys, "repetition", "part", pl.col("value").alias(name)
            )
            for text, name in zip(sides, ("a", "b"), strict=True)
        ]
        both = asked[0].join(
            asked[1], on=[*keys, "repetition", "part"], how="inner", nulls_equal=True
        )
        people = (
            both.group_by(*keys, "part")
            .agg(pl.col("a").mean(), pl.col("b").mean())
            .sort(*keys, "part")
        )
        rows = []
        for key, group in people.group_by(*keys, maintain_order=True):
            a, b = group["a"].to_numpy(), group["b"].to_numpy()
            rows.append((*key, float(a.mean()), float(b.mean()), *paired_interval(a, b), len(a)))
        texts: dict[str, pl.DataType] = dict.fromkeys(keys, pl.String())
        numbers: dict[str, pl.DataType] = dict.fromkeys(
            ("first", "second", "difference", "low", "high"), pl.Float64()
        )
        return pl.DataFrame(rows, schema={**texts, **numbers, "n": pl.Int64()}, orient="row")

    def strongest_against(self, attack: str = "rbfn") -> pl.DataFrame:
        """Per mechanism, parameters and events: the headline, and by how much it is better than one
        attack that many studies use alone.

        Parameters
        ----------
        attack : str
            The attack to compare with, as it is: without a denoiser and without knowledge of the
            mechanism.

        Returns
        -------
        polars.DataFrame
            One row per release, in the order of :meth:`worst_case`. `chosen`, `chosen_low`,
            `chosen_high` are the headline: the rate of the attacker who is the strongest on all
            other repetitions (:func:`gazeveil.attacks.result.chosen_on_others`). `p_value` is that
            of the battery: how often the best of all attackers does as well where names are dealt
            anew; `guessed` the largest rate of the best that these people could not tell from it.
            `strongest`, `scenario`, `value`, `low`, `high`, `chance`, `n` are the best of all,
            chosen by the rates it is quoted with; `tried` counts attackers. `other` and so on
            (`_scenario`, `_value`, `_low`, `_high`) are the attack to compare with, in the scenario
            that is best for it. `difference`, `difference_low`, `difference_high` are the headline
            less the other, person by person (95 % over people). `called_safe` says that the other
            is no better than chance and the battery is. Null where it was not measured: headline
            and verdict need two repetitions.
        """
        rates, dealt = self._rates(), self.frame.filter(pl.col("metric") == DEALT)
        outcomes = self.outcomes.filter(
            (pl.col("metric") == RATE) & pl.col("attack").is_not_null()
        ).with_columns(pl.col(c).fill_null("") for c in CELL)
        rows = []
        for worst in self.worst_case().iter_rows(named=True):
            own, asked, pieces = (
                _of_release(f, worst, self.independent) for f in (rates, outcomes, dealt)
            )
            rows.append(_against(worst, own, asked, attack, pieces.height > 0))
        return pl.DataFrame(rows, schema=AGAINST)

    def called_safe(self, attack: str = "rbfn") -> dict[str, int]:
        """How many releases one attack alone would have called safe although people are recognised,
        over all cohorts of these results.

        Returns
        -------
        dict
            `releases` (protected ones that the attack was tried on) and `called_safe` (of them);
            see :meth:`strongest_against`.
        """
        rows = self.strongest_against(attack).filter(
            (pl.col("mechanism") != NONE) & pl.col("other").is_not_null()
        )
        return {"releases": rows.height, "called_safe": int(rows["called_safe"].sum())}

    @property
    def independent(self) -> tuple[str, ...]:
        """Mechanisms of whose releases two parts have noise of their own."""
        named = self.study.get("independent")
        return tuple(named) if isinstance(named, list) else ()

    def _rates(self) -> pl.DataFrame:
        """The rows of rates that were measured."""
        return self.frame.filter(
            (pl.col("metric") == RATE)
            & pl.col("attack").is_not_null()
            & pl.col("value").is_not_null()
        )

    def write(self, path: str | Path) -> Path:
        """Write a folder of results.parquet, outcomes.parquet, study.json, examples.json.gz and
        run.json.

        Returns
        -------
        Path
            The folder.
        """
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        study = {k: v for k, v in self.study.items() if k != "times"}
        for name, frame in (("results.parquet", self.frame), ("outcomes.parquet", self.outcomes)):
            with _whole(folder / name) as file:
                frame.write_parquet(
                    file,
                    compression="zstd",
                    compression_level=3,
                    statistics=True,
                    row_group_size=1 << 16,
                )
        with _whole(folder / "study.json") as file:
            file.write(canonical({"study": study, "guarantees": list(self.guarantees)}).encode())
        with _whole(folder / "examples.json.gz") as file:
            text = json.dumps(self.examples, default=np.ndarray.tolist)
            file.write(gzip.compress(text.encode(), mtime=0))
        with _whole(folder / "run.json") as file:
            file.write(canonical({"times": self.study.get("times", {})}).encode())
        return folder

    @classmethod
    def read(cls, path: str | Path) -> Results:
        """Read what :meth:`write` wrote.

        Raises
        ------
        FormatError
            For a folder that is not whole.
        """
        folder = Path(path)
        for name in _FILES:
            if not (folder / name).is_file():
                raise FormatError(
                    folder, f"it holds no {name}", "Give the folder of a finished study."
                )
        try:
            frame, outcomes = (pl.read_parquet(folder / name) for name in _FILES[:2])
            content = json.loads((folder / "study.json").read_text(encoding="utf-8"))
            study, guarantees = dict(content["study"]), tuple(content["guarantees"])
            if (folder / "run.json").is_file():
                study["times"] = json.loads((folder / "run.json").read_text(encoding="utf-8"))[
                    "times"
                ]
            examples = json.loads(gzip.decompress((folder / "examples.json.gz").read_bytes()))
        except (pl.exceptions.PolarsError, ValueError, KeyError, TypeError, EOFError) as error:
            raise FormatError(
                folder,
                f"its results cannot be read ({str(error).splitlines()[0]})",
                "Run the study again.",
            ) from error
        return cls(frame, outcomes, guarantees, examples, study)

    def to_polars(self) -> pl.DataFrame:
        """:attr:`frame`: one row per cell and metric."""
        return self.frame

    def to_pandas(self) -> pd.DataFrame:
        """:attr:`frame` as a pandas data frame, which may be changed.

        Raises
        ------
        MissingExtraError
            Without pandas.
        """
        return pandas_of(self.frame)

    @classmethod
    def from_frame(cls, frame: object, outcomes: object | None = None) -> Results:
        """Results from a data frame of their figures, such as a part of :meth:`to_polars`.

        Parameters
        ----------
        frame : polars, pandas or Arrow data frame
            Columns :data:`~gazeveil.evaluation.study.FRAME`.
        outcomes : data frame, optional
            Columns :data:`~gazeveil.evaluation.study.OUTCOMES`; without them nothing can be
            paired by person.

        Raises
        ------
        DataError
            In one sentence, for a missing column or one of another type.
        """
        owner = "Results.from_frame"
        figures = as_polars(owner, frame)
        if outcomes is None:
            return cls(figures)
        return cls(figures, as_polars(owner, outcomes))

    def front(self, utility: str | None = None, metric: str | None = None) -> FrontSeries:
        """Points of :func:`gazeveil.plot.front`: the strongest attacker of every release over one
        figure of a utility.

        Parameters
        ----------
        utility, metric : str, optional
            Which figure; default the first that a report draws.

        Raises
        ------
        ParameterError
            For a utility or a metric that these results do not have.
        DataError
            If there is none at all.
        """
        from gazeveil.evaluation.report.charts import front_series
        from gazeveil.evaluation.report.findings import Findings

        findings = Findings(self)
        known = list(dict.fromkeys((*findings.drawn_metrics, *findings.metrics)))
        known = [m for m in known if front_series(findings, *m).points]
        if not known:
            raise DataError(
                "These results have no utility and attacker of the same release, so there is no"
                " front to draw. Give evaluate() attacks and utilities."
            )
        chosen = known[0][0] if utility is None else utility
        checks.one_of("Results.front", "utility", chosen, {u for u, _ in known})
        metrics = [m for u, m in known if u == chosen]
        if metric is not None:
            checks.one_of("Results.front", "metric", metric, metrics)
        return front_series(findings, chosen, metrics[0] if metric is None else metric)

    def report(self, path: str | Path, with_raw: bool = False) -> Path:
        """Write the report: one HTML file that works offline, and its pictures as PNG; returns the
        HTML file.

        Parameters
        ----------
        path : path
            A folder, or the HTML file itself.
        with_raw : bool
            Show a raw trace and the names of people, on a page that is not sent on.
        """
        from gazeveil.evaluation.report.page import write_report

        return write_report(self, path, with_raw)


def frame_of(rows: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """Rows of :attr:`Results.frame` from mappings; missing columns are null, NaN becomes null."""
    return _frame(rows, FRAME)


def outcomes_of(rows: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """Rows of :attr:`Results.outcomes` from mappings; missing columns are
    null, NaN becomes null.
    """
    return _frame(rows, OUTCOMES)


def canonical(value: object) -> str:
    """JSON with sorted names and one form for every value, so that equal
    values have equal bytes.
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _of_release(
    frame: pl.DataFrame, release: Mapping[str, object], independent: tuple[str, ...]
) -> pl.DataFrame:
    """The rows about one release that count for its worst case."""
    keys = [c for c in ("cohort", *CELL[:4]) if c in frame.columns]
    own = frame.filter(*(pl.col(c).fill_null("") == (release[c] or "") for c in keys))
    if release["mechanism"] in independent:
        return own
    counted = own.filter(pl.col("scenario") != ONE_RELEASE)
    return counted if counted.height else own


def _against(
    worst: Mapping[str, Any], rates: pl.DataFrame, outcomes: pl.DataFrame, attack: str, pieces: bool
) -> dict[str, object]:
    """A row of :meth:`Results.strongest_against`; names of pieces were dealt by their attack."""
    from gazeveil.attacks.result import ERROR, chosen_on_others, share_result
    from gazeveil.evaluation.report.labels import attack_parts

    row = {c: worst[c] for c in AGAINST if c in worst and c != "p_value"}
    row |= {"strongest": worst["attack"], "tried": rates["attack"].n_unique()}
    credit, cells = _credit(outcomes)
    chosen = chosen_on_others(credit)
    if np.isfinite(chosen).any():
        rate = share_result(RATE, chosen.T)
        row |= {"chosen": rate.value, "chosen_low": rate.low, "chosen_high": rate.high}
        row |= _tested(rates, outcomes, cells, pieces)
    plain = [
        t
        for t in rates["attack"].unique().to_list()
        if attack_parts(t).plain and attack_parts(t).name == attack
    ]
    others = rates.filter(pl.col("attack").is_in(plain)).sort(
        "value", "attack", "scenario", descending=[True, False, False]
    )
    if others.height == 0:
        return row
    other = others.row(0, named=True)
    row |= {"other": other["attack"], "other_scenario": other["scenario"]}
    row |= {f"other_{c}": other[c] for c in ("value", "low", "high")}
    asked = cells.get((other["attack"], other["scenario"]))
    if asked is not None:
        row |= _difference("difference", chosen, credit[asked])
    same = {"attack": other["attack"], "scenario": other["scenario"]}
    alone = _tested(others.filter(**same), outcomes.filter(**same), cells, pieces).get("p_value")
    if row.get("p_value") is not None and alone is not None:
        row["called_safe"] = alone > ERROR >= row["p_value"]
    return row


def _tested(
    rates: pl.DataFrame, outcomes: pl.DataFrame, cells: Mapping[tuple[str, str], int], pieces: bool
) -> dict[str, float]:
    """`p_value` of all attackers together, and `guessed`."""
    from gazeveil.attacks.result import DealtNames, best_above

    if pieces:
        shares = outcomes.drop_nulls("value").group_by("attack", "scenario", "part")
        means = shares.agg(pl.col("value").mean()).partition_by("attack", "scenario")
        chance = float(rates["chance"].to_numpy().min())
        return {"p_value": best_above([m["value"].to_numpy() for m in means], chance)}
    asked = outcomes.drop_nulls("value")
    if asked.height == 0:
        return {}
    who = [cells[cell] for cell in asked.select("attack", "scenario").iter_rows()]
    repetition, part, value = (asked[c].to_list() for c in ("repetition", "part", "value"))
    said = asked["tied"].fill_null(asked["answer"]).fill_null("").to_list()
    dealt = DealtNames(who, repetition, part, [s.split(BETWEEN) if s else () for s in said], value)
    return {"p_value": dealt.p_value(), "guessed": dealt.guessed()}


def _credit(outcomes: pl.DataFrame) -> tuple[Floats, dict[tuple[str, str], int]]:
    """Credit as an array (attack and scenario, repetition, person), NaN for persons that were not
    probes. It comes with the index of each attack and scenario, in order of their names.
    """
    cells = outcomes.select("attack", "scenario").unique().sort("attack", "scenario").rows()
    place = {cell: i for i, cell in enumerate(cells)}
    repetitions, people = (
        {v: i for i, v in enumerate(outcomes[c].unique().sort().to_list())}
        for c in ("repetition", "part")
    )
    credit = np.full((len(place), len(repetitions), len(people)), np.nan)
    for a, s, r, p, v in outcomes.select(
        "attack", "scenario", "repetition", "part", "value"
    ).iter_rows():
        credit[place[a, s], repetitions[r], people[p]] = np.nan if v is None else v
    return credit, place


def _difference(name: str, first: Floats, second: Floats) -> dict[str, object]:
    """A paired difference over the people and repetitions both were asked about."""
    from gazeveil.attacks.result import paired_interval

    both = np.isfinite(first) & np.isfinite(second)
    if not both.any():
        return {}
    sides = (np.where(both, side, np.nan).T for side in (first, second))
    return dict(zip((name, f"{name}_low", f"{name}_high"), paired_interval(*sides), strict=True))


@contextmanager
def _whole(place: Path) -> Iterator[BinaryIO]:
    """Write a file that takes its name when it is whole. A reader meanwhile sees the older one,
    also after a crash.
    """
    waiting = place.with_name(f".{place.name}.part")
    with waiting.open("wb") as file:
        yield file
    waiting.replace(place)


def _frame(rows: Iterable[Mapping[str, object]], schema: dict[str, pl.DataType]) -> pl.DataFrame:
    listed = list(rows)
    for row in listed:
        checks.known_options("A row of results", row, schema)
    columns = {
        name: pl.Series(name, [row.get(name) for row in listed], dtype=kind)
        for name, kind in schema.items()
    }
    return pl.DataFrame(columns).with_columns(pl.col(pl.Float64).fill_nan(None))


def _as(name: str, frame: pl.DataFrame, schema: dict[str, pl.DataType]) -> pl.DataFrame:
    missing = [c for c in schema if c not in frame.columns]
    if missing:
        raise DataError(f"The {name} of Results has no column '{missing[0]}'.")
    for column, kind in schema.items():
        try:
            frame[column].cast(kind)
        except pl.exceptions.PolarsError as error:
            raise DataError(
                f"Column '{column}' of the {name} of Results must be {kind}. Got"
                f" {frame[column].dtype} instead."
            ) from error
    return frame.select(
        *(pl.col(c).cast(kind) for c, kind in schema.items()),
        *(c for c in frame.columns if c not in schema),
    )
