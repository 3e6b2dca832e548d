"""One planted bug: a change of the library that makes a promise false, and who must notice it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest

#: Of the refutation of a plant, as audits have it by default.
CONFIDENCE = 0.999

#: Of the library as it is: some forty audits, with several games each, must raise no alarm.
SURE = 1 - 1e-7


@dataclass(frozen=True)
class Plant:
    """One mutant of the library.

    Parameters
    ----------
    name : str
        In a few words.
    wrong : str
        One sentence: what the mutant does wrong.
    change : callable
        Patches the library through a :class:`pytest.MonkeyPatch`; a name that is no longer there is
        an error.
    tests : tuple of str
        Test ids of which at least one must fail.
    audit : str
        The mechanism whose audit must refute it; empty where an audit cannot see it.
    trials : int
        Of that audit.
    black_box : bool
        Whether black-box games are needed; the mechanism's own game is quicker alone.
    """

    name: str
    wrong: str
    change: Callable[[pytest.MonkeyPatch], None]
    tests: tuple[str, ...]
    audit: str = ""
    trials: int = 4000
    black_box: bool = True

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The library with the bug in it."""
        with pytest.MonkeyPatch.context() as patch:
            self.change(patch)
            yield

    def refuted(self, confidence: float = CONFIDENCE) -> bool:
        """Whether the audit refutes the mechanism as the library is now; it ends with the first
        game that does.
        """
        from gazeveil.privacy.audit.run import BLACK_BOX_TRIALS, black_box_games, judge
        from gazeveil.privacy.registry import mechanism

        chosen = mechanism(self.audit)
        games = itertools.chain(
            ((chosen.audit_game(None), self.trials),),
            ((game, min(self.trials, BLACK_BOX_TRIALS)) for game in black_box_games(chosen)),
        )
        played = games if self.black_box else itertools.islice(games, 1)
        return any(judge(self.audit, game, trials, confidence).refuted for game, trials in played)


def everywhere(
    patch: pytest.MonkeyPatch, module: str, name: str, make: Callable[[Any], Any]
) -> None:
    """Replace a function in its module and in every module that has imported it.

    Parameters
    ----------
    patch : pytest.MonkeyPatch
        Undoes it.
    module, name : str
        Where the function is, below `gazeveil`.
    make : callable
        Makes the mutant from the original.
    """
    from gazeveil.privacy.registry import get, mechanisms

    # A mechanism that is loaded while the bug is planted would keep it.
    for each in mechanisms():
        get(each)
    home = import_module(f"gazeveil.{module}")
    old = getattr(home, name)
    new = make(old)
    for at, loaded in tuple(sys.modules.items()):
        if at.startswith("gazeveil") and loaded is not None:
            for known, value in tuple(vars(loaded).items()):
                if value is old:
                    patch.setattr(loaded, known, new)
    assert getattr(home, name) is new


def method(
    patch: pytest.MonkeyPatch, module: str, owner: str, name: str, make: Callable[[Any], Any]
) -> None:
    """Replace a method or property of a class; a class that no longer has it is an error."""
    cls = getattr(import_module(f"gazeveil.{module}"), owner)
    if name not in vars(cls):
        raise AttributeError(
            f"{owner} has no '{name}' of its own: this plant no longer fits the library."
        )
    patch.setattr(cls, name, make(vars(cls)[name]))
