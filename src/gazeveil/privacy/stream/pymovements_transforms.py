"""Stream mechanisms for pymovements (extra `pymovements`).

* :func:`register` makes `gaussian`, `spatial` and `spatial-equal-area` known to pymovements as the
  transforms `gazeveil_gaussian`, `gazeveil_spatial` and `gazeveil_spatial_equal_area`. A transform
  changes the position column alone: times, pixels, pupil and everything else in the frame stay as
  they were, so it is a tool for studies, not a release.
* :func:`protect` releases a whole `Gaze` through any stream mechanism: the result has only what the
  mechanism protects, and its metadata carry the guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import numpy as np

from gazeveil import checks
from gazeveil.errors import DataError, MissingExtraError
from gazeveil.gaze.geometry import Screen, Space, Sphere
from gazeveil.gaze.recording import Recording
from gazeveil.privacy.registry import mechanism as by_name
from gazeveil.privacy.stream.mechanism import StreamMechanism

#: Mechanisms that take every sample by itself, and so can be transforms.
ELEMENTWISE = ("gaussian", "spatial", "spatial-equal-area")

# Elementwise mechanisms only ask whether degrees are those of a sphere or of some screen.
_SOME_SCREEN = Screen(1.0, 1.0, 1.0, 1.0, 1.0)


def _pymovements() -> Any:
    try:
        return import_module("pymovements")
    except ImportError as error:
        raise MissingExtraError("pymovements", "pymovements") from error


def protect(
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
    pm = _pymovements()
    from gazeveil.io.adapters.pymovements import from_pymovements, to_pymovements

    chosen = (
        by_name(mechanism if ":" in mechanism else f"{mechanism}:")
        if isinstance(mechanism, str)
        else mechanism
    )
    if not isinstance(chosen, StreamMechanism):
        checks.refuse(
            "protect", "mechanism", "a mechanism on streams", getattr(chosen, "name", chosen)
        )
    if not isinstance(gaze, pm.Gaze):
        checks.refuse("protect", "gaze", "a pymovements Gaze", type(gaze).__name__)
    recording = from_pymovements(gaze)
    assert isinstance(recording, Recording)
    release = chosen.release(recording, seed=seed, keep=keep)
    result: Any = to_pymovements(release.data)
    result.metadata["guarantee"] = str(release.guarantee)
    return result


def register() -> tuple[str, ...]:
    """Make the elementwise mechanisms known to pymovements; their names there.

    Examples
    --------
    ``register(); gaze.transform("gazeveil_gaussian", sigma_deg=2)``
    """
    library = _pymovements().transforms
    transforms = [_transform(name) for name in ELEMENTWISE]
    for transform in transforms:
        library.register_transform(transform)
    return tuple(transform.__name__ for transform in transforms)


def _transform(name: str) -> Callable[..., Any]:
    def transform(
        *,
        n_components: int,
        position_column: str = "position",
        space: str = "screen",
        seed: int | None = None,
        **parameters: object,
    ) -> Any:
        import polars as pl

        chosen = by_name(name, **parameters)
        assert isinstance(chosen, StreamMechanism)
        where: Space = (
            Sphere()
            if checks.one_of(name, "space", space, ("screen", "sphere")) == "sphere"
            else _SOME_SCREEN
        )
        if n_components != 2 and chosen.claims[chosen.reading].definition != "none":
            raise DataError(
                f"{name} adds noise to one line of sight, and this gaze has {n_components}"
                " components. Use gazeveil's protect(gaze, mechanism)."
            )

        def change(column: Any) -> Any:
            return _changed(pl, chosen, column, n_components, where, seed)

        return pl.col(position_column).map_batches(change, return_dtype=pl.List(pl.Float64))

    transform.__name__ = "gazeveil_" + name.replace("-", "_")
    transform.__doc__ = (
        f"Gazeveil's {name} on a position column in degrees; parameters as in"
        f" gazeveil.mechanism('{name}', ...)."
    )
    return transform


def _changed(
    pl: Any, chosen: StreamMechanism, column: Any, components: int, space: Space, seed: int | None
) -> Any:
    """The list column with every pair of components released; a lost sample is NaN."""
    values = np.stack(
        [
            column.list.get(i).cast(pl.Float64).fill_null(float("nan")).to_numpy()
            for i in range(components)
        ],
        axis=1,
    )
    for i in range(0, components - 1, 2):
        session = chosen.open(1.0, space, seed)
        ticks = np.arange(len(values), dtype=np.int64)
        _, x, y, _ = session.push(
            ticks, values[:, i], values[:, i + 1], np.ones(len(values), dtype=np.bool_)
        )
        values[:, i], values[:, i + 1] = x, y
    return pl.Series(column.name, values.tolist(), dtype=pl.List(pl.Float64))
