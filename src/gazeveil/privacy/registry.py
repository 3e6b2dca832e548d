"""Mechanisms by name: from Python, from `name:parameter=value,...` texts, and from third parties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Protocol, TypeVar

from gazeveil import checks
from gazeveil.errors import ParameterError
from gazeveil.privacy.mechanism import KINDS, Mechanism

#: Built-in mechanisms: name -> (module, class). Modules are imported on first use.
BUILT_IN: dict[str, tuple[str, str]] = {
    "gaussian": ("stream.gaussian", "Gaussian"),
    "gaussian-fixation": ("stream.gaussian_fixation", "GaussianFixation"),
    "temporal": ("stream.downsample", "Temporal"),
    "spatial": ("stream.downsample", "Spatial"),
    "spatial-equal-area": ("stream.downsample", "SpatialEqualArea"),
    "smoothing": ("stream.smooth", "Smoothing"),
    "kalman": ("stream.smooth", "Kalman"),
    "chain": ("stream.chain", "Chain"),
    "k-same-select": ("tables.ksame", "KSameSelect"),
    "marginals": ("tables.marginals", "Marginals"),
    "exponential-dp": ("tables.exponential", "ExponentialDP"),
    "lpa": ("tables.laplace", "LPA"),
    "fpa": ("tables.fourier", "FPA"),
    "cfpa": ("tables.chunked", "CFPA"),
    "dcfpa": ("tables.chunked", "DCFPA"),
    "dp-k-same": ("tables.dp_ksame", "DPKSame"),
    "dct-knorm": ("tables.dct_knorm", "DCTKNorm"),
    "k-same-synth": ("synthesis.ksame_synth", "KSameSynth"),
    "clock-render": ("synthesis.clock_render", "ClockRender"),
    "clock-render-k-same": ("synthesis.clock_k_same", "ClockRenderKSame"),
    "clock-render-dp-k-same": ("synthesis.clock_dp_k_same", "ClockRenderDPKSame"),
    "event-synth-pd": ("synthesis.event_synth", "EventSynthPD"),
    "heatmap-gaussian": ("maps.heatmap", "HeatmapGaussian"),
    "heatmap-laplace": ("maps.heatmap", "HeatmapLaplace"),
    "demographics": ("people.demographics", "Demographics"),
    "kaleido": ("stream.kaleido", "Kaleido"),
    "kaleido-reserve": ("stream.kaleido", "KaleidoReserve"),
    "kaleido-uniform": ("stream.kaleido", "KaleidoUniform"),
    "dpgazesynth": ("synthesis.dpgazesynth.mechanism", "DPGazeSynth"),
    "dpgazesynth-one-report": ("synthesis.dpgazesynth.mechanism", "DPGazeSynthOneReport"),
}


class _Named(Protocol):
    """A dataclass with a name of its own."""

    name: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


Named = TypeVar("Named", bound=_Named)

_REGISTERED: dict[str, type[Mechanism[Any]]] = {}


def register(mechanism: type[Mechanism[Any]]) -> type[Mechanism[Any]]:
    """Make a mechanism of your own known by its name; usable as a class decorator.

    Raises
    ------
    ParameterError
        For a name that is taken: nobody may replace a built-in mechanism.
    """
    name = mechanism.name
    if name in BUILT_IN or name in _REGISTERED:
        checks.refuse("register", "name", "one that is not taken", name, "Choose another name.")
    checks.one_of("register", "kind", mechanism.kind, KINDS)
    _REGISTERED[name] = mechanism
    return mechanism


def mechanisms() -> tuple[str, ...]:
    """Names of all mechanisms, sorted."""
    return tuple(sorted({*BUILT_IN, *_REGISTERED}))


def get(name: str) -> type[Mechanism[Any]]:
    """The class of a mechanism."""
    checks.one_of("mechanism", "name", name, mechanisms())
    return _REGISTERED[name] if name in _REGISTERED else _built_in(name)


@cache
def _built_in(name: str) -> type[Mechanism[Any]]:
    module, attribute = BUILT_IN[name]
    found: type[Mechanism[Any]] = getattr(import_module(f"gazeveil.privacy.{module}"), attribute)
    return found


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
    if ":" in name:
        name, given = parse(name)
        parameters = {**given, **parameters}
    return build("Mechanism", get(name), parameters)


def build(what: str, cls: type[Named], parameters: Mapping[str, object]) -> Named:
    """A value of a dataclass with a name, from parameters a user wrote; unknown and missing ones are named.

    Parameters
    ----------
    what : str
        What it is, to begin the message with: `Mechanism`, `Attack`.
    cls : type
        A dataclass with a class attribute `name`.
    parameters : mapping
        Its parameters.
    """
    name = cls.name
    known = [f.name for f in fields(cls)]
    for one in parameters:
        if one not in known:
            near = get_close_matches(one, known, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else "It takes: " + (", ".join(known) or "none") + "."
            raise ParameterError(f"{what} {name} has no parameter '{one}'. {hint}", name=one, got=parameters[one])
    missing = [f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING and f.name not in parameters]
    if missing:
        # All required ones are shown, with what was given, so that the text can be taken as it is; 4 is a value that all of them allow.
        given = ",".join(f"{f}={parameters.get(f, 4)}" for f in known if f in parameters or f in missing)
        names = " and ".join(f"'{one}'" for one in missing)
        raise ParameterError(
            f"{what} {name} needs the parameter{'s' * (len(missing) > 1)} {names}. Write for example {name}:{given}.", name=missing[0], got=None
        )
    # `none` is a word where the parameter is a word, and nothing where it may be left out.
    words = {f.name for f in fields(cls) if isinstance(f.default, str)}
    return cls(**{n: "none" if v is None and n in words else v for n, v in parameters.items()})


def parse(text: str, what: str = "A mechanism") -> tuple[str, dict[str, object]]:
    """Take `name:parameter=value,...` apart; numbers stay text, so that they stay exact.

    Examples
    --------
    >>> parse("kaleido:epsilon=1,w=50,r_deg=2,reading=published")
    ('kaleido', {'epsilon': '1', 'w': 50, 'r_deg': '2', 'reading': 'published'})
    """
    name, _, rest = text.partition(":")
    parameters: dict[str, object] = {}
    for pair in filter(None, rest.split(",")):
        key, sign, value = pair.partition("=")
        if not sign or not key.strip() or not value.strip():
            raise ParameterError(f"{what} is written name:parameter=value,... Got '{pair}' in '{text}' instead.", name="mechanism", got=text)
        parameters[key.strip()] = _value(key.strip(), value.strip())
    return name.strip(), parameters


def _value(key: str, text: str) -> object:
    if text in {"True", "true"}:
        return True
    if text in {"False", "false"}:
        return False
    if text in {"None", "none"}:
        return None
    # Exact quantities take text as it is; counts are whole numbers.
    if key not in {"epsilon", "epsilon0", "gamma", "delta", "rho", "sigma_deg", "r_deg", "l_thresh_deg"}:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
    return text
