"""Small files with exactly the published layouts of datasets."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


EM360 = """@RELATION gaze_360

%@METADATA distance_mm 0.00
%@METADATA height_mm 0.00
%@METADATA height_px 1080
%@METADATA width_mm 0.00
%@METADATA width_px 1920
%@METADATA fov_width_deg 100.00

@ATTRIBUTE time INTEGER
@ATTRIBUTE x NUMERIC
@ATTRIBUTE y NUMERIC
@ATTRIBUTE confidence NUMERIC
@ATTRIBUTE x_head NUMERIC
@ATTRIBUTE y_head NUMERIC
@ATTRIBUTE angle_deg_head NUMERIC
@ATTRIBUTE primary_label {unassigned,fixation,saccade,SP,noise}
@ATTRIBUTE secondary_label {unassigned,OKN,VOR,OKN+VOR,head_pursuit}

@DATA
0,960.00,540.00,1.00,960.00,540.00,1.22,fixation,VOR
8333,1440.00,270.00,1.00,960.00,540.00,1.22,saccade,unassigned
% a comment among the rows
16667,0.00,0.00,0.00,960.00,540.00,1.22,SP,head_pursuit
"""


NAV = (
    "ViewIndex,FOV1,PositionX,PositionY,PositionZ,QuaternionX,QuaternionY,QuaternionZ,"
    "QuaternionW,GazeQX,GazeQY,GazeQZ,GazeQW,timestep\n"
)


DK2 = (
    "SUB_ID,IMG_INDEX,IS_GRAY,GRAY_IDX,UNITY_TIMESTAMP,SMI_TIMESTAMP,GIW_X,GIW_Y,GIW_Z,"
    "GIW_TEXTURE_X,GIW_TEXTURE_Y,SCREEN_X,SCREEN_Y,"
    "HIW_X,HIW_Y,HIW_Z,HIW_TEXTURE_X,HIW_TEXTURE_Y,GAZE_DIR_X,GAZE_DIR_Y,GAZE_DIR_Z,HEAD_POS_X,"
    "HEAD_POS_Y,HEAD_POS_Z,HEAD_EUL_X,HEAD_EUL_Y,HEAD_EUL_Z\n"
)


def dk2_row(
    image: int,
    gray: bool,
    t_s: float,
    giw: tuple[float, float, float],
    texture: tuple[float, float],
    euler: tuple[float, float, float],
) -> str:
    cells = [
        1001,
        image,
        gray,
        3,
        t_s,
        int(t_s * 1e9),
        *giw,
        *texture,
        0,
        0,
        0,
        0,
        1,
        0,
        0,
        0,
        0,
        1,
        0,
        1.7,
        0,
        *euler,
    ]
    return ",".join(str(c) for c in cells) + "\n"


VR = (
    "frame,1,forward,0.5,0.5,eye,0.25,0.75\nframe,2,forward,0.5,0.5,eye,0.5,0.5\nframe,5,"
    "forward,0.5,0.5,eye,0,0\n"
)


def run(k: int, n: int = 6) -> dict[str, object]:
    return {
        "timestamp": 1.5e9 + np.arange(n) / 120,
        "gaze_lat_lon": np.column_stack([np.full(n, 90.0 + k), np.full(n, 10.0 * k)]),
        "headLatLon": np.column_stack([np.full(n, 90.0), np.full(n, 10.0 * k)]),
        "headTilt": np.zeros(n),
        "gaze_fixations": np.array([[0.1, 0.2]]),
        "viewpoint_idx": k,
    }


SNIFFED = [
    ("360-em", "a_b.arff", EM360),
    ("eyenavgs", "a_b.csv", NAV + "0,0,0,0,0,0,0,0,1,0.1,0,0,1,0\n"),
    ("gazebase", "S_1001_S1_FXS.csv", "n,x,y,val,dP,lab,xT,yT\n0,1,2,0,9,1,0,0\n"),
    ("gazebase-vr", "S_1001_S1_1_VRG.csv", "n,x,y,lx,ly,rx,ry,xT,yT,zT\n0,1,2,1,2,1,2,0,0,1\n"),
    ("et-dk2", "S0001.csv", DK2 + dk2_row(1, False, 1, (0, 0, 1), (0, 0), (0, 0, 0))),
    ("vr-eyetracking", "1._2017_ori_0.txt", VR),
    ("mpiidpeye", "P1_R1.csv", "0.5;0.5;1.0;1;30\n"),
    ("mpiidpeye", "Data_P1_R1_Pami_Features_52.csv", ",".join(["1"] * 52) + "\n"),
    ("mpiiprivaceye", "P1_R1_data.csv", ",".join(["1"] * 60) + "\n"),
    ("salient360", "scan.txt", "0,0.5,0.5,0\n1,0.4,0.5,0.3\n0,0.1,0.1,0.1\n"),
    ("salient360", "scan.csv", "Idx, longitude, latitude, start timestamp\n0, 0.5, 0.5, 0\n"),
    ("hmr", "eye_1.csv", "Pattern\tX_coord\tY_coord\tConfidence\nF\t0.1\t0.1\t1\n"),
    ("cateyes", "x.csv", "Phi,Theta,Timestamp\n0.1,0.1,5\n"),
    ("webqamgaze", "x.json", '{"worker_id": "1", "set_name": "a", "samples_x_y_ms": {}}'),
    (
        "neuroliaa",
        "x.json",
        '{"i.jpg": {"X": [1], "Y": [1], "T": [1], "target_bbox": [1, 2, 3, 4]}}',
    ),
]
