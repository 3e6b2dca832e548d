"""Draw the picture of a mechanism's page: `python docs/reference/mechanisms/recipes.py NAME ...`, or all of
them without a name. The picture goes to docs/figures/<name>.png.

Most mechanisms need one line in `GAZE`, `FEATURE` or `POPULATION`: releases as (label, mechanism,
colour). A mechanism with a picture of its own has a module with a function `draw(path)` in
`drawings`, named like it with `_` for `-`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
FIGURES = HERE.parents[1] / "figures"
sys.path.insert(0, str(HERE / "drawings"))

Releases = tuple[tuple[str, str, str], ...]

_NOISY = "gaussian(sigma_deg=3)"
_SMOOTH = f"{_NOISY}+smoothing(first=5;second=10)"

#: Gaze over time and in space, before and after.
GAZE: dict[str, Releases] = {
    "chain": ((_NOISY, f"chain:stages={_NOISY}", "C1"), (_SMOOTH, f"chain:stages={_SMOOTH}", "C0")),
    "clock-render": (
        ("epsilon = 10, r = 2, offline", "clock-render:epsilon=10,r_deg=2,form=offline", "C0"),
        ("epsilon = 10, r = 2, stream", "clock-render:epsilon=10,r_deg=2", "C1"),
    ),
    "gaussian": (
        ("sigma = 1 degree", "gaussian:sigma_deg=1", "C0"),
        ("sigma = 5 degrees", "gaussian:sigma_deg=5", "C1"),
    ),
    **{
        name: (
            ("epsilon = 50, w = 60, r = 1", f"{name}:epsilon=50,w=60,r_deg=1", "C0"),
            ("epsilon = 5", f"{name}:epsilon=5,w=60,r_deg=1", "C1"),
        )
        for name in ("kaleido", "kaleido-reserve", "kaleido-uniform")
    },
    "kalman": (("default", "kalman:", "C0"), ("noise_deg = 5", "kalman:noise_deg=5", "C1")),
    "smoothing": (
        ("windows of 10 and 50", "smoothing:", "C0"),
        ("published", "smoothing:reading=published", "C1"),
    ),
    "spatial": (
        ("L = 64, cell centres", "spatial:L=64", "C0"),
        ("L = 64, corners (published)", "spatial:L=64,reading=published", "C1"),
    ),
    "temporal": (
        ("K = 12", "temporal:K=12", "C0"),
        ("K = 12, held", "temporal:K=12,hold=True", "C1"),
    ),
}

#: One feature before and after; and the expected error of mechanisms, given without epsilon.
FEATURE: dict[str, tuple[Releases, Releases]] = {
    "cfpa": (
        (
            ("corrected, epsilon = 20", "cfpa:chunk=64,epsilon=20,shrink=wiener", "C0"),
            ("epsilon = 20 per chunk", "cfpa:chunk=64,epsilon=20,per=chunk,shrink=wiener", "C2"),
            ("published, epsilon = 20", "cfpa:chunk=64,epsilon=20,reading=published", "C3"),
        ),
        (
            ("cfpa, chunks of 32", "cfpa:chunk=32,shrink=wiener", "C0"),
            ("cfpa, chunks of 64", "cfpa:chunk=64,shrink=wiener", "C1"),
            ("cfpa, chunks of 128", "cfpa:chunk=128,shrink=wiener", "C4"),
            ("fpa", "fpa:shrink=wiener", "C2"),
        ),
    ),
    "dcfpa": (
        (
            ("corrected, epsilon = 100", "dcfpa:chunk=64,epsilon=100", "C0"),
            ("with shrinkage", "dcfpa:chunk=64,epsilon=100,shrink=wiener", "C2"),
            ("published, epsilon = 100", "dcfpa:chunk=64,epsilon=100,reading=published", "C3"),
        ),
        (
            ("dcfpa, chunks of 32", "dcfpa:chunk=32", "C0"),
            ("dcfpa, Wiener shrinkage", "dcfpa:chunk=32,shrink=wiener", "C2"),
            ("cfpa, chunks of 32", "cfpa:chunk=32", "C1"),
        ),
    ),
    "dct-knorm": (
        (
            ("fpa, epsilon = 20", "fpa:epsilon=20,shrink=wiener", "C1"),
            ("dct-knorm, epsilon = 20", "dct-knorm:epsilon=20", "C0"),
            ("dct-knorm, epsilon = 100", "dct-knorm:epsilon=100", "C2"),
        ),
        (
            ("fpa", "fpa:shrink=wiener", "C1"),
            ("dct-knorm, exponential", "dct-knorm:profile=exponential", "C4"),
            ("dct-knorm", "dct-knorm:", "C0"),
        ),
    ),
    "fpa": (
        (
            ("corrected, epsilon = 200", "fpa:epsilon=200", "C0"),
            ("with shrinkage", "fpa:epsilon=200,shrink=wiener", "C2"),
            ("published, epsilon = 200", "fpa:epsilon=200,reading=published", "C3"),
        ),
        (
            ("fpa, public k", "fpa:", "C0"),
            ("fpa, Wiener shrinkage", "fpa:shrink=wiener", "C2"),
            ("fpa, k = 5", "fpa:k=5", "C1"),
        ),
    ),
    "lpa": (
        (
            ("corrected, epsilon = 100", "lpa:epsilon=100", "C0"),
            ("with shrinkage", "lpa:epsilon=100,shrink=wiener", "C2"),
            ("published, epsilon = 100", "lpa:epsilon=100,reading=published", "C3"),
        ),
        (("lpa", "lpa:", "C0"), ("lpa, Wiener shrinkage", "lpa:shrink=wiener", "C2")),
    ),
}

#: Gaze of one person, and where a population looks, before and after.
POPULATION: dict[str, Releases] = {
    "clock-render-dp-k-same": (
        ("k = 15, epsilon = 1000", "clock-render-dp-k-same:k=15,epsilon=1000", "C0"),
        ("k = 15, epsilon = 10", "clock-render-dp-k-same:k=15,epsilon=10", "C1"),
    ),
    "clock-render-k-same": (
        ("k = 4", "clock-render-k-same:k=4", "C0"),
        ("k = 15", "clock-render-k-same:k=15", "C1"),
    ),
    "dpgazesynth": (
        ("corrected", "dpgazesynth:epsilon=3", "C0"),
        ("published", "dpgazesynth:epsilon=3,reading=published", "C3"),
    ),
    "dpgazesynth-one-report": (
        ("one report", "dpgazesynth-one-report:epsilon=3", "C0"),
        ("every slot (dpgazesynth)", "dpgazesynth:epsilon=3", "C1"),
    ),
}

#: Modules in `drawings` that several recipes share.
_SHARED = ("traces", "stream_traces", "synthetic_traces")
#: Mechanisms with a picture of their own.
OWN = tuple(
    path.stem.replace("_", "-")
    for path in sorted((HERE / "drawings").glob("*.py"))
    if path.stem not in _SHARED
)


def names() -> list[str]:
    """Every mechanism that has a recipe."""
    return sorted([*GAZE, *FEATURE, *POPULATION, *OWN])


def draw(name: str, path: Path) -> None:
    """Draw one picture."""
    if name in GAZE:
        import_module("stream_traces").draw_streams(path, GAZE[name])
    elif name in FEATURE:
        import_module("traces").draw_pair(path, *FEATURE[name])
    elif name in POPULATION:
        import_module("synthetic_traces").draw_synthesis(path, POPULATION[name])
    else:
        import_module(name.replace("-", "_")).draw(path)


if __name__ == "__main__":
    FIGURES.mkdir(exist_ok=True)
    for each in sys.argv[1:] or names():
        picture = FIGURES / f"{each}.png"
        draw(each, picture)
        print(f"{picture} ({picture.stat().st_size // 1024} KB)")
