"""Small datasets of the papers in the layouts they are published in, with simulated gaze in them.

Each function writes one folder below `data` under the name that the studies look for, and says how
many recordings it wrote.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from gazeveil import simulate
from gazeveil.gaze.recording import Recording
from gazeveil.io.known import known_table

SCREEN = known_table("gazebase-vr").screen

SEED = 5


def _viewing(
    people: int, stimuli: int, seconds: float, rate_hz: float, seed: int = SEED
) -> list[list[Recording]]:
    """Recordings by person and stimulus."""
    cohort = list(simulate(people, stimuli, seconds=seconds, rate_hz=rate_hz, seed=seed))
    return [cohort[i * stimuli : (i + 1) * stimuli] for i in range(people)]


def et_dk2(data: Path, people: int = 3, images: int = 4, seconds: float = 8.0) -> int:
    """ET-DK2: one CSV per person, names of images, two areas on each image."""
    folder = data / "et-dk2"
    folder.mkdir(parents=True)
    head = (
        "SUB_ID,IMG_INDEX,IS_GRAY,GRAY_IDX,UNITY_TIMESTAMP,SMI_TIMESTAMP,GIW_X,GIW_Y,GIW_Z,"
        "GIW_TEXTURE_X,GIW_TEXTURE_Y,HEAD_EUL_X,HEAD_EUL_Y,HEAD_EUL_Z"
    )
    for p, recordings in enumerate(_viewing(people, images, seconds, 60)):
        rows = [head]
        for image, recording in enumerate(recordings):
            rows.append(f"{p},{image},True,3,{image * 100.0},0,0,0,2,0,0,0,0,0")
            vectors = 2 * recording.space.vectors(recording.x_deg, recording.y_deg)
            for k, (x, y, z) in enumerate(np.nan_to_num(vectors)):
                lon, lat = recording.x_deg[k] - 180, 90 - recording.y_deg[k]
                if not recording.valid[k]:
                    lon, lat = -1, -1
                time_s = image * 100 + 1 + k / 60
                rows.append(
                    f"{p},{image},False,0,{time_s:.6f},{int(time_s * 1e9)},{x:.6f},{y:.6f},{z:.6f},"
                    f"{lon:.5f},{lat:.5f},0,0,0"
                )
        (folder / f"S{1000 + p}.csv").write_text("\n".join(rows) + "\n")
    names = [f"image{i}.png" for i in range(images)]
    index = "\n".join(f"{i},{name}" for i, name in enumerate(names))
    (folder / "img_index.csv").write_text(f"index,image\n{index}\n")
    areas = "\n".join(
        f"{name},{box},lonlat"
        for name in names
        for box in ("near,-60,40,60,-40", "far,100,60,170,-60")
    )
    (folder / "aoi.csv").write_text(f"image,name,left,top,right,bottom,unit\n{areas}\n")
    return people * images


def vr_saliency(data: Path, named: bool, people: int = 3, scenes: int = 4) -> int:
    """VR-Saliency: a table per scene, seated and standing; runs with or without a viewer."""
    for part, seed in (("seated_vr", SEED), ("vr", SEED + 1)):
        folder = data / "vr-saliency" / part
        folder.mkdir(parents=True)
        recordings = _viewing(people, scenes, 6.0, 120, seed)
        for scene in range(scenes):
            lines = ["run,timestamp,gaze_lat,gaze_lon"]
            for person in range(people):
                r = recordings[person][scene]
                run = f"{part}{person}" if named else f"{part}/{scene}/{person}"
                lines += [
                    f"{run},{1.5e9 + i / 120:.6f},{y!r},{x!r}"
                    for i, (x, y) in enumerate(zip(r.x_deg.tolist(), r.y_deg.tolist(), strict=True))
                ]
            (folder / f"cubemap_{scene:04d}.csv").write_text("\n".join(lines) + "\n")
    return people * scenes


def vr_eyetracking(data: Path, people: int = 3, videos: int = 4, seconds: float = 8.0) -> int:
    """VR-EyeTracking: a text per viewing, seconds per frame beside them."""
    folder = data / "vr-eyetracking"
    interval_s = 0.04
    for p, recordings in enumerate(_viewing(people, videos, seconds, 1 / interval_s)):
        place = folder / "Gaze_txt_files" / f"p{p + 1:03d}"
        place.mkdir(parents=True)
        for v, r in enumerate(recordings):
            fx, fy = np.nan_to_num(r.x_deg / 360), np.nan_to_num(1 - r.y_deg / 180)
            fx, fy = np.where(r.valid, fx, 0), np.where(r.valid, fy, 0)
            lines = [
                f"frame,{k + 1},forward,0.5,0.5,eye,{fx[k]:.6f},{fy[k]:.6f}" for k in range(len(r))
            ]
            name = f"{v + 1}._2017-10-13-10-{v:02d}_ori_0.txt"
            (place / name).write_text("\n".join(lines) + "\n")
    intervals = {f"{v + 1:03d}": interval_s for v in range(videos)}
    (folder / "frame_interval_s.json").write_text(json.dumps(intervals))
    return people * videos


_ARFF = """@RELATION gaze_360
%@METADATA width_px 1920
%@METADATA height_px 1080
@ATTRIBUTE time INTEGER
@ATTRIBUTE x NUMERIC
@ATTRIBUTE y NUMERIC
@ATTRIBUTE confidence NUMERIC
@ATTRIBUTE x_head NUMERIC
@ATTRIBUTE y_head NUMERIC
@ATTRIBUTE angle_deg_head NUMERIC
@DATA
"""


def em360(data: Path, people: int = 3, videos: int = 4, seconds: float = 8.0) -> int:
    """360_em: videos of YouTube, and the one that the authors made, which is not counted."""
    names = [f"{v + 1:02d}_clip_q{v}Zx9-Yw_Tb" for v in range(videos)]
    names.append(f"{videos + 1}_moving_target")
    for p, recordings in enumerate(_viewing(people, videos + 1, seconds, 120)):
        for name, r in zip(names, recordings, strict=True):
            place = data / "360-em" / "gaze" / name
            place.mkdir(parents=True, exist_ok=True)
            x, y = np.nan_to_num(r.x_deg * 1920 / 360), np.nan_to_num(r.y_deg * 1080 / 180)
            rows = [
                f"{round(k * 1e6 / 120)},{x[k]:.3f},{y[k]:.3f},{float(r.valid[k])},960,540,0"
                for k in range(len(r))
            ]
            (place / f"{p + 1:03d}_{name}.arff").write_text(_ARFF + "\n".join(rows) + "\n")
    info = "\n".join(f"{p + 1},{20 + p},{'fm'[p % 2]}" for p in range(people))
    (data / "360-em" / "participant_info.csv").write_text(f"participant,age,gender\n{info}\n")
    return people * videos


def _windows(rng: np.random.Generator, person: int, recording: int, rows: int) -> np.ndarray:
    """Window features that follow the person and the recording; the minima of word books are 0."""
    base = np.random.default_rng(100 + person).uniform(0.5, 2.0, 52)
    base *= 1 + 0.3 * np.sin(recording + np.arange(52))
    values = base * np.exp(0.1 * np.cumsum(rng.normal(0, 0.2, (rows, 52)), axis=0))
    values[:, [30, 36, 42, 48]] = 0.0
    return values


def mpiidpeye(data: Path, people: int = 4, rows: int = 80) -> int:
    """MPIIDPEye: feature files of three documents, and a table of people."""
    rng = np.random.default_rng(SEED)
    folder = data / "mpiidpeye" / "Eye_Movement_Features"
    folder.mkdir(parents=True)
    for p in range(1, people + 1):
        for r in (1, 2, 3):
            place = folder / f"Data_P{p}_R{r}_Pami_Features_52.csv"
            np.savetxt(place, _windows(rng, p, r, rows), delimiter=",", fmt="%.6g")
    listed = "\n".join(f"{p},{'female' if p % 2 else 'male'}" for p in range(1, people + 1))
    (data / "mpiidpeye" / "people.csv").write_text(f"person,gender\n{listed}\n")
    return people * 3


def mpiiprivaceye(data: Path, rows: int = 80) -> int:
    """MPIIPrivacEye: features, scene features and annotation; the end of P10 R1 has no eye
    features.
    """
    rng = np.random.default_rng(SEED)
    folder = data / "mpiiprivaceye" / "Features_and_Ground_Truth"
    folder.mkdir(parents=True)
    people = (1, 2, 3, 5, 7, 8, 10)
    for p in people:
        for r in (1, 2, 3):
            eyes = _windows(rng, p, r, rows)
            if (p, r) == (10, 1):
                eyes[-10:] = np.nan
            label = (np.arange(rows) // 7 + p) % 2
            values = np.column_stack([eyes, rng.normal(size=(rows, 3)), label])
            np.savetxt(folder / f"P{p}_R{r}_data.csv", values, delimiter=",", fmt="%.6g")
    return len(people) * 3


def gazebase_vr(data: Path, people: int = 4, sessions: int = 2) -> int:
    """GazeBaseVR: three of its tasks."""
    folder = data / "gazebase-vr"
    folder.mkdir(parents=True)
    for code, task in (("VID", "video"), ("TEX", "reading"), ("RAN", "random-saccade")):
        for r in simulate(
            people, 1, 6.0, 250, task=task, space=SCREEN, seed=SEED, sessions=sessions
        ):
            person = int(r.person.lstrip("p"))
            x, y = np.where(r.valid, r.x_deg, np.nan), np.where(r.valid, -r.y_deg, np.nan)
            rows = ["n,x,y,lx,ly,rx,ry,xT,yT,zT"] + [
                f"{k * 4},{x[k]:.4f},{y[k]:.4f},{x[k]:.4f},{y[k]:.4f},{x[k]:.4f},{y[k]:.4f},0,0,1"
                for k in range(len(r))
            ]
            session = int(r.session or 1)
            place = folder / f"S_1{person:03d}_S{session}_1_{code}.csv"
            place.write_text("\n".join(rows).replace("nan", "NaN") + "\n")
    return people * sessions * 3


def dgaze(data: Path, rows: int = 60) -> int:
    """DGaze: rows of 50 steps with the gaze 100 ms later, to train on and to test."""
    folder = data / "dgaze"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(SEED)
    for split in ("training", "test"):
        walk = np.cumsum(rng.normal(0, 0.4, (rows, 60, 2)), axis=1)
        steps = np.concatenate([walk[:, :50], rng.normal(size=(rows, 50, 11))], axis=2)
        maps = rng.uniform(size=(rows, 24 * 24 * 2))
        np.save(folder / f"{split}X.npy", np.column_stack([steps.reshape(rows, 650), maps]))
        np.save(folder / f"{split}Y.npy", walk[:, 59])
    return 2 * rows


def ehtask(data: Path, rows: int = 64) -> int:
    """EHTask: rows of 10 s at 25 Hz with one of four tasks, to train on and to test."""
    folder = data / "ehtask"
    folder.mkdir(parents=True)
    for split, seed in (("training", SEED), ("test", SEED + 1)):
        x, y = [], []
        for task, name in enumerate(("free-viewing", "search", "video", "tracking")):
            for r in simulate(rows // 4, 1, seconds=10, rate_hz=25, task=name, seed=seed + task):
                world = np.column_stack([r.x_deg - 180, 90 - r.y_deg])[:250]
                world = np.where(r.valid[:250, None], world, np.nan)
                eye, head = np.full((250, 2), 0.5), np.zeros((250, 2))
                x.append(np.concatenate([eye.ravel(), head.ravel(), world.ravel()]))
                y.append(task)
        np.save(folder / f"{split}X.npy", np.array(x))
        np.save(folder / f"{split}Y.npy", np.array(y))
    np.save(folder / "testRecordingLabel.npy", np.arange(len(y)) // 2)
    return 2 * rows


def recordings(data: Path, folder: str, people: int = 4, stimuli: int = 2, task: str = "") -> int:
    """Recordings of a dataset without a public layout, as somebody wrote them: OpenNEEDS, or DGaze
    and EHTask with names.
    """
    tasks = ("free-viewing", "search") if folder.startswith("ehtask") else (task or "free-viewing",)
    for name in tasks:
        cohort = simulate(people, stimuli, seconds=15.0, rate_hz=100, task=name, seed=SEED)
        cohort.write(data / folder / name)
    return people * stimuli * len(tasks)
