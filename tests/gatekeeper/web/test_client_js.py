"""The web client without a browser, in node: its types name what it has, and pixels and degrees of
a screen are each other's inverse.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from typing import Any

import pytest

from tests.support.places import ROOT

WEB = ROOT / "src" / "gazeveil" / "gatekeeper" / "web"


def node(script: str) -> Any:
    """What a module prints as JSON; `client` and `places` are the modules it may use."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed: the client is looked at in Chromium alone")
    imports = "".join(
        f"import * as {name} from {json.dumps((WEB / path).as_uri())};\n"
        for name, path in (("client", "client.js"), ("places", "lib/places.js"))
    )
    done = subprocess.run(
        [found, "--input-type=module", "-e", imports + script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_types_name_every_call_and_no_other() -> None:
    has = node(
        """
        const calls = new Set();
        for (let one = client.Gaze.prototype; one !== Object.prototype;
          one = Object.getPrototypeOf(one)) {
          Object.getOwnPropertyNames(one).forEach((name) => calls.add(name));
        }
        console.log(JSON.stringify([...calls]));
        """
    )
    types = (WEB / "client.d.ts").read_text(encoding="utf-8")
    body = re.search(r"export class Gaze \{\n(.*?)\n\}", types, re.DOTALL)
    assert body is not None
    named = set(re.findall(r"^  (\w+)[<(]", body[1], re.MULTILINE))
    assert named == set(has) - {"dispatch"}
    package = json.loads((WEB / "package.json").read_text(encoding="utf-8"))
    for path in (*package["exports"]["."].values(), *package["files"]):
        assert (WEB / path).exists(), path
    assert "scripts" not in package, "nothing is built"


SCALE = """
const space = { kind: "screen", width_mm: 527, height_mm: 296, distance_mm: 600 };
const place = () => ({ x: 100, y: 80, zoom: 2 });
const scale = new places.ScreenScale(space, { width: 1920, height: 1080 }, place);
"""


def test_pixels_become_degrees_by_the_tangent_of_each_axis_and_back() -> None:
    found = node(
        f"""{SCALE}
        const rect = scale.toDegrees({{ x: 430, y: 230, width: 100, height: 50 }});
        const back = scale.toPixels(rect.x_deg + rect.width_deg, rect.y_deg + rect.height_deg);
        console.log(JSON.stringify({{ rect, back, corner: scale.screenPoint(0, 0) }}));
        """
    )
    # The window is at 100, 80 and zoomed twice, so this pixel is the middle of the screen.
    assert found["rect"]["x_deg"] == pytest.approx(0)
    assert found["rect"]["y_deg"] == pytest.approx(0)
    wide_mm, high_mm = 200 * 527 / 1920, 100 * 296 / 1080
    assert found["rect"]["width_deg"] == pytest.approx(math.degrees(math.atan(wide_mm / 600)))
    assert found["rect"]["height_deg"] == pytest.approx(math.degrees(math.atan(high_mm / 600)))
    assert found["back"] == pytest.approx([530, 280])
    assert found["corner"] == pytest.approx(
        [-math.degrees(math.atan(263.5 / 600)), -math.degrees(math.atan(148 / 600))]
    )


def test_only_what_has_moved_is_told_and_names_are_each_their_own() -> None:
    found = node(
        f"""{SCALE}
        globalThis.document = {{ hidden: false }};
        const first = {{ x: 0, y: 0, width: 90, height: 90, name: "one" }};
        const other = {{ x: 300, y: 0, width: 90, height: 90, name: "one" }};
        const things = new places.Things([first, other], () => scale);
        const names = things.targets().map((target) => target.name);
        first.x = 1;
        const still = things.moved().length;
        other.y = 40;
        const moved = things.moved().map((target) => target.name);
        document.hidden = true;
        const gone = things.moved().map((target) => target.x_deg);
        console.log(JSON.stringify({{ names, still, moved, gone, own: things.thing("one").x }}));
        """
    )
    assert found["names"] == ["one", "one 2"]
    assert found["still"] == 0, "less than a tenth of a degree"
    assert found["moved"] == ["one 2"]
    assert found["gone"] == [-10_000, -10_000], "what cannot be seen cannot be chosen"
    assert found["own"] == 1


def test_a_zoom_is_one_that_browsers_have() -> None:
    sizes = [[1000, 1000], [1000, 800], [1000, 500], [1000, 640], [1000, 620]]
    zooms = node(
        f"console.log(JSON.stringify({json.dumps(sizes)}.map(([outerWidth, innerWidth]) =>"
        " places.zoomOf({ outerWidth, innerWidth }))));"
    )
    assert zooms == [1, 1.25, 2, 1, 1], "a docked panel is no zoom"
