"""Our detectors and stream mechanisms as methods of pymovements (extra `pymovements`).

:func:`register_in_pymovements` adds them to pymovements' libraries under names that begin with
`gazeveil_`::

    import pymovements as pm
    from gazeveil.privacy.pymovements import register_in_pymovements

    register_in_pymovements()
    gaze.detect("gazeveil_auto")                       # fixations, saccades, pursuit, ...
    gaze.transform("gazeveil_gaussian", sigma_deg=2)   # `position` is protected in place

A transform protects one line of sight, so it takes a `position` of two components; gaze of both
eyes is refused, because a second eye released beside the first would spend the budget twice. So is
gaze with other columns that tell of raw gaze (`pixel`, `velocity`, `acceleration`, `pupil`, and
labels of samples): a protected column beside a raw one protects nothing. Events that were detected
before stay as they are. What is promised is `gazeveil.mechanism(...).promise(rate_hz, space)`;
pymovements has no place for it.

:func:`protect_gaze` releases a whole `Gaze` through any stream mechanism: the result has only what
the mechanism protects, and its metadata carry the guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gazeveil import checks
from gazeveil.arrays import Floats, Ints
from gazeveil.errors import DataError
from gazeveil.events import METHODS, detect
from gazeveil.gaze.geometry import TYPICAL_SCREEN, Screen
from gazeveil.gaze.recording import Recording, are_plain
from gazeveil.io.adapters.pymovements import from_pymovements, load_pymovements, to_pymovements
from gazeveil.privacy import registry
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.registry import get, mechanisms
from gazeveil.privacy.stream.mechanism import StreamMechanism

if TYPE_CHECKING:
    import polars as pl

_PREFIX = "gazeveil_"
_RAW_COLUMNS = ("pixel", "velocity", "acceleration", "pupil", "pupil_size", "pupil_diameter")


def register_in_pymovements() -> tuple[str, ...]:
    """Add our detectors and stream mechanisms to pymovements' libraries.

    Returns
    -------
    tuple of str
        Their names there, sorted. Registering again replaces them.

    Raises
    ------
    MissingExtraError
        Without pymovements.
    """
    pm = load_pymovements()
    detectors = [_detector(pm, name) for name in METHODS]
    for method in detectors:
        pm.events.register_event_detection(method)
    protections = [_transform(name) for name in mechanisms() if get(name).kind == "stream"]
    for method in protections:
        pm.transforms.register_transform(method)
    return tuple(sorted(method.__name__ for method in (*detectors, *protections)))


def protect_gaze(
    gaze: object,
    mechanism: StreamMechanism | str,
    seed: int | None = None,
    keep: Iterable[str] = (),
) -> Any:
    """A protected copy of a pymovements `Gaze`.

    Parameters
    ----------
    gaze : pymovements.Gaze
        With a `position` column, or a `pixel` column and a whole screen geometry.
    mechanism : StreamMechanism or str
        A mechanism, or the command line's text for one.
    seed : int, optional
        A test stream.
    keep : names
        Channels to pass on as they are, as in :meth:`StreamMechanism.release`.

    Returns
    -------
    pymovements.Gaze
        Times and protected positions in degrees; `metadata["guarantee"]` says what they promise.

    Raises
    ------
    MissingExtraError
        Without pymovements.
    ParameterError
        For another kind of mechanism or of gaze.
    """
    pm = load_pymovements()
    chosen = (
        registry.mechanism(mechanism if ":" in mechanism else f"{mechanism}:")
        if isinstance(mechanism, str)
        else mechanism
    )
    if not isinstance(chosen, StreamMechanism):
        checks.refuse(
            "protect_gaze", "mechanism", "a mechanism on streams", getattr(chosen, "name", chosen)
        )
    if not isinstance(gaze, pm.Gaze):
        checks.refuse("protect_gaze", "gaze", "a pymovements Gaze", type(gaze).__name__)
    recording = from_pymovements(gaze)
    assert isinstance(recording, Recording)
    release = chosen.release(recording, seed=seed, keep=keep)
    result: Any = to_pymovements(release.data)
    result.metadata["guarantee"] = str(release.guarantee)
    return result


def _named(method: Callable[..., Any], name: str, purpose: str) -> Callable[..., Any]:
    method.__name__ = method.__qualname__ = _PREFIX + name.replace("-", "_")
    method.__doc__ = purpose
    return method


def _detector(pm: Any, name: str) -> Callable[..., Any]:
    """A detector as pymovements calls it."""

    def method(positions: Any, timesteps: Any = None, **parameters: object) -> Any:
        places = _places(positions)
        steps = np.arange(len(places)) if timesteps is None else np.asarray(timesteps)
        found = detect(_recording(steps, places, TYPICAL_SCREEN, None), name, **parameters)
        kept = found.where(found.kind != "undefined")
        return pm.Events(
            name=[str(k) for k in kept.kind],
            onsets=steps[kept.onset].tolist(),
            offsets=steps[kept.offset].tolist(),
        )

    return _named(
        method,
        name,
        f"Events by gazeveil.detect(method={name!r}): positions in degrees, timesteps in ms.",
    )


def _transform(name: str) -> Callable[..., Any]:
    """A stream mechanism as pymovements calls it; it fills in what the experiment knows."""

    def method(
        *,
        screen_resolution: tuple[float, float],
        screen_size: tuple[float, float],
        distance: float | str,
        sampling_rate: float,
        n_components: int,
        position_column: str = "position",
        seed: int | None = None,
        **parameters: object,
    ) -> pl.Expr:
        import polars as pl

        if n_components != 2:
            raise DataError(
                f"{_PREFIX}{name} protects one line of sight, and this Gaze has"
                f" {n_components} components. Keep one eye, or protect"
                " gazeveil.io.adapters.pymovements.from_pymovements(gaze)."
            )
        if isinstance(distance, str):
            raise DataError(
                f"{_PREFIX}{name} needs one distance of the screen. Give the Experiment one and"
                f" drop the column '{distance}'."
            )
        width_cm, height_cm = screen_size
        screen = Screen(*screen_resolution, 10 * width_cm, 10 * height_cm, 10 * distance)
        chosen = registry.mechanism(name, **parameters)

        def protect(samples: pl.Series) -> pl.Series:
            frame = samples.struct.unnest()
            return _protected(frame, position_column, chosen, screen, float(sampling_rate), seed)

        return (
            pl.struct(pl.all())
            .map_batches(protect, return_dtype=pl.List(pl.Float64))
            .alias(position_column)
        )

    return _named(
        method,
        name,
        f"The position column protected by gazeveil.mechanism({name!r}, ...): {get(name).summary}",
    )


def _protected(
    frame: pl.DataFrame,
    column: str,
    chosen: Mechanism[Any],
    screen: Screen,
    rate_hz: float,
    seed: int | None,
) -> pl.Series:
    """The column of positions as a mechanism releases it."""
    import polars as pl

    others = [c for c in frame.columns if c != column]
    raw = [c for c in others if c in _RAW_COLUMNS or c.startswith("label:")]
    if raw:
        raise DataError(
            f"The columns {', '.join(raw)} hold raw gaze beside what is to be protected."
            " Drop them first: gaze.samples = gaze.samples.drop(...)."
        )
    recording = _recording(frame["time"].to_numpy(), _places(frame[column]), screen, rate_hz)
    released = chosen.release(recording, seed=seed).data
    if len(released) != len(recording):
        raise DataError(
            f"{chosen} changes the number of samples, which a transform cannot. Use"
            " gazeveil.io.adapters.pymovements.from_pymovements(gaze)."
        )
    x, y = (np.where(released.valid, v, np.nan) for v in (released.x_deg, released.y_deg))
    return pl.Series(column, np.stack((x, y), axis=1).tolist(), pl.List(pl.Float64))


def _places(positions: Any) -> Floats:
    """Positions as (n, 2), NaN where lost; a lost sample may be empty as a whole."""
    rows = positions.to_list() if hasattr(positions, "to_list") else list(positions)
    return np.array([(np.nan, np.nan) if r is None else r for r in rows], dtype=np.float64).reshape(
        -1, 2
    )


def _recording(
    milliseconds: Floats | Ints, places: Floats, screen: Screen, rate_hz: float | None
) -> Recording:
    t_ns = np.round(np.asarray(milliseconds, dtype=np.float64) * 1e6).astype(np.int64)
    x, y = places[:, 0].copy(), places[:, 1].copy()
    valid = np.isfinite(x) & np.isfinite(y) & are_plain(screen, x, y)
    return Recording(
        "gaze",
        "pymovements",
        t_ns,
        x,
        y,
        valid,
        screen,
        rate_hz,  # type: ignore[arg-type]
    )
