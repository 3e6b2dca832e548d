"""Games against the identity of noise: one release has one noise for each recording, and no noise
ever serves twice.

Nothing statistical is needed: gaze is the same everywhere, so releases are equal just where their
noise is. Noise that serves two recordings, two wearers or two copies of a session is told by
subtracting them; two noises for one released recording are averaged away.
"""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

import numpy as np

from gazeveil.errors import GazeveilError
from gazeveil.gaze.cohort import Cohort, Handle
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.audit.games import GAME_SCREEN, Game
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.release import Release
from gazeveil.privacy.stream.gaussian import Gaussian
from gazeveil.privacy.stream.graded import Graded, GradedSession
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.privacy.stream.session import Session

_RATE_HZ = 100.0
_N = 400
_FEW = 7
_LEAST_PLACES = 3
_REUSED = "Both give equal gaze equal noise, so the difference of two wearers has none."


def gaze(person: str, stimulus: str = "s") -> Recording:
    """The same gaze for everybody, never at rest for long."""
    t = np.arange(_N)
    x, y = 15.0 * np.sin(t / 9.0), 8.0 * np.cos(t / 7.0)
    return Recording(person, stimulus, t * 10_000_000, x, y, space=GAME_SCREEN, rate_hz=_RATE_HZ)


def bytes_of(recording: Recording) -> bytes:
    """What was released of where gaze lies."""
    return recording.x_deg.tobytes() + recording.y_deg.tobytes()


def in_child(work: Callable[[], bytes]) -> bytes | None:
    """What a forked child makes of it; None where there are no forks, or the child refuses."""
    if not hasattr(os, "fork"):
        return None
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        try:
            os.close(read)
            with os.fdopen(write, "wb") as out:
                out.write(work())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as back:
        answer = back.read()
    os.waitpid(child, 0)
    return answer or None


class Push(Protocol):
    """Push the first samples of the same gaze into a session; what comes out of where gaze lies."""

    def __call__(self, session: Any, first: int = _N) -> bytes:
        """As bytes."""
        ...


def _reuse_game(description: str, wrong: bool, how: str) -> Game:
    return Game("recording", None, description, broken=how if wrong else "")


def releases(mechanism: Mechanism[Any]) -> Iterator[Game]:
    """Keys of recordings, of releases and of processes."""
    people = [f"p{i}" for i in range(8)]
    try:
        first, second = (mechanism.release(Cohort([gaze(p) for p in people])) for _ in range(2))
        if first.guarantee.definition == "none" or first.guarantee.status != "proved":
            return
    except GazeveilError:
        return
    if mechanism.kind == "stream":
        noisy = [bytes_of(r) for r in first.data if r.valid.any()]
        same = len(set(noisy)) < len(noisy)
        yield _reuse_game(
            "Eight recordings of equal gaze in one release.",
            same,
            "Two of them have the same noise, so their difference tells the gaze.",
        )
    again = {bytes_of(r) for r in first.data if r.valid.any()} & {bytes_of(r) for r in second.data}
    yield _reuse_game(
        "Two releases of the same recordings.",
        bool(again),
        "They share their noise, so what differs between them tells the gaze.",
    )
    lazy: Release[Cohort] = mechanism.release(
        Cohort([Handle(p, "s", partial(gaze, p)) for p in people])
    )
    item = lazy.data.items[0]
    if not isinstance(item, Handle):
        return
    child = in_child(
        lambda: bytes_of(item.load())
    )  # before the first load here, when no key may have been drawn yet
    here = bytes_of(item.load())
    yield _reuse_game(
        "A release of files, one of them loaded twice.",
        here != bytes_of(item.load()),
        "The copies differ, so their mean has less noise.",
    )
    if child is not None:
        yield _reuse_game(
            "A release of files, one of them loaded in two processes.",
            here != child,
            "The copies differ, so their mean has less noise.",
        )


def sessions(mechanism: Mechanism[Any]) -> Iterator[Game]:
    """Sessions that are reset, pickled, copied and forked."""
    if not isinstance(mechanism, StreamMechanism) or not mechanism.causal:
        return
    if mechanism.promise(_RATE_HZ, GAME_SCREEN).status == "proved":
        yield from _copies("A session", lambda: mechanism.open(_RATE_HZ, GAME_SCREEN), _push)
    if isinstance(mechanism, Gaussian) and mechanism.reading == "corrected":
        yield from _copies(
            "Shared views of one stream",
            lambda: Graded((mechanism.sigma_deg,)).open(_RATE_HZ, GAME_SCREEN),
            _view,
        )


def _push(session: Session, first: int = _N) -> bytes:
    own = gaze("p").slice(0, first)
    _, x, _, _ = session.push(own.t_ns, own.x_deg, own.y_deg, own.valid)
    return bytes(x.tobytes())


def _view(session: GradedSession, first: int = _N) -> bytes:
    own = gaze("p").slice(0, first)
    _, x, _, _ = session.push(own.t_ns, own.x_deg, own.y_deg, own.valid)[session.levels[0]]
    return bytes(x.tobytes())


def _pickled(session: Any) -> Any:
    return pickle.loads(pickle.dumps(session))


def _copies(name: str, opened: Callable[[], Any], push: Push) -> Iterator[Game]:
    session = opened()
    first = push(session)
    session.reset()
    yield _reuse_game(
        f"{name}, before and after a reset.", _reused(set(), first, push(session)), _REUSED
    )
    ways: tuple[tuple[str, Callable[[Any], Any]], ...] = (
        ("pickled", _pickled),
        ("shallowly copied", copy.copy),
        ("deeply copied", copy.deepcopy),
    )
    for how, made in ways:
        session, past = _with_past(opened, push)
        try:
            other = made(session)
        except (GazeveilError, TypeError):
            continue  # a copy that is refused reuses nothing
        yield _reuse_game(
            f"{name} and a {how} one, after the same past.",
            _reused(past, push(session), push(other)),
            _REUSED,
        )
    session, past = _with_past(opened, push)
    child = in_child(partial(push, session))
    if child is not None:
        yield _reuse_game(
            f"{name} and its fork, after the same past.",
            _reused(past, push(session), child),
            _REUSED,
        )


def _with_past(opened: Callable[[], Any], push: Push) -> tuple[Any, set[float]]:
    """A session that has released something, and what; so little that noise which was drawn ahead
    is left.
    """
    session = opened()
    past = drawn(push(session, _FEW))
    session.reset()
    return session, past


def drawn(released: bytes) -> set[float]:
    """The different places that were released within the screen; wide noise is clamped to its
    edges, where all places are equal.
    """
    x = np.frombuffer(released, dtype=np.float64)
    return set(x[np.abs(x) < 0.99 * GAME_SCREEN.width_deg / 2].tolist())


def _reused(past: set[float], first: bytes, second: bytes) -> bool:
    """Whether most new places are the same in both; what was released before may be shown again,
    since it is no news.

    Some places are equal by chance: they lie on a lattice.
    """
    new = drawn(first) - past
    return len(new) >= _LEAST_PLACES and 2 * len(new & drawn(second)) > len(new)
