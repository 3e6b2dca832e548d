"""Mechanisms by name: from Python, from `name:parameter=value,...` texts,
and from third parties.
"""

from __future__ import annotations

from typing import Any

from gazeveil import checks
from gazeveil.privacy.mechanism import KINDS, Mechanism
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
