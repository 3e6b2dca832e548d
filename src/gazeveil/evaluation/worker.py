"""Computing cells: an attack, a utility, or what a mechanism promises and what its release looks
like.

A batch is computed in one process with one thread of linear algebra, so that its figures are the
same wherever it runs.

What a mechanism promises, and what its release of one recording and of one stimulus looks like;
for reports.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gazeveil.attacks.base import Attack, Scores, identify
from gazeveil.attacks.evidence import forget_pairs, matching_credit
from gazeveil.attacks.pieces.sides import decide_pieces, piece_controls
from gazeveil.attacks.result import beaten_by, d_prime, eer, f1_macro
from gazeveil.errors import DataError, GazeveilError, NothingLeftError
from gazeveil.evaluation.plan import (
    Cell,
    CellBatch,
    Content,
    Store,
    key_of,
    same_stimulus,
    seed_of,
    table_names,
    tables_of,
)
from gazeveil.evaluation.releases import ReleaseCache, protect, told_names
from gazeveil.evaluation.sources import opened, with_events
from gazeveil.evaluation.study import NONE, InferredResult, Study
from gazeveil.features.recording_set import RecordingSet
from gazeveil.gaze.cohort import Cohort, natural
from gazeveil.gaze.geometry import Sphere, smooth_map
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.guarantee import Guarantee
from gazeveil.privacy.heatmaps import viewer_weights
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.stream.filters import Filter
from gazeveil.utility.base import Utility, UtilityResult
from gazeveil.workers import return_memory

#: Longest trace, in seconds.
TRACE_S = 10.0

#: Cells of a map from top to bottom; columns follow from the space.
MAP_ROWS = 90

_BLUR_DEG = 2.0


def example(cache: ReleaseCache) -> Content:
    """The promise of the cache's mechanism, a trace of one recording, and a map of one stimulus;
    what there is no samples for is missing.

    Raises
    ------
    DataError
        If the mechanism refuses the study's recordings.
    """
    content: Content = {}
    if cache.mechanism is not None:
        g = promise(cache.raw, cache.mechanism, cache.study.tables)
        sentence = str(g[0])
        if g[1] > 1:
            sentence += f" {g[1]} tables are released, each under this promise."
        content["guarantee"] = {
            "plain": g[0].plain,
            "sentence": sentence,
            "status": g[0].status,
            "definition": g[0].definition,
            "unit": g[0].unit,
        }
    chosen = _chosen(cache.raw)
    if chosen is None or (cache.mechanism is not None and cache.mechanism.kind == "table"):
        return content
    recording, seen = chosen
    released, origins = seen, None
    if cache.mechanism is not None:
        seed = seed_of(cache.study.seed, "release", cache.mechanism, 0, "first")
        try:
            protected = protect(RecordingSet(seen, None, cache.raw.pipeline), cache.mechanism, seed)
        except GazeveilError:
            return content  # some mechanisms need more people or stimuli than an example has
        released = protected.cohort if protected.cohort is not None else seen
        origins = protected.origins
    if origins is not None:
        # The first piece that was made for the recording; its times count from the stimulus.
        own = [r for r in released if origins[r.person] == recording.key]
        twin, begin_ns = min(own, key=lambda r: int(r.t_ns[0]), default=None), 0
    else:
        twin = next((r for r in released if r.key == recording.key), None)
        begin_ns = int(recording.t_ns[0]) if len(recording) else 0
    if twin is not None:
        content["trace"] = _trace(twin, begin_ns)
    content["map"] = _map([r for r in released if r.stimulus == recording.stimulus], recording)
    space = recording.space
    wide, high = space.width_deg, space.height_deg
    extent = (
        (0.0, wide, 0.0, high)
        if isinstance(space, Sphere)
        else (-wide / 2, wide / 2, -high / 2, high / 2)
    )
    content |= {
        "title": f"{recording.person}, {recording.stimulus}",
        "viewers": len({r.person for r in seen if r.stimulus == recording.stimulus}),
        "space": "sphere" if isinstance(space, Sphere) else "screen",
        "extent": list(extent),
    }
    return content


def promise(raw: RecordingSet, mechanism: Mechanism[Any], tables: str) -> tuple[Guarantee, int]:
    """What a real release would promise (noise from the operating system, thrown away), and of how
    many tables it is made.
    """
    if mechanism.kind == "table":
        names = table_names(tables, raw)
        return mechanism.release(raw.table(names[0])).guarantee, len(names)
    assert raw.cohort is not None  # a plan has no stream mechanism without samples
    if mechanism.kind == "stream":
        # A stream's promise is known before any sample: it depends on rate and space alone.
        kinds = {(r.rate_hz, repr(r.space)): r for r in raw.cohort}
        return mechanism.release(Cohort([r.slice(0, 2) for r in kinds.values()])).guarantee, 1
    return mechanism.release(raw.cohort).guarantee, 1


def _chosen(raw: RecordingSet) -> tuple[Recording, Cohort] | None:
    """The stimulus most people saw, and of those the recording with the fewest lost samples."""
    if raw.cohort is None:
        return None
    viewers = Counter(key[1] for key in raw.keys)
    stimulus = min(viewers, key=lambda s: (-viewers[s], natural(s)))
    seen = [r for r in raw.cohort if r.stimulus == stimulus and len(r)]
    if not seen:
        return None
    best = min(seen, key=lambda r: (-float(r.valid.mean()), natural(r.person), r.session))
    same = [r for r in seen if r.space == best.space]
    return best, Cohort(
        same, {p: a for p, a in raw.people.items() if any(r.person == p for r in same)}
    )


def _trace(recording: Recording, start_ns: int) -> Content:
    t = (recording.t_ns - start_ns) / 1e9
    rows = t <= TRACE_S
    shown = np.where(recording.valid, 1.0, np.nan)
    return {
        "t_s": np.round(t[rows], 6).tolist(),
        "x_deg": [
            None if v != v else round(v, 4) for v in (recording.x_deg * shown)[rows].tolist()
        ],
        "y_deg": [
            None if v != v else round(v, 4) for v in (recording.y_deg * shown)[rows].tolist()
        ],
        "valid": recording.valid[rows].tolist(),
    }


def _map(recordings: Iterable[Recording], like: Recording) -> list[list[float]]:
    space = like.space
    columns = max(1, round(MAP_ROWS * space.width_deg / space.height_deg))
    total = np.zeros((MAP_ROWS, columns))
    for recording in recordings:
        total += viewer_weights(recording, MAP_ROWS, columns)
    blurred = smooth_map(total, space, _BLUR_DEG if isinstance(space, Sphere) else _BLUR_DEG / 2)
    mass = float(blurred.sum())
    rows: list[list[float]] = np.round(blurred / mass if mass else blurred, 9).tolist()
    return rows


@dataclass(frozen=True, eq=False)
class Worker:
    """A study as a worker gets it.

    Parameters
    ----------
    study : Study
        What to compute, its recordings in memory.
    context : dict
        What all cells share: code, fingerprint of the recordings, seed, protocol; part of every
        cell's name.
    """

    study: Study
    context: dict[str, object]

    def key(self, cell: Cell) -> str:
        """The cell's name on disk."""
        return key_of(self.context, cell, self.identities)

    @cached_property
    def identities(self) -> dict[str, str]:
        """What each text of the study stands for."""
        items: Iterable[Mechanism[Any] | Attack | Utility] = (
            *self.study.mechanisms,
            *self.study.attacks,
            *self.study.utilities,
        )
        return {str(i): _identity(i) for i in items}

    def raw(self, events: str) -> RecordingSet:
        """The recordings with one way of finding events, made once per process, with the tables
        made of them so far.
        """
        study = self.study
        with _LOCK:
            held = _last(_RECORDINGS, self._recordings)
            if events not in held:
                held[events] = with_events(
                    opened(study.source, study.people, study.stimuli, study.preparation), events
                )
            return held[events]

    def material(self, batch: CellBatch) -> tuple[object, ...]:
        """What batches that share it come after one another for: the parts of raw recordings of one
        repetition, or the one release of a mechanism that draws nothing.
        """
        mechanism = next((m for m in self.study.mechanisms if str(m) == batch.mechanism), None)
        fixed = (
            isinstance(mechanism, Filter)
            and mechanism.is_fixed
            and all(c.kind == "utility" or "raw" not in c.scenario for c in batch.cells)
        )
        return batch.events, batch.mechanism if fixed else batch.repetition

    def shared(self, batch: CellBatch) -> dict[tuple[object, ...], RecordingSet]:
        """What batches of the same material made so far, and with it all that was worked out about
        it.
        """
        with _LOCK:
            # That of the last material alone: all of it would fill the memory.
            return _last(_SHARED, (self._recordings, *self.material(batch)))

    @cached_property
    def _recordings(self) -> str:
        """Which recordings these are."""
        study = self.study
        return repr((self.context, study.preparation, study.people, study.stimuli))


# What this process holds of the study that it works on.
_LOCK = threading.Lock()
_RECORDINGS: dict[object, dict[str, RecordingSet]] = {}
_SHARED: dict[object, dict[tuple[object, ...], RecordingSet]] = {}

Held = TypeVar("Held")


def _last(held: dict[object, dict[Held, RecordingSet]], key: object) -> dict[Held, RecordingSet]:
    """What is held under a key, and nothing under another one."""
    if key not in held:
        held.clear()
        held[key] = {}
    return held[key]


def forget_shared() -> None:
    """Let go of what batches share: no further batch comes."""
    with _LOCK:
        _SHARED.clear()


def _identity(item: Mechanism[Any] | Attack | Utility) -> str:
    """Which class a text stands for, and what the files hold that its parameters name: other boxes
    in the same file are another utility.
    """
    values = [getattr(item, f.name) for f in fields(item)]
    files = [
        Path(v) for v in values if isinstance(v, str) and 0 < len(v) < 4096 and Path(v).is_file()
    ]
    return " ".join(
        [
            f"{type(item).__module__}.{type(item).__qualname__}",
            *(hashlib.sha256(f.read_bytes()).hexdigest() for f in files),
        ]
    )


def compute(worker: Worker, batch: CellBatch) -> Iterator[tuple[Cell, Content]]:
    """The cells of a batch, each as soon as it is finished; a cell that cannot be computed has the
    one entry `failure`.

    Raises
    ------
    GazeveilError
        If the recordings themselves cannot be read: then no cell can be computed.
    """
    # Only libraries that are there already are limited: SciPy brings a BLAS of its own, and figures
    # differed in the last digits where an attacker imported it first.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    study = worker.study
    by_text: dict[str, Attack | Utility] = {
        **{str(a): a for a in study.attacks},
        **{str(u): u for u in study.utilities},
    }
    with threadpool_limits(limits=1):
        needs = [n for c in batch.cells if c.kind != "about" for n in tables_of(by_text[c.what])]
        mechanism = (
            None
            if batch.mechanism == NONE
            else next(m for m in study.mechanisms if str(m) == batch.mechanism)
        )
        cache = ReleaseCache(
            study,
            worker.raw(batch.events),
            mechanism,
            batch.repetition,
            needs,
            worker.shared(batch),
            worker.material(batch)[1] == batch.mechanism,
        )
        # Utilities look at whole releases, attackers at parts of them: the wholes first, so that
        # parts are taken from them.
        for cell in sorted(batch.cells, key=lambda c: c.kind != "utility"):
            try:
                yield cell, _cell(cache, cell, by_text.get(cell.what))
            except GazeveilError as error:
                yield cell, {"failure": str(error)}
            except MemoryError:
                yield (
                    cell,
                    {"failure": "There was not enough memory. Use fewer workers, or fewer people."},
                )
            except Exception as error:
                # A bug in an attacker or a utility, maybe a third party's, must not take the other
                # cells with it.
                yield (
                    cell,
                    {
                        "failure": (
                            f"This is a bug: {type(error).__name__}:"
                            f" {str(error).splitlines()[0] if str(error) else 'no message'}"
                        )
                    },
                )
        # Raw recordings outlast the batch, and scores of all of them against all are large.
        forget_pairs()


def compute_batch(
    worker: Worker, folder: Path | None, batch: CellBatch, keys: Sequence[str]
) -> dict[Cell, Content]:
    """Compute a batch in a process of its own.

    Parameters
    ----------
    worker : Worker
        The study.
    folder : Path, optional
        Where each cell is written as soon as it is finished; None on another disk.
    batch : CellBatch
        What to compute.
    keys : sequence of str
        Names of its cells on disk.

    Returns
    -------
    dict of Cell to content
        What was not written.
    """
    names, answer = dict(zip(batch.cells, keys, strict=True)), {}
    for cell, content in compute(worker, batch):
        if folder is None or "failure" in content:
            answer[cell] = content
        else:
            Store(folder).put(names[cell], content)
        return_memory()
    return answer


def _cell(cache: ReleaseCache, cell: Cell, who: object) -> Content:
    seed = seed_of(
        cache.study.seed,
        cell.kind,
        cell.what,
        cell.mechanism,
        cell.events,
        cell.scenario,
        cell.repetition,
    )
    if cell.kind == "about":
        return example(cache)
    if isinstance(who, Attack):
        return _attack(cache, cell, who, seed)
    assert isinstance(who, Utility)
    raw, train, test = cache.analyst(cell.scenario)
    if cell.mechanism == NONE:
        raw, test = who.halved(raw)
    return {"results": [_result(r.metric, r) for r in who.measure(raw, train, test, seed)]}


def _result(metric: str, r: UtilityResult) -> Content:
    return {
        "metric": metric,
        "value": _number(r.value),
        "parts": [_number(v) for v in np.asarray(r.parts, dtype=np.float64).tolist()],
        "of": str(r.of),
        "names": [str(n) for n in r.names],
        "chance": _number(r.chance),
        "better": str(r.better),
        "note": str(r.note),
        **(
            {"low": _number(r.low), "high": _number(r.high), "n": r.n}
            if isinstance(r, InferredResult)
            else {}
        ),
    }


def _attack(cache: ReleaseCache, cell: Cell, attack: Attack, seed: int) -> Content:
    gallery, probe = cache.sides(attack, cell.scenario)
    for side, purpose in ((gallery, "learn from"), (probe, "ask about")):
        if not side.keys:
            raise DataError(f"The release left nothing to {purpose}.")
    together = same_stimulus(attack)
    people = cache.raw.persons if together else cache.split.people
    owners = cache.owners(attack, cell.scenario)
    trained = attack.trained_on(cache.raw) & set(people)
    if trained:
        people = _others(people, trained, owners is not None)
        gallery, probe = (s.where(lambda key: key[0] not in trained) for s in (gallery, probe))
    guessed = ""
    try:
        found = identify(attack, gallery, probe, seed)
    except NothingLeftError:
        if cell.mechanism == NONE:
            raise
        # The release hides everybody by leaving nothing, which is a figure and no failure.
        alike = np.zeros((len(probe.persons), len(gallery.persons)))
        found = Scores(gallery.persons, probe.persons, alike)
        guessed = "; a guess: the release left nothing to learn from"
    content = (
        _people(complete(found, people), seed)
        if owners is None
        else _pieces(found, owners, probe, people, seed)
    )
    protocol = (
        "all recordings, the same stimuli on both sides" if together else cache.split.protocol
    )
    if owners is not None or told_names(attack):
        protocol += f"; {getattr(attack, 'protocol', 'each piece by itself')}"
    left_out = f"; {len(trained)} people whom the attacker was trained on are left out"
    protocol += guessed + (left_out if trained else "")
    return {
        **content,
        "known": len(people),
        "left_out": 0 if together else cache.split.left_out,
        "protocol": protocol,
        **({"bound": True} if told_names(attack) else {}),
    }


def _others(people: tuple[str, ...], trained: frozenset[str], pieces: bool) -> tuple[str, ...]:
    """The people whom an attacker was not trained on beforehand.

    Raises
    ------
    DataError
        Where fewer than two are left, or names do not last.
    """
    others = tuple(p for p in people if p not in trained)
    if len(others) > 1 and not pieces:
        return others
    why = "pieces are named among everybody" if pieces else "an attacker needs two to tell apart"
    raise DataError(
        f"The attacker's weights were trained on {len(trained)} of these {len(people)} people, and"
        f" {why}. Give recordings of other people, or train weights on others."
    )


def _people(scores: Scores, seed: int) -> Content:
    """What an attacker achieved who named people."""
    known = set(scores.known)
    return {
        "people": list(scores.probes),
        "credit": scores.credit().tolist(),
        "matching_rate": float(matching_credit(scores, seed).mean()),
        "answers": [list(names) for names in scores.answers()],
        "beaten_by": [
            b if p in known else None
            for p, b in zip(scores.probes, beaten_by(scores).tolist(), strict=True)
        ],
        **_over_scores(scores),
    }


def _pieces(
    scores: Scores, owners: dict[str, str], probe: RecordingSet, people: tuple[str, ...], seed: int
) -> Content:
    """What an attacker achieved who named pieces: the mean over each person's pieces."""
    if not scores.known:
        raise DataError(_NOBODY)
    windows = {key[0]: window for key, window in (probe.piece_windows or {}).items()}
    decided = decide_pieces(scores, owners, windows, people, seed)
    controls = piece_controls(decided.scores, [windows[n][:2] for n in scores.probes], seed)
    return {
        "people": list(people),
        "credit": decided.credit.tolist(),
        "matching_rate": float(decided.matched.mean()),
        "answer": list(decided.answers),
        "beaten_by": list(decided.beaten_by),
        "pieces": True,
        "flipped_rate": controls.flipped,
        "dealt_rate": controls.dealt,
        **_over_scores(decided.scores),
    }


def _over_scores(scores: Scores) -> Content:
    return {
        "eer": _number(eer(scores)),
        "d_prime": _number(d_prime(scores)),
        "f1_macro": _number(f1_macro(scores)),
    }


_NOBODY = "The attacker learnt nobody: the gallery holds nothing it can use."


def complete(scores: Scores, people: tuple[str, ...]) -> Scores:
    """Scores of exactly these people, in this order. A person without released data is a guess (a
    row of equal values).
    """
    if not scores.known:
        raise DataError(_NOBODY)
    rows = {p: scores.values[i] for i, p in enumerate(scores.probes)}
    nothing = np.zeros(len(scores.known))
    return Scores(scores.known, people, np.stack([rows.get(p, nothing) for p in people]))


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
