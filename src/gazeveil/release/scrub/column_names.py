"""Names of columns in the copy: what vendors write, and nothing that somebody added to it."""

from __future__ import annotations

import re

from gazeveil.io.parsing.table import key
from gazeveil.release.scrub.job import ScrubJob

_BRACKET = re.compile(r"([\[(])([^\[\]()]*)([\])])")
#: Characters of the longest part that is looked at: no vendor writes more.
_LONGEST = 60
_STRANGE = re.compile(r"[^ -~°²µμ]|[\"'`<>|\\]")

#: What may follow the part of a name that a rule knows, as `left`, `x` and `mm` do.
_WORDS = frozenset(
    """quaternion timestamps timestamp duration diameter position rotation velocity amplitude
    direction magnitude horizontal vertical normalized normalised confidence filtered original
    validity average elevation azimuth absolute relative mapped scaled quality openness tracking
    eyeball center centre origin height length angle index event frame start value width point
    pupil gaze left right coord norm normal mean peak size type data time valid area hit surface
    surf srf world axis eye eyes end first last min max avg std raw deg rad dacs adcs mcs hucs ucs
    snorm pos mm px ms us ns hz id no on 2d 3d major minor ratio lid aperture top bottom upper
    lower method response camera model circle ellipse sphere projected theta phi rel dm
    glasses""".split()  # noqa: SIM905 - a list of words
)
_WORD = f"(?:{'|'.join(sorted(_WORDS, key=len, reverse=True))})"
# One number and one letter at most, because a name could be spelled from letters.
_REST = re.compile(rf"{_WORD}*(?:\d{{1,2}})?[xyzwablr]?{_WORD}*")
_UNIT = re.compile(
    r"(?:mm|cm|m|px|pix|pixels?|deg|degrees?|rad|s|ms|us|ns|hz|g|[µμ][st]|°|%|²|\^?2|100ns|dacs"
    r"|adcs|mcs|hucs|ucs|snorm|norm|normali[sz]ed|per|hh:mm:ss|arbitrary|units?|eye|image|left"
    r"|right|x|y|z|f=10000000|[\s,._°/-])*",
    re.IGNORECASE,
)


def readable_rest(rest: str, name: str) -> bool:
    """Whether the part of a column's key that a rule does not name is made of vendors' words.

    Parameters
    ----------
    rest : str
        What follows the part that the rule knows, in the key of the name.
    name : str
        The name itself; brackets in it are looked at by :func:`public_name`.

    Examples
    --------
    >>> readable_rest("leftx", "Gaze point left X"), readable_rest("ofanna", "Saccade of Anna")
    (True, False)
    """
    inside = "".join(key(match[2]) for match in _BRACKET.finditer(name))
    outside = rest[: len(rest) - len(inside)] if inside and rest.endswith(inside) else rest
    return len(outside) <= _LONGEST and _REST.fullmatch(outside) is not None


def public_name(name: str, job: ScrubJob) -> str:
    """A name whose column stays: brackets that hold no unit get a label, strange signs go.

    Examples
    --------
    >>> public_name("Gaze point left X [DACS px]", ScrubJob())
    'Gaze point left X [DACS px]'
    """

    def bracket(match: re.Match[str]) -> str:
        unit = _UNIT.fullmatch(match[2]) if len(match[2]) <= _LONGEST else None
        return match[0] if unit else f"{match[1]}{job.label(match[2])}{match[3]}"

    plain = _STRANGE.sub("", _BRACKET.sub(bracket, name)).strip()
    # The rules know what is left; only one that also holds an identifier becomes a label.
    base = _BRACKET.sub("", plain).strip()
    return plain if not base or job.is_harmless(base) else job.label(plain)
