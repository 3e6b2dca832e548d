"""Unit of Table 3 of Ren et al. 2024: root of summed squares of paths in pixels, by pixel size.

    python benchmarks/path_units.py

The paper's formula (15) divides by nothing and its table names no unit. Simulated participants in
the shape of 360_em (73 s at 120 Hz) look at panoramas of several sizes. Kaleido adds its noise in
the plane of pixels, without an edge (*plane*) or moved back onto the panorama (*panorama*);
DPGazeSynth draws on the panorama with the radius of equation (8).
"""

from __future__ import annotations

import numpy as np

import gazeveil
from gazeveil.gaze.geometry import Screen
from gazeveil.gaze.recording import Recording

#: Sizes of panoramas, and degrees that stand for a pixel: places are tracked in screen degrees.
SIZES = ((1280, 640), (1920, 960), (3840, 1920))
UNIT_DEG = 0.001

#: The published values of 360_em by share of the smaller side, Kaleido at epsilon 3, 2, 1, and
#: DPGazeSynth's lowest and highest.
PUBLISHED = {
    5: ("546,100 648,200 907,600", "41,700"),
    10: ("1,206,000 1,441,000 1,917,000", "42,840"),
}
PEOPLE, STIMULI, SECONDS, RATE_HZ = 13, 2, 73.0, 120.0


def plane(width_px: float, height_px: float) -> Screen:
    """A screen whose angles are places in pixels times the unit."""
    width_mm, height_mm = (
        2 * np.tan(np.radians(px * UNIT_DEG / 2)) for px in (width_px, height_px)
    )
    return Screen(width_px, height_px, 1000 * width_mm, 1000 * height_mm, 1000.0)


def in_pixels(recording: Recording, size: tuple[int, int], space: Screen) -> Recording:
    """A path on the sphere as one on a panorama."""
    x = (recording.x_deg / 360 - 0.5) * size[0] * UNIT_DEG
    y = (recording.y_deg / 180 - 0.5) * size[1] * UNIT_DEG
    return Recording(
        recording.person,
        recording.stimulus,
        recording.t_ns,
        x,
        y,
        recording.valid,
        space=space,
        rate_hz=RATE_HZ,
    )


def root_of_sum(text: str, raw: list[Recording]) -> float:
    """Mean over paths of the root of summed squares, in pixels."""
    mechanism = gazeveil.mechanism(text)
    released = mechanism.release(gazeveil.Cohort(raw), seed=1).data
    found = {r.key: r for r in released}
    totals = []
    for one in raw:
        other = found[one.key]
        shared = min(len(one), len(other))
        away = np.hypot(
            one.x_deg[:shared] - other.x_deg[:shared], one.y_deg[:shared] - other.y_deg[:shared]
        )
        totals.append(np.sqrt(np.nansum(np.square(away / UNIT_DEG))))
    return float(np.mean(totals))


def main() -> None:
    """Print one line per size and radius."""
    cohort = list(gazeveil.simulate(PEOPLE, STIMULI, SECONDS, RATE_HZ, task="video", seed=14))
    for share, (kaleido, synthetic) in PUBLISHED.items():
        print(f"r {share} %: published Kaleido {kaleido}, DPGazeSynth {synthetic}")
    for size in SIZES:
        paths = {
            "plane": [in_pixels(r, size, plane(150_000, 150_000)) for r in cohort],
            "panorama": [in_pixels(r, size, plane(*size)) for r in cohort],
        }
        for share, grid in ((5, 60), (10, 30)):
            r_deg = size[1] * UNIT_DEG * share / 100
            settings = f"w=60,r_deg={r_deg:g},l_thresh_deg={size[1] * UNIT_DEG / 180:g}"
            for name, raw in paths.items():
                found = [root_of_sum(f"kaleido:epsilon={e},{settings}", raw) for e in (3, 2, 1)]
                print(
                    f"{size[0]} x {size[1]}, r {share} %, Kaleido on the {name}:",
                    *map(round, found),
                )
            text = f"dpgazesynth:G={grid},r_deg=eq8,reading=published,epsilon="
            found = [root_of_sum(f"{text}{e}", paths["panorama"]) for e in (3, 2, 1)]
            print(f"{size[0]} x {size[1]}, G {grid}, DPGazeSynth:", *map(round, found))


if __name__ == "__main__":
    main()
