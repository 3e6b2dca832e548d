"""Inputs of attackers and analysts: raw recordings, independent releases of them, and their
train/test parts.

Releases of a study use seeds, which is right here because nothing is published: a study must be
repeatable, a publication must not be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gazeveil.attacks.base import Attack, apply_denoiser
from gazeveil.attacks.pieces.sides import cut_like, find_windows, named_pieces
from gazeveil.errors import DataError
from gazeveil.evaluation.plan import same_stimulus, seed_of, table_names, tables_of
from gazeveil.evaluation.study import Study
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import natural
from gazeveil.gaze.scratch import set_aside
from gazeveil.privacy.mechanism import Mechanism, PieceMechanism
from gazeveil.privacy.stream.mechanism import StreamMechanism

#: (person, stimulus, session, task).
Key = tuple[str, str, str, str]

#: Share of the gallery that an attacker with exemplars holds in protected form too.
EXEMPLARS = 0.25

# Ending of the name of a part whose names are those of pieces.
_PIECES = " pieces"

# Draws of a split of which the one that leaves out the fewest people is taken.
_DRAWS = 20


def protect(
    recording_set: RecordingSet, mechanism: Mechanism[Any], seed: int, tables: str = "events"
) -> RecordingSet:
    """A release of a recording set.

    Parameters
    ----------
    recording_set : RecordingSet
        Raw.
    mechanism : Mechanism
        A stream or cohort mechanism takes the samples; a table mechanism the tables of fixations
        and saccades, or of windows.
    seed : int
        Of the noise.
    tables : {"events", "windows"}
        For table mechanisms.

    Raises
    ------
    DataError
        If the recording set lacks what the mechanism takes, or the mechanism refuses it.
    """
    if mechanism.kind == "table":
        names = table_names(tables, recording_set)
        if not names:
            raise DataError(f"{mechanism.name} protects tables of {tables}, and there are none.")
        # One partition for everything is what the corrected reading of k-same promises. Noise must
        # differ from table to table.
        shared = mechanism.reading != "published" and callable(
            getattr(mechanism, "partition", None)
        )
        released_tables = {
            n: (
                mechanism.release(
                    recording_set.table(n), seed=seed if shared else seed_of(seed, "table", n)
                ).data
            )
            for n in names
        }
        return RecordingSet(None, released_tables, recording_set.pipeline, recording_set.people)
    if recording_set.cohort is None:
        raise DataError(
            f"{mechanism.name} protects samples, and this recording set holds tables only."
        )
    if mechanism.kind not in ("stream", "cohort"):
        raise DataError(
            f"{mechanism.name} releases no recordings, so there is nothing to attack or to measure"
            " here."
        )
    if isinstance(mechanism, PieceMechanism):
        pieces = mechanism.release_with_origins(recording_set.cohort, seed)
        held = set_aside(pieces.release.data)
        released = RecordingSet(held, None, recording_set.pipeline, recording_set.people)
        released.origins, released.piece_windows = pieces.origins, find_windows(held)
        return released
    keep = {"keep": ("labels",)} if recording_set.pipeline.events == "carried" else {}
    release = mechanism.release(recording_set.cohort, seed=seed, **keep)
    # Made now and kept, because a lazy release would be made anew on each access. Attackers know
    # the mechanism of a release, and so what it shows of its own noise.
    scale = mechanism.noise_scale_deg if isinstance(mechanism, StreamMechanism) else None
    samples = set_aside(release.data)
    return RecordingSet(samples, None, recording_set.pipeline, recording_set.people, scale)


@dataclass(frozen=True, eq=False)
class Split:
    """The people and recordings of the gallery and of the probe.

    Parameters
    ----------
    gallery, probe : callables of a recording's key
        Whether the recording belongs there.
    people : tuple of str
        Those who are in both.
    left_out : int
        How many people are not.
    halves : bool
        Whether the parts are halves of every recording instead.
    protocol : str
        What is learned from and what is asked about, in a few words.
    """

    gallery: Callable[[Key], bool]
    probe: Callable[[Key], bool]
    people: tuple[str, ...]
    left_out: int
    halves: bool
    protocol: str


def split_of(study: Study, keys: Iterable[Key], repetition: int) -> Split:
    """The split of one repetition: the same for every mechanism and attacker, so that they are
    compared on the same people and stimuli.

    Raises
    ------
    DataError
        If fewer than two people have both sides.
    """
    listed = tuple(keys)
    persons = sorted({k[0] for k in listed})
    if study.split == "halves":
        split = Split(
            lambda _: True,
            lambda _: True,
            tuple(persons),
            0,
            True,
            "first half of every recording against the second",
        )
    elif study.split == "session":
        sessions: dict[str, set[str]] = {p: set() for p in persons}
        for key in listed:
            sessions[key[0]].add(key[2])
        last = {p: max(sessions[p], key=natural) for p in persons}
        both = tuple(p for p in persons if len(sessions[p]) > 1)
        included = frozenset(both)
        protocol = "each person's last session against the earlier ones"
        split = Split(
            lambda k: k[0] in included and k[2] != last[k[0]],
            lambda k: k[0] in included and k[2] == last[k[0]],
            both,
            len(persons) - len(both),
            False,
            protocol,
        )
    else:
        split = _by_stimulus(study, listed, persons, repetition)
    if len(split.people) < 2:
        raise DataError(
            f"Only {len(split.people)} of {len(persons)} people have recordings on both sides of"
            " the split. Use split = 'halves', or another seed."
        )
    return split


def _by_stimulus(study: Study, keys: tuple[Key, ...], persons: list[str], repetition: int) -> Split:
    stimuli = sorted({k[1] for k in keys}, key=natural)
    learnt = min(max(round(study.train * len(stimuli)), 1), len(stimuli) - 1)
    rng = np.random.default_rng(seed_of(study.seed, "split", study.train, repetition))
    seen: dict[str, set[str]] = {p: set() for p in persons}
    for key in keys:
        seen[key[0]].add(key[1])
    best: tuple[str, ...] | None = None
    train: frozenset[str] = frozenset()
    for _ in range(_DRAWS):
        drawn = frozenset(stimuli[i] for i in rng.permutation(len(stimuli))[:learnt])
        both = tuple(p for p in persons if seen[p] & drawn and seen[p] - drawn)
        if best is None or len(both) > len(best):
            best, train = both, drawn
        if len(best) == len(persons):
            break
    people = best or ()
    included = frozenset(people)
    protocol = (
        f"{learnt} of {len(stimuli)} stimuli against the"
        f" other{'s' if len(stimuli) - learnt > 1 else ''}"
    )
    return Split(
        lambda k: k[0] in included and k[1] in train,
        lambda k: k[0] in included and k[1] not in train,
        people,
        len(persons) - len(people),
        False,
        protocol,
    )


class ReleaseCache:
    """Everything one batch hands out: releases, their tables and their parts are made once.

    Parameters
    ----------
    study : Study
        The protocol.
    raw : RecordingSet
        As recorded, samples in memory, with the batch's way of finding events.
    mechanism : Mechanism, optional
        None for the baseline.
    repetition : int
        Which split and which noise.
    needs : iterable of str
        Tables that whole recording sets are asked for, so that their parts share them.
    shared : dict, optional
        Parts of the raw recordings that another batch of the same repetition made, or the release
        of a fixed mechanism; new ones are added.
    fixed : bool
        Whether all releases of the mechanism are the same, and that one is shared.
    """

    def __init__(
        self,
        study: Study,
        raw: RecordingSet,
        mechanism: Mechanism[Any] | None,
        repetition: int,
        needs: Iterable[str] = (),
        shared: dict[tuple[object, ...], RecordingSet] | None = None,
        fixed: bool = False,
    ) -> None:
        self.study, self.raw, self.mechanism, self.repetition = study, raw, mechanism, repetition
        self.needs = tuple(dict.fromkeys(needs))
        self._made: dict[tuple[object, ...], RecordingSet] = {}
        self._shared, self._fixed = {} if shared is None else shared, fixed

    @cached_property
    def split(self) -> Split:
        """The split of this repetition."""
        return split_of(self.study, self.raw.keys, self.repetition)

    def sides(self, attack: Attack, scenario: str) -> tuple[RecordingSet, RecordingSet]:
        """An attacker's gallery and probe."""
        gallery, probe = _releases(scenario) if self.mechanism is not None else ("raw", "raw")
        learnt, asked = ("all", "all") if same_stimulus(attack) else ("gallery", "probe")
        if gallery == "raw" and self.mechanism is not None and attack.knowledge != "black-box":
            known = self._knowing(attack, learnt, tables_of(attack))
        else:
            known = self._seen(gallery, learnt, attack.denoiser)
        if self.has_pieces and probe != "raw" and not told_names(attack):
            asked += _PIECES
        return known, self._seen(probe, asked, attack.denoiser)

    @property
    def has_pieces(self) -> bool:
        """Whether names of the releases do not last."""
        return isinstance(self.mechanism, PieceMechanism)

    def owners(self, attack: Attack, scenario: str) -> dict[str, str] | None:
        """Whose each name is that an attacker is asked about; None where these are people."""
        probe = _releases(scenario)[1] if self.mechanism is not None else "raw"
        if not self.has_pieces or probe == "raw" or told_names(attack):
            return None
        return {name: key[0] for name, key in (self._whole(probe).origins or {}).items()}

    def analyst(self, scenario: str) -> tuple[RecordingSet, RecordingSet, RecordingSet]:
        """Raw, train and test material of a utility: whole, because utilities split as their papers
        do.
        """
        train, test = _releases(scenario) if self.mechanism is not None else ("raw", "raw")
        return self._whole("raw"), self._whole(train), self._whole(test)

    def _whole(self, which: str) -> RecordingSet:
        """`raw`, or a whole release."""
        if which == "raw":
            return self.raw.prepared(self.needs)
        key = ("whole", "any" if self._fixed else which)
        whole = self._once(key, lambda: self._protect(self.raw, which), self._fixed)
        return whole.prepared(self.needs)

    def _part(self, which: str, part: str) -> RecordingSet:
        """The gallery or the probe of a recording set, or all of it; of pieces under the names of
        pieces where `part` says so.
        """
        if self.has_pieces:
            return self._once(("part", which, part), lambda: self._some_pieces(which, part))
        if part == "all":
            return self._whole(which)

        def make() -> RecordingSet:
            if self._made_alone(which):
                return self._protect(self._part("raw", part), which)
            return self._cut(self._whole(which), part)

        return self._once(("part", which, part), make, which == "raw" and not self._fixed)

    def _made_alone(self, which: str) -> bool:
        """Whether a part of a release is made without the whole. The noise of a recording in a
        stream follows from the seed and its key. False once the whole release is made.
        """
        return (
            self.mechanism is not None
            and self.mechanism.kind == "stream"
            and which != "raw"
            and not self._fixed
            and ("whole", which) not in self._made
            and not self.split.halves
        )

    def _some_pieces(self, which: str, part: str) -> RecordingSet:
        """A part of a release of pieces, or of raw recordings cut as it is."""
        names = "pieces" if part.endswith(_PIECES) else "people"
        whole = self._once(("pieces", which, names), lambda: self._all_pieces(which, names))
        side = part.removesuffix(_PIECES)
        if side == "all":
            return whole
        origins = (self._whole(which).origins or {}) if names == "pieces" else {}
        windows = whole.piece_windows or {}
        count: dict[str, int] = {}
        for window in windows.values():
            count[window.stimulus] = max(count.get(window.stimulus, 0), window.window + 1)

        def wanted(key: Key) -> bool:
            window = windows[key]
            if self.split.halves:
                early = window.window < (count[window.stimulus] + 1) // 2
                return early == (side == "gallery")
            origin = origins.get(key[0], (key[0], window.stimulus, *key[2:]))
            return self.split.gallery(origin) if side == "gallery" else self.split.probe(origin)

        cut = whole.where(wanted)
        cut.part_of = whole
        return cut

    def _all_pieces(self, which: str, names: str) -> RecordingSet:
        if which != "raw":
            return named_pieces(self._whole(which), names)
        # All releases have the same public windows: whichever is there already.
        made = next((n for n in ("second", "first") if ("whole", n) in self._made), "second")
        windows = self._whole(made).piece_windows or {}
        return cut_like(self._whole("raw"), windows.values()).prepared(self.needs)

    def _cut(self, recording_set: RecordingSet, part: str) -> RecordingSet:
        if self.split.halves:
            return recording_set.halves()[0 if part == "gallery" else 1]
        cut = recording_set.where(self.split.gallery if part == "gallery" else self.split.probe)
        cut.part_of = recording_set
        return cut

    def _seen(self, which: str, part: str, denoiser: str) -> RecordingSet:
        """A part as the attacker sees it, behind the denoiser."""
        return self._behind(denoiser, self._part(which, part), "seen", which, part)

    def _knowing(self, attack: Attack, part: str, tables: tuple[str, ...]) -> RecordingSet:
        """The gallery of an attacker who knows more than raw recordings: releases made from them,
        or some that became known.
        """

        def white() -> RecordingSet:
            # Tables are computed on each draw before all are put together, so that attackers with
            # more draws share them.
            return RecordingSet.together(
                [self._part(f"draw {i}", part).prepared(tables) for i in range(attack.draws)]
            )

        def exemplars() -> RecordingSet:
            own = self._part("raw", part).prepared(tables)
            keys = sorted(own.keys)
            rng = np.random.default_rng(seed_of(self.study.seed, "exemplars", self.repetition))
            chosen = frozenset(
                keys[i] for i in rng.permutation(len(keys))[: max(1, round(EXEMPLARS * len(keys)))]
            )
            known = self._exemplars(part, chosen)
            return RecordingSet.together([own, known.prepared(tables)]) if known.keys else own

        key = (
            attack.knowledge,
            part,
            attack.draws if attack.knowledge == "white-box" else 1,
            tables,
        )
        return self._behind(
            attack.denoiser,
            self._once(key, white if attack.knowledge == "white-box" else exemplars),
            *key,
        )

    def _exemplars(self, part: str, chosen: frozenset[Key]) -> RecordingSet:
        """The recordings of a release that became known."""

        def make() -> RecordingSet:
            if self._made_alone("exemplars") and not self.has_pieces:
                # The others are not read.
                own = self._part("raw", part).where(chosen.__contains__)
                return self._protect(own, "exemplars")
            return self._part("exemplars", part).where(chosen.__contains__)

        return self._once(("exemplars", "known", part), make)

    def _behind(self, denoiser: str, recording_set: RecordingSet, *key: object) -> RecordingSet:
        # The denoiser comes last: it remembers the samples it was given, because an attacker holds
        # both.
        if denoiser == "none":
            return recording_set
        return self._once(
            ("denoiser", denoiser, *key),
            lambda: apply_denoiser(denoiser, recording_set),
            key[:2] == ("seen", "raw") and not self.has_pieces and not self._fixed,
        )

    def _protect(self, recording_set: RecordingSet, which: str) -> RecordingSet:
        if self.mechanism is None:
            return recording_set
        return protect(
            recording_set,
            self.mechanism,
            seed_of(self.study.seed, "release", self.mechanism, self.repetition, which),
            self.study.tables,
        )

    def _once(
        self, key: tuple[object, ...], make: Callable[[], RecordingSet], shared: bool = False
    ) -> RecordingSet:
        made = self._shared if shared else self._made
        if key not in made:
            made[key] = make()
        return made[key]


def told_names(attack: Attack) -> bool:
    """Whether an attacker is told which pieces belong together: a bound, not an attack."""
    return getattr(attack, "names", "") == "known"


def _releases(scenario: str) -> tuple[str, str]:
    """Which recording sets a scenario trains on and tests; `first` and `second` are independent
    releases.
    """
    if scenario == "release/release":
        return "first", "first"
    train, test = scenario.split("/")
    return "first" if train == "private" else "raw", "second" if test == "private" else "raw"
