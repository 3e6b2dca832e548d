"""What the readings `published` of Bozkir et al. 2021 take from the data: sensitivities over pairs
of participants, and floating-point noise.

Bozkir et al. (PLOS ONE 2021), equation 7: the sensitivity of a feature is the largest
distance between the sequences of two participants, over the longer of the two. It is computed for
each document (stimulus, session and task) separately, as the paper applies its methods; a shorter
sequence counts as 0 where it has ended. A document that only one person has takes the sensitivity
over all documents. All of this is a function of the very data it should protect. The scale of the
noise reveals something about the two people farthest apart. Where all participants agree there is
no noise at all.

The published readings of `fpa`, `cfpa` and `dcfpa`, prepared once and drawn as often as wanted.

Everything that does not change between two draws is computed once: the spectra of all blocks, the
sensitivity of each feature and chunk over pairs of participants, and the k with the least expected
error for each document, chunk and feature (Bozkir et al. 2021 seeks it with 100 noisy runs; the
closed forms give it at once). Blocks of the same length are one array, so a draw is a few batched
operations. The last chunk of a recording is as short as it is, with its own n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.privacy.randomness.rng import source
from gazeveil.privacy.tables.recordings import Sequences, midpoints
from gazeveil.privacy.tables.spectrum import (
    Reals,
    coordinates,
    dcfpa_error,
    fpa_error,
    fpa_real_error,
    synthesis,
)


def plain_generator(seed: int | None, *keys: str | int) -> np.random.Generator:
    """Floating-point randomness, as the papers' programs use it: seeded by the operating system, or
    by a test stream.
    """
    return np.random.default_rng(source(seed, *keys).take(4))


@dataclass(frozen=True, eq=False)
class PublishedDocument:
    """The recordings of one stimulus, session and task.

    Parameters
    ----------
    recordings : array of int64, shape (people,)
        Which recordings of the table.
    lengths : array of int64, shape (people,)
        Rows of each.
    values : array of float64, shape (people, features, longest)
        The sequences, 0 after the end of each.
    people : int
        Different people among them.
    """

    recordings: Ints
    lengths: Ints
    values: Floats
    people: int


def documents(owner: str, seqs: Sequences) -> list[PublishedDocument]:
    """The recordings of a table by document, in order of first appearance.

    Raises
    ------
    DataError
        With one person alone: a distance between participants needs two.
    """
    if len(seqs.people) < 2:
        raise DataError(
            f"{owner} with reading=published takes its sensitivity from pairs of participants and"
            " this table has one person. Use reading=corrected, which takes it from the public"
            " bounds. Nothing was released."
        )
    table = np.where(np.isnan(seqs.table.values), midpoints(seqs), seqs.table.values)
    groups: dict[tuple[str, str, str], list[int]] = {}
    for i, key in enumerate(seqs.keys):
        groups.setdefault(key[1:], []).append(i)
    return [
        _document(seqs, table, np.array(members, dtype=np.int64)) for members in groups.values()
    ]


def _document(seqs: Sequences, table: Floats, members: Ints) -> PublishedDocument:
    lengths = seqs.lengths[members]
    values = np.zeros((len(members), table.shape[1], int(lengths.max())))
    for place, (recording, length) in enumerate(
        zip(members.tolist(), lengths.tolist(), strict=True)
    ):
        values[place, :, :length] = table[seqs.rows(recording)].T
    return PublishedDocument(
        members, lengths, values, len({seqs.keys[m][0] for m in members.tolist()})
    )


def everything(seqs: Sequences, docs: list[PublishedDocument]) -> PublishedDocument:
    """All recordings as one document, for documents that only one person has."""
    longest = max(d.values.shape[2] for d in docs)
    values = np.zeros((len(seqs.keys), docs[0].values.shape[1], longest))
    lengths = np.zeros(len(seqs.keys), dtype=np.int64)
    for d in docs:
        values[d.recordings, :, : d.values.shape[2]] = d.values
        lengths[d.recordings] = d.lengths
    return PublishedDocument(np.arange(len(seqs.keys)), lengths, values, len(seqs.people))


def largest_distance(values: Floats, order: int, chunk: int | None = None) -> Floats:
    """The largest distance between two participants, per feature and chunk (equation 7).

    Parameters
    ----------
    values : array of float64, shape (people, features, rows)
        Sequences, padded with 0.
    order : {1, 2}
        Sum of absolute differences, or root of the sum of squares.
    chunk : int, optional
        Rows of a chunk; all rows are one where it is not given.

    Returns
    -------
    array of float64, shape (features, chunks)
    """
    people, features, rows = values.shape
    size = rows if chunk is None else chunk
    edges = np.arange(0, rows, size)
    best = np.zeros((features, len(edges)))
    for person in range(people - 1):
        apart = np.abs(values[person + 1 :] - values[person])
        if order == 2:
            apart *= apart
        np.maximum(best, np.add.reduceat(apart, edges, axis=2).max(axis=0), out=best)
    return np.sqrt(best) if order == 2 else best


#: Up to this many coordinates a matrix product is faster than the fast transform.
_FEW = 24


@dataclass(frozen=True, eq=False)
class BlockBatch:
    """All blocks of one length.

    Parameters
    ----------
    n : int
        Rows of a block.
    recording, start : array of int64, shape (blocks,)
        Where each block lies.
    kept : array of float64, shape (blocks * features, coordinates)
        Real coordinates of the first bins, those of bins from k on set to 0.
    places : array of int64
        Flat indices of the coordinates that get noise.
    scale : array of float64
        Scale of the noise at these places.
    delta_2 : array of float64, shape (blocks, features)
        Sensitivities.
    k : array of int64, shape (blocks, features)
        Bins kept.
    difference : bool
        Whether blocks are differences that have to be summed up.
    """

    n: int
    recording: Ints
    start: Ints
    kept: Reals
    places: Ints
    scale: Reals
    delta_2: Reals
    k: Ints
    difference: bool

    def draw(self, rng: np.random.Generator) -> Reals:
        """Noisy blocks, shape (blocks, features, n)."""
        noisy = self.kept.copy()
        noisy.reshape(-1)[self.places] += rng.laplace(size=len(self.places)) * self.scale
        return self._back(noisy).reshape(*self.k.shape, self.n)

    def _back(self, noisy: Reals) -> Reals:
        most = int(self.k.max())
        if noisy.shape[1] <= _FEW:
            back = synthesis(self.n, most)
            return noisy @ (np.cumsum(back, axis=0) if self.difference else back).T
        spectrum = noisy[:, :most].astype(np.complex128)
        spectrum[:, 1 : noisy.shape[1] - most + 1].imag = noisy[:, most:]
        out: Reals = np.fft.irfft(spectrum, self.n, axis=-1)
        return np.cumsum(out, axis=-1, out=out) if self.difference else out


@dataclass(frozen=True, eq=False)
class TableBlocks:
    """All blocks of a table."""

    batches: tuple[BlockBatch, ...]
    lengths: Ints
    features: int

    def draw(self, rng: np.random.Generator) -> list[Reals]:
        """One noisy release, batch by batch."""
        return [batch.draw(rng) for batch in self.batches]

    def recordings(self, drawn: list[Reals]) -> list[Reals]:
        """The blocks put together: one array (rows, features) per recording."""
        out = [np.empty((int(length), self.features)) for length in self.lengths]
        for batch, blocks in zip(self.batches, drawn, strict=True):
            for recording, start, block in zip(
                batch.recording.tolist(), batch.start.tolist(), blocks, strict=True
            ):
                out[recording][start : start + batch.n] = block.T
        return out


@dataclass
class _Blocks:
    """Blocks of one length while they are collected."""

    values: list[Reals]
    delta_2: list[Reals]
    cell: list[int]
    recording: list[int]
    start: list[int]


def plan(
    owner: str,
    seqs: Sequences,
    epsilon: float,
    chunk: int | None,
    k: int | None,
    difference: bool = False,
    real_only: bool = False,
) -> TableBlocks:
    """Prepare a published release.

    Parameters
    ----------
    owner : str
        For messages.
    seqs : Sequences
        The recordings.
    epsilon : float
        Claimed budget of a block.
    chunk : int, optional
        Rows of a chunk; None for whole recordings.
    k : int, optional
        Bins to keep (all that a shorter block has); None seeks the best.
    difference : bool
        Differences inside chunks, as `dcfpa` has them.
    real_only : bool
        The reading `published-real`.
    """
    docs = documents(owner, seqs)
    pooled = (
        _prepared(everything(seqs, docs), chunk, difference)
        if any(d.people < 2 for d in docs)
        else None
    )
    by_length: dict[int, _Blocks] = {}
    cells: dict[tuple[int, int, int], int] = {}
    for number, doc in enumerate(docs):
        values = _prepared(doc, chunk, difference)
        delta_2 = largest_distance(values if pooled is None or doc.people > 1 else pooled, 2, chunk)
        size = values.shape[2] if chunk is None else chunk
        for place, (recording, length) in enumerate(
            zip(doc.recordings.tolist(), doc.lengths.tolist(), strict=True)
        ):
            for c, start in enumerate(range(0, length, size)):
                n = min(size, length - start)
                blocks = by_length.setdefault(n, _Blocks([], [], [], [], []))
                blocks.values.append(values[place, :, start : start + n])
                blocks.delta_2.append(delta_2[:, c])
                blocks.cell.append(cells.setdefault((number, c, n), len(cells)))
                blocks.recording.append(recording)
                blocks.start.append(start)
    batches = tuple(
        _batch(n, blocks, epsilon, k, difference, real_only) for n, blocks in by_length.items()
    )
    return TableBlocks(batches, seqs.lengths, len(seqs.table.columns))


def _prepared(doc: PublishedDocument, chunk: int | None, difference: bool) -> Reals:
    if not difference:
        return doc.values
    out = doc.values.copy()
    out[:, :, 1:] -= doc.values[:, :, :-1]
    size = out.shape[2] if chunk is None else chunk
    out[:, :, ::size] = doc.values[:, :, ::size]
    # The fall to 0 after the end of a shorter sequence is no difference of that sequence.
    ended = np.arange(out.shape[2]) >= doc.lengths[:, None]
    return np.where(ended[:, None, :], 0.0, out)


def _batch(
    n: int, blocks: _Blocks, epsilon: float, k: int | None, difference: bool, real_only: bool
) -> BlockBatch:
    spectra = np.fft.rfft(np.stack(blocks.values), axis=-1)
    delta_2 = np.stack(blocks.delta_2)
    many = spectra.shape[-1]
    cell = np.unique(np.array(blocks.cell), return_inverse=True)[1]
    if k is None:
        errors = _errors(difference, real_only)(spectra, n, delta_2, epsilon)
        together = np.zeros((int(cell.max()) + 1, *errors.shape[1:]))
        np.add.at(together, cell, errors)
        best = np.argmin(together, axis=-1)[cell] + 1
    else:
        best = np.full(delta_2.shape, min(k, many), dtype=np.int64)
    # Real coordinates of as many bins as any block keeps: real parts, then the imaginary parts that
    # are not 0 by symmetry.
    most = int(best.max())
    bin_number = np.concatenate((np.arange(most), np.arange(1, coordinates(n, most) - most + 1)))
    imaginary = np.arange(len(bin_number)) >= most
    values = np.concatenate(
        (spectra[..., :most].real, spectra[..., 1 : coordinates(n, most) - most + 1].imag), axis=-1
    )
    # `published-real` takes the real part of a one-sided inverse, which halves all bins but DC and
    # Nyquist.
    gain = np.where((bin_number == 0) | (2 * bin_number == n) | (not real_only), 1.0, 0.5)
    keep = bin_number < best[..., None]
    places = np.flatnonzero(keep & ~imaginary if real_only else keep)
    scale = np.broadcast_to(
        (np.sqrt(n * best) * delta_2 / epsilon)[..., None] * gain, keep.shape
    ).reshape(-1)[places]
    kept = np.where(keep, values * gain, 0.0).reshape(-1, len(bin_number))
    where = (np.array(blocks.recording, dtype=np.int64), np.array(blocks.start, dtype=np.int64))
    return BlockBatch(n, *where, kept, places, scale, delta_2, best, difference)


def _errors(
    difference: bool, real_only: bool
) -> Callable[[NDArray[np.complex128], int, Reals, float], Reals]:
    if difference:
        return dcfpa_error
    law = fpa_real_error if real_only else fpa_error
    return lambda spectra, n, delta_2, epsilon: law(
        spectra.real**2 + spectra.imag**2, n, delta_2, epsilon
    )
