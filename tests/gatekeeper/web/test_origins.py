"""What others get of the owner's page in a real browser: a server on another port, and a program
that hears its calls.
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

from playwright.sync_api import Browser, Request
from websockets.sync.client import connect

from gazeveil.gatekeeper.service.guard import SESSION_HEADER
from tests.support.gatekeeper_browser import Desk
from tests.support.gatekeeper_running import Process, free_port, until
from tests.support.other_origin import OtherOrigin
from tests.support.places import ROOT

# --- what others get of the owner's page
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
  await call("header", "/v1/apps", { headers: { "X-Gazeveil-Session": "0" } });
  const form = { method: "POST", mode: "no-cors", headers: { "Content-Type": "text/plain" } };
  await call("form", "/v1/consent", { ...form, body: '{"on": true}' });
  tried.storage = (await indexedDB.databases()).length;
  tried.live = await new Promise((resolve) => {
    const socket = new WebSocket(service.replace("http", "ws") + "/v1/live");
    socket.onopen = () => socket.send(JSON.stringify({ type: "hello" }));
    socket.onmessage = (event) => resolve(JSON.parse(event.data).code ?? event.data);
    socket.onclose = (event) => resolve(event.code);
  });
  return tried;
}"""


def test_a_server_on_another_port_gets_nothing_of_the_owners_browser(
    desk: Desk, process: Process, other_origin: OtherOrigin
) -> None:
    page = desk.owner()
    page.evaluate("address => { location.href = address }", f"{other_origin.address}/gift")
    page.wait_for_url(f"{other_origin.address}/gift")
    tried = page.evaluate(TRIES, process.address)
    assert (set(other_origin.cookies), tried["storage"]) == ({""}, 0)
    assert tried["read"] == tried["header"] == "blocked"
    assert tried["read opaque"] in ("blocked", [0, False])
    assert tried["live"] == "origin"
    assert desk.api.get("/v1/apps").json()["consent"] is False
    desk.mistakes.clear()  # what the hostile page's console says


def test_calls_of_an_open_page_work_once_and_for_what_was_signed_alone(desk: Desk) -> None:
    desk.consent(True)
    page, heard, hellos, held = desk.owner_page(), [], [], []
    page.on("request", lambda sent: heard.append(sent))
    page.on("websocket", lambda socket: socket.on("framesent", lambda sent: hellos.append(sent)))
    page.goto(desk.process.address)
    page.wait_for_selector("#live-device")
    page.click("#consent")
    page.locator("#consent[data-state=off]").wait_for()
    page.route("**/v1/consent", lambda route: held.append(route))
    page.click("#consent")
    until(lambda: page.evaluate("1") and held and hellos)
    page.goto("about:blank")  # whoever has the port hears all, and passes nothing on
    with httpx.Client(base_url=desk.process.address, timeout=60) as thief:

        def codes(sent: Request, path: str = "", body: str | None = None) -> tuple[int, str]:
            answer = thief.request(
                sent.method,
                path or sent.url,
                headers={SESSION_HEADER: sent.headers[SESSION_HEADER.lower()]},
                content=sent.post_data if body is None else body,
            )
            return answer.status_code, answer.json()["error"]["code"]

        late = held[0].request
        calls = [sent for sent in heard if SESSION_HEADER.lower() in sent.headers]
        done = [sent for sent in calls if sent.method == "GET" or "false" in sent.post_data]
        assert {(401, "used")} == {codes(sent) for sent in done}
        assert any(sent.method == "POST" for sent in done)
        for path, body in (("/v1/apps", late.post_data), ("", '{"on": true }')):
            assert codes(late, path, body) == (401, "session")
        assert desk.api.get("/v1/apps").json()["consent"] is False
    with connect(f"{desk.process.address}/v1/live".replace("http", "ws", 1)) as socket:
        socket.send(hellos[0])
        assert json.loads(socket.recv(timeout=60))["code"] == "used"


#: What a script of the page gets of its key.
READ = """() => new Promise((resolve) => {
  const opening = indexedDB.open("gazeveil", 1);
  opening.onsuccess = () => {
    const all = opening.result.transaction("owner").objectStore("owner").getAll();
    all.onsuccess = async () => {
      opening.result.close();
      resolve(await Promise.all(all.result.map(({ key }) => crypto.subtle.exportKey("jwk", key)
        .then(() => "read", (error) => error.name))));
    };
  };
})"""


def test_the_key_is_read_by_nobody_and_the_owner_signs_out_on_the_page(
    browser: Browser, tmp_path: Path
) -> None:
    with Process(tmp_path / "home", free_port()) as started:
        context = browser.new_context()
        page = context.new_page()
        page.goto(started.link)
        page.wait_for_selector("#board:not([hidden])")
        assert page.evaluate(READ) == ["InvalidAccessError"]
        assert (context.cookies(), page.evaluate("localStorage.length")) == ([], 0)
        page.go_back()
        assert "key=" not in page.url
        page.goto(started.address)
        page.locator("#session-ends", has_text="This browser is signed in until").wait_for()
        page.locator("#sign-out").click()
        page.wait_for_selector("#locked:not([hidden])")
        # The feed may end, and lock the page, before the answer to signing out is there.
        until(lambda: page.evaluate(READ) == [])
        page.reload()
        page.wait_for_selector("#locked:not([hidden])")
        context.close()


#: What another program leaves under the origin while it has the port: a service worker that
#: answers in the place of every page, and scripts that are never asked for again.
LEFT = {
    "/worker.js": """self.addEventListener("install", () => self.skipWaiting());
    self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
    self.addEventListener("fetch", (event) => event.respondWith(new Response("taken " +
      event.request.url)));""",
    "/dash/enter.js": "document.title = 'taken'",
}
LEAVE = """async () => {
  await import("/dash/enter.js");
  await navigator.serviceWorker.register("/worker.js");
  await navigator.serviceWorker.ready;
}"""


def test_what_a_program_left_that_had_the_port_does_not_meet_the_owner(
    browser: Browser, tmp_path: Path
) -> None:
    process, context = Process(tmp_path / "home", free_port()), browser.new_context()
    page = context.new_page()
    with process:
        page.goto(process.link)
        page.wait_for_selector("#board:not([hidden])")
    squatter = OtherOrigin(process.port, LEFT)
    page.goto(process.address)
    page.evaluate(LEAVE)
    assert page.title() == "taken"
    squatter.close()
    with process:
        page.goto(process.link)
        page.wait_for_selector("#board:not([hidden])")
        assert page.evaluate("navigator.serviceWorker.controller") is None
        assert page.evaluate("fetch('/dash/enter.js').then((answer) => answer.text())") == (
            (WEB / "dash" / "enter.js").read_text()
        )
        # What was left answers at the origin of before, until the browser asks for its script
        # again: Chromium does so soon after the last visit.
        assert "taken" in page.goto(f"{process.address}/owner?key=read").text()
        until(lambda: "taken" not in page.goto(process.address).text(), step=2.0)
        page.goto(process.link.replace(process.link.split("/")[2], process.address[7:]))
        assert page.title() != "taken"
    context.close()


def test_a_browser_without_keys_is_told_where_to_sign_in(browser: Browser, tmp_path: Path) -> None:
    with Process(tmp_path / "home", free_port(), GAZEVEIL_HOSTS='["gaze.example"]') as started:
        page = browser.new_page()
        page.goto(started.link.replace("127.0.0.1", "gaze.example"))
        page.locator("#entering", has_text="signs in over https, or at 127.0.0.1").wait_for()
        page.goto(started.link)  # the link was not used up
        page.wait_for_selector("#board:not([hidden])")
        page.close()


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
