"""Plan of a publication: released data, cost, duration, dropped fields, and participants left out.

The feature table that is published, at a length that tells nothing of gaze.

How many events a recording has follows from gaze. So the length of a released table follows from
the public durations alone: a stated most of events a second, or the windows that fit. Rows beyond
it are cut, and a recording without any row is padded like all others: it must not be missing.

How long a publication takes, said before it begins: protection from a measurement on this
machine, the attack from what batteries took elsewhere.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from gazeveil.attacks.registry import NOBODY
from gazeveil.attacks.statistics import unwrapped
from gazeveil.compiled import is_kept
from gazeveil.errors import DataError, GazeveilError, ParameterError
from gazeveil.features import event_features, window_features
from gazeveil.features.measure import measure_events
from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Sphere
from gazeveil.gaze.recording import KEY_NAMES
from gazeveil.io.folder import EXPECTED
from gazeveil.io.parsing.table import printable
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.mechanism import Mechanism, PieceMechanism
from gazeveil.privacy.promise.sentence import UNIT_PHRASES, person_in_words, promise_in_words
from gazeveil.privacy.publication.alignment import Alignment, Look, aligned, public_alignment
from gazeveil.privacy.publication.certificate import per_person
from gazeveil.privacy.publication.names import PublicationChoices, people_table
from gazeveil.privacy.publication.outputs import check_piece_choices
from gazeveil.privacy.publication.protecting import channels_of
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.release.stop_sign import counted


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
    """Processor seconds that one part of the recordings takes, for all of them by their samples: a
    recording of middle length of streams, the shortest of the stimuli that most people saw of
    cohorts. None where the mechanism does not take a part.
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
            began = time.process_time()  # other work on the machine must not count
            made = mechanism.release(part).data
            for _ in made:  # recordings of a release of files are made when they are asked for
                pass
            took_s = time.process_time() - began
    except GazeveilError:
        return None
    return took_s * _samples(looks) / max(1, _samples(chosen))


def _samples(looks: Sequence[Look]) -> int:
    return sum(look.samples for look in looks)


#: Warning for pieces in which people who face different ways would exchange their paths.
_TURNED = (
    "people face different ways, so exchanged paths are far from where they looked (45 degrees in"
    " a test). Choose --preset public-vr."
)

#: How many names a sentence about what is left out has.
_SHOWN = 5


@dataclass(frozen=True)
class ReleasePlan:
    """Plan of a release.

    It holds the recordings, the look at each, and their alignment. `left_out` has sentences about
    recordings and participants left out; `lines` has headings with a sentence each. `named` is the
    text that sets the mechanism's length, where the user set none.
    """

    cohort: Cohort = field(repr=False)
    looks: tuple[Look, ...] = field(repr=False)
    alignment: Alignment = field(repr=False)
    left_out: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]
    mechanism: Mechanism[Any]
    named: str = ""


def plan_of(
    cohort: Cohort,
    looks: Sequence[Look],
    mechanism: Mechanism[Any],
    choices: PublicationChoices,
    battery: str,
    repetitions: int = 10,
    table: str = "events",
) -> ReleasePlan:
    """Plan a publication of raw recordings, all of which were looked at, by a mechanism of the kind
    stream, cohort, map or table, and an attack by a battery with so many draws.

    Raises
    ------
    DataError
        If no participant is left.
    ParameterError
        For a mechanism on tables of people, which every publication has anyway.
    """
    if mechanism.kind == "people":
        raise ParameterError(
            f"'{mechanism.name}' protects what is known about people, which is part of every"
            " publication: choose a mechanism for gaze, and k with --k.",
            name="mechanism",
            got=str(mechanism),
        )
    kept, left_out = _taking_part(cohort, looks, mechanism)
    seen = tuple(look for look in looks if look.key in set(kept.keys))
    if any(not math.isnan(look.rate_hz) for look in seen):
        alignment = public_alignment(seen, choices)
    else:
        alignment = Alignment(times_kept=True)  # fixations alone, of which no time is published
    mechanism, named = at_public_length(mechanism, alignment, table)
    pieces = isinstance(mechanism, PieceMechanism)
    if pieces:
        check_piece_choices(mechanism.name, choices)
    lines = [
        ("release", _what(kept, seen, mechanism, alignment, choices)),
        ("mechanism", str(mechanism)),
        *_cost(mechanism, seen, alignment, choices),
        *([("headsets", _TURNED)] if _is_turned(mechanism, seen) else []),
        ("dropped", _dropped(mechanism, choices)),
        ("people", _people(kept, mechanism, choices)),
        ("left out", " ".join(left_out) or "nothing."),
        *([] if mechanism.kind == "map" or pieces else [("lengths", _lengths(seen, alignment))]),
        ("time", time_in_words(kept, seen, mechanism, alignment, battery, repetitions)),
    ]
    return ReleasePlan(kept, seen, alignment, left_out, tuple(lines), mechanism, named)


def _taking_part(
    cohort: Cohort, looks: Sequence[Look], mechanism: Mechanism[Any]
) -> tuple[Cohort, tuple[str, ...]]:
    """The recordings that take part, and who does not."""
    said = _not_read(cohort)
    fixations = mechanism.kind in ("map", "table")
    empty = {
        look.key
        for look in looks
        if not (look.valid and not math.isnan(look.rate_hz)) and not (fixations and look.events)
    }
    items = [item for item in cohort.items if item.key not in empty]
    if empty:
        said.append(f"{counted(len(empty), 'recording')} without gaze or without a known rate.")
    people = {item.person for item in items}
    gone = sorted({look.key[0] for look in looks} - people)
    if gone:
        said.append(
            f"{counted(len(gone), 'person')} of whom nothing is left: {', '.join(gone[:5])}."
        )
    if not items:
        advice = (
            "They hold fixations alone: publish maps of them, e.g. -m heatmap-laplace:epsilon=2."
            if any(look.events for look in looks)
            else "Look at them with `gazeveil inspect`."
        )
        raise DataError(
            "No recording has samples of gaze and a known rate, so there is nothing to publish."
            f" {advice}"
        )
    said += _rare(items, mechanism)
    attributes = {p: a for p, a in cohort.people.items() if p in people}
    kept = Cohort(items, attributes, cohort.skipped, cohort.name, cohort.read_as)
    return kept, tuple(said)


def _not_read(cohort: Cohort) -> list[str]:
    """List the files that no reader took; an empty one may be a participant's only file."""
    files = [file for file in cohort.skipped if file.reason not in EXPECTED]
    if not files:
        return []
    shown = ", ".join(f"{Path(file.path).name} ({file.reason})" for file in files[:_SHOWN])
    more = f" and {len(files) - _SHOWN:,} more" if len(files) > _SHOWN else ""
    said = f"{counted(len(files), 'file')} of the folder: {shown}{more}."
    return [printable(said, len(said))]  # names of files hold anything


def _rare(items: Iterable[Any], mechanism: Mechanism[Any]) -> list[str]:
    """Stimuli that too few people saw to hide one among them; all of them are a reason to stop."""
    named = ((n, getattr(mechanism, n, None)) for n in ("k", "crowd"))
    word, least = next(((n, size) for n, size in named if isinstance(size, int)), ("", 0))
    if mechanism.kind not in ("cohort", "table") and word != "crowd":
        return []
    seen: dict[str, set[str]] = {}
    for item in items:
        seen.setdefault(item.stimulus, set()).add(item.person)
    everybody = len(set().union(*seen.values()))
    most = everybody if mechanism.kind == "table" else max(len(who) for who in seen.values())
    if most < least:
        raise DataError(
            f"{mechanism.name} hides each person among {word} = {least}, and"
            + (
                f" {counted(everybody, 'person')} took part."
                if everybody < least
                else f" no stimulus has more than {counted(most, 'viewer')}."
            )
            + " Nothing hides a person in a smaller crowd: choose noise, e.g. --preset"
            " public-samples, or publish with more people. Nothing was released."
        )
    rare = sorted(s for s, who in seen.items() if len(who) < least)
    if not rare or mechanism.kind == "table":
        return []
    shown = ", ".join(rare[:5]) + (" and others" if len(rare) > 5 else "")
    many = counted(len(rare), "stimulus")
    return [f"{many} that fewer than {word} = {least} people saw: {shown}."]


def _what(
    cohort: Cohort,
    looks: Sequence[Look],
    mechanism: Mechanism[Any],
    alignment: Alignment,
    choices: PublicationChoices,
) -> str:
    people, stimuli = len({k[0] for k in cohort.keys}), len(cohort.stimuli)
    of = f"{counted(people, 'person')}, {counted(stimuli, 'stimulus')}"
    recordings = counted(len(cohort), "recording")
    if mechanism.kind == "map":
        what = f"{counted(stimuli, 'stimulus')}, each of all its viewers"
        return f"heat maps of {what}, as {choices.to}"
    if isinstance(mechanism, PieceMechanism):
        return f"pieces of {recordings} of {of}, each under a name of its own, as {choices.to}"
    if mechanism.kind == "table":
        return f"a table of features of {recordings} of {of}, as {choices.to}"
    samples = sum(look.samples for look in looks)
    rate = "their own rates" if alignment.rate_hz is None else f"{float(alignment.rate_hz):g} Hz"
    return f"{recordings} of {of}, {samples:,} samples as recorded, at {rate}, as {choices.to}"


def _cost(
    mechanism: Mechanism[Any],
    looks: Sequence[Look],
    alignment: Alignment,
    choices: PublicationChoices,
) -> list[tuple[str, str]]:
    # Pieces promise at most what the readings promise of which they are made; gaps are not read.
    reader = getattr(mechanism, "reader", mechanism)
    promise = planned_promise(reader, looks, alignment, choices)
    if promise is None:
        claim = mechanism.claim
        detail = f" ({claim.detail})" if claim.detail else ""
        status = claim.status
        if status == "proved" and None in (getattr(mechanism, n, 0) for n in ("length", "seconds")):
            status = "claimed, since the length is derived from the data"
        kind = claim.definition.replace("-", " ")
        return [("promise", f"{kind} of {UNIT_PHRASES[claim.unit]}, {status}{detail}")]
    told = promise.to_dict()
    return [
        ("promise", promise_in_words(told, alignment.rate_hz)),
        (
            "per person" if reader is mechanism else "per person at most",
            person_in_words(per_person(promise), told, reader is not mechanism),
        ),
    ]


def _is_turned(mechanism: Mechanism[Any], looks: Sequence[Look]) -> bool:
    """Whether paths are exchanged among people in headsets."""
    return getattr(mechanism, "paths", "") in ("exchange", "stitch") and any(
        isinstance(look.space, Sphere) for look in looks
    )


def planned_promise(
    mechanism: Mechanism[Any],
    looks: Sequence[Look],
    alignment: Alignment,
    choices: PublicationChoices,
) -> Guarantee | None:
    """Return the promise for inspected recordings; None if only the protection determines it."""
    if not isinstance(mechanism, StreamMechanism):
        return None
    kept = channels_of(choices, mechanism.kind)
    shapes = []
    for look in looks:
        rate = look.rate_hz if alignment.rate_hz is None else float(alignment.rate_hz)
        own = alignment.lengths_s.get(look.key[1])
        seconds = look.duration_s + 1 / look.rate_hz if own is None else float(own)
        samples = max(1, math.ceil(round(seconds * rate, 6)))
        shapes.append((look.key[0], rate, alignment.public_space(look.space), samples))
    return mechanism.for_recordings(kept).joint_promise(shapes, kept, None)


def _dropped(mechanism: Mechanism[Any], choices: PublicationChoices) -> str:
    replaced = {
        "person": "names of people",
        "session": "names of sessions",
        "times": "times of the tracker",
    }
    if isinstance(mechanism, PieceMechanism):
        return (
            "names of people and of sessions: every piece has its own; times of the tracker,"
            " messages, labels, metadata, file names, devices"
        )
    fields = [words for name, words in replaced.items() if name not in choices.keep]
    dropped = "messages, labels, metadata, file names, devices"
    text = f"{', '.join(fields)} replaced; {dropped} dropped" if fields else f"{dropped} dropped"
    if choices.keep:
        text += f"; kept as they are, and not covered: {', '.join(choices.keep)}"
    return text


def _people(cohort: Cohort, mechanism: Mechanism[Any], choices: PublicationChoices) -> str:
    if mechanism.kind == "table":
        return "no table of people."
    if mechanism.kind != "stream":
        return "no table of people is released."
    table = people_table(cohort.people, choices)
    columns = list(dict.fromkeys(n for row in table.rows.values() for n in row))
    if not columns:
        return " ".join(("no table of people.", *table.notes))
    return " ".join(
        (f"a table with {', '.join(columns)} in groups of at least {choices.k}.", *table.notes)
    )


def _lengths(looks: Sequence[Look], alignment: Alignment) -> str:
    if not alignment.lengths_s:
        return "each recording keeps its own, which is not covered"
    cut = filled = 0
    for look in looks:
        public = alignment.lengths_s.get(look.key[1])
        if public is not None:
            own = look.duration_s + 1 / look.rate_hz
            cut += own > float(public) + 0.05
            filled += own < float(public) - 0.05
    lengths = sorted(float(d) for d in set(alignment.lengths_s.values()))
    span = f"{lengths[0]:g} s" if len(lengths) == 1 else f"{lengths[0]:g} to {lengths[-1]:g} s"
    own = len({look.key[1] for look in looks} - set(alignment.lengths_s))
    others = f"; recordings of {counted(own, 'stimulus')} keep their own" if own else ""
    changed = f"{counted(cut, 'recording')} cut, {filled} filled up"
    return f"one for each stimulus{' that was named' if own else ''}, {span}: {changed}{others}"


#: Fixations and saccades a second that a published table has room for: four of each. People make
#: about three.
MOST_EVENTS_HZ = 8

_WINDOW_S, _STEP_S = Fraction(30), Fraction(1, 2)


def at_public_length(
    mechanism: Mechanism[Any], alignment: Alignment, table: str
) -> tuple[Mechanism[Any], str]:
    """Set a missing length of a mechanism to the longest public duration.

    Return the mechanism and the text of that length. Return it unchanged, with no text, where it
    has a length or needs none.
    """
    name = next((n for n in ("length", "seconds") if getattr(mechanism, n, 0) is None), None)
    if name is None or mechanism.claim.status != "proved" or not alignment.lengths_s:
        return mechanism, ""
    seconds = max(alignment.lengths_s.values())
    public: Fraction | int = seconds
    if mechanism.kind == "table":
        windows = max(0, math.floor((seconds - _WINDOW_S) / _STEP_S)) + 1
        public = math.ceil(seconds * MOST_EVENTS_HZ) if table == "events" else windows
    named: dict[str, Any] = {name: public}
    return replace(mechanism, **named), f"{name}={public}"


def feature_table(cohort: Cohort, table: str, padded: bool) -> FeatureTable:
    """The table of events or windows of a cohort; where it is padded, recordings without a row have
    one in which nothing is measured.
    """
    made = event_features(cohort) if table == "events" else window_features(cohort)
    present = set(zip(*(made.keys[n].tolist() for n in KEY_NAMES), strict=True))
    missing = [key for key in cohort.keys if key not in present]
    if not padded or not missing or not len(made):
        return made
    person, stimulus, session, task = (
        np.append(made.keys[name], [key[place] for key in missing])
        for place, name in enumerate(KEY_NAMES)
    )
    index = np.append(made.keys.index, np.zeros(len(missing), dtype=np.int64))
    keys = Keys(person, stimulus, session, task, index)
    values = np.full((len(missing), len(made.columns)), np.nan)
    return replace(made, values=np.concatenate((made.values, values)), keys=keys)
