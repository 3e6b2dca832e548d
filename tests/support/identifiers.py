"""Identifiers planted in recordings of every format, and the search for them in what comes out.

`plant(format_name, folder)` writes a small folder of that format that still reads, made from real
recordings under GAZEVEIL_DATA where there are some, with a known name, date, clock, serial number,
path, e-mail address, age and eye distance in each place where the format has room for it. It
returns the kinds it planted. `traces_in(folder)` lists every planted value that a folder still
holds, in bytes (unzipped, Parquet decoded), file names and file times.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import gazeveil
from tests.support.recordings import real

NAME = "Wilhelmina Quandt"
#: Where a name must be one word: parts of file names, labels of BIDS.
WORD = "WilhelminaQuandt"
DATE = "2019-07-23"
DATE_WORDS = "Tue Jul 23 14:52:07 2019"
DATE_DOTS = "23.07.2019 14:52:07"
CLOCK_S = 1_563_893_527
SERIAL = "QZX-7K41B"
UUID = "7d3e91ac-40b2-4c5f-9e18-c0ffee51ab07"
PATH = r"C:\Users\wquandt\study\rec7.edf"
EMAIL = "w.quandt@labor.example"
AGE = "41.70938"
EYE_DISTANCE = "63.84719"

#: Kind -> patterns that must be in no output. Clocks are any time of that day, in any unit.
TRACES: dict[str, tuple[str, ...]] = {
    "name": ("wilhelmina", "quandt"),
    "date": ("2019-07-23", "jul 23", "23[.]07[.]2019", "20190723", "14:52:07"),
    "clock": (r"(?<![\d.])156389\d{4}", r"(?<![\d.])6369949\d{7}(?!\d)"),
    "serial": ("qzx-7k41b", "7k41b", "c0ffee51ab07"),
    "path": (r"rec7[.]edf",),
    "e-mail": (r"labor[.]example",),
    "attribute": ("41[.]70938",),
    "eye distance": ("63[.]84719",),
}


def lines_in(path: Path) -> list[str]:
    """The lines of a text file, unzipped."""
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8").split("\n")


def write(path: Path, text: str | list[str]) -> Path:
    """Write text, zipped where the name says so, with a time of change that says when."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = (text if isinstance(text, str) else "\n".join(text)).encode("utf-8")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def few(source: Path, count: int) -> list[Path]:
    """The first files of a folder."""
    return sorted(p for p in source.iterdir() if p.is_file())[:count]


def with_clock(lines: list[str], column: str, unit: int, separator: str) -> list[str]:
    """A table whose time column counts since 1970 in `unit` ticks a second."""
    at = [c.strip('"') for c in lines[0].split(separator)].index(column)
    first = float(next(line for line in lines[1:] if line).split(separator)[at])
    result = [lines[0]]
    for line in lines[1:]:
        cells = line.split(separator)
        if len(cells) > at and cells[at]:
            elapsed = float(cells[at]) - first
            cells[at] = f"{CLOCK_S * unit + round(elapsed)}"
        result.append(separator.join(cells))
    return result


# --- Vendors that `scrub` copies


def eyelink(folder: Path) -> set[str]:
    source = real("vendor_samples", "eyelink_asc", "pymovements_eyelink_monocular_example.asc")
    text = source.read_text("utf-8")
    origin = f"CONVERTED FROM {PATH} using edfapi 4.2.1 on {DATE_WORDS}"
    text = re.sub(r"CONVERTED FROM .*", lambda _: origin, text)
    text = re.sub(r"\*\* DATE: .*", f"** DATE: {DATE_WORDS}", text)
    text = re.sub(r"SERIAL NUMBER: .*", f"SERIAL NUMBER: {SERIAL}", text)
    text = re.sub(r"CAMERA_CONFIG: .*", "CAMERA_CONFIG: 7K41B200.SCD", text)
    text = re.sub(r"RECORDED BY .*", f"RECORDED BY {NAME}", text)
    said = [
        f"participant {NAME}",
        f"subject_age {AGE} ipd {EYE_DISTANCE}",
        f"contact {EMAIL}",
        f"!V TRIAL_VAR image {PATH}",
        f"unix {CLOCK_S}.25",
        f"!CAL operator {NAME}",
    ]
    at = int(re.search(r"^MSG\s+(\d+)", text, re.MULTILINE)[1])  # type: ignore[index]
    messages = "\n".join(f"MSG\t{at} {one}" for one in said)
    text = text.replace("\nMSG", f"\n{messages}\nMSG", 1)
    # Once more among the samples, where messages of an experiment stand.
    text = re.sub(r"(\nSAMPLES[^\n]*)", rf"\1\nMSG\t{at} response of {NAME} {DATE}", text, count=1)
    for person in (WORD, "P02"):
        write(folder / f"{person}_{DATE}.asc", text)
    return set(TRACES)


def tobii_pro_lab(folder: Path) -> set[str]:
    names = [
        "Recording timestamp [us]",
        "Computer timestamp [us]",
        "Sensor",
        "Project name",
        "Export date",
        "Participant name",
        "Recording name",
        "Recording date",
        "Recording start time",
        "[Variable]Age",
        "Operator e-mail",
        "Recording software path",
        "Eye tracker serial number",
        "Gaze point left X [DACS px]",
        "Gaze point left Y [DACS px]",
        "Gaze point right X [DACS px]",
        "Gaze point right Y [DACS px]",
        "Validity left",
        "Validity right",
        "Eye position left X [DACS mm]",
        "Eye position left Y [DACS mm]",
        "Eye position left Z [DACS mm]",
        "Eye position right X [DACS mm]",
        "Eye position right Y [DACS mm]",
        "Eye position right Z [DACS mm]",
        "Pupil diameter left [mm]",
        "Presented Stimulus name",
        "Event",
        "Event value",
        "Recording resolution width [px]",
        "Recording resolution height [px]",
        "Interpupillary distance [mm]",
    ]
    rows = []
    for i in range(240):
        stimulus = f"image of {NAME}.png" if i < 120 else "second.png"
        event = ("ImageStimulusStart", stimulus) if i in (0, 120) else ("", "")
        rows.append(
            [
                f"{i * 8333}",
                f"{CLOCK_S * 1_000_000 + i * 8333}",
                "Eye Tracker",
                f"Study of {NAME}",
                "7/23/2019",
                NAME,
                f"Recording {DATE}",
                "7/23/2019",
                "14:52:07.123",
                AGE,
                EMAIL,
                PATH,
                SERIAL,
                f"{900 + i % 40}",
                f"{500 + i % 30}",
                f"{904 + i % 40}",
                f"{501 + i % 30}",
                "Valid",
                "Valid",
                f"{-float(EYE_DISTANCE) / 2:.5f}",
                "10.00000",
                "640.00000",
                f"{float(EYE_DISTANCE) / 2:.5f}",
                "10.00000",
                "640.00000",
                "3.41",
                stimulus,
                *event,
                "1920",
                "1080",
                EYE_DISTANCE,
            ]
        )
    text = "\n".join("\t".join(cells) for cells in [names, *rows])
    write(folder / f"{WORD} {DATE}.tsv", text + "\n")
    write(folder / "P02.tsv", text.replace(NAME, "P02") + "\n")
    return set(TRACES)


def tobii_tx300(folder: Path) -> set[str]:
    source = real("vendor_samples", "tobii_tx300_i2mc", "participant1")
    for person in (WORD, "P02"):
        for path in few(source, 2):
            lines = with_clock(lines_in(path)[:1500], "Time", 1_000_000, "\t")
            write(folder / person / f"{DATE}_{path.name}", lines)
    return {"name", "date", "clock"}


def glasses3(folder: Path) -> set[str]:
    source = real("vendor_samples", "Tobii_Pro_Glasses_3", "calibration_1")
    for person in (NAME, "P02"):
        place = folder / person.replace(" ", "") / f"{DATE}T145207Z"
        for name in ("gazedata", "eventdata", "imudata"):
            lines = lines_in(source / f"{name}.gz")[:600]
            records = [json.loads(line) for line in lines if line]
            for record in records:
                record["timestamp"] += CLOCK_S
            if name == "eventdata":
                tag = {"tag": f"hello {person}", "object": {"path": PATH, "ipd": EYE_DISTANCE}}
                records.append({"type": "event", "timestamp": CLOCK_S + 0.5, "data": tag})
            write(place / f"{name}.gz", "\n".join(json.dumps(r) for r in records) + "\n")
        about = {
            "uuid": UUID,
            "name": f"Recording {person}",
            "created": f"{DATE}T14:52:07Z",
            "operator-email": EMAIL,
            "version": 1,
            "duration": 12.5,
            "ru-serial": SERIAL,
            "age": AGE,
            "ipd": EYE_DISTANCE,
        }
        write(place / "recording.g3", json.dumps(about))
        write(place / "meta" / "participant", json.dumps({"name": person, "age": AGE}))
        write(place / "meta" / "RuSerial", SERIAL)
    return set(TRACES)


def _pupil_info(person: str, **more: object) -> str:
    return json.dumps(
        {
            "wearer_name": person,
            "wearer_id": UUID,
            "recording_id": UUID,
            "android_device_id": "c0ffee51ab07c0ff",
            "start_time": CLOCK_S * 1_000_000_000,
            "template_data": {"age": AGE, "ipd_mm": EYE_DISTANCE, "e-mail": EMAIL, "path": PATH},
            "created": f"{DATE}T14:52:07Z",
            "data_format_version": "2.0",
            "duration": 12_500_000_000,
            **more,
        }
    )


def pupil_invisible(folder: Path) -> set[str]:
    source = real("vendor_samples", "Pupil_Invisible", "trampoline_02")
    first = int(lines_in(source / "gaze.csv.gz")[1].split(",")[2])
    for person in (NAME, "P02"):
        place = folder / f"{person.replace(' ', '')}-{DATE}"
        for name in ("gaze.csv.gz", "imu.csv.gz", "blinks.csv"):
            lines = lines_in(source / name)[:600]
            text = re.sub(
                r"\b16293903\d{11}\b",
                lambda m: f"{int(m[0]) - first + CLOCK_S * 1_000_000_000}",
                "\n".join(lines),
            )
            text = text.replace("afd3e1e3-3916-48ef-860c-3a66f8e3b737", UUID)
            write(place / name, text)
        write(
            place / "events.csv",
            "recording id,timestamp [ns],name,type\n"
            f"{UUID},{CLOCK_S * 1_000_000_000},recording.begin,recording\n"
            f"{UUID},{CLOCK_S * 1_000_000_000 + 5},{person} waves on {DATE},recording\n",
        )
        write(place / "info.json", _pupil_info(person, glasses_serial_number=SERIAL))
    return set(TRACES)


def pupil_neon(folder: Path) -> set[str]:
    header = "section id,recording id,timestamp [ns],gaze x [px],gaze y [px],worn"
    header += ",fixation id,blink id,azimuth [deg],elevation [deg]"
    for person in (NAME, "P02"):
        place = folder / f"{person.replace(' ', '')}-{DATE}"
        start = CLOCK_S * 1_000_000_000
        rows = [
            f"{UUID},{UUID},{start + i * 5_000_000},{1200 + i % 50},{500 + i % 20},1,,,{i % 9},4"
            for i in range(400)
        ]
        write(place / "gaze.csv", "\n".join([header, *rows]))
        half = float(EYE_DISTANCE) / 2
        states = ["recording id,timestamp [ns],pupil diameter left [mm],pupil diameter right [mm]"]
        states[0] += ",eyeball center left x [mm],eyeball center right x [mm],ipd [mm]"
        states += [
            f"{UUID},{start + i * 5_000_000},3,4,{-half:.6f},{half:.6f},{EYE_DISTANCE}"
            for i in range(400)
        ]
        write(place / "3d_eye_states.csv", "\n".join(states))
        write(place / "info.json", _pupil_info(person, module_serial_number=SERIAL))
        write(place / "scene_camera.mp4", b"\0\0\0\x18ftyp".decode("latin-1") + NAME)
    return set(TRACES)


def pupil_core(folder: Path) -> set[str]:
    for person in (NAME, "P02"):
        recording = folder / person.replace(" ", "") / f"{DATE}_001"
        place = recording / "exports" / "000"
        header = "gaze_timestamp,world_index,confidence,norm_pos_x,norm_pos_y,base_data"
        header += "".join(f",gaze_point_3d_{a}" for a in "xyz")
        header += "".join(f",eye_center{e}_3d_{a}" for e in (0, 1) for a in "xyz")
        half = float(EYE_DISTANCE) / 2
        rows = [
            f"{CLOCK_S + i * 0.008:.6f},{i // 4},0.95,0.6,0.6,{CLOCK_S + i * 0.008:.6f}-0"
            f",{100 + i % 30},-100,1000,{half:.6f},1,-20,{-half:.6f},1,-20"
            for i in range(400)
        ]
        write(place / "gaze_positions.csv", "\n".join([header, *rows]))
        said = f"index,timestamp,label,duration\n0,{CLOCK_S + 0.5},{person} {DATE} {EMAIL},0\n"
        write(place / "annotations.csv", said)
        about = [
            "key,value",
            f"Recording Name,{DATE}_{person}",
            "Start Date,23.07.2019",
            "Start Time,14:52:07",
            f"Start Time (System),{CLOCK_S}.5",
            f"Recording UUID,{UUID}",
            f'System Info,"User: {person}, Platform: Linux, Machine: {SERIAL}"',
            "Data Format Version,1.0",
            f"ipd,{EYE_DISTANCE}",
            f"age,{AGE}",
        ]
        write(recording / "info.csv", "\n".join(about) + "\n")
        player = {
            "recording_name": f"{DATE}_{person}",
            "recording_uuid": UUID,
            "start_time_system_s": CLOCK_S + 0.25,
            "start_time_synced_s": 17.5,
            "system_info": f"User: {person}, Platform: {PATH}",
            "duration_s": 12.5,
            "meta_version": "2.3",
        }
        write(recording / "info.player.json", json.dumps(player))
    return set(TRACES)


def smi(folder: Path) -> set[str]:
    for person in (NAME, "P02"):
        header = [
            "## [BeGaze]",
            f"## Converted from:\t{PATH}",
            f"## Date:\t{DATE_DOTS}",
            "## Version:\tBeGaze 3.7.40",
            f"## IDF Version:\t9 {SERIAL}",
            "## Sample Rate:\t250",
            "## [Run]",
            f"## Subject:\t{person}",
            f"## Description:\tage {AGE}, ipd {EYE_DISTANCE}, {EMAIL}",
            "## [Calibration]",
            "## Calibration Area:\t1680\t1050",
            "## Calibration Point 0:\tPosition(841;526)",
            "## [Geometry]",
            "## Stimulus Dimension [mm]:\t474\t297",
            "## Head Distance [mm]:\t700",
            "## [Hardware Setup]",
            f"## System ID:\t{SERIAL}",
            f"## Operator:\t{person}",
            "## Format:\tLEFT, RIGHT, POR, MSG",
            "##",
        ]
        names = ["Time", "Type", "Trial", "L POR X [px]", "L POR Y [px]", "R POR X [px]"]
        names += ["R POR Y [px]", "L Mapped Diameter [mm]", "L EPOS X", "R EPOS X", "L Event Info"]
        half = float(EYE_DISTANCE) / 2
        rows = []
        for i in range(300):
            if i in (0, 150):
                said = f"# Message: {person.replace(' ', '')}.jpg" if i else "# Message: first.jpg"
                rows.append(f"{CLOCK_S * 1_000_000 + i * 4000}\tMSG\t{1 + i // 150}\t{said}")
            rows.append(
                f"{CLOCK_S * 1_000_000 + i * 4000}\tSMP\t{1 + i // 150}\t{840 + i % 30}.00\t525.00"
                f"\t{841 + i % 30}.00\t525.00\t3.50\t{-half:.6f}\t{half:.6f}\tFixation"
            )
        place = folder / f"{person.replace(' ', '')}_{DATE}.txt"
        write(place, "\n".join([*header, "\t".join(names), *rows]) + "\n")
    return set(TRACES)


def bids(folder: Path) -> set[str]:
    made = gazeveil.simulate(
        2, 2, 2.0, 120.0, space=gazeveil.Screen(1920, 1080, 530, 300, 650), seed=3
    )
    recordings = [
        r.with_(
            person=NAME if i < 2 else "Z02",
            session=DATE,
            t_ns=r.t_ns + CLOCK_S * 1_000_000_000,
            truth=None,
        )
        for i, r in enumerate(made)
    ]
    from gazeveil.io.bids.write import write as write_bids

    people: dict[str, dict[str, object]] = {
        NAME: {"age": AGE, "sex": "f", "ipd_mm": EYE_DISTANCE, "e-mail": EMAIL},
        "Z02": {"age": 30, "sex": "m", "ipd_mm": 60.0, "e-mail": ""},
    }
    target = folder / "dataset"
    write_bids(gazeveil.Cohort(recordings, people), target)
    for place in target.rglob("*_physio.json"):
        about = json.loads(place.read_text("utf-8"))
        about |= {
            "DeviceSerialNumber": SERIAL,
            "InstitutionName": f"Labor {NAME}",
            "InstitutionAddress": EMAIL,
            "SourceFile": PATH,
            "AcquisitionTime": f"{DATE}T14:52:07",
        }
        write(place, json.dumps(about))
    description = json.loads((target / "dataset_description.json").read_text("utf-8"))
    description |= {"Authors": [NAME], "HowToAcknowledge": EMAIL}
    write(target / "dataset_description.json", json.dumps(description))
    write(target / "README", f"Recorded by {NAME} on {DATE} in {PATH}.\n")
    return set(TRACES)


def people_table(folder: Path) -> set[str]:
    eyelink(folder)
    write(
        folder / "people.csv",
        "person,name,date,age,gender,ipd_mm,email,scanner serial,folder\n"
        f"{WORD},{NAME},{DATE},{AGE},f,{EYE_DISTANCE},{EMAIL},{SERIAL},{PATH}\n"
        "P02,Otto,2019-07-24,30,m,60.1,,ABC-1234X,\n",
    )
    return set(TRACES)


# --- Formats that `publish` reads and `scrub` does not copy


def gazecom(folder: Path) -> set[str]:
    for clip in ("beach", "bridge_1"):
        for i, path in enumerate(few(real("gazecom", clip), 4)):
            person = WORD if i == 0 else f"obs{i + 1:02d}"
            lines = lines_in(path)
            said = f"% {NAME}, {AGE} years, {EMAIL}, recorded {DATE} with {SERIAL} into {PATH}"
            # 250 Hz for two seconds are enough to protect.
            write(folder / clip / f"{person}_{clip}.arff.gz", [said, *lines[:520]])
    return set(TRACES) - {"clock", "eye distance"}


def eyenavgs(folder: Path) -> set[str]:
    scenes = sorted(p.name for p in real("eyenavgs_nthu").iterdir() if p.is_dir())[:2]
    for scene in scenes:
        for i, path in enumerate(few(real("eyenavgs_nthu", scene), 4)):
            person = WORD if i == 0 else f"user{i + 1}"
            lines = with_clock(lines_in(path)[:400], "timestep", 1000, ",")
            write(folder / scene / f"{person}_{scene}.csv.gz", lines)
    return {"name", "clock"}


def irf(folder: Path) -> set[str]:
    source = real("irf_lookatpoint")
    data = np.load(source / "lookAtPoint_EL_S1.npy")[:2000]
    for person in (WORD, "S2"):
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"lookAtPoint_EL_{person}.npy", data)
    about = json.loads((source / "db_config.json").read_text("utf-8"))
    about |= {"operator": NAME, "created": DATE, "root": PATH, "contact": EMAIL, "serial": SERIAL}
    write(folder / "db_config.json", json.dumps(about | {"age": AGE, "ipd": EYE_DISTANCE}))
    return set(TRACES) - {"clock"}


def lund2013(folder: Path) -> set[str]:
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(real("lund2013", "dots").glob("UH21_trial1_*.mat")):
        shutil.copyfile(path, folder / path.name.replace("UH21", WORD))
        shutil.copyfile(path, folder / path.name)
    return {"name"}


def neuroliaa(folder: Path) -> set[str]:
    source = real("neuroliaa_interiors", "subj01_scanpaths.json.gz")
    content = json.loads("\n".join(lines_in(source)))
    few_images = dict(list(content.items())[:4])
    for person in (NAME, "02"):
        entries = {
            image: {**entry, "subject": person, "recorded": f"{DATE}T14:52:07", "age": AGE}
            for image, entry in few_images.items()
        }
        name = WORD if person == NAME else "subj02"
        write(folder / f"{name}_scanpaths.json.gz", json.dumps(entries))
    return {"name", "date", "attribute"}


def webqamgaze(folder: Path) -> set[str]:
    for i, path in enumerate(few(real("webqamgaze"), 3)):
        content = json.loads("\n".join(lines_in(path)))
        if i == 0:
            content |= {"worker_id": NAME, "worker_age": float(AGE), "start_time": CLOCK_S * 1000}
            content |= {"e-mail": EMAIL, "recorded": DATE, "serial": SERIAL, "upload_path": PATH}
            content |= {"ipd": float(EYE_DISTANCE)}
        name = f"{WORD}_{DATE}.json.gz" if i == 0 else path.name
        write(folder / name, json.dumps(content))
    return set(TRACES)


def vive(folder: Path) -> set[str]:
    source = real("vendor_samples", "HTC_Vive_Pro", "TESTNA01_2D_Fist3.csv.gz")
    for person in (WORD, "P02"):
        lines = lines_in(source)[:400]
        write(folder / f"{person}_{DATE}.csv.gz", lines)
    return {"name", "date"}


def pico(folder: Path) -> set[str]:
    lines = lines_in(real("vendor_samples", "Pico_Neo_3_Pro", "boxing_VR.csv.gz"))[:300]
    for person in (NAME, "P02"):
        text = "\n".join(lines).replace("SE05\t", f"{person}\t")
        write(folder / f"{person.replace(' ', '')}_{DATE}.csv.gz", text)
    return {"name", "date"}


def unity_hmd(folder: Path) -> set[str]:
    lines = lines_in(real("vendor_samples", "salient360_hmd", "rawDataStatic1.csv.gz"))[:400]
    lines = with_clock(lines, "OcutimeStamp", 1_000_000, ",")
    for person in (WORD, "P02"):
        write(folder / person / f"{DATE}.csv.gz", lines)
    return {"name", "date", "clock"}


def plain_csv(folder: Path) -> set[str]:
    rows = [f"{CLOCK_S + i / 100:.2f},{900 + i % 40},{500 + i % 30}" for i in range(300)]
    for person in (WORD, "P02"):
        write(folder / person / f"{DATE}.csv", "\n".join(["t_s,x_px,y_px", *rows]) + "\n")
    return {"name", "date", "clock"}


def parquet(folder: Path) -> set[str]:
    made = gazeveil.simulate(2, 2, 2.0, 120.0, seed=3)
    about = {"serial": SERIAL, "operator": NAME, "path": PATH, "created": DATE, "contact": EMAIL}
    recordings = [
        r.with_(
            person=NAME if i < 2 else "P02",
            session=DATE,
            t_ns=r.t_ns + CLOCK_S * 1_000_000_000,
            metadata={**r.metadata, **about, "ipd": EYE_DISTANCE},
            truth=None,
        )
        for i, r in enumerate(made)
    ]
    people: dict[str, dict[str, object]] = {NAME: {"age": float(AGE)}, "P02": {"age": 30}}
    gazeveil.Cohort(recordings, people).write(folder / "cohort")
    return set(TRACES)


#: Formats that `scrub` copies.
SCRUBBED: dict[str, Callable[[Path], set[str]]] = {
    "eyelink-asc": eyelink,
    "tobii-tsv": tobii_pro_lab,
    "tobii-sdk matlab": tobii_tx300,
    "tobii-glasses3": glasses3,
    "pupil-invisible": pupil_invisible,
    "pupil-neon": pupil_neon,
    "pupil-core": pupil_core,
    "smi": smi,
    "bids": bids,
    "people": people_table,
}
#: All formats.
FORMATS: dict[str, Callable[[Path], set[str]]] = {
    **SCRUBBED,
    "gazecom": gazecom,
    "eyenavgs": eyenavgs,
    "irf": irf,
    "lund2013": lund2013,
    "neuroliaa": neuroliaa,
    "webqamgaze": webqamgaze,
    "vive-pro-eye": vive,
    "pico": pico,
    "unity-hmd": unity_hmd,
    "csv": plain_csv,
    "parquet": parquet,
}


def plant(format_name: str, folder: Path) -> set[str]:
    """Write a folder of a format with identifiers in it; the kinds that were planted."""
    kinds = FORMATS[format_name](folder)
    for place in folder.rglob("*"):
        os.utime(place, (CLOCK_S, CLOCK_S))
    return kinds


def traces_in(folder: Path) -> list[str]:
    """Every planted value that a folder still holds: `file: kind (text)`."""
    found = []
    for place in sorted(folder.rglob("*")):
        told = place.relative_to(folder).as_posix()
        found += [f"{told}: {kind} in the file name ({t})" for kind, t in hits(told)]
        if abs(place.stat().st_mtime - CLOCK_S) < 86_400:
            found.append(f"{told}: the time of change")
        if place.is_file():
            for text in texts_in(place):
                found += [f"{told}: {kind} ({t})" for kind, t in hits(text)]
    return found


def hits(text: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each planted value that a text holds."""
    for kind, patterns in TRACES.items():
        for pattern in patterns:
            match = re.search(pattern, text, re.IGNORECASE)
            if match is not None:
                yield kind, match[0]


def texts_in(place: Path) -> Iterator[str]:
    """What a file holds as text: its bytes, what they unzip to, and the columns of Parquet."""
    data = place.read_bytes()
    yield data.decode("latin-1")
    if data[:2] == b"\x1f\x8b":
        # The archive's own header may name the file.
        yield gzip.decompress(data).decode("latin-1")
    if data[:4] == b"PAR1":
        import polars as pl

        yield json.dumps(pl.read_parquet_metadata(place))
        yield pl.read_parquet(place).write_csv()
