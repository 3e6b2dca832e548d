"""The documented ways from elsewhere, in a real browser: client.js from a page of another origin,
and a TLS proxy.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from tests.support.gatekeeper_browser import SESSION, Desk
from tests.support.gatekeeper_running import Process, free_port
from tests.support.other_origin import OtherOrigin
from tests.support.places import ROOT

# --- the theft of the owner's cookie
# --------------------------------------------------------------------------------------------------


#: Runs in a page of the hostile origin: everything a page can try in the name of the browser's
#: owner.
TRIES = """async (service) => {
  const tried = {};
  const credentials = "include";
  const call = async (name, path, options) => {
    try {
      const answer = await fetch(service + path, { credentials, ...options });
      tried[name] = [answer.status, (await answer.text()).includes("apps")];
    } catch { tried[name] = "blocked"; }
  };
  await call("read", "/v1/apps", {});
  await call("read opaque", "/v1/apps", { mode: "no-cors" });
  await call("header", "/v1/apps", { headers: { "X-Gazeveil": "1" } });
  const session = { "X-Gazeveil-Session": "gvs_0000000000000000_x" };
  await call("session header", "/v1/apps", { headers: session });
  const form = { method: "POST", mode: "no-cors", headers: { "Content-Type": "text/plain" } };
  await call("form", "/v1/consent", { ...form, body: '{"on": true}' });
  tried.storage = Object.keys(localStorage).length;
  tried.live = await new Promise((resolve) => {
    const socket = new WebSocket(service.replace("http", "ws") + "/v1/live");
    socket.onopen = () => socket.send(JSON.stringify({ type: "hello" }));
    socket.onmessage = (event) => resolve(JSON.parse(event.data).code ?? event.data);
    socket.onclose = (event) => resolve(event.code);
  });
  return tried;
}"""


def test_a_server_on_another_port_steals_the_cookie_and_gets_nothing(
    desk: Desk, process: Process, signed_in: dict[str, Any], other_origin: OtherOrigin
) -> None:
    page = desk.owner()
    # A link followed within the same host is same-site, whatever the port: the browser sends the
    # cookie.
    page.evaluate("address => { location.href = address }", f"{other_origin.address}/gift")
    page.wait_for_url(f"{other_origin.address}/gift")
    stolen = next(text for text in other_origin.cookies if text)
    assert "gazeveil_owner" in stolen, "the attack begins with a cookie that was seen"
    with httpx.Client(base_url=process.address, headers={"Cookie": stolen}) as thief:
        assert thief.get("/v1/apps").status_code == 401
        assert thief.post("/v1/consent", json={"on": True}).status_code == 401
    # The page of the hostile origin, in the signed-in browser.
    tried = page.evaluate(TRIES, process.address)
    assert tried["read"] == tried["header"] == tried["session header"] == "blocked"
    assert tried["read opaque"] in ("blocked", [0, False])
    assert (tried["storage"], tried["live"]) == (0, "origin")
    with httpx.Client(
        base_url=process.address,
        headers={"X-Gazeveil-Session": _secret(signed_in), "Cookie": stolen},
    ) as owner:
        assert owner.get("/v1/apps").json()["consent"] is False
    desk.mistakes.clear()  # what the hostile page's console says


def _secret(state: dict[str, Any]) -> str:
    return next(
        str(item["value"])
        for origin in state["origins"]
        for item in origin["localStorage"]
        if item["name"] == SESSION
    )


def test_a_replaced_cookie_locks_the_page_and_sharing_can_still_be_switched_off(
    desk: Any, other_origin: OtherOrigin
) -> None:
    desk.consent(True)
    page = desk.owner()
    page.evaluate("address => { location.href = address }", f"{other_origin.address}/replace")
    page.wait_for_url(f"{other_origin.address}/replace")
    page.goto(desk.process.address)
    page.wait_for_selector("#locked:not([hidden])")
    page.get_by_role("button", name="Switch sharing off").click()
    page.locator("#said", has_text="Sharing is off").wait_for()
    assert desk.api.get("/v1/apps").json()["consent"] is False


def test_the_secret_is_in_no_address_and_the_owner_signs_out_on_the_page(
    browser: Any, tmp_path: Path
) -> None:
    with Process(tmp_path / "home", free_port()) as started:
        context = browser.new_context()
        page = context.new_page()
        seen: list[str] = []
        page.on("framenavigated", lambda frame: seen.append(frame.url))
        page.goto(started.link)
        page.wait_for_selector("#board:not([hidden])")
        secret = page.evaluate(f"localStorage.getItem('{SESSION}')")
        assert secret
        assert not any(secret in address for address in seen)
        assert page.evaluate("document.cookie") == ""
        page.go_back()
        assert "key=" not in page.url
        page.goto(started.address)
        page.wait_for_selector("#sessions-list li")
        assert page.locator("#sessions-list li", has_text="this browser").count() == 1
        page.locator("#sign-out").click()
        page.wait_for_selector("#locked:not([hidden])")
        # The feed may end, and lock the page, before the answer to signing out is there.
        page.wait_for_function("localStorage.length === 0")
        assert context.cookies() == []
        page.reload()
        page.wait_for_selector("#locked:not([hidden])")
        context.close()


# --- The web client without a browser, in node: its types name what it has, and pixels and
# degrees of a screen are each other's inverse.
# --------------------------------------------------------------------------------------------------


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
