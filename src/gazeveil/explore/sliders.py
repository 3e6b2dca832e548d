"""Which parameter of a mechanism is moved, and over which values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gazeveil import checks
from gazeveil.errors import ParameterError
from gazeveil.privacy.mechanism import Mechanism
from gazeveil.privacy.registry import mechanism

#: Seconds of the windows of mechanisms that count them in samples.
WINDOW_S = 0.5

#: Kinds whose releases are recordings: they have a trace, and attackers can look at them.
KINDS = ("stream", "cohort")

#: `{w}` is half a second of samples at the rate of the recordings.
_DEFAULT = (
    "gaussian:sigma_deg=1/2|1|2|5|10",
    "temporal:K=2|3|5|10",
    "spatial:L=256|128|64|32",
    "kaleido:epsilon=30|10|3|1,w={w},r_deg=2",
    "clock-render:epsilon=30|10|3|1,r_deg=2,form=offline",
    "k-same-synth:k=2|3|4,match=crowd",
    "event-synth-pd:k=2|3|4,gamma=4",
    "dpgazesynth-one-report:epsilon=10|3|1",
    "mosaic:piece_s=5|3|2,epsilon=10,r_deg=2,crowd=4",
)


@dataclass(frozen=True)
class Slider:
    """A mechanism and the values of the one parameter that is moved: as the command line has them,
    weak protection first where the built-in ones say so, and the mechanism's text at each.
    """

    parameter: str
    values: tuple[str, ...]
    texts: tuple[str, ...]

    @property
    def mechanism(self) -> Mechanism[object]:
        """The mechanism at the first value."""
        return mechanism(self.texts[0])

    @property
    def public_texts(self) -> tuple[str, ...]:
        """The texts as a page may show them: of a file its name, not where it lies."""
        made = [mechanism(text) for text in self.texts]
        pairs = zip(self.texts, made, strict=True)
        return tuple(t if m.public_text == str(m) else m.public_text for t, m in pairs)


def parse_slider(text: str) -> Slider:
    """A slider from a mechanism's text `name:parameter=value|value|...,other=value,...`; a text
    without `|` has one value.

    Raises
    ------
    ParameterError
        For more than one moved parameter, or a mechanism that cannot be made.

    Examples
    --------
    >>> parse_slider("kaleido:epsilon=1|3,w=60,r_deg=2").texts
    ('kaleido:epsilon=1,w=60,r_deg=2', 'kaleido:epsilon=3,w=60,r_deg=2')
    """
    name, _, rest = text.partition(":")
    pairs = [pair.partition("=")[::2] for pair in rest.split(",")] if rest else []
    moved = [key.strip() for key, value in pairs if "|" in value]
    if len(moved) > 1:
        raise ParameterError(
            f"One parameter is moved, and '{text}' moves {' and '.join(moved)}. Give all but one a"
            " single value.",
            name="mechanism",
            got=text,
        )
    parameter = moved[0] if moved else (pairs[0][0].strip() if pairs else "")
    values = next(
        (tuple(v.strip() for v in value.split("|")) for key, value in pairs if key == parameter),
        ("",),
    )
    texts = tuple(
        name
        + (":" if pairs else "")
        + ",".join(f"{key}={value if key == parameter else given}" for key, given in pairs)
        for value in values
    )
    for one in texts:
        made = mechanism(one)
        if made.kind not in KINDS:
            checks.refuse(
                "explore",
                "mechanism",
                "one whose releases are recordings (kind stream or cohort)",
                one,
                "`gazeveil list mechanisms` lists the kinds.",
            )
    return Slider(parameter, values, texts)


def sliders(rate_hz: float, texts: Sequence[str] = ()) -> tuple[Slider, ...]:
    """The sliders of a page.

    Parameters
    ----------
    rate_hz : float
        Of the recordings: windows of half a second are counted in samples.
    texts : sequence of str
        Mechanisms of one's own (:func:`parse_slider`); the built-in choice where there are none.

    Examples
    --------
    >>> sliders(120.0)[3].texts[1]
    'kaleido:epsilon=10,w=60,r_deg=2'
    """
    w = str(max(1, round(WINDOW_S * rate_hz)))
    return tuple(parse_slider(text.replace("{w}", w)) for text in texts or _DEFAULT)
