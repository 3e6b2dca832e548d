"""Kaleido as the pseudocode of David-John et al. 2023 has it, faults included; for reproducing
tables, not for protecting anybody.

* line 12 skips by time stamps;
* line 18 draws Lap(1 / epsilon_test), in degrees, without r;
* line 24 sums epsilon_pub over all earlier samples (k from i - n_raw + 1), so that each publication
  has half the budget of the one before;
* the noise is floating point. On a sphere the planar radius is an arc length along a uniform
  bearing, at most 180 degrees; on a screen the angles stop short of 90 degrees, beyond which there
  is no screen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gazeveil.arrays import Bools, Floats, Ints
from gazeveil.compiled import compiled
from gazeveil.gaze.geometry import Space, Sphere
from gazeveil.privacy.randomness.rng import Source, WordArray, Words
from gazeveil.privacy.stream.session import Samples, Stage

_BELOW_90, _BELOW_180 = math.nextafter(90.0, 0.0), math.nextafter(180.0, 0.0)

# State of a stream, by place.
_TESTED, _PUBLISHED, _LAST_TEST_NS = range(3)
_X, _Y, _REMAINING = range(3)


@compiled
def _arc_deg(x0: float, y0: float, x1: float, y1: float) -> float:
    """Haversine."""
    k = math.pi / 180.0
    h = (
        math.sin((y1 - y0) * k / 2.0) ** 2
        + math.sin(y0 * k) * math.sin(y1 * k) * math.sin((x1 - x0) * k / 2.0) ** 2
    )
    return 2.0 * math.atan2(math.sqrt(h), math.sqrt(max(0.0, 1.0 - h))) / k


@compiled
def _moved(x: float, y: float, radius: float, bearing: float, sphere: bool) -> tuple[float, float]:
    """A point at a distance in a direction."""
    if not sphere:
        a, b = x + radius * math.cos(bearing), y + radius * math.sin(bearing)
        return min(max(a, -_BELOW_90), _BELOW_90), min(max(b, -_BELOW_90), _BELOW_90)
    k = math.pi / 180.0
    rho, up = min(radius, 180.0) * k, (90.0 - y) * k
    sine = math.sin(up) * math.cos(rho) + math.cos(up) * math.sin(rho) * math.sin(bearing)
    to_up = math.asin(min(max(sine, -1.0), 1.0))
    turn = math.atan2(
        math.cos(bearing) * math.sin(rho) * math.cos(up), math.cos(rho) - math.sin(up) * sine
    )
    a = (x + turn / k) % 360.0
    return (a if a < 360.0 else 0.0), min(90.0 - to_up / k, _BELOW_180)


@compiled
def _run_published(
    t_ns: Ints,
    x_deg: Floats,
    y_deg: Floats,
    valid: Bools,
    done: int,
    marks: Ints,
    places: Floats,
    settings: Floats,
    skip_ns: int,
    sphere: bool,
    trace: Ints,
    words: WordArray,
    position: int,
) -> tuple[int, int]:
    """Samples from the done-th on, in place; a test takes one word, a publication three."""
    n = x_deg.shape[1]
    l_thresh, epsilon_test = settings[1], settings[2]
    while done < x_deg.size:
        s, i = done // n, done % n
        mark, place = marks[s], places[s]
        if valid[s, i]:
            trace[done] = 0
            if not (mark[_TESTED] == 1 and t_ns[s, i] - mark[_LAST_TEST_NS] < skip_ns):
                if position + 4 > len(words):
                    return done, position
                near = False
                if mark[_PUBLISHED] == 1:
                    x, y = x_deg[s, i], y_deg[s, i]
                    distance = (
                        _arc_deg(x, y, place[_X], place[_Y])
                        if sphere
                        else math.sqrt((x - place[_X]) ** 2 + (y - place[_Y]) ** 2)
                    )
                    word = words[position]
                    eta = (
                        -math.log((np.float64(word >> np.uint64(1)) + 0.5) * 2.0**-63)
                        / epsilon_test
                    )
                    near = distance <= l_thresh + (eta if word & np.uint64(1) else -eta)
                    position += 1
                    trace[done] = -1
                if not near:
                    budget = place[_REMAINING] / 2.0
                    place[_REMAINING] -= budget
                    e = -math.log((np.float64(words[position]) + 0.5) * 2.0**-64) - math.log(
                        (np.float64(words[position + 1]) + 0.5) * 2.0**-64
                    )
                    radius = min(e * settings[0] / budget, 1e300) if budget > 0.0 else 1e300
                    place[_X], place[_Y] = _moved(
                        x_deg[s, i],
                        y_deg[s, i],
                        radius,
                        np.float64(words[position + 2]) * (2.0**-63 * math.pi),
                        sphere,
                    )
                    mark[_PUBLISHED] = 1
                    position += 3
                    trace[done] = 1
                mark[_TESTED], mark[_LAST_TEST_NS] = 1, t_ns[s, i]
            x_deg[s, i], y_deg[s, i] = place[_X], place[_Y]
        else:
            trace[done] = -2
        done += 1
    return done, position


class _Run:
    def __init__(
        self, stage: PublishedKaleido, t: Ints, x: Floats, y: Floats, valid: Bools, rows: slice
    ) -> None:
        self.samples = (t[rows], x[rows], y[rows], valid[rows])
        self.state = (stage.marks[rows], stage.places[rows])
        self.settings, self.skip_ns, self.sphere = stage.settings, stage.skip_ns, stage.sphere

    def __call__(self, out: Ints, done: int, words: WordArray, position: int) -> tuple[int, int]:
        return _run_published(
            *self.samples,
            done,
            *self.state,
            self.settings,
            self.skip_ns,
            self.sphere,
            out,
            words,
            position,
        )


class PublishedKaleido(Stage):
    """The pseudocode, for one stream or many; parameters as its symbols, angles in degrees.

    Parameters
    ----------
    skip_ns : int
        t_skip in nanoseconds, for the comparison of times.
    skip : int
        t_skip in samples, for n_test.
    """

    def __init__(
        self,
        space: Space,
        epsilon: float,
        w: int,
        r_deg: float,
        h: float,
        skip_ns: int,
        skip: int,
        l_thresh_deg: float,
        streams: int,
        sources: Sequence[Source],
    ) -> None:
        n_test = math.ceil(w / skip)
        self.sphere, self.skip_ns = isinstance(space, Sphere), skip_ns
        self.settings = np.array([r_deg, l_thresh_deg, epsilon / (h * n_test)])
        self.budget = epsilon - epsilon / h
        self.words = [Words(s) for s in sources]
        self.marks, self.places = np.zeros((streams, 3), dtype=np.int64), np.zeros((streams, 3))
        self.trace: Ints | None = None
        self._one, self._no_words = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint64)
        self.reset()

    def reset(self) -> None:
        """A new run of the procedure."""
        self.marks[...] = 0
        self.places[:, _REMAINING] = self.budget

    def run(self, t_ns: Ints, x_deg: Floats, y_deg: Floats, valid: Bools) -> Samples:
        """The procedure's loop over what came."""
        rows, n = x_deg.shape
        if rows * n == 1:
            # Most single samples are between two tests and need no noise.
            done, _ = _run_published(
                t_ns,
                x_deg,
                y_deg,
                valid,
                0,
                self.marks,
                self.places,
                self.settings,
                self.skip_ns,
                self.sphere,
                self._one,
                self._no_words,
                0,
            )
            if done == 1:
                return t_ns, x_deg, y_deg, valid
        parts = [slice(0, rows)] if len(self.words) == 1 else [slice(s, s + 1) for s in range(rows)]
        traces = [
            words.run(_Run(self, t_ns, x_deg, y_deg, valid, part), (part.stop - part.start) * n, 1)
            for words, part in zip(self.words, parts, strict=True)
        ]
        self.trace = np.concatenate(traces).reshape(rows, n)
        return t_ns, x_deg, y_deg, valid
