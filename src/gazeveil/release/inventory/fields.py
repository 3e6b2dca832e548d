"""What the name of a column or of a header's key says about its values.

Names are compared without case, blanks and punctuation, as the readers compare them. The first rule
that fits decides, so the particular stands before the general.
"""

from __future__ import annotations

import re
from functools import lru_cache

from gazeveil.io.parsing.table import key

_RULES: tuple[tuple[str, str], ...] = (
    ("eye distance", r"^ipd|ipd(mm|m|cm)?$|interpupil|interocular|(pupil(lary)?|eye)distance"),
    ("eye distance", r"(eye|gaze)origin|eyepos(ition)?(left|right|[xyz]|3d)|eyeball.*center"),
    ("eye distance", r"^[lr]eyepos|eyecenter\d?3d|basep(oin)?t|^gazepos[xyz]|convergencedistance"),
    (
        "attribute",
        r"^age(years)?$|(participant|subject|worker|user|variable)age$|years?old|gender|^sex$"
        r"|handed|dominan(t|ce)|birth|^dob$|ethnic",
    ),
    ("attribute", r"^race$|national|education|occupation|diagnos|medica|weight|^iq$|country|city$"),
    ("attribute", r"vision|acuity|glasses(worn)?$|lenses|lang(uage)?s?$|fluency|mothertongue"),
    ("screen", r"screen|display|monitor|resolution|stimulusdimension|calibrationarea|gazecoords"),
    ("screen", r"^(width|height)(px|mm)$|^distancemm$|headdistance|^fov\d"),
    ("height", r"^(body|standing|person|participant|user)?height(cm|m|mm)?$|stature"),
    ("height", r"(head|camera|hmd|torso)position\.?y|^positiony$|headpos(ition)?y"),
    ("serial", r"serial|uuid|guid$|androidid|deviceid|hardwareid|macaddress|licen[cs]e|^lid$"),
    ("serial", r"(recording|section|session|worker|phone|app|workspace|account)id$|cameraconfig"),
    ("serial", r"^sreb|systemid|ipaddress|hostname|computername|^imei"),
    ("e-mail", r"e?mail(address)?$"),
    ("path", r"path|folder|directory|(file|media)name$|convertedfrom|^file$|sourcefile|^url$"),
    (
        "name",
        r"participant(?!type|group)|subject|wearer|person|observer|^user|username|operator"
        r"|experimenter",
    ),
    ("name", r"recordedby|author|firstname|lastname|surname|fullname|researcher|moderator|owner"),
    ("name", r"institution|project(name)?$|contact|investigator|^name$|recordingname|worker"),
    ("date", r"date$|^date|created|modified|acqtime|exportdate|datetime"),
    ("clock", r"time|clock|utc|^timeline$|ticks|uptime|^t(s|ms|us|ns)?$|(^|oculo|unity)ts$|tstart"),
    ("rate", r"sampl(e|ing)(rate|frequency)|framerate|^rate$|^fps$|^hz$|frequency$|refreshrate"),
    ("device model", r"model|manufacturer|^device|tracker|^camera$|framename|firmware"),
    ("device model", r"hardware|software|version|^system|platform|^sensor$|^source$"),
    ("free text", r"note|comment|message|^msg$|annotation|description|remark|^tags?$|^text$"),
)
_COMPILED = tuple((kind, re.compile(rule)) for kind, rule in _RULES)


@lru_cache(maxsize=4096)
def kind_of(name: str) -> str | None:
    """The kind of finding that a field of this name holds, or None.

    Examples
    --------
    >>> kind_of("Participant name"), kind_of("ipd_mm"), kind_of("Gaze point X (DACS px)")
    ('name', 'eye distance', None)
    """
    plain = key(name)
    return next((kind for kind, rule in _COMPILED if rule.search(plain)), None)
