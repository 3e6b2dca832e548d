"""Mechanisms by name: from Python, from `name:parameter=value,...` texts,
and from third parties.

`gazeveil.protect`: one call for every kind of mechanism, after a look at what it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gazeveil import checks
from gazeveil.features import FeatureTable
from gazeveil.gaze.cohort import Cohort
from gazeveil.gaze.recording import Recording
from gazeveil.privacy import registry
from gazeveil.privacy.mechanism import KINDS, Mechanism
from gazeveil.privacy.release import Release
from gazeveil.privacy.stream.mechanism import StreamMechanism
from gazeveil.registry import Registry, build_by_text, is_class_of

#: Built-in mechanisms: name -> (module, class). Modules are imported on first use.
BUILT_IN: dict[str, tuple[str, str]] = {
    "gaussian": ("stream.gaussian", "Gaussian"),
    "temporal": ("stream.filters", "Temporal"),
    "spatial": ("stream.filters", "Spatial"),
    "smoothing": ("stream.filters", "Smoothing"),
    "kalman": ("stream.filters", "Kalman"),
    "chain": ("stream.chain", "Chain"),
    "k-same-select": ("tables.ksame", "KSameSelect"),
    "marginals": ("tables.marginals", "Marginals"),
    "exponential-dp": ("tables.exponential", "ExponentialDP"),
    "lpa": ("tables.noisy", "LPA"),
    "fpa": ("tables.fourier", "FPA"),
    "cfpa": ("tables.fourier", "CFPA"),
    "dcfpa": ("tables.fourier", "DCFPA"),
    "dp-k-same": ("tables.dp_ksame", "DPKSame"),
    "dct-knorm": ("tables.dct_knorm", "DCTKNorm"),
    "k-same-synth": ("synthesis.ksame.mechanism", "KSameSynth"),
    "clock-render": ("synthesis.clock.render", "ClockRender"),
    "clock-render-k-same": ("synthesis.clock.render", "ClockRenderKSame"),
    "mosaic": ("synthesis.mosaic.mechanism", "Mosaic"),
    "event-synth-pd": ("synthesis.events_pd.mechanism", "EventSynthPD"),
    "heatmap-gaussian": ("heatmaps", "HeatmapGaussian"),
    "heatmap-laplace": ("heatmaps", "HeatmapLaplace"),
    "demographics": ("demographics", "Demographics"),
    "kaleido": ("stream.kaleido.mechanism", "Kaleido"),
    "kaleido-uniform": ("stream.kaleido.mechanism", "KaleidoUniform"),
    "dpgazesynth": ("synthesis.dpgazesynth.mechanism", "DPGazeSynth"),
    "dpgazesynth-one-report": ("synthesis.dpgazesynth.mechanism", "DPGazeSynthOneReport"),
}

REGISTRY: Registry[type[Mechanism[Any]]] = Registry(
    "mechanism",
    "gazeveil.privacy",
    BUILT_IN,
    is_class_of(Mechanism),
    "a class derived from gazeveil.Mechanism",
)


def register(mechanism: type[Mechanism[Any]]) -> type[Mechanism[Any]]:
    """Make a mechanism of your own known by its name; usable as a class decorator.

    Raises
    ------
    ParameterError
        For a name that is taken: built-in mechanisms cannot be replaced.
    """
    checks.one_of("register", "kind", mechanism.kind, KINDS)
    return REGISTRY.register(mechanism)


def mechanisms() -> tuple[str, ...]:
    """Names of all mechanisms, sorted."""
    return REGISTRY.names()


def get(name: str) -> type[Mechanism[Any]]:
    """The class of a mechanism."""
    return REGISTRY.get(name)


def mechanism(name: str, **parameters: object) -> Mechanism[Any]:
    """A mechanism by name.

    Parameters
    ----------
    name : str
        One of :func:`mechanisms`, or the command line's text `name:parameter=value,...`.
    **parameters
        Its parameters; `reading` chooses `published` or `corrected` (the default).

    Examples
    --------
    >>> str(mechanism("lpa:epsilon=0.1"))
    'lpa:epsilon=1/10,per=recording-feature,reading=corrected'
    """
    return build_by_text(REGISTRY, name, parameters)


#: What each kind of mechanism takes: its types, and how they are called.
_TAKES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "stream": ((Recording, Cohort), "a Recording or a Cohort"),
    "cohort": ((Cohort,), "a Cohort"),
    "map": ((Cohort,), "a Cohort: a sum of maps does not say what one viewer adds"),
    "table": ((FeatureTable,), "a FeatureTable, as event_features and window_features make one"),
    "people": ((Cohort, Mapping), "a Cohort, or a mapping of person to attributes"),
}


def protect(
    data: Recording | Cohort | FeatureTable | Mapping[str, Mapping[str, object]],
    mechanism: Mechanism[Any] | str,
    seed: int | None = None,
    keep: Iterable[str] = (),
) -> Release[Any]:
    """Protect recordings, a feature table, heat maps or what is known about people.

    Parameters
    ----------
    data : Recording, Cohort, FeatureTable, or mapping of person to attributes
        What the mechanism's kind takes: `stream` a recording or a cohort, `cohort` and `map` a
        cohort, `table` a feature table, `people` a cohort or its `people`.
    mechanism : Mechanism or str
        A mechanism, or its text `name:parameter=value,...`.
    seed : int, optional
        For tests: repeatable noise, which gives no protection.
    keep : names of channels
        Passed on as they are; stream mechanisms alone.

    Returns
    -------
    Release
        `data` is a recording, a cohort, a feature table, heat maps by stimulus, or attributes by
        person; `guarantee` says what that promises.

    Raises
    ------
    ParameterError
        For data that a mechanism of this kind does not take.

    Examples
    --------
    >>> people = {name: {"age": 20 + i, "gender": "f"} for i, name in enumerate("abcd")}
    >>> protect(people, "demographics:k=4").data["a"]
    {'age': '20-23', 'gender': 'f'}
    """
    chosen = registry.mechanism(mechanism) if isinstance(mechanism, str) else mechanism
    if not isinstance(chosen, Mechanism):
        checks.refuse("protect", "mechanism", "a mechanism or its text", mechanism)
    types, accepted = _TAKES[chosen.kind]
    if not isinstance(data, types):
        checks.refuse(
            "protect",
            "data",
            f"{accepted}, for {chosen.name} of the kind '{chosen.kind}'",
            type(data).__name__,
            "A data frame becomes one with from_frame."
            if hasattr(data, "columns")
            else "`gazeveil.mechanisms()` lists the others.",
        )
    raw = data if isinstance(data, Cohort | Recording) else None
    if isinstance(chosen, StreamMechanism):
        return replace(chosen.release(data, seed=seed, keep=keep), raw=raw)
    kept = tuple(keep)
    if kept:
        checks.refuse(
            "protect",
            "keep",
            f"empty: {chosen.name} makes everything anew, so nothing of the raw data can be kept",
            kept,
            "Leave it out, or choose a mechanism of the kind 'stream'.",
        )
    if chosen.kind == "people" and isinstance(data, Cohort):
        data = data.people
    return replace(chosen.release(data, seed=seed), raw=raw)
