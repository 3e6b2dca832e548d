"""Roles of columns by their names: time, gaze, validity, pupil, and the names of recordings.

Names are compared without case, blanks and punctuation; a unit in the name (`t_ms`, `x [px]`) is
taken off first. A name that says gaze goes before one that does not: beside `gaze_x` or
`left_gaze_x`, a plain `x` is a target or a mouse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from gazeveil.errors import FormatError
from gazeveil.gaze.recording import KEY_NAMES

EYES = ("", "left_", "right_")
GAZE_ROLES = ("x", "y", "left_x", "left_y", "right_x", "right_y")
#: The third component of directions.
DEPTH_ROLES = ("z", "left_z", "right_z")
#: Columns that hold 1 where a sample is valid, and those that hold 1 where it is lost.
FLAG_ROLES = tuple(f"{eye}{word}" for word in ("valid", "lost") for eye in EYES)
PUPIL_ROLES = tuple(f"{eye}pupil" for eye in EYES)
#: Columns in which 0 means that there is no eye, where they ever hold more.
SURE_ROLES = (*(f"{eye}confidence" for eye in EYES), *PUPIL_ROLES)
#: Rotation of a head: Euler angles as Unity has them, in degrees, or a quaternion.
EULER_ROLES = ("head_pitch", "head_yaw", "head_roll")
QUATERNION_ROLES = ("head_qx", "head_qy", "head_qz", "head_qw")
#: Columns whose words tell recordings apart.
KEY_ROLES = (*KEY_NAMES, "trial")

# Names behind a bar say less: they go by where no name before it is there.
_SPELLINGS = {
    "t": (
        "gazetimestamp recordingtimestamp recordingtime sampletime | t time timestamp timestamps"
    ),
    "x": "gazex xgaze gazepointx porx gx | x posx eyex xpos lon longitude",
    "y": "gazey ygaze gazepointy pory gy | y posy eyey ypos lat latitude",
    "left_x": (
        "leftgazex gazexleft gazeleftx leftgazepointx gazepointleftx lporx | leftx xleft lx xl"
    ),
    "left_y": (
        "leftgazey gazeyleft gazelefty leftgazepointy gazepointlefty lpory | lefty yleft ly yl"
    ),
    "right_x": (
        "rightgazex gazexright gazerightx rightgazepointx gazepointrightx rporx |"
        " rightx xright rx xr"
    ),
    "right_y": (
        "rightgazey gazeyright gazerighty rightgazepointy gazepointrighty rpory |"
        " righty yright ry yr"
    ),
    "z": "gazez zgaze gz | z eyez",
    "left_z": "leftgazez gazezleft gazeleftz | leftz zleft lz zl",
    "right_z": "rightgazez gazezright gazerightz | rightz zright rz zr",
    "pupil": "pupil pupilsize pupildiameter pupilarea",
    "left_pupil": (
        "leftpupil pupilleft leftpupilsize leftpupildiameter pupildiameterleft pupill lpupil"
    ),
    "right_pupil": (
        "rightpupil pupilright rightpupilsize rightpupildiameter pupildiameterright pupilr rpupil"
    ),
    "confidence": "confidence conf gazeconfidence",
    "label": "label labels event eventtype eyemovementtype emtype",
}
_RANKS = {role: [r.split() for r in names.split("|")] for role, names in _SPELLINGS.items()}

# A noun, the plainest first, then any of these.
_OF = (
    r"(?:s|id|ids|no|nr|num|number|name|code|key|label|index|idx|count|file|nummer|kennung|"
    r"编号|名)*"
)
_NOUNS = {
    "person": (
        "participant person subject subj versuchsperson vpn vp proband teilnehmer ppt ppn pid"
        " prolific(?:pid)? respondent 被试 被试者 参与者 受试者 observer obs worker user viewer"
        " patient sub recordingsessionlabel"
    ),
    "stimulus": (
        "stimulus stimuli stim sourcestimuli image img picture photo video clip media movie film"
        " bild reiz 图片 视频 刺激 scene"
    ),
    "trial": "trial durchgang 试次",
    "session": "session sess sitzung",
    "task": "task",
}
# Not compiled here: recordings of which no column has to be guessed need none of them.
_KEY_NAME = {role: [noun + _OF for noun in nouns.split()] for role, nouns in _NOUNS.items()}

_WORD = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SIDES = {"left": "left_", "l": "left_", "right": "right_", "r": "right_"}
_FILLING = frozenset({"eye", "eyes", "gaze", "is", "in", "flag", "point", "sample", "code"})
_VALID = frozenset({"valid", "validity", "tracked", "detected", "found"})
_LOST = frozenset(
    {"blink", "blinking", "lost", "loss", "missing", "invalid", "dropout"}
    | {"trackloss", "track loss", "tracking loss", "tracker loss", "tracking lost"}
)
# Words in names of columns that may say which samples are lost, and their beginnings.
_LOSS_WORDS = re.compile(
    r"(?:valid|invalid|unvalid|blink|lost|loss|trackloss|tracked|tracking|status|missing|gültig|"
    r"gueltig|válid|artefa|artifa|interpolat|outlier|exclud|usable|closed|lidschlag|parpade|confid|"
    r"eyelid|erkannt|detect).*|miss|quality|ok|good|bad|open|error|flag|state|noise|conf|"
    r".*(?:有效|眨眼).*"
)

#: Spellings of units in column names.
_TIME_UNITS = {
    **dict.fromkeys(("s", "sec", "seconds"), "s"),
    **dict.fromkeys(("ms", "msec"), "ms"),
    **dict.fromkeys(("us", "µs", "μs", "usec"), "us"),
    "ns": "ns",
    "100ns": "100ns",
}
_GAZE_UNITS = {
    **dict.fromkeys(("deg", "degree", "degrees", "°", "dva"), "deg"),
    "rad": "rad",
    **dict.fromkeys(("px", "pix", "pixel", "pixels"), "px"),
}
#: Units that are known and not read: a guess must not overrule a name that says one.
_UNREAD_TIME = frozenset({"min", "mins", "minutes", "h", "hours"})
_UNREAD_GAZE = frozenset(
    {"m", "metres", "meters", "cm", "mm", "in", "inch", "inches", "arcmin", "arcsec", "mrad"}
    | {"percent", "pct", "%"}
)
_SUFFIX = re.compile(
    r"^(?P<base>.*?)[\s_.\-]*"
    r"(?:\[\s*(?P<square>[^\]]+?)\s*\]|\(\s*(?P<round>[^)]+?)\s*\)"
    r"|(?<=[\s_.\-])(?P<bare>[A-Za-z0-9µμ°]+))\s*$"
)

#: Roles that the option `columns` names.
ROLES = frozenset(
    {*_SPELLINGS, *FLAG_ROLES, *KEY_ROLES, *SURE_ROLES, *EULER_ROLES, *QUATERNION_ROLES}
    | {f"{eye}pupil_valid" for eye in EYES}
)
#: Roles whose columns are read as numbers.
NUMBER_ROLES = (*(*GAZE_ROLES, *DEPTH_ROLES, *SURE_ROLES), *(*EULER_ROLES, *QUATERNION_ROLES))


def squeezed(name: str) -> str:
    """A column name without case, blanks and punctuation, letters of any alphabet."""
    return re.sub(r"[\W_]+", "", name.lower())


def split_unit(name: str) -> tuple[str, str]:
    """A column name squeezed and without its unit, and the unit's word; the word is empty where
    the name says none.
    """
    parts = _SUFFIX.match(name.strip())
    if parts is not None:
        unit = (parts["square"] or parts["round"] or parts["bare"]).lower()
        if unit in _TIME_UNITS or unit in _GAZE_UNITS:
            return squeezed(parts["base"]), unit
        if parts["square"] or parts["round"]:
            return squeezed(parts["base"]), ""
    return squeezed(name), ""


def spellings(names: Iterable[str]) -> dict[str, str]:
    """Each column by its squeezed name, with and without its unit."""
    names = list(names)
    return {split_unit(n)[0]: n for n in names} | {squeezed(n): n for n in names}


def unread_unit(name: str, of: str) -> str:
    """The unit that a column of `"time"` or `"gaze"` says in its name, where it is a known one that
    is not read; else an empty text.
    """
    parts = _SUFFIX.match(name.strip())
    if parts is None:
        return ""
    unit = (parts["square"] or parts["round"] or parts["bare"]).lower()
    return unit if unit in (_UNREAD_TIME if of == "time" else _UNREAD_GAZE) else ""


def said_time_unit(column: str) -> str | None:
    """The unit of time that a column's name says, or None."""
    return _TIME_UNITS.get(split_unit(column)[1])


def said_gaze_unit(columns: Iterable[str]) -> str | None:
    """The one unit of gaze that all these names say, or None."""
    units = {_GAZE_UNITS.get(split_unit(c)[1]) for c in columns}
    return units.pop() if len(units) == 1 else None


def said_y_axis(column: str) -> str | None:
    """Direction in which a column of y grows, where its name is known to mean one: Pupil's
    `norm_pos_y` grows upwards.
    """
    return "up" if squeezed(column).endswith("normposy") else None


def recognise(names: Iterable[str]) -> dict[str, str]:
    """Role -> column by name, flags of validity excepted (:func:`flag_role`)."""
    names = list(names)
    fitting = _fitting(names)
    explicit = [
        r for r in GAZE_ROLES if r in fitting and split_unit(fitting[r][0])[0] in _RANKS[r][0]
    ]
    if has_gaze(dict.fromkeys(explicit, "")) and not {"x", "y"} & set(explicit):
        fitting = {role: found for role, found in fitting.items() if role not in ("x", "y", "z")}
    return {role: found[0] for role, found in fitting.items()} | {
        role: found[0] for role, found in key_columns(names).items()
    }


def _fitting(names: Iterable[str]) -> dict[str, list[str]]:
    """Role -> the columns that fit it equally well, at least one."""
    by_key: dict[str, list[str]] = {}
    for name in names:
        by_key.setdefault(split_unit(name)[0], []).append(name)
    found = {
        role: [[n for s in spellings for n in by_key.get(s, ())] for spellings in ranks]
        for role, ranks in _RANKS.items()
    }
    return {role: next(filter(None, ranks)) for role, ranks in found.items() if any(ranks)}


def key_columns(names: Iterable[str]) -> dict[str, list[str]]:
    """Role -> columns that name recordings, at least one, the plainest name first: `participant`
    before `participant_number`, and both before `observer`.
    """
    found: dict[str, list[tuple[int, int, str]]] = {}
    for name in names:
        word = squeezed(name)
        for role, nouns in _KEY_NAME.items():
            ranks = [rank for rank, noun in enumerate(nouns) if re.fullmatch(noun, word)]
            if ranks:
                found.setdefault(role, []).append((ranks[0], len(word), name))
    return {role: [name for _, _, name in sorted(ranked)] for role, ranked in found.items()}


def flag_role(name: str) -> str | None:
    """The role of a column of validity: `left_valid` for `Validity_Left`, `right_lost` for
    `RIGHT_IN_BLINK`; None where the name does not say what 1 means, or speaks of the pupil.
    """
    words = [w.lower() for w in _WORD.findall(_CAMEL.sub(" ", name))]
    side = next((_SIDES[w] for w in words if w in _SIDES), "")
    rest = " ".join(w for w in words if w not in _SIDES and w not in _FILLING)
    word = "valid" if rest in _VALID else "lost" if rest in _LOST else None
    return None if word is None else f"{side}{word}"


def may_say_lost(name: str) -> bool:
    """Whether a column may say which samples are lost, by a word of its name."""
    words = [w.lower() for w in _WORD.findall(_CAMEL.sub(" ", name))]
    return any(_LOSS_WORDS.fullmatch(w) for w in words)


def has_gaze(roles: Mapping[str, str]) -> bool:
    """Whether both coordinates of gaze, or of an eye, are there."""
    return any({f"{eye}x", f"{eye}y"} <= roles.keys() for eye in EYES)


def ask_which(
    path: Path | str, names: Iterable[str], roles: Mapping[str, str], chosen: Mapping[str, str]
) -> None:
    """Refuse where another column fits the time, or gaze, as well as the one that was taken.

    Parameters
    ----------
    path : Path or str
        The file, for the message.
    names : iterable of str
        Its columns.
    roles, chosen : mapping of role to column
        What was recognised, and what the user said.
    """
    fitting = _fitting(names)
    for role in ("t", *GAZE_ROLES):
        both = [n for n in fitting.get(role, ()) if n not in chosen.values()]
        if role in roles and len(both) > 1:
            wanted = "'t': ..." if role == "t" else f"'{role[:-1]}x': ..., '{role[:-1]}y': ..."
            raise FormatError(
                path,
                f"{' and '.join(repr(n) for n in both)} may each be '{role}'",
                f"Say which is, with columns={{{wanted}}}, as an option or in dataset.toml; of two"
                " that have one name, rename one.",
            )
