"""Findings of a study, as plain values shared by words, pictures and tables: releases, their worst
case, their utilities.

A *release* here is one mechanism with one setting (and, where a study asks for it, with events
carried along). Its worst case is the attack and the scenario that find the most people. The
scenario `release/release` (one release split afterwards) counts only where there is no other or the
parts have noise of their own: noise that is common to both parts can itself identify people, so it
says little about the mechanism.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import polars as pl

from gazeveil.attacks.result import ERROR
from gazeveil.evaluation.report.labels import attack_parts, mechanism_label, share
from gazeveil.evaluation.study import CELL, NONE, ONE_RELEASE, RATE, mechanism_text
from gazeveil.plot.paths import SERIES
from gazeveil.utility.base import NO_FIXATION

if TYPE_CHECKING:
    from gazeveil.evaluation.results import Results

#: (mechanism, reading, parameters, events).
Key: TypeAlias = tuple[str, str, str, str]

#: Of several scenarios that measured one utility, the first of these is drawn.
_PREFERRED = ("private/private", "raw/private", "private/raw", "release/release", "raw/raw")

_NUMBERS = ("value", "low", "high", "chance")


@dataclass(frozen=True)
class Rate:
    """How many people one attack found in one cell, deciding about each alone, and how many
    (`matched`) where it names everybody at once, each once; rates are fractions of 1.
    """

    attack: str
    scenario: str
    value: float
    low: float
    high: float
    n: int
    chance: float
    p_value: float
    matched: float = math.nan

    @property
    def found(self) -> int:
        """People found, rounded."""
        return math.floor(self.value * self.n + 0.5)

    @property
    def people(self) -> str:
        """People found, in words."""
        return share(self.value, self.n)


@dataclass(frozen=True)
class Measure:
    """One figure of one utility on one release."""

    utility: str
    metric: str
    scenario: str
    value: float
    low: float
    high: float
    chance: float
    better: str
    note: str = ""

    @property
    def without_fixations(self) -> bool:
        """Whether it compares a map with an even one, because no fixation was found."""
        return NO_FIXATION in self.note


@dataclass(frozen=True)
class ReleaseFindings:
    """One mechanism with one setting, its attacks and its utilities.

    Parameters
    ----------
    number : int
        Its number in every picture and table; the baseline has 0.
    key : tuple of str
        (mechanism, reading, parameters, events).
    label : str
        As a reader calls it.
    colour : str
        Its ink.
    rates : tuple of Rate
        All attacks in all scenarios, strongest first.
    measures : tuple of Measure
        All utilities; of several scenarios the preferred one.
    guarantee : dict
        Its promise; empty where there is none to quote.
    battery : str
        Who was tried, in words; empty where the study does not say.
    independent : bool
        Whether two parts of one release have noise of their own.
    headline : mapping
        Its row of :meth:`gazeveil.evaluation.results.Results.strongest_against`; empty where it was
        not attacked.
    """

    number: int
    key: Key
    label: str
    colour: str
    rates: tuple[Rate, ...]
    measures: tuple[Measure, ...]
    guarantee: Mapping[str, str]
    battery: str = ""
    independent: bool = False
    headline: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tried(self) -> int:
        """How many attackers were tried on it."""
        return len({r.attack for r in self.rates})

    @property
    def strongest(self) -> str:
        """The words for its worst case: of how many attackers, of which battery."""
        return strongest_of(str(self.tried), self.battery)

    @cached_property
    def shown(self) -> Rate | None:
        """The rate that stands over the release: of the attacker chosen on the other repetitions,
        with the battery's p; of the best of all, without a p, where there is one repetition.
        """
        if self.worst is None:
            return None
        if self.headline.get("chosen") is None:
            return replace(self.worst, p_value=math.nan)
        names = ("chosen", "chosen_low", "chosen_high", "p_value")
        value, low, high, p_value = (number_of(self.headline[name]) for name in names)
        return replace(self.worst, value=value, low=low, high=high, p_value=p_value)

    @property
    def recognised(self) -> bool:
        """Whether the battery does better than chance."""
        return self.shown is not None and self.shown.p_value <= ERROR

    @property
    def undecided(self) -> bool:
        """Whether there is no verdict: one repetition, or answers that are not known."""
        return self.shown is None or math.isnan(self.shown.p_value)

    @property
    def fewest(self) -> int | None:
        """The fewest people of whom recognition can be told from guessing, which may be more than
        there are; None where it is not known.
        """
        guessed = self.headline.get("guessed")
        if guessed is None or self.shown is None:
            return None
        return math.floor(guessed * self.shown.n + 1e-9) + 1

    @property
    def text(self) -> str:
        """The mechanism's full text, as guarantees and examples have it."""
        return mechanism_text(*self.key[:3])

    @property
    def baseline(self) -> bool:
        """Whether this is the unprotected data."""
        return self.key[0] == NONE

    def counted(self, rates: Iterable[Rate]) -> list[Rate]:
        """Those of the rates that count for a worst case."""
        listed = list(rates)
        return [r for r in listed if self.independent or r.scenario != ONE_RELEASE] or listed

    @cached_property
    def worst(self) -> Rate | None:
        """The strongest attack, over scenarios and attackers; of equal ones the first by name."""
        return min(
            self.counted(self.rates), key=lambda r: (-r.value, r.attack, r.scenario), default=None
        )

    @cached_property
    def rbfn(self) -> Rate | None:
        """The papers' own attacker at its best: the RBF network as it is, without retraining and
        without a denoiser.
        """
        return min(
            self.counted(
                r
                for r in self.rates
                if attack_parts(r.attack).plain and attack_parts(r.attack).name == "rbfn"
            ),
            key=lambda r: -r.value,
            default=None,
        )

    @property
    def missed_by_rbfn(self) -> bool:
        """Whether the RBF network alone would have called this release safe and the battery shows
        that it is not.
        """
        return not self.baseline and bool(self.headline.get("called_safe"))

    @property
    def allowed(self) -> float:
        """The share of people its promise lets an attacker find who knows nothing else: 1/k of
        k-anonymity; NaN where it promises no such thing.
        """
        k = re.search(r"(?:^|,)k=(\d+)(?:,|$)", self.key[2])
        anonymous = (
            self.guarantee.get("definition") == "k-anonymity"
            and self.guarantee.get("status") == "proved"
        )
        return (
            1 / int(k.group(1)) if anonymous and k is not None and int(k.group(1)) > 0 else math.nan
        )

    def measure(self, utility: str, metric: str) -> Measure | None:
        """One utility figure, or None."""
        return next((m for m in self.measures if (m.utility, m.metric) == (utility, metric)), None)


@dataclass(frozen=True)
class Difference:
    """An attacker with a denoiser or with knowledge of the mechanism, against the same one
    without, in one cell; people are the unit.
    """

    release: ReleaseFindings
    scenario: str
    attack: str
    frozen: str
    rate: float
    frozen_rate: float
    difference: float
    low: float
    high: float
    n: int


Finding = TypeVar("Finding", Rate, Measure)


class Findings:
    """Results, taken apart for a reader.

    Parameters
    ----------
    results : Results
        From a study.
    """

    def __init__(self, results: Results) -> None:
        self.results = results
        self.study = results.study

    @cached_property
    def releases(self) -> tuple[ReleaseFindings, ...]:
        """All releases, the baseline first, then by mechanism, reading and parameters (numbers in
        numeric order).
        """
        frame = self.results.frame
        keys: list[Key] = [
            tuple(v or "" for v in row)  # type: ignore[misc]
            for row in frame.select(CELL[:4]).unique().rows()
        ]
        keys.sort(key=_order)
        promises = {g.get("mechanism", ""): g for g in self.results.guarantees}
        attacked, used = _by_key(_rates(frame)), _by_key(_measures(frame))
        compared = {release_key(r): r for r in self.results.strongest_against().to_dicts()}
        names = list(dict.fromkeys(k[0] for k in keys if k[0] != NONE))
        several_events = len({k[3] for k in keys if k[3] and k[0] != NONE}) > 1
        releases = []
        # The baseline may stand once per way of finding events; only one of them is the baseline.
        numbers = iter(range(1, len(keys) + 1))
        for key in keys:
            baseline = key[0] == NONE
            releases.append(
                ReleaseFindings(
                    0 if baseline else next(numbers),
                    key,
                    mechanism_label(*key[:3])
                    + (f", labels {key[3]}" if several_events and key[3] == "carried" else ""),
                    "ink" if baseline else SERIES[names.index(key[0]) % len(SERIES)],
                    tuple(
                        sorted(
                            attacked.get(key, []), key=lambda r: (-r.value, r.attack, r.scenario)
                        )
                    ),
                    tuple(_preferred(used.get(key, []))),
                    promises.get(mechanism_text(*key[:3]), {}),
                    self.battery,
                    key[0] in self.results.independent,
                    compared.get(key, {}),
                )
            )
        return tuple(releases)

    @property
    def battery(self) -> str:
        """Who was tried, in words; empty where the study does not say."""
        return str(self.study.get("battery") or "")

    @property
    def strongest(self) -> str:
        """The words for the worst case of all releases together."""
        counts = sorted({r.tried for r in self.attacked})
        some = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(*counts[:1])
        return strongest_of(some, self.battery)

    @cached_property
    def baseline(self) -> ReleaseFindings | None:
        """The unprotected data, or None where it could not be measured."""
        return next((r for r in self.releases if r.baseline and r.worst is not None), None)

    @property
    def raw(self) -> ReleaseFindings | None:
        """The unprotected data, attacked or not."""
        return next((r for r in self.releases if r.baseline), None)

    @property
    def protected(self) -> tuple[ReleaseFindings, ...]:
        """All releases but the baseline."""
        return tuple(r for r in self.releases if not r.baseline)

    @cached_property
    def attacked(self) -> tuple[ReleaseFindings, ...]:
        """All releases with at least one attack."""
        return tuple(r for r in self.releases if r.worst is not None)

    @cached_property
    def metrics(self) -> tuple[tuple[str, str], ...]:
        """(utility, metric) of every utility figure, in order of appearance."""
        return tuple(
            dict.fromkeys((m.utility, m.metric) for r in self.releases for m in r.measures)
        )

    @cached_property
    def drawn_metrics(self) -> tuple[tuple[str, str], ...]:
        """Of each utility the first figure, up to eight; of a single utility up to four. Only those
        measured on two releases or more.
        """
        measured = [m for r in self.attacked for m in r.measures if math.isfinite(m.value)]
        times = Counter((m.utility, m.metric) for m in measured)
        usable = [m for m in self.metrics if times[m] > 1]
        firsts = list({u: (u, m) for u, m in reversed(usable)}.values())[::-1]
        return tuple(firsts[:8] if len(firsts) > 1 else usable[:4])

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Every retrained or denoising attacker against its frozen self, in every cell both
        attacked.
        """
        rates = self.results.outcomes.filter(
            (pl.col("metric") == RATE) & pl.col("attack").is_not_null()
        )
        known = set(rates["attack"].unique().to_list())
        by_key = {r.key: r for r in self.releases}
        differences = []
        for attack in sorted(known):
            parts = attack_parts(attack)
            if parts.plain or parts.frozen not in known:
                continue
            for row in self.results.paired(attack, parts.frozen).iter_rows(named=True):
                release = by_key.get(release_key(row))
                # On raw recordings there is no mechanism to know and nothing to average.
                if release is not None and not (
                    release.baseline and "denoiser" not in parts.stronger
                ):
                    low, high = number_of(row["low"]), number_of(row["high"])
                    names = row["scenario"], attack, parts.frozen
                    numbers = row["first"], row["second"], row["difference"], low, high, row["n"]
                    differences.append(Difference(release, *names, *numbers))
        return tuple(sorted(differences, key=lambda d: (d.release.number, d.scenario, d.attack)))

    def answers(self, release: ReleaseFindings, rate: Rate) -> pl.DataFrame:
        """Whom an attack named, person by person: columns part, value, answer, beaten_by,
        repetition.
        """
        wanted = dict(zip(CELL, (*release.key, rate.scenario), strict=True)) | {
            "attack": rate.attack,
            "metric": RATE,
        }
        return self.results.outcomes.filter(
            *(pl.col(c).fill_null("") == v for c, v in wanted.items())
        ).select("repetition", "part", "value", "answer", "beaten_by")


def _order(key: Key) -> tuple[object, ...]:
    mechanism, reading, parameters, events = key
    # Numbers inside the text sort as numbers: k=2 before k=10.
    pieces = tuple(
        (0, float(p), "") if re.fullmatch(r"\d+(?:\.\d+)?", p) else (1, 0.0, p)
        for p in re.split(r"(\d+(?:\.\d+)?)", parameters)
        if p
    )
    return mechanism != NONE, mechanism, reading, pieces, events != "redetected", events


def _by_key(rows: Iterable[tuple[Key, Finding]]) -> dict[Key, list[Finding]]:
    groups: dict[Key, list[Finding]] = {}
    for key, value in rows:
        groups.setdefault(key, []).append(value)
    return groups


def _rates(frame: pl.DataFrame) -> Iterable[tuple[Key, Rate]]:
    wanted = frame.filter(
        (pl.col("metric") == RATE) & pl.col("attack").is_not_null() & pl.col("value").is_not_null()
    )
    matched = {
        (release_key(row), row["scenario"], row["attack"]): number_of(row["value"])
        for row in frame.filter(pl.col("metric") == "matching_rate").iter_rows(named=True)
    }
    for row in wanted.iter_rows(named=True):
        key, scenario, n = release_key(row), row["scenario"] or "", row["n"] or 0
        value, low, high, chance, p = (number_of(row[c]) for c in (*_NUMBERS, "p_value"))
        together = matched.get((key, row["scenario"], row["attack"]), math.nan)
        yield key, Rate(row["attack"], scenario, value, low, high, n, chance, p, together)


def _measures(frame: pl.DataFrame) -> Iterable[tuple[Key, Measure]]:
    for row in frame.filter(pl.col("utility").is_not_null()).iter_rows(named=True):
        names = row["utility"], row["metric"] or "", row["scenario"] or ""
        value, low, high, chance = (number_of(row[c]) for c in _NUMBERS)
        better = row["better"] or "lower"
        note = str(row.get("note") or "")
        yield release_key(row), Measure(*names, value, low, high, chance, better, note)


def release_key(row: Mapping[str, object]) -> Key:
    """Which release a row of results is about."""
    mechanism, reading, parameters, events = (str(row[c] or "") for c in CELL[:4])
    return mechanism, reading, parameters, events


def _preferred(measures: list[Measure]) -> Iterable[Measure]:
    rank = {s: i for i, s in enumerate(_PREFERRED)}
    chosen: dict[tuple[str, str], Measure] = {}
    for m in sorted(measures, key=lambda m: rank.get(m.scenario, len(rank))):
        chosen.setdefault((m.utility, m.metric), m)
    # In the order the results have them.
    wanted = set(map(id, chosen.values()))
    return [m for m in measures if id(m) in wanted]


def strongest_of(count: str, battery: str) -> str:
    """What a strongest attacker is the strongest of.

    Examples
    --------
    >>> strongest_of("7", "strong battery"), strongest_of("1", "")
    ('strongest of 7 attackers (strong battery)', 'only attacker tried')
    """
    words = "only attacker tried" if count == "1" else f"strongest of {count} attackers"
    return words + (f" ({battery})" if battery else "")


def number_of(value: object) -> float:
    """A number of a table; NaN where there is none."""
    return float(value) if isinstance(value, int | float) else math.nan
