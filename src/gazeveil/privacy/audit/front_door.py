"""The front door: games against `release(...)` and the sentence it prints, played as a stranger would play them.

The games of :mod:`gazeveil.privacy.audit.games` look at one mechanism's noise from the inside, with one recording and one stream. What is put
together above the noise, cohorts of unequal rates, spaces and lengths, people with several recordings, promises that are merged and lifted,
keys and copies, can be false while every draw is right. So the games here take nothing but the mechanism's `release` (or `open`), data of
their own, and `release.guarantee.map(change)`: they change the data by the change, release both, and see whether more is lost than the map says.

A maker of such games is registered by the kind of mechanism, and may give none where it has nothing to attack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, TypeAlias

from gazeveil.errors import GazeveilError
from gazeveil.privacy.audit.games import Game
from gazeveil.privacy.mechanism import Mechanism

#: `make(mechanism)` gives the games that a mechanism of its kind must not lose.
MakeGames: TypeAlias = Callable[[Mechanism[Any]], Iterator[Game]]

_MAKERS: dict[str, list[MakeGames]] = {}

# Modules that register makers.
_MODULES = ("front_streams", "front_identity", "front_tables", "front_people")


def front_door(*kinds: str) -> Callable[[MakeGames], MakeGames]:
    """Register a maker of games for mechanisms of those kinds."""

    def remember(make: MakeGames) -> MakeGames:
        for kind in kinds:
            _MAKERS.setdefault(kind, []).append(make)
        return make

    return remember


def front_games(mechanism: Mechanism[Any]) -> Iterator[Game]:
    """The games against a mechanism's front door."""
    for module in _MODULES:
        import_module(f"gazeveil.privacy.audit.{module}")
    for make in _MAKERS.get(mechanism.kind, ()):
        try:
            yield from make(mechanism)
        except GazeveilError as refusal:  # of the games' own data, by parameters that do not fit them
            yield Game("user", None, f"Not played: {refusal}")
