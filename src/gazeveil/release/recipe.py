"""`publish.toml`: every choice of a publication, so that it can be made again; and the file
of choices that `--from` reads.

::

    format = "gazeveil-publish"
    version = 1

    [input]                      # only in the file beside the release
    path = "recordings"

    [protect]
    mechanism = "k-same-synth:k=4"

    [publication]
    keep = []
    to = "parquet"
    rate_hz = "250"
    durations = "common"
    k = 4

    [attack]
    battery = "strong"
    repetitions = 10

    [run]                        # never beside a release
    budget = "2"

The file beside the release names the recordings. The one inside names nothing of them.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gazeveil import checks
from gazeveil.attacks.registry import BATTERIES, DEFAULT
from gazeveil.errors import FormatError, ParameterError
from gazeveil.privacy.publication.names import PublicationChoices
from gazeveil.privacy.registry import mechanism

_FORMAT, _VERSION = "gazeveil-publish", 1

#: What features a mechanism of the kind table protects.
TABLES = ("events", "windows")

_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "input": ("path", "format", "set", "screen"),
    "protect": ("mechanism", "table"),
    "publication": ("keep", "to", "rate_hz", "durations", "k", "stimuli", "key_file"),
    "attack": ("battery", "repetitions", "utilities"),
    "run": ("ledger", "budget", "sign", "workers", "cluster"),
}

#: Entries that are paths, which a file says from where it is.
_PATHS = (("input", "path"), ("publication", "key_file"), ("run", "sign"))


@dataclass(frozen=True)
class Recipe:
    """Every choice of a publication.

    Parameters
    ----------
    source : Path
        Raw recordings.
    mechanism : str
        `name:parameter=value,...`.
    choices : PublicationChoices
        Names, clock, lengths, format.
    format : str, optional
        Of the recordings, where it is not to be found out.
    settings : tuple of str
        `NAME=VALUE`, as `--set` has them.
    screen : str, optional
        As `--screen` has it.
    table : str
        One of :data:`TABLES`, for mechanisms of the kind table.
    battery : str
        Who attacks.
    repetitions : int
        Draws of split and noise of the attack step.
    utilities : tuple of str, optional
        Analyses that are tried; left out, the usual ones.
    run : mapping
        How this publication is made: `ledger`, `budget`, `sign`, `workers`, `cluster`. No choice of
        the release, so it is not written with the others.
    """

    source: Path
    mechanism: str
    choices: PublicationChoices = field(default_factory=PublicationChoices)
    format: str | None = None
    settings: tuple[str, ...] = ()
    screen: str | None = None
    table: str = "events"
    battery: str = DEFAULT
    repetitions: int = 10
    utilities: tuple[str, ...] | None = None
    run: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.one_of("publish", "attacks", self.battery, BATTERIES)
        checks.one_of("publish", "table", self.table, TABLES)
        checks.count("publish", "repetitions", self.repetitions)

    def text(self, inside: bool) -> str:
        """The recipe as TOML.

        Parameters
        ----------
        inside : bool
            Whether it goes into the release: then without paths and without raw names.
        """
        own = self.choices
        lengths = own.durations
        publication: dict[str, object] = {
            "keep": list(own.keep),
            "to": own.to,
            "rate_hz": None if own.rate_hz is None else str(own.rate_hz),
            "durations": (
                lengths
                if isinstance(lengths, str)
                else ("public" if inside else {s: str(d) for s, d in lengths.items()})
            ),
            "k": own.k,
        }
        sections: dict[str, dict[str, object]] = {}
        if not inside:
            publication["stimuli"] = None if own.stimuli is None else list(own.stimuli)
            key = own.key_file
            publication["key_file"] = None if key is None else str(key.resolve())
            sections["input"] = {
                "path": str(self.source.resolve()),
                "format": self.format,
                "set": list(self.settings) or None,
                "screen": self.screen,
            }
        sections["protect"] = {
            "mechanism": _public_text(self.mechanism) if inside else self.mechanism,
            "table": self.table,
        }
        sections["publication"] = publication
        sections["attack"] = {
            "battery": self.battery,
            "repetitions": self.repetitions,
            "utilities": None if self.utilities is None else list(self.utilities),
        }
        return _toml(sections)


def _public_text(text: str) -> str:
    """A mechanism as it was written, with the names of files instead of where they lie."""
    made = mechanism(text)
    return text if made.public_text == str(made) else made.public_text


def _toml(sections: Mapping[str, Mapping[str, object]]) -> str:
    lines = [f'format = "{_FORMAT}"', f"version = {_VERSION}"]
    for section, entries in sections.items():
        lines += ["", f"[{section}]"]
        # JSON's texts, numbers and lists are TOML's too.
        lines += [
            f"{name} = {_value(value)}" for name, value in entries.items() if value is not None
        ]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items())
        return f"{{ {pairs} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def recipe_of(given: Mapping[str, Mapping[str, Any]], path: Path | None = None) -> Recipe:
    """The choices of a command line and of a file; the command line goes first.

    Parameters
    ----------
    given : mapping of section to mapping
        As the file has them; what is None is not given.
    path : Path, optional
        The file. Paths in it are taken from where it is.

    Raises
    ------
    FormatError
        For a file that is no recipe, or that has an unknown entry.
    ParameterError
        Where neither says what is protected by what.
    """
    stored: dict[str, dict[str, Any]] = {} if path is None else _stored(path)
    for section, entries in given.items():
        chosen = {name: value for name, value in entries.items() if value is not None}
        stored[section] = {**stored.get(section, {}), **chosen}
    source, protect = stored.get("input", {}), stored.get("protect", {})
    if "path" not in source or "mechanism" not in protect:
        raise ParameterError(
            "It is not said which recordings are protected by what. Name the recordings, and a"
            " --mechanism or a --preset, or take the .publish.toml beside a release.",
            name="--from",
            got=None if path is None else str(path),
        )
    publication, attack = dict(stored.get("publication", {})), stored.get("attack", {})
    # Where the tracker's own times are kept, so are lengths.
    times_kept = {"times", "t_ns"}.intersection(publication.get("keep", ()))
    publication.setdefault("durations", "keep" if times_kept else "common")
    utilities = attack.get("utilities")
    return Recipe(
        Path(source["path"]),
        str(protect["mechanism"]),
        PublicationChoices(**publication),
        source.get("format"),
        tuple(source.get("set", ())),
        source.get("screen"),
        protect.get("table", "events"),
        attack.get("battery", DEFAULT),
        attack.get("repetitions", 10),
        None if utilities is None else tuple(utilities),
        stored.get("run", {}),
    )


def _stored(path: Path) -> dict[str, dict[str, Any]]:
    """The sections of a file, with its paths from here."""
    try:
        stored = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FormatError(path, f"this is not TOML ({error})", "Mend the file.") from error
    head = stored.pop("format", _FORMAT), stored.pop("version", _VERSION)
    if head != (_FORMAT, _VERSION):
        raise FormatError(
            path, "this is no recipe of `gazeveil publish`", "Name the .publish.toml of a release."
        )
    for name, entries in stored.items():
        if name not in _SECTIONS or not isinstance(entries, dict):
            raise FormatError(path, f"nobody reads '{name}'", f"Allowed: {', '.join(_SECTIONS)}.")
        checks.known_options(f"{path} [{name}]", entries, _SECTIONS[name])
    for section, name in _PATHS:
        if name in stored.get(section, {}):
            stored[section][name] = path.parent / str(stored[section][name])
    return stored


def with_choices(recipe: Recipe, **changes: object) -> Recipe:
    """A recipe with some choices replaced."""
    return replace(recipe, choices=replace(recipe.choices, **changes))  # type: ignore[arg-type]


@dataclass(frozen=True)
class ReleasePreset:
    """Preset: a choice that needs no knowledge of mechanisms.

    Parameters
    ----------
    name : str
        As `--preset` says it.
    mechanism : str
        `name:parameter=value,...`.
    purpose : str
        The purpose of :data:`gazeveil.release.advice.PURPOSES` it is for.
    people : int
        The fewest people it can be used with.
    about : str
        What is published, and who it is for.
    """

    name: str
    mechanism: str
    purpose: str
    people: int
    about: str


_ALL = (
    ReleasePreset(
        "public-maps",
        "event-synth-pd:k=4,gamma=4",
        "maps",
        8,
        "drawn recordings whose heat maps are near those of the people",
    ),
    ReleasePreset(
        "public-events",
        "event-synth-pd:k=4,gamma=4",
        "teaching",
        8,
        "drawn recordings whose maps and saccades are nearer to those of the people than a"
        " textbook's; how long fixations last is hardly",
    ),
    ReleasePreset(
        "public-samples",
        "clock-render:epsilon=1,r_deg=2,slot_s=1/2,form=offline",
        "samples",
        1,
        "drawn recordings that look every half second near where the person looked",
    ),
    ReleasePreset(
        "public-pieces",
        "mosaic:epsilon=10,r_deg=2,piece_s=5/2,paths=exchange,segment_s=1/2",
        "samples",
        12,
        "pieces of 2.5 s near where people looked, each under a name of its own; every stimulus"
        " needs 12 viewers",
    ),
    ReleasePreset(
        "public-vr",
        "mosaic:epsilon=20,r_deg=2,piece_s=1,gap_s=0,paths=near,segment_s=1/4,among=3,b_deg=25",
        "samples",
        12,
        "pieces of 1 s of gaze in a headset, exchanged every quarter of a second among people who"
        " look near one another; every stimulus needs 12 viewers",
    ),
    ReleasePreset(
        "public-features",
        "fpa:epsilon=10",
        "ml",
        1,
        "features of fixations and saccades for training models, with noise in each feature of a"
        " recording; a file of --from with table = 'windows' takes windows of 30 s",
    ),
)

PRESETS: Mapping[str, ReleasePreset] = MappingProxyType({p.name: p for p in _ALL})


def preset(name: str) -> ReleasePreset:
    """A preset by its name.

    Raises
    ------
    ParameterError
        For any other name.

    Examples
    --------
    >>> preset("public-events").mechanism
    'event-synth-pd:k=4,gamma=4'
    """
    return PRESETS[checks.one_of("publish", "preset", name, PRESETS)]
