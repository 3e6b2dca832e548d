"""`publish.toml`: every choice of a publication, so that it can be made again.

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
from gazeveil.errors import FormatError
from gazeveil.privacy.publication.choices import PublicationChoices
from gazeveil.privacy.registry import mechanism

_FORMAT, _VERSION = "gazeveil-publish", 1

#: What features a mechanism of the kind table protects.
TABLES = ("events", "windows")

_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "input": ("path", "format", "set", "screen"),
    "protect": ("mechanism", "table"),
    "publication": ("keep", "to", "rate_hz", "durations", "k", "stimuli", "key_file"),
    "attack": ("battery", "repetitions", "utilities"),
}


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


def read_recipe(path: Path) -> Recipe:
    """Read the file that stands beside a release.

    Paths in it are taken from where the file is.

    Raises
    ------
    FormatError
        For a file that is no recipe, or that has an unknown entry.
    """
    try:
        stored = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FormatError(path, f"this is not TOML ({error})", "Mend the file.") from error
    if stored.get("format") != _FORMAT or stored.get("version") != _VERSION:
        raise FormatError(
            path, "this is no recipe of `gazeveil publish`", "Name the .publish.toml of a release."
        )
    for name, entries in stored.items():
        if name in ("format", "version"):
            continue
        if name not in _SECTIONS or not isinstance(entries, dict):
            raise FormatError(path, f"nobody reads '{name}'", f"Allowed: {', '.join(_SECTIONS)}.")
        checks.known_options(f"{path} [{name}]", entries, _SECTIONS[name])
    source = stored.get("input", {})
    if "path" not in source or "mechanism" not in stored.get("protect", {}):
        raise FormatError(
            path,
            "it does not say which recordings are protected by what",
            "Take the file beside the release, not the one inside, or write them into it.",
        )
    return _recipe(source, stored, path.parent)


def _recipe(source: Mapping[str, Any], stored: Mapping[str, Any], here: Path) -> Recipe:
    publication = dict(stored.get("publication", {}))
    key = publication.pop("key_file", None)
    attack = stored.get("attack", {})
    utilities = attack.get("utilities")
    return Recipe(
        here / str(source["path"]),
        str(stored["protect"]["mechanism"]),
        PublicationChoices(**publication, key_file=None if key is None else here / str(key)),
        source.get("format"),
        tuple(source.get("set", ())),
        source.get("screen"),
        stored["protect"].get("table", "events"),
        attack.get("battery", DEFAULT),
        attack.get("repetitions", 10),
        None if utilities is None else tuple(utilities),
    )


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
        "public-features",
        "fpa:epsilon=10",
        "ml",
        1,
        "features of fixations and saccades (with --table windows, of windows of 30 s) for training"
        " models, with noise in each feature of a recording",
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
