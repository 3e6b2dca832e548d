"""`relink`: names for all pieces of a release at once, with pieces joined again.

Names that do not last keep evidence from adding up. This attacker adds it up all the same: it joins
pieces by place and by style (:mod:`gazeveil.attacks.pieces.joining`), knows that each viewer has
one piece in a window, and infers all names together
(:mod:`gazeveil.attacks.pieces.soft_matching`). How far to trust the links is chosen on pieces of
the gallery whose stimulus was held out, so that joining counts only where it helps. Pieces of
different stimuli show no place to join by; what their style says is in their scores already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.attacks.base import Attack, Scores
from gazeveil.attacks.pieces.evidence import SCORES, piece_scores
from gazeveil.attacks.pieces.joining import (
    JOINED_BY,
    REACH,
    JoiningModel,
    Pieces,
    gather_pieces,
    learn_joining,
)
from gazeveil.attacks.pieces.sides import renamed
from gazeveil.attacks.pieces.soft_matching import matched_along, soft_matching
from gazeveil.errors import DataError
from gazeveil.features.recording_set import RecordingSet

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
    scores : {"fusion", "steps", "rocket", "linkage"}
        Whose scores say how much a piece looks like a person.
    names : {"pieces", "known"}
        `known` tells the attacker which pieces belong together, over all stimuli: no attack, but a
        bound of what joining could give. It is never counted as the strongest attacker.

    Examples
    --------
    >>> str(Relink(by="place", scores="steps"))
    'relink:by=place,scores=steps'
    """

    name: ClassVar[str] = "relink"
    needs: ClassVar[tuple[str, ...]] = ("samples", "fixation", "saccade")

    #: It has nothing to do where names last.
    joins_pieces: ClassVar[bool] = True

    by: str = "both"
    scores: str = "fusion"
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
        checks.one_of(self.name, "scores", self.scores, SCORES)
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
            return _told(gallery, probe, self.scores)
        found = piece_scores(gallery, probe, self.scores)
        asked = gather_pieces(probe, found.probe)
        if len(set(asked.names.tolist())) < len(asked.keys):
            raise DataError("relink needs a name for each piece of the probe.")
        values = asked.scores if self.by == "none" else _without_links(asked)
        if found.held_out and self.by != "none":
            learnt = gather_pieces(gallery, found.held_out)
            model = learn_joining(learnt, self.by)
            at = {person: i for i, person in enumerate(found.known)}
            own = np.array([at[name] for name in learnt.names.tolist()], dtype=np.int64)
            values = _inferred(asked, model, *_chosen(learnt, model, own))
        return Scores(found.known, tuple(asked.names.tolist()), values.round(9))


def _told(gallery: RecordingSet, probe: RecordingSet, scores: str) -> Scores:
    """Scores of people whose pieces are known to belong together: what the pieces say adds up, and
    names are given one to one.
    """
    names = {key: (f"{i:09}", *key[1:]) for i, key in enumerate(probe.keys)}
    windows = probe.piece_windows or {}
    pieces = renamed(probe, names, {names[key]: window for key, window in windows.items()})
    found = piece_scores(gallery, pieces, scores)
    total = {person: np.zeros(len(found.known)) for person in probe.persons}
    for key, name in names.items():
        total[key[0]] += found.probe[name]
    values = soft_matching(np.stack(list(total.values())))
    return Scores(found.known, tuple(total), values.round(9))


def _without_links(pieces: Pieces) -> Floats:
    return _inferred(pieces, JoiningModel("place", {}), 1, 0.0)


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
