"""Files that cannot be scrubbed, each with what to do instead."""

from __future__ import annotations

import re

_AS_CSV = "read it, write it with `Cohort.write` or as CSV, and scrub that, or use `publish`"
#: Format -> why it is not copied, and what to do instead.
NOT_TEXT: dict[str, str] = {
    "eyelink-edf": "EyeLink EDF is binary: convert it with edf2asc and scrub the ASC file",
    "parquet": "Parquet is binary: `publish` reads it and releases it without identifiers",
    "pupil-neon-native": (
        "a native Neon recording is binary: export it with Pupil Cloud or Neon Player and scrub the"
        " export"
    ),
    "vr-saliency": f"a Python pickle may hold anything: {_AS_CSV}",
    "irf": f"NumPy files are binary: {_AS_CSV}",
    "dgaze": f"NumPy files are binary: {_AS_CSV}",
    "ehtask": f"NumPy files are binary: {_AS_CSV}",
    "lund2013": f"MATLAB files are binary: {_AS_CSV}",
    "osie": f"MATLAB files are binary: {_AS_CSV}",
    **dict.fromkeys(
        (
            *("eyenavgs", "gazebase", "gazebase-vr", "et-dk2", "vr-eyetracking", "mpiidpeye"),
            *("mpiiprivaceye", "salient360", "webqamgaze", "neuroliaa", "gazecom", "360-em"),
        ),
        "it is of a public dataset, which is published already: cite it",
    ),
}
_SUFFIXES = (
    (r"\.edf$", NOT_TEXT["eyelink-edf"]),
    (r"\.(?:pkl|pickle|p|joblib)$", NOT_TEXT["vr-saliency"]),
    (r"\.np[yz]$", NOT_TEXT["irf"]),
    (r"\.mat$", NOT_TEXT["osie"]),
    (r"\.(?:parquet|feather|arrow)$", NOT_TEXT["parquet"]),
    (r"\.idf$", "SMI's IDF is binary: convert it to text with the IDF Converter and scrub that"),
    (
        r"\.(?:xdf|hdf5?|h5|sqlite3?|db|raw|zip|7z|tar|xlsx?)(?:\.gz)?$",
        "a binary file may hold anything: export its tables as text and scrub these",
    ),
)


#: All sentences that say what to do instead.
WAYS_OUT = frozenset([*NOT_TEXT.values(), *(why for _, why in _SUFFIXES)])


def why_not_text(name: str) -> str | None:
    """Why a file of this name is not copied, or None where the name does not say."""
    return next((why for suffix, why in _SUFFIXES if re.search(suffix, name, re.IGNORECASE)), None)
