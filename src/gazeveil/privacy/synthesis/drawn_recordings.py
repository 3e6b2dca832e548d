"""Recordings drawn from the events of a release."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from gazeveil.arrays import Floats
from gazeveil.gaze.cohort import Handle
from gazeveil.gaze.recording import Recording, RecordingKey
from gazeveil.privacy.randomness.keys import MasterKey
from gazeveil.privacy.randomness.rng import Source, Words
from gazeveil.privacy.synthesis.motion import Motion

#: Random bits to samples in degrees.
Draw = Callable[[Words], tuple[Floats, Floats]]


def drawn_recordings(
    draws: Mapping[RecordingKey, tuple[Motion, Draw]],
    seed: int | None,
    names: tuple[str, ...],
    lazy: bool,
) -> list[Recording | Handle]:
    """Recordings in the order of `draws`, at once or, where lazy, each time they are loaded; the
    same each time. `names` say what the random bits are for.
    """
    master = MasterKey(seed)
    items: list[Recording | Handle] = []
    for key, (motion, draw) in draws.items():
        load = partial(_recording, key, motion, draw, partial(master.source, *names, *key))
        items.append(Handle(key[0], key[1], load, key[2], key[3]) if lazy else load())
    return items


def _recording(
    key: RecordingKey, motion: Motion, draw: Draw, bits: Callable[[], Source]
) -> Recording:
    x, y = draw(Words(bits()))
    person, stimulus, session, task = key
    period_ns = 1e9 / motion.rate_hz if motion.rate_hz > 0 else 1e7
    return Recording(
        person,
        stimulus,
        np.rint(np.arange(motion.samples) * period_ns).astype(np.int64),
        x,
        y,
        space=motion.space,
        rate_hz=motion.rate_hz,
        session=session,
        task=task,
    )
