"""Verification: is this the person they say they are? Equal error rate and d-prime of a network on
people it was not trained on, by seconds of gaze, by people in the gallery, and by the age of the
template.

A person's template is the mean embedding of what was enrolled; a probe is a piece of another
recording, of a stated length. Every probe is compared with every template.

The card of a trained network: what it learnt from, how well it verifies people it never saw, and
how its file must be handled.

`ekyt`: the dense network of Eye Know You Too (Lohr and Komogortsev, IEEE T-BIOM 2022).

Trained on the gallery alone (closed set), or taken from `gazeveil train` (trained on other people).
Every window of a recording gets an embedding; a person is the mean over the windows of theirs, and
a score is the cosine of two such means. The rate is public: the lowest of all recordings, at most
`rate_hz`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.result import d_prime, eer
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import natural
from gazeveil.gaze.recording import Recording
from gazeveil.models.ekyt.weights import (
    HANDLING,
    MARKS,
    BatchPlan,
    EkytModel,
    load_ekyt,
    train_ekyt,
)
from gazeveil.models.ekyt.windows import CHANNELS, VelocityInput, WindowSet, common_rate_hz
from gazeveil.models.training import StepPlan, best_device


@dataclass(frozen=True)
class Verification:
    """How well people are told from others under one condition.

    Parameters
    ----------
    condition, value : str, float
        What is varied, and its value: `duration_s`, `gallery` (people), `sessions` between template
        and probe.
    eer, d_prime, rank1 : float
        Equal error rate, distance of genuine from impostor scores, and share of probes whose own
        template is the nearest.
    people, probes : int
        Enrolled, and pieces of recordings compared with all of them.
    """

    condition: str
    value: float
    eer: float
    d_prime: float
    rank1: float
    people: int
    probes: int

    def to_dict(self) -> dict[str, object]:
        """Plain values."""
        return asdict(self)


def enrolled_and_asked(windows: WindowSet) -> tuple[WindowSet, WindowSet]:
    """The first half of each person's recordings, to enrol, and the others, to ask about.

    Raises
    ------
    DataError
        Where fewer than two people have two recordings.
    """
    mine: dict[str, list[tuple[str, str, str, str]]] = {}
    for i in dict.fromkeys(windows.owner.tolist()):
        mine.setdefault(windows.keys[i][0], []).append(windows.keys[i])
    several = {p: sorted(keys, key=_age) for p, keys in mine.items() if len(keys) > 1}
    if len(several) < 2:
        raise DataError(
            "Verification needs at least two people with two usable recordings each, one to enrol"
            f" and one to ask about. Got {len(several)}."
        )
    first = {key for keys in several.values() for key in keys[: len(keys) // 2]}
    second = {key for keys in several.values() for key in keys[len(keys) // 2 :]}
    return windows.where(lambda k: k in first), windows.where(lambda k: k in second)


def _age(key: tuple[str, str, str, str]) -> tuple[object, ...]:
    return natural(key[2]), natural(key[1]), natural(key[3])


def verification_scores(
    model: EkytModel, enrolled: WindowSet, asked: WindowSet, duration_s: float
) -> Scores:
    """Cosines of pieces of `duration_s` seconds with templates of all people enrolled.

    Parameters
    ----------
    model : EkytModel
        Trained on other people.
    enrolled, asked : WindowSet
        Windows at every possible start, as :meth:`WindowSet.of` gives them.
    duration_s : float
        Seconds of a piece; at least one window.

    Raises
    ------
    DataError
        Where no recording is long enough.
    """
    window_s = model.setting.window_s
    if checks.positive("verification_scores", "duration_s", duration_s) < window_s:
        checks.refuse(
            "verification_scores", "duration_s", f"at least one window, {window_s:g} s", duration_s
        )
    count = int(duration_s / window_s + 1e-9)
    people = tuple(sorted(set(enrolled.persons)))
    known = enrolled.every(window_s / 2)
    templates, _ = model.means(known, known.persons, people)
    apart = asked.every(window_s)
    pieces = _pieces(apart, count)
    kept = np.array([name != "" for name in pieces], dtype=np.bool_)
    names = tuple(dict.fromkeys(name for name in pieces if name))
    if not names or not people:
        raise DataError(
            f"No recording holds {duration_s:g} s of windows that are known for more than half of"
            " their time. Ask for a shorter duration, or give longer recordings."
        )
    used = apart.only(kept)
    means, _ = model.means(used, [name for name in pieces if name], names)
    whose = dict(zip([n for n in pieces if n], used.persons, strict=True))
    return Scores(people, tuple(whose[name] for name in names), means @ templates.T)


def _pieces(windows: WindowSet, count: int) -> list[str]:
    """Name of the piece of each window: `count` windows of one recording in a row; those left over
    have no name.
    """
    owner = windows.owner
    result = []
    for i in np.unique(owner):
        own = int((owner == i).sum())
        result += [f"{i}/{w // count}" if w < own // count * count else "" for w in range(own)]
    return result


def verification(condition: str, value: float, scores: Scores) -> Verification:
    """The figures of one condition."""
    rank1 = float(scores.credit().mean())
    return Verification(
        condition, value, eer(scores), d_prime(scores), rank1, len(scores.known), len(scores.probes)
    )


def by_duration(
    model: EkytModel, windows: WindowSet, durations_s: Sequence[float]
) -> tuple[Verification, ...]:
    """Figures for each duration that the recordings are long enough for."""
    enrolled, asked = enrolled_and_asked(windows)
    result = []
    for duration_s in durations_s:
        try:
            scores = verification_scores(model, enrolled, asked, duration_s)
        except DataError:
            continue
        result.append(verification("duration_s", duration_s, scores))
    return tuple(result)


def by_gallery(
    scores: Scores, sizes: Sequence[int], seed: int, draws: int = 20
) -> tuple[Verification, ...]:
    """Figures among random galleries of each size, averaged over draws; larger sizes than there are
    people are left out.
    """
    rng = np.random.default_rng(seed)
    result = []
    for size in sizes:
        if not 2 <= size <= len(scores.known):
            continue
        drawn = []
        for _ in range(draws if size < len(scores.known) else 1):
            columns = np.sort(rng.permutation(len(scores.known))[:size])
            known = tuple(scores.known[i] for i in columns)
            rows = [i for i, p in enumerate(scores.probes) if p in set(known)]
            part = Scores(
                known, tuple(scores.probes[i] for i in rows), scores.values[rows][:, columns]
            )
            drawn.append(verification("gallery", size, part))
        mean = {
            n: float(np.mean([getattr(d, n) for d in drawn])) for n in ("eer", "d_prime", "rank1")
        }
        probes = round(float(np.mean([d.probes for d in drawn])))
        result.append(Verification("gallery", size, people=size, probes=probes, **mean))
    return tuple(result)


def by_age(model: EkytModel, windows: WindowSet, duration_s: float) -> tuple[Verification, ...]:
    """Figures by sessions between template (each person's first session) and probe; nothing where
    there is one session.
    """
    sessions = sorted({windows.keys[i][2] for i in np.unique(windows.owner)}, key=natural)
    if len(sessions) < 2:
        return ()
    enrolled = windows.where(lambda k: k[2] == sessions[0])
    result = []
    for age, session in enumerate(sessions[1:], 1):
        asked = windows.where(lambda k, s=session: k[2] == s)  # type: ignore[misc]
        known = set(enrolled.persons)
        asked = asked.where(lambda k, known=known: k[0] in known)  # type: ignore[misc]
        if len(asked.starts):
            scores = verification_scores(model, enrolled, asked, duration_s)
            result.append(verification("sessions", age, scores))
    return tuple(result)


_WORDS = {
    "duration_s": "seconds of gaze",
    "gallery": "people enrolled",
    "sessions": "sessions since enrolment",
}


@dataclass(frozen=True)
class ModelCard:
    """What is to be said of a network.

    Parameters
    ----------
    data : str
        What it was trained on, in words.
    recordings : int
        How many, those of held-out people included.
    people_trained, people_held_out : int
        No person is in both.
    channels, rate_hz, window_s
        Its input.
    steps, seed : int
        Of its training.
    last_loss : float
        Mean over the last tenth of the steps.
    version : str
        Of Gazeveil.
    verified : tuple of Verification
        Figures on held-out people; empty without held-out people.
    """

    data: str
    recordings: int
    people_trained: int
    people_held_out: int
    channels: str
    rate_hz: float
    window_s: float
    steps: int
    seed: int
    last_loss: float
    version: str
    verified: tuple[Verification, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            **asdict(self),
            "verified": [v.to_dict() for v in self.verified],
            "handling": f"{HANDLING} {MARKS}",
        }

    def markdown(self) -> str:
        """The card as a page."""
        facts = (
            ("network", "Eye Know You Too (Lohr and Komogortsev 2022), 128 numbers a window"),
            ("trained on", self.data),
            ("recordings", f"{self.recordings:,}"),
            ("people trained on", f"{self.people_trained:,}"),
            ("people held out", f"{self.people_held_out:,}, none of them trained on"),
            ("input", f"velocity of {self.channels} at {self.rate_hz:g} Hz, {self.window_s:g} s"),
            ("training", f"{self.steps:,} steps, seed {self.seed}, last loss {self.last_loss:.3f}"),
            ("made with", f"Gazeveil {self.version}"),
        )
        lines = ["# Card of a network that recognises people by gaze", "", "| | |", "|---|---|"]
        lines += [f"| {name} | {value} |" for name, value in facts]
        lines += ["", "## Handling", "", HANDLING, "", MARKS, "", "## People it never saw", ""]
        if not self.verified:
            lines.append("Nobody was held out, so nothing is known of other people.")
        else:
            lines += [
                "Equal error rate (EER), d-prime, and share of probes whose own template is the"
                " nearest.",
                "",
                "| by | | EER | d-prime | nearest | people | probes |",
                "|---|---|---|---|---|---|---|",
            ]
            lines += [
                f"| {_WORDS[v.condition]} | {v.value:g} | {100 * v.eer:.1f} % | {v.d_prime:.2f} |"
                f" {100 * v.rank1:.0f} % | {v.people} | {v.probes} |"
                for v in self.verified
            ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Ekyt(Attack):
    """A dense network on velocities of gaze (Eye Know You Too), trained on the gallery.

    Parameters
    ----------
    channels : {"gaze", "head", "gaze+head"}
        Whose velocities: gaze, head, or both.
    rate_hz : float
        Highest rate of the velocities; recordings of lower rates bring it down to the lowest.
    window_s : float
        Seconds of one window.
    steps : int
        Batches to train for.
    people, windows : int
        People in a batch, and windows of each.
    weights : str
        File of a network that `gazeveil train` wrote, used as it is; `none` trains on the gallery.
        People whose recordings the file marks as trained on are left out of a study.
    device : str
        As torch names it, or `auto` for a GPU where there is one.

    Examples
    --------
    >>> str(Ekyt(channels="gaze+head", steps=100))
    'ekyt:channels=gaze+head,steps=100'
    """

    name: ClassVar[str] = "ekyt"
    needs: ClassVar[tuple[str, ...]] = ("samples",)

    channels: str = "gaze"
    rate_hz: float = 125.0
    window_s: float = 5.0
    steps: int = 300
    people: int = 16
    windows: int = 8
    weights: str = "none"
    device: str = "auto"

    def check(self) -> None:
        """Signals, sizes, and a name of a file."""
        checks.one_of(self.name, "channels", self.channels, CHANNELS)
        self.store("rate_hz", checks.positive(self.name, "rate_hz", self.rate_hz))
        self.store("window_s", checks.positive(self.name, "window_s", self.window_s))
        checks.count(self.name, "steps", self.steps)
        checks.count(self.name, "people", self.people, least=2)
        checks.count(self.name, "windows", self.windows, least=2)
        for name in ("weights", "device"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name):
                checks.refuse(self.name, name, "text", getattr(self, name))

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        """Train on the gallery (or load), then compare mean embeddings.

        Raises
        ------
        DataError
            Without samples, without windows to learn from, or with people whom the weights were
            trained on.
        MissingExtraError
            Without torch.
        """
        device = best_device(self.device)
        if self.weights != "none":
            model = load_ekyt(self.weights, device)
            self._refuse_trained(model, gallery, probe)
            known = model.windows(_samples(gallery))
        else:
            both = (r for side in (gallery, probe) for r in _samples(side))
            rate_hz = common_rate_hz(both, self.rate_hz)
            setting = VelocityInput(rate_hz, self.window_s, self.channels)
            learnt = WindowSet.of(_samples(gallery), setting)
            model, _ = train_ekyt(
                learnt,
                StepPlan(self.steps, seed=seed),
                BatchPlan(self.people, self.windows),
                device,
            )
            known = learnt.every(self.window_s / 2)
        asked = model.windows(_samples(probe))
        return compare(model, known, asked, gallery.persons, probe.persons)

    def trained_on(self, raw: RecordingSet) -> frozenset[str]:
        """Who has a recording that the weights were trained on, as far as the file's marks tell."""
        if self.weights == "none" or raw.cohort is None:
            return frozenset()
        return load_ekyt(self.weights).marks.people(raw.cohort)

    def _refuse_trained(self, model: EkytModel, *sides: RecordingSet) -> None:
        """Weights may recognise people they were trained on better than others."""
        known = {p for s in sides if s.cohort is not None for p in model.marks.people(s.cohort)}
        if known:
            everybody = {p for s in sides for p in s.persons}
            raise DataError(
                f"The weights in {self.weights} were trained on {len(known)} of these"
                f" {len(everybody)} people and may recognise them better than others. Leave them"
                " out, or train weights on others."
            )


def compare(
    model: EkytModel,
    known: WindowSet,
    asked: WindowSet,
    people: tuple[str, ...],
    probes: tuple[str, ...],
) -> Scores:
    """Cosines between the mean embeddings of people.

    A gallery person without a window ranks last for every probe. A probe without a window has a row
    of zeros.

    Raises
    ------
    DataError
        If no person of the gallery has a window.
    """
    templates, known_there = model.means(known, known.persons, people)
    if not known_there.any():
        raise DataError(
            f"No recording of the gallery has a window of {model.setting.window_s:g} s of which"
            " more than half is known. Give longer recordings with fewer lost samples."
        )
    asked_means, asked_there = model.means(asked, asked.persons, probes)
    values = asked_means @ templates.T
    values[:, ~known_there] = -1.0
    values[~asked_there] = 0.0
    return Scores(people, probes, values)


def _samples(side: RecordingSet) -> Iterator[Recording]:
    if side.cohort is None:
        raise DataError(
            "The ekyt attacker looks at samples, and this release holds tables only. Use an"
            " attacker of tables, such as linkage or rbfn."
        )
    return iter(side.cohort)
