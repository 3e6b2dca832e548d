"""What a notebook shows of a guarantee: its text, its table, and what it means for belief."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType

from gazeveil.gaze.cards import ACCENT, bar_picture, card, svg

_MOST_PEOPLE = 60


def guarantee_html(
    plain: str,
    text: str,
    rows: Iterable[tuple[str, object]],
    status: str,
    epsilons: Mapping[str, Fraction] = MappingProxyType({}),
    k: int | None = None,
) -> str:
    """A guarantee in HTML.

    Parameters
    ----------
    plain : str
        The promise in plain words.
    text : str
        The exact statement.
    rows : iterable of (str, object)
        Its table.
    status : str
        How it is known.
    epsilons : mapping of str to Fraction
        Unit -> epsilon of pure differential privacy, proved; drawn as the belief that it allows at
        most, but for what finite arithmetic may break.
    k : int, optional
        Of definitions that compare people, proved; drawn as one among so many.
    """
    picture = ""
    if epsilons:
        picture = _belief({unit: float(epsilon) for unit, epsilon in epsilons.items()})
    elif k is not None and 0 < k <= _MOST_PEOPLE:
        dots = "".join(
            f'<circle cx="{6 + 12 * (i % 30)}" cy="{6 + 12 * (i // 30)}" r="4"'
            f' fill="{ACCENT if i == 0 else "none"}" stroke="currentColor"/>'
            for i in range(k)
        )
        picture = svg(dots, f"One among {k}.", 12 * math.ceil(k / 30) + 2)
    return card(f"Guarantee ({status})", rows, picture, plain, text)


def _belief(epsilons: Mapping[str, float]) -> str:
    """What somebody may believe who held 50 % before, at most."""
    names, shares = ["belief before: 50 %"], [0.5]
    for unit, epsilon in epsilons.items():
        after = 1 / (1 + math.exp(-min(epsilon, 700.0)))
        shown = f"{100 * after:.1f}" if after < 0.9995 else ">99.9"
        names.append(f"{unit}: at most {shown} %")
        shares.append(after)
    words = (
        "Whoever knows everything but which of two neighbours is true, and believes one with 50 %,"
        " believes it with at most so much after the release."
    )
    return bar_picture(names, shares, words)
