"""`relink`: names for all pieces of a release at once, with pieces joined again.

Names that do not last keep evidence from adding up. This attacker adds it up all the same: it joins
pieces by place and by style (:mod:`gazeveil.attacks.pieces.joining`), knows that each viewer has
one piece in a window, and infers all names together
(:mod:`gazeveil.attacks.pieces.joining`). How far to trust the links is chosen on pieces of
the gallery whose stimulus was held out, so that joining counts only where it helps. Pieces of
different stimuli show no place to join by; what their style says is in their scores already.

How many pieces of neighbouring windows can be joined rightly: a figure of the release itself.

How much each piece looks like each person, and the same of pieces that were held out.

All kinds of evidence of `fusion` judge each piece. Stimuli of the gallery are held out in turn, so
that every piece of it is judged by who never saw its stimulus: with one decision per piece, as it
will be in the probe. By these the kinds are weighed and the scale of the sum is set, so that a row
of it is the logarithm of probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.base import Attack, InferenceAttack, Scores, standardised_scores
from gazeveil.attacks.evidence import Matcher, fusion_weights, remembered
from gazeveil.attacks.identify.fusion import match, match_kind, match_steps
from gazeveil.attacks.pieces.joining import (
    JOINED_BY,
    REACH,
    JoiningModel,
    Pieces,
    gather_pieces,
    joined_pairs,
    learn_joining,
    matched_along,
    soft_matching,
)
from gazeveil.attacks.pieces.sides import named_pieces, renamed
from gazeveil.attacks.result import AttackResult, InferenceResult, people_interval
from gazeveil.attacks.vectors.convolutions import KINDS as CONVOLUTIONS
from gazeveil.attacks.vectors.convolutions import convolution_vectors
from gazeveil.attacks.vectors.kinds import recording_vectors
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet
from gazeveil.features.recordings import RecordingVectors
from gazeveil.gaze.recording import RecordingKey

#: Parts into which stimuli of the gallery are dealt, and most people on whom anything is weighed.
PARTS, MOST_PEOPLE = 4, 60

# A candidate that is not eligible scores far below all others.
_NOBODY = -10.0

#: Factors of the scale that are tried.
_SCALES = np.geomspace(0.02, 5.0, 60)

_Vectors = tuple[RecordingVectors, RecordingVectors]
_Kind = tuple[Callable[[], _Vectors], Matcher]


@dataclass(frozen=True, eq=False)
class PieceScores:
    """Scores of pieces, as logarithms of probabilities up to a constant of each row.

    Parameters
    ----------
    known : tuple of str
        The people of the gallery, sorted.
    probe : mapping of key to array of float64, shape (people,)
        Of every piece of the probe.
    held_out : mapping of key to array of float64, shape (people,)
        Of pieces of the gallery, each judged without its stimulus; empty where the gallery has one
        stimulus or fewer than three people.
    """

    known: tuple[str, ...]
    probe: dict[RecordingKey, Floats]
    held_out: dict[RecordingKey, Floats]


def piece_scores(gallery: RecordingSet, probe: RecordingSet) -> PieceScores:
    """Judge the pieces of a probe, under names of pieces, and those of its gallery, under names of
    people.

    Raises
    ------
    DataError
        If no kind of evidence can judge.
    """
    return remembered(gallery, probe, "pieces", lambda: _piece_scores(gallery, probe))


def _piece_scores(gallery: RecordingSet, probe: RecordingSet) -> PieceScores:
    known = gallery.persons
    asked: list[Floats] = []
    tried: list[Floats] = []
    some, own = _weighed_on(gallery, known)
    for vectors, matcher in _kinds(gallery, probe):
        try:
            learnt, unknown = vectors()
            asked.append(_rows(matcher(learnt, unknown), known, probe.keys))
        except DataError:
            # A release may leave no events, or pieces that are too short: then the others judge.
            continue
        tried.append(_held_out(learnt.where(some), gallery, matcher, known))
    if not asked:
        raise DataError("Nothing in the pieces can be judged: no feature is known on both sides.")
    keys = [gallery.keys[i] for i in some.tolist()]
    if not len(keys):
        total = np.mean(asked, axis=0)
        return PieceScores(known, dict(zip(probe.keys, total, strict=True)), {})
    weights = fusion_weights(tried, own)
    total, held = (np.tensordot(weights, np.stack(part), axes=1) for part in (asked, tried))
    scale = _scale(held, own)
    return PieceScores(
        known,
        dict(zip(probe.keys, scale * total, strict=True)),
        dict(zip(keys, scale * held, strict=True)),
    )


def _kinds(gallery: RecordingSet, probe: RecordingSet) -> list[_Kind]:
    """Vectors of both sides, made on first use, with what judges them."""

    def vectors(features: str) -> Callable[[], _Vectors]:
        return lambda: (recording_vectors(gallery, features), recording_vectors(probe, features))

    def convolved(kind: str) -> Callable[[], _Vectors]:
        return lambda: convolution_vectors(gallery, probe, kind)

    return [
        (vectors("steps"), match_steps),
        *((convolved(kind), match_kind) for kind in CONVOLUTIONS),
        *((vectors(f), match) for f in ("summary", "extended", "trajectory")),
    ]


def _weighed_on(gallery: RecordingSet, known: tuple[str, ...]) -> tuple[Ints, Ints]:
    """Places of the pieces of the gallery on which evidence is weighed, and whose they are."""
    at = {person: i for i, person in enumerate(known)}
    stimuli = {w.stimulus for w in (gallery.piece_windows or {}).values()}
    if len(stimuli) < 2 or len(known) < 3:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    whose = np.array([at[key[0]] for key in gallery.keys], dtype=np.int64)
    some = np.flatnonzero(whose < MOST_PEOPLE)
    return some, whose[some]


def _held_out(
    vectors: RecordingVectors, gallery: RecordingSet, matcher: Matcher, known: tuple[str, ...]
) -> Floats:
    """Standardised scores of pieces, each judged without its stimulus; zeros where nothing can."""
    windows = gallery.piece_windows or {}
    stimuli = np.array([windows[key].stimulus for key in vectors.keys], dtype=np.str_)
    part = np.unique(stimuli, return_inverse=True)[1] % PARTS
    out = np.zeros((len(vectors.keys), len(known)))
    for k in np.unique(part):
        rows = np.flatnonzero(part == k)
        unknown = vectors.where(rows)
        # One name for each piece, as in the probe.
        names = tuple((f"{i:09}", *key[1:]) for i, key in zip(rows, unknown.keys, strict=True))
        unknown = RecordingVectors(names, unknown.values, unknown.columns, unknown.blocks)
        try:
            found = matcher(vectors.where(np.flatnonzero(part != k)), unknown)
        except DataError:
            continue
        out[rows] = _rows(found, known, names)
    return out


def _rows(scores: Scores, known: tuple[str, ...], keys: tuple[RecordingKey, ...]) -> Floats:
    """Standardised scores of pieces against all known people, in the order of the keys."""
    place = {name: i for i, name in enumerate(scores.probes)}
    at = {person: i for i, person in enumerate(known)}
    rows = np.full((len(keys), len(known)), _NOBODY)
    values = standardised_scores(scores.values)
    rows[:, [at[p] for p in scores.known]] = values[[place[key[0]] for key in keys]]
    return rows


def _scale(rows: Floats, own: Ints) -> float:
    """The factor under which the rows are the logarithms of probabilities that fit best."""
    right = rows[np.arange(len(own)), own]
    top = rows.max(axis=1)

    def fit(factor: float) -> float:
        whole = np.log(np.exp(factor * (rows - top[:, None])).sum(axis=1)) + factor * top
        return float((factor * right - whole).sum())

    return float(max(_SCALES, key=fit))


#: Whether an attacker has to join pieces, or is told which belong together.
PIECE_NAMES = ("pieces", "known")

# How far apart windows are that speak to each other, and how loud; the first: not at all.
_TRIED = ((1, 0.0), (1, 0.5), (1, 1.0), (REACH, 0.5), (REACH, 1.0))


@dataclass(frozen=True)
class Relink(Attack):
    """Recognise people in pieces that are joined again.

    Parameters
    ----------
    by : {"both", "place", "style", "none"}
        By what pieces of one stimulus are joined; `none` asks about each piece by itself, with the
        same scores.
    names : {"pieces", "known"}
        `known` tells the attacker which pieces belong together, over all stimuli: no attack, but a
        bound of what joining could give. It is never counted as the strongest attacker.

    Examples
    --------
    >>> str(Relink(by="place"))
    'relink:by=place'
    """

    name: ClassVar[str] = "relink"
    needs: ClassVar[tuple[str, ...]] = ("samples", "fixation", "saccade")

    #: It has nothing to do where names last.
    joins_pieces: ClassVar[bool] = True

    by: str = "both"
    names: str = "pieces"

    @property
    def protocol(self) -> str:
        """How pieces are asked about, in a few words."""
        if self.names == "known":
            return "told which pieces belong together: a bound, not an attack"
        if self.by == "none":
            return "each piece by itself"
        words = "place and style" if self.by == "both" else self.by
        return f"a name for each piece, the pieces of a stimulus joined by {words}"

    def check(self) -> None:
        """Words that are known."""
        checks.one_of(self.name, "by", self.by, (*JOINED_BY, "none"))
        checks.one_of(self.name, "names", self.names, PIECE_NAMES)

    def can(self, recording_set: RecordingSet) -> bool:
        """Samples are all it needs: events are found in them."""
        return recording_set.cohort is not None

    def identify(self, gallery: RecordingSet, probe: RecordingSet, seed: int) -> Scores:
        """Logarithms of the probabilities of names; nothing is random."""
        if gallery.piece_windows is None or probe.piece_windows is None:
            raise DataError(
                "relink joins pieces, and names of this release last: all that is published under"
                " a name is one person's already. Use another attacker."
            )
        if self.names == "known":
            return _told(gallery, probe)
        found = piece_scores(gallery, probe)
        asked = gather_pieces(probe, found.probe)
        if len(set(asked.names.tolist())) < len(asked.keys):
            raise DataError("relink needs a name for each piece of the probe.")
        alone = JoiningModel("place", {})
        values = asked.scores if self.by == "none" else _inferred(asked, alone, 1, 0.0)
        if found.held_out and self.by != "none":
            learnt = gather_pieces(gallery, found.held_out)
            model = learn_joining(learnt, self.by)
            at = {person: i for i, person in enumerate(found.known)}
            own = np.array([at[name] for name in learnt.names.tolist()], dtype=np.int64)
            values = _inferred(asked, model, *_chosen(learnt, model, own))
        return Scores(found.known, tuple(asked.names.tolist()), values.round(9))


def _told(gallery: RecordingSet, probe: RecordingSet) -> Scores:
    """Scores of people whose pieces are known to belong together: what the pieces say adds up, and
    names are given one to one.
    """
    names = {key: (f"{i:09}", *key[1:]) for i, key in enumerate(probe.keys)}
    windows = probe.piece_windows or {}
    pieces = renamed(probe, names, {names[key]: window for key, window in windows.items()})
    found = piece_scores(gallery, pieces)
    total = {person: np.zeros(len(found.known)) for person in probe.persons}
    for key, name in names.items():
        total[key[0]] += found.probe[name]
    values = soft_matching(np.stack(list(total.values())))
    return Scores(found.known, tuple(total), values.round(9))


def _chosen(learnt: Pieces, model: JoiningModel, own: Ints) -> tuple[int, float]:
    """Reach and weight of the links under which the right names of held-out pieces are the most
    probable.
    """
    rows = np.arange(len(own))
    fits = [float(_inferred(learnt, model, *tried)[rows, own].mean()) for tried in _TRIED]
    return _TRIED[int(np.argmax(fits))]


def _inferred(pieces: Pieces, model: JoiningModel, reach: int, weight: float) -> Floats:
    """Logarithms of probabilities of names, shape (pieces, people)."""
    values = np.zeros_like(pieces.scores)
    for chain in pieces.chains:
        links = model.links(pieces, chain, reach) if weight > 0 else {}
        scores = {window: pieces.scores[rows] for window, rows in chain.items()}
        for window, found in matched_along(scores, links, weight).items():
            values[chain[window]] = found
    return values


#: By what pieces are joined; `label`: by the order of names and of recordings, which must say
#: nothing.
RELINKED_BY = (*JOINED_BY, "label")

#: Parts into which stimuli are dealt; each is joined by who learnt from the others.
_PARTS = 2

# The names of two pieces that are joined, and among how many the second was found.
_Joined = tuple[str, str, int]


@dataclass(frozen=True)
class PieceRelinking(InferenceAttack):
    """Join pieces of neighbouring windows, learnt on the release's other stimuli.

    Parameters
    ----------
    by : {"place", "style", "both", "label"}
        By what pieces are joined. `label` takes names, or recordings, in their order within each
        window, whichever joins more: a check of how names were dealt.
    """

    name: ClassVar[str] = "relinking"
    summary: ClassVar[str] = "joins pieces of neighbouring windows"
    pieces: ClassVar[str] = "yes"

    by: str = "place"

    def __post_init__(self) -> None:
        checks.one_of(self.name, "by", self.by, RELINKED_BY)

    def run(self, raw: RecordingSet, release: RecordingSet, seed: int = 0) -> InferenceResult:
        """Join the pieces of the release; the raw recordings are not looked at.

        Returns
        -------
        InferenceResult
            `relinked_share`: the share of pieces whose neighbour in the next window is found, with
            an interval over people; chance is one over the pieces of the next window.

        Raises
        ------
        DataError
            If names last, if nothing says whose pieces are, or with fewer than two stimuli or
            windows.
        """
        if release.origins is None:
            raise DataError(
                "Relinking needs a release of pieces that says whose they are. Measure the"
                " mechanism with `gazeveil evaluate`, which knows."
            )
        protocol = f"neighbouring pieces joined by {self.by}, learnt on other stimuli"
        if self.by == "label":
            protocol = "neighbouring pieces joined by the order of names or recordings"
            shares = [_share(pairs, release, protocol) for pairs in _by_label(release)]
            best = max(shares, key=lambda r: r.value)
        else:
            best = _share(_by_learning(release, self.by), release, protocol)
        return InferenceResult(self.name, (best,), {"by": self.by})


def _share(joined: list[_Joined], release: RecordingSet, protocol: str) -> AttackResult:
    """The share of joined pieces that belong together, people weighing the same."""
    if not joined:
        raise DataError("Relinking needs two windows of a stimulus: this release has one of each.")
    owners = {name: key[0] for name, key in (release.origins or {}).items()}
    right: dict[str, list[float]] = {}
    for name, other, _ in joined:
        right.setdefault(owners[name], []).append(float(owners[name] == owners[other]))
    shares = [float(np.mean(right[person])) for person in sorted(right)]
    return AttackResult(
        "relinked_share",
        float(np.mean(shares)),
        *people_interval(shares),
        len(shares),
        float(np.mean([1.0 / of for _, _, of in joined])),
        protocol=f"{protocol}; interval over people",
    )


def _by_label(release: RecordingSet) -> Iterator[list[_Joined]]:
    """Join pieces by the order of recordings, and of their names, in each window."""
    pieces = gather_pieces(release)
    for order in (np.arange(len(pieces.keys)), np.argsort(np.argsort(pieces.names))):
        pairs = []
        for chain in pieces.chains:
            for window in chain.keys() & {w - 1 for w in chain}:
                here, then = (sorted(chain[w], key=order.__getitem__) for w in (window, window + 1))
                pairs += [
                    (pieces.keys[a][0], pieces.keys[b][0], len(then))
                    for a, b in zip(here, then, strict=False)
                ]
        yield pairs


def _by_learning(release: RecordingSet, by: str) -> list[_Joined]:
    """Join the pieces of each part of the stimuli by what was learnt on the other part."""
    people, pieces = (named_pieces(release, names) for names in ("people", "pieces"))
    stimuli = sorted({w.stimulus for w in (people.piece_windows or {}).values()})
    if len(stimuli) < 2:
        raise DataError("Relinking needs two stimuli: one to learn from and one to ask about.")
    joined: list[_Joined] = []
    for part in range(_PARTS):
        own = set(stimuli[part::_PARTS])
        gallery = _of_stimuli(people, set(stimuli) - own)
        probe = _of_stimuli(pieces, own)
        if by == "place":
            learnt, asked = gather_pieces(gallery), gather_pieces(probe)
        else:
            found = piece_scores(gallery, probe)
            learnt, asked = (
                gather_pieces(gallery, found.held_out),
                gather_pieces(probe, found.probe),
            )
        names = asked.names.tolist()
        pairs = joined_pairs(learn_joining(learnt, by), asked)
        joined += [(names[i], names[j], of) for i, j, of in pairs]
    return joined


def _of_stimuli(pieces: RecordingSet, stimuli: set[str]) -> RecordingSet:
    """The pieces of some stimuli."""
    windows = pieces.piece_windows or {}
    some = pieces.where(lambda key: windows[key].stimulus in stimuli)
    some.part_of = pieces
    return some
