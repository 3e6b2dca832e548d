"""Black-box games: against `release(...)` and the sentence it prints, without a look inside the
mechanism.

The games of :mod:`gazeveil.privacy.audit.games` look at one mechanism's noise from the inside, with
one recording and one stream. What is put together above the noise, cohorts of unequal rates, spaces
and lengths, people with several recordings, promises that are merged and lifted, keys and copies,
can be false while every draw is right. So the games here take nothing but the mechanism's `release`
(or `open`), data of their own, and `release.guarantee.map(change)`: they change the data by the
change, release both, and see whether more is lost than the map says.

Makers of such games stand by the kind of mechanism, and may give none where there is nothing to
attack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from gazeveil.errors import GazeveilError
from gazeveil.privacy.audit.black_box import identity, people, streams, tables
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.mechanism import Mechanism

#: `make(mechanism)` gives the games that a mechanism of its kind must not lose.
MakeGames: TypeAlias = Callable[[Mechanism[Any]], Iterator[Game]]

_MAKERS: dict[str, tuple[MakeGames, ...]] = {
    "stream": (streams.cohort_games, identity.releases, identity.sessions),
    "table": (tables.tables, people.shared),
    "cohort": (identity.releases, people.windows, people.shared),
    "map": (people.maps,),
    "people": (people.shared,),
}


def black_box_games(mechanism: Mechanism[Any]) -> Iterator[Game]:
    """The black-box games against a mechanism."""
    if mechanism.kind == "table":
        mechanism = tables.at_a_named_length(mechanism)
    for make in _MAKERS.get(mechanism.kind, ()):
        try:
            yield from make(mechanism)
        except (
            GazeveilError
        ) as refusal:  # of the games' own data, by parameters that do not fit them
            yield Game("user", None, f"Not played: {refusal}")
