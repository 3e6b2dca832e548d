"""The five papers whose experiments are repeated: author-year keys and citations."""

from __future__ import annotations

from gazeveil import checks

#: Key of a paper -> its citation.
CITATIONS = {
    "davidjohn2021": "David-John, Hosfelt, Butler, Jain: A privacy-preserving approach to streaming"
    " eye-tracking data. IEEE TVCG 2021.",
    "bozkir2021": "Bozkir, Günlü, Fuhl, Schaefer, Kasneci: Differential privacy for eye tracking"
    " with temporal correlations. PLOS ONE 2021.",
    "davidjohn2022": "David-John, Butler, Jain: For Your Eyes Only: Privacy-preserving eye-tracking"
    " datasets. ETRA 2022.",
    "davidjohn2023": "David-John, Butler, Jain: Privacy-preserving datasets of eye-tracking samples"
    " with applications in XR. IEEE TVCG 2023, with its supplement.",
    "ren2024": "Ren, Fan, Xu, Wang, Dong, Wen: DPGazeSynth: Enhancing eye-tracking virtual reality"
    " privacy with differentially private data synthesis. 2024.",
}

#: Codes of the papers in older study files -> keys.
FORMER = {
    "S000": "davidjohn2022",
    "S001": "davidjohn2021",
    "S002": "bozkir2021",
    "S003": "ren2024",
    "S004": "davidjohn2023",
    "M23": "davidjohn2023",
}


def check_key(owner: str, key: object) -> str:
    """A paper's key; a code of older study files is refused with the key that replaced it."""
    if str(key).upper() in FORMER:
        checks.renamed(owner, "paper", str(key), FORMER[str(key).upper()])
    return checks.one_of(owner, "paper", key, CITATIONS)
