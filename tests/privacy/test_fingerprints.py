"""The same input and test seed give the same release before and after a change of the code.

A stated change of a mechanism's law renews its line: `python -m tests.privacy.test_fingerprints`;
texts of new mechanisms after it are added.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazeveil.features.table import FeatureTable, Keys
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.geometry import Screen, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy import registry
from gazeveil.privacy.stream.graded import Graded

FILE = Path(__file__).with_name("fingerprints.json")
SEED = 20260

#: Case -> digest: a mechanism on data of its kind, or a noise of the Gatekeeper.
FINGERPRINTS: dict[str, str] = json.loads(FILE.read_text("utf-8"))


def recording(person: int, stimulus: int, n: int = 300) -> Recording:
    """Fixations, jumps and a little loss, in binary fractions that all machines hold exactly."""
    sample = np.arange(n)
    fixation = sample // (23 + person % 5)
    code = (fixation * 7919 + person * 104_729 + stimulus * 1_299_709) % 4096
    tremor = (sample * sample * 31 + person) % 17 / 128
    x_deg, y_deg = 168 + code % 64 / 2 + tremor, 78 + code // 64 / 2 - tremor
    lost = (sample + 13 * person) % 97 < 3
    return Recording(
        f"p{person:02}",
        f"s{stimulus}",
        sample * 10_000_000,
        np.where(lost, np.nan, x_deg),
        np.where(lost, np.nan, y_deg),
        ~lost,
        space=Sphere(),
        rate_hz=100.0,
    )


@cache
def cohort() -> Cohort:
    return Cohort([recording(person, stimulus) for person in range(12) for stimulus in range(2)])


def people() -> dict[str, dict[str, object]]:
    return {f"p{i}": {"age": 23 + i * 7 % 12, "gender": "fm"[i % 2]} for i in range(40)}


def table() -> FeatureTable:
    names = [(f"p{person}", f"s{stimulus}", "1", "") for person in range(12) for stimulus in (0, 1)]
    keys = Keys.of_recordings(names, [np.arange(40, dtype=np.int64)] * len(names))
    row = np.arange(len(keys))
    values = np.stack([(row * row * prime + row // 40 * 211) % 1024 / 1024 for prime in (3, 5, 7)])
    bounds = np.array([[0.0, 1.0], [0.0, 2.0], [-1.0, 1.0]])
    return FeatureTable(values.T, ("a", "b", "c"), keys, bounds)


def screen_recording() -> Recording:
    sphere = recording(1, 1)
    screen = Screen(1280, 720, 600.0, 340.0, 600.0)
    return sphere.with_(x_deg=sphere.x_deg - 180, y_deg=sphere.y_deg - 90, space=screen)


def texts(value: Any) -> Iterator[str]:
    """All values of released data; real numbers with the nine digits that all machines share."""
    if isinstance(value, np.ndarray):
        yield f"{value.dtype.kind}{value.shape}"
        yield from texts(value.ravel().tolist())
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from texts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield str(key)
            yield from texts(part)
    elif isinstance(value, float):
        yield f"{value + 0.0:.9g}"
    elif isinstance(value, list | tuple | Cohort):
        for part in value:
            yield from texts(part)
    elif value is not None:
        yield str(value)


def digest(value: Any) -> str:
    return hashlib.sha256("\n".join(texts(value)).encode()).hexdigest()[:16]


def graded() -> Any:
    """The Gatekeeper's views of a device: declared, late and finer than all before."""
    session = Graded((2, 8)).open(100.0, seed=SEED)
    session.declare(4)
    gaze = recording(3, 0)
    views = session.push(gaze.t_ns, gaze.x_deg, gaze.y_deg, gaze.valid)
    return [view[1:] for view in views.values()]


def fingerprint(case: str) -> str:
    text, _, where = case.partition(" ")
    if text == "graded":
        return digest(graded())
    mechanism = registry.mechanism(text)
    if where:
        data: Any = screen_recording()
    elif mechanism.kind == "stream":
        data = recording(1, 1)
    else:
        data = {"table": table, "people": people}.get(mechanism.kind, cohort)()
    return digest(mechanism.release(data, seed=SEED).data)


@pytest.mark.parametrize("case", FINGERPRINTS)
def test_the_same_seed_gives_the_same_release(case: str) -> None:
    assert fingerprint(case) == FINGERPRINTS[case]


def test_every_mechanism_has_a_fingerprint_in_each_reading() -> None:
    texts = {case.split(" ")[0] for case in FINGERPRINTS} - {"graded"}
    found = {(m.name, m.reading) for m in map(registry.mechanism, texts)}
    assert found == {(n, r) for n in registry.BUILT_IN for r in registry.get(n).claims}
    assert "graded" in FINGERPRINTS


if __name__ == "__main__":
    made = {case: fingerprint(case) for case in (*FINGERPRINTS, *sys.argv[1:])}
    FILE.write_text(json.dumps(made, indent=1) + "\n", "utf-8")
