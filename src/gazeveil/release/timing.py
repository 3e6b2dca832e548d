"""How long a publication takes, said before it begins: protection from a measurement on this
machine, the attack from what batteries took elsewhere.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gazeveil.attacks.registry import NOBODY
from gazeveil.attacks.statistics import unwrapped
from gazeveil.compiled import is_kept
from gazeveil.errors import GazeveilError
from gazeveil.features.measure import measure_events
from gazeveil.gaze.cohort import Cohort
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.publication.alignment import Alignment, Look, aligned


@dataclass(frozen=True)
class Span:
    """A time that is known roughly.

    Parameters
    ----------
    least_s, most_s : float
        Seconds between which it lies.
    """

    least_s: float
    most_s: float

    def __str__(self) -> str:
        """In seconds, minutes or hours, as its longer end asks for."""
        unit, word = next(u for u in _UNITS if self.most_s < u[2])[:2]
        least, most = (max(1, round(s / unit)) for s in (self.least_s, self.most_s))
        return f"{most} {word}" if least == most else f"{least} to {most} {word}"


_UNITS = ((1, "s", 100.0), (60, "minutes", 6000.0), (3600, "hours", float("inf")))


@dataclass(frozen=True)
class BatteryCost:
    """What one draw of split and noise took of a battery.

    Parameters
    ----------
    fixed_s : Span
        Processor seconds whatever the recordings are: processes begin, kernels are loaded.
    million_s : Span
        Processor seconds for a million samples: from simulated people to GazeCom.
    releases : tuple of int
        Releases that it makes of all recordings: fewest and most, white-box attackers among them.
    """

    fixed_s: Span
    million_s: Span
    releases: tuple[int, int]


#: From `docs/results/growth.md` (200 and 1,000 people: cost grows with the number of samples alone)
#: and from publications of GazeCom, on cores of servers, fast ones and slow or busy ones.
BATTERY_COSTS: Mapping[str, BatteryCost] = MappingProxyType(
    {
        "quick": BatteryCost(Span(1, 5), Span(6, 18), (2, 2)),
        "strong": BatteryCost(Span(2, 10), Span(13, 50), (2, 6)),
    }
)

_FIRST_TIME = "; the first time on this machine half a minute to two more, for compiling"


def attack_span(battery: str, samples: int, repetitions: int, protect_s: float) -> Span:
    """Processor seconds of an attack.

    Parameters
    ----------
    battery : str
        A key of :data:`BATTERY_COSTS`.
    samples : int
        Of all recordings.
    repetitions : int
        Draws of split and noise.
    protect_s : float
        Processor seconds that one release of all recordings takes.

    Examples
    --------
    >>> print(attack_span("strong", 1_178_126, 3, 2.0))
    1 to 4 minutes
    """
    cost = BATTERY_COSTS[battery]
    fewest, most = cost.releases
    millions = samples / 1e6
    return Span(
        repetitions * (cost.fixed_s.least_s + cost.million_s.least_s * millions)
        + repetitions * fewest * protect_s,
        repetitions * (cost.fixed_s.most_s + cost.million_s.most_s * millions)
        + repetitions * most * protect_s,
    )


def time_in_words(
    cohort: Cohort,
    looks: Sequence[Look],
    mechanism: Mechanism[Any],
    alignment: Alignment,
    battery: str,
    repetitions: int,
) -> str:
    """How long protection and attack will take, as a plan says it."""
    total_s = _protection_s(cohort, looks, mechanism, alignment)
    samples = _samples(looks)
    attack = attack_in_words(mechanism, battery, samples, repetitions, total_s)
    if total_s is None:
        return f"not known before a first run for {mechanism.name}; {attack}"
    return f"about {Span(total_s, total_s)} to protect with one process; {attack}"


def attack_in_words(
    mechanism: Mechanism[Any], battery: str, samples: int, repetitions: int, protect_s: float | None
) -> str:
    """Who attacks, and how long that will take."""
    if battery == NOBODY:
        return "nobody attacks"
    if mechanism.kind == "map":
        return "nobody attacks maps, which hold no recording of a single person"
    # Releases of tables have no samples, so the attackers of the quick battery are most of those
    # that are left.
    known = "quick" if mechanism.kind == "table" else battery
    who = f"then the {battery} battery attacks"
    at_least = known not in BATTERY_COSTS
    # What the mechanism needs was compiled to take its time; attackers do not run in a plan, and
    # every battery measures events.
    kernels: tuple[Callable[..., Any], ...] = (measure_events, unwrapped)
    first = "" if all(is_kept(kernel) for kernel in kernels) else _FIRST_TIME
    span = attack_span("strong" if at_least else known, samples, repetitions, protect_s or 0.0)
    if at_least:
        return f"{who}, for longer than the strong one, which takes {span} of processor time{first}"
    cores = os.cpu_count() or 1
    shared = Span(span.least_s / cores, span.most_s / cores)
    return f"{who}: {span} of processor time, {shared} on {cores} free cores{first}"


def _protection_s(
    cohort: Cohort, looks: Sequence[Look], mechanism: Mechanism[Any], alignment: Alignment
) -> float | None:
    """Seconds that one part of the recordings takes, for all of them by their samples: a recording
    of middle length of streams, the shortest of the stimuli that most people saw of cohorts. None
    where the mechanism does not take a part.
    """
    if mechanism.kind == "stream":
        chosen = [sorted(looks, key=lambda look: look.samples)[len(looks) // 2]]
    elif mechanism.kind == "cohort":
        seen: dict[str, list[Look]] = {}
        for look in looks:
            seen.setdefault(look.key[1], []).append(look)
        chosen = min(seen.values(), key=lambda s: (-len({v.key[0] for v in s}), _samples(s)))
    else:
        return None
    keys = {look.key for look in chosen}
    items = [item for item in cohort.items if item.key in keys]
    part = aligned(Cohort(items, cohort.people), alignment).load()
    try:
        for _ in range(2):  # the first run compiles
            began = time.perf_counter()
            made = mechanism.release(part).data
            for _ in made:  # recordings of a release of files are made when they are asked for
                pass
            took_s = time.perf_counter() - began
    except GazeveilError:
        return None
    return took_s * _samples(looks) / max(1, _samples(chosen))


def _samples(looks: Sequence[Look]) -> int:
    return sum(look.samples for look in looks)
