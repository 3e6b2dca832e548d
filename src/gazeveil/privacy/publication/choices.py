"""Options of a publication; every default is the safe one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

from gazeveil import checks
from gazeveil.privacy.rational import Number, exact

#: Fields that are made anew unless `keep` names them, and what is then not covered.
FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "person": "the names of people",
        "session": "the names of sessions",
        "stimulus": "the names of stimuli",
        "task": "the names of tasks",
        "times": "the tracker's own times",
        "rate": "the rate of each recording",
        "attributes": "the attributes of people",
    }
)

#: Other names of channels that `keep` of a stream mechanism takes.
SYNONYMS: Mapping[str, str] = MappingProxyType({"t_ns": "times"})

_MOST_HZ = 100_000


@dataclass(frozen=True)
class PublicationChoices:
    """Choices of a publication.

    Parameters
    ----------
    keep : tuple of str
        Fields that go out as they are: those of :data:`FIELDS`, channels that the release kept, or
        single attributes of people. Each is printed under what is not covered.
    to : str
        The format: `parquet`, `csv`, `bids` or `same`.
    rate_hz : number, optional
        The public rate in Hz; left out, the usual rate nearest to those of the recordings.
    durations : {"keep", "common"} or mapping of stimulus to seconds
        The public lengths of recordings. `keep`: each has its own, which is then not covered.
        `common`: all recordings of a stimulus get the median length of them, cut or filled up with
        lost samples. Stimuli are named as in the input.
    k : int
        People who must share a row of the people's table.
    stimuli : tuple of str, optional
        Names of stimuli and tasks that may be published, as in the input; all others become
        `stimulus-001` and so on. Left out, a name passes that at least two people have in common
        and that looks like neither a person, a date, a clock nor a path.
    key_file : Path, optional
        Where the key of the pseudonyms goes, with mode 0600; never inside the release. Left out, no
        key is written.
    """

    keep: tuple[str, ...] = ()
    to: str = "parquet"
    rate_hz: Number | None = None
    durations: str | Mapping[str, Number] = "keep"
    k: int = field(default=4, kw_only=True)
    stimuli: tuple[str, ...] | None = field(default=None, kw_only=True)
    key_file: Path | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        store = object.__setattr__
        store(self, "keep", _names("keep", self.keep))
        checks.one_of("publication", "to", self.to, ("parquet", "csv", "bids", "same"))
        checks.count("publication", "k", self.k, least=2)
        if self.rate_hz is not None:
            rate = exact("publication", "rate_hz", self.rate_hz, above=0)
            if rate > _MOST_HZ:
                checks.refuse("publication", "rate_hz", f"at most {_MOST_HZ}", self.rate_hz)
            store(self, "rate_hz", rate)
            for field_name in ("times", "rate"):
                if field_name in self.keep:
                    checks.refuse(
                        "publication", "rate_hz", f"left out where '{field_name}' is kept", rate
                    )
        if isinstance(self.durations, str):
            checks.one_of("publication", "durations", self.durations, ("keep", "common"))
        elif isinstance(self.durations, Mapping):
            stored = {
                str(s): exact("publication", "durations", d, above=0)
                for s, d in self.durations.items()
            }
            store(self, "durations", stored)
        else:
            checks.refuse(
                "publication",
                "durations",
                "keep, common, or a mapping of stimulus to seconds",
                self.durations,
            )
        if self.durations != "keep" and "times" in self.keep:
            checks.refuse("publication", "durations", "keep where times are kept", self.durations)
        if self.stimuli is not None:
            store(self, "stimuli", _names("stimuli", self.stimuli))
        if self.key_file is not None:
            store(self, "key_file", Path(self.key_file))

    @property
    def public_rate_hz(self) -> Fraction | None:
        """The rate that was chosen, exact."""
        return None if self.rate_hz is None else Fraction(self.rate_hz)


def _names(name: str, value: Iterable[str] | str) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    for each in names:
        if not isinstance(each, str) or not each:
            checks.refuse("publication", name, "names", each)
    return tuple(dict.fromkeys(SYNONYMS.get(n, n) if name == "keep" else n for n in names))
