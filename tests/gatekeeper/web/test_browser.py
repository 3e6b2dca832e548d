"""The owner's page and client.js in a real Chromium, against the real service with a
simulated tracker.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.support.places import ROOT

pytest.importorskip(
    "playwright", reason="playwright is not installed: the pages are not looked at in a browser"
)

from playwright.sync_api import Route, WebSocketRoute, expect

from tests.support.gatekeeper_browser import CONNECT, WAIT_MS, Desk
from tests.support.gatekeeper_running import until

KALEIDO = "kaleido-uniform:epsilon=1,w=60,r_deg=2"


#: An app that counts the protected samples it is given, and says how it ended.
STUDY = """async (token) => {
  const { connect } = await import("/client.js");
  const gaze = connect(location.origin, { token });
  Object.assign(self, { taken: 0, ended: null });
  (async () => { for await (const batch of gaze.follow()) self.taken += batch.x_deg.length; })()
    .catch((error) => { self.ended = error.code; });
}"""


def test_an_owner_allows_samples_arrive_the_owner_stops_and_the_stream_ends(desk: Desk) -> None:
    desk.consent(True)
    token = desk.app("study")
    owner = desk.owner()
    page = desk.blank()
    page.evaluate(
        f"(token) => {{ (async () => {{ {CONNECT} self.answer = await gaze.ask('study'); }})(); }}",
        token,
    )
    ask = owner.locator(".ask", has_text="study")
    expect(ask).to_contain_text("all the time. It could recognise you by it.")
    ask.get_by_role("button", name="Yes, until I stop it").click()
    card = owner.locator('.app[data-app="study"]')
    expect(card).to_contain_text("Allowed")
    expect(ask).to_have_count(0)
    until(lambda: page.evaluate("self.answer === 'granted'"), WAIT_MS / 1000)
    page.evaluate(STUDY, token)
    until(lambda: page.evaluate("self.taken > 60"), WAIT_MS / 1000)
    expect(owner.locator("#live-apps figure", has_text="study")).to_contain_text(
        "samples with noise"
    )
    # What is left is a time, and no number of a promise.
    expect(card.get_by_role("meter")).to_have_attribute(
        "aria-valuetext", re.compile("(minute|hour)s? of use today")
    )
    assert not re.search("[\u03b5\u03c1]|epsilon|rho", card.inner_text())
    card.get_by_role("button", name="Stop").click()
    expect(card).to_contain_text("Stopped")
    until(lambda: page.evaluate("self.ended === 'revoked'"), WAIT_MS / 1000)
    before = page.evaluate("self.taken")
    page.wait_for_timeout(500)
    assert (page.evaluate("self.taken"), desk.streams("study")) == (before, [])


def test_listeners_in_end_mode_get_landings_and_in_start_stop_mode_starts_without_a_place(
    desk: Desk,
) -> None:
    desk.consent(True)
    token = desk.app("listener", preset="study", lasts="until-stopped")
    heard = desk.blank().evaluate(
        f"""async (token) => {{ {CONNECT}
        const of = (mode) => new Promise((resolve, reject) => {{
          const got = [];
          const callback = (event) => {{
            got.push(event);
            if (got.length < 6) return;
            gaze.removeEventListener("saccade", callback);
            resolve(got);
          }};
          gaze.addEventListener("saccade", callback, {{ mode }}).catch(reject);
        }});
        return Promise.all([of("end"), of("start-stop")]); }}""",
        token,
    )
    until(
        lambda: desk.streams("listener") == [], WAIT_MS / 1000
    )  # removed listeners are closed at the service, the connection is still there
    ends, both = heard
    assert {event["type"] for event in ends} == {"event"}
    assert {event["kind"] for event in ends} == {"saccade"}
    starts = [event for event in both if event["type"] == "saccade-start"]
    assert starts
    assert all(set(event) == {"type", "id", "t_ms"} for event in starts)
    assert {event["type"] for event in both} == {"saccade-start", "event"}
    for event in (*ends, *both):
        assert event["t_ms"] % 100 == 0
        if event["type"] == "event":
            assert (event["x_deg"] % 2.5, event["y_deg"] % 2.5) == (0, 0)


def test_questions_of_client_js_are_answered_in_cells_and_ticks(desk: Desk) -> None:
    desk.consent(True)
    token = desk.app("asker", preset="study", lasts="until-stopped")
    got = desk.blank().evaluate(
        f"""async (token) => {{ {CONNECT}
        const all = {{ x_deg: 0, y_deg: 0, width_deg: 360, height_deg: 180 }};
        const most = {{ x_deg: 1, y_deg: 1, width_deg: 357, height_deg: 177 }};
        const area = await gaze.registerArea("everything", most);
        await gaze.getFixations(all);
        let fixations = [];
        while (!fixations.length) {{ // one that began before the area was registered is not in it
          await new Promise((done) => gaze.addEventListener("fixation", done, {{ once: true }}));
          fixations = await gaze.getFixations(all);
        }}
        const refusals = [];
        const note = (error) => refusals.push([error.name, error.code]);
        await gaze.getDwellTime(10 ** 9).catch(note);
        await gaze.addEventListener("pupil", () => {{}}).catch(note);
        const seen = {{
          area, fixations, refusals,
          dwell: await gaze.getDwellTime(fixations[0]), saccades: await gaze.getSaccades(area),
          metrics: await gaze.metrics(area),
          tile: await gaze.currentTile(), areas: (await gaze.areas()).length,
        }};
        await gaze.removeArea(area);
        seen.left = (await gaze.areas()).length;
        gaze.close();
        return seen; }}""",
        token,
    )
    assert {k: got["area"][k] for k in ("x_deg", "y_deg", "width_deg", "height_deg")} == {
        "x_deg": 0,
        "y_deg": 0,
        "width_deg": 360,
        "height_deg": 180,
    }
    assert got["fixations"][0]["kind"] == "fixation"
    assert got["dwell"] == got["fixations"][0]["duration_ms"]
    assert got["metrics"]["fixations"] >= 1
    assert 0 <= got["tile"] < 32
    assert (got["areas"], got["left"]) == (2, 1), "a bare rectangle is registered once"
    assert got["refusals"] == [["GazeError", "unknown"], ["GazeError", "unknown"]]


def test_both_encodings_bring_batches_and_leaving_or_aborting_ends_the_stream(desk: Desk) -> None:
    desk.consent(True)
    token = desk.app("streamer", preset="study", lasts="until-stopped")
    got = desk.blank().evaluate(
        f"""async ([token, mechanism]) => {{ {CONNECT}
        const seen = {{}};
        for (const encoding of ["binary", "json"]) {{
          const stream = gaze.samples({{ mechanism, encoding, batch: 5 }});
          const batches = [];
          for await (const batch of stream) if (batches.push(batch) === 3) break;
          seen[encoding] = batches.map(({{ sequence, x_deg, t_ms, dropped }}) =>
            [sequence, x_deg.length, t_ms[1] > t_ms[0], x_deg.constructor.name, dropped]);
          seen.guarantee = stream.guarantee.status;
        }}
        const ending = new AbortController();
        try {{
          const signal = ending.signal;
          for await (const batch of gaze.samples({{ mechanism, signal }})) ending.abort();
        }} catch (error) {{ seen.aborted = error.name; }}
        try {{
          const finer = {{ mechanism: "gaussian:sigma_deg=0.1" }};
          for await (const batch of gaze.samples(finer)) seen.never = true;
        }} catch (error) {{ seen.refused = [error.code, error.reason]; }}
        seen.wrong = await connect(location.origin, {{ token: "gv_app_wrong" }}).me()
          .then(() => "let in", (error) => [error.code, error.status]);
        return seen; }}""",
        [token, KALEIDO],
    )
    # The page and its connection are still there.
    until(lambda: desk.streams("streamer") == [], WAIT_MS / 1000)
    for encoding in ("binary", "json"):
        assert [row[0] for row in got[encoding]] == [
            0,
            got[encoding][0][1],
            got[encoding][0][1] + got[encoding][1][1],
        ], "no sample is missing"
        assert all(
            row[1] >= 5 and row[2] and row[3] == "Float32Array" and row[4] == 0
            for row in got[encoding]
        )
    assert (got["guarantee"], got["aborted"]) == ("proved", "AbortError")
    assert "never" not in got
    assert got["refused"][0] == "mechanism"
    assert "gaussian:sigma_deg=1" in got["refused"][1]
    assert got["wrong"] == ["token", 401]


def test_a_connection_that_breaks_comes_back_by_itself_and_the_policy_decides_again(
    desk: Desk,
) -> None:
    desk.consent(True)
    token = desk.app("returner", preset="study", lasts="until-stopped")
    page = desk.blank()
    opened = 0

    def through(route: WebSocketRoute) -> None:
        nonlocal opened
        opened += 1
        if opened == 1:
            route.close(code=1012, reason="restart")
        else:
            route.connect_to_server()

    page.route_web_socket("**/v1/stream", through)
    got = page.evaluate(
        f"""async ([token, mechanism]) => {{ {CONNECT}
        const states = [];
        gaze.addEventListener("statechange", (event) => states.push(event.state));
        for await (const batch of gaze.samples({{ mechanism }})) break;
        gaze.close();
        return states; }}""",
        [token, KALEIDO],
    )
    assert (got, opened) == (["connecting", "waiting", "connecting", "open", "closed"], 2)


def test_tokens_are_shown_once_and_the_certificate_and_the_audit_log_are_there(desk: Desk) -> None:
    page = desk.owner()
    page.click("#add")
    page.fill("#add-dialog input[name=name]", "newcomer")
    page.click("#add-dialog button[type=submit]")
    token = page.inner_text("#token-dialog .secret")
    assert token.startswith("gv_app_")
    page.click("#token-dialog button[type=submit]")
    expect(page.locator('.app[data-app="newcomer"]')).to_contain_text("Not allowed")
    assert token not in page.content()
    page.locator('.app[data-app="newcomer"]').get_by_role("button", name="Allow").click()
    page.check("#grant-dialog input[value=count]")
    page.click("#grant-dialog button[type=submit]")
    for closed in ("#certificate-text", "#audit-rows"):
        expect(page.locator(closed)).to_be_hidden()
    page.get_by_role("link", name="Certificate").click()  # a link to a closed card opens it
    expect(page.locator("#certificate-text")).to_contain_text("newcomer")
    with page.expect_download() as download:
        page.click("#certificate-save")
    assert "newcomer" in Path(download.value.path()).read_text(encoding="utf-8")
    page.locator("#audit summary").click()
    expect(page.locator("#audit-rows tr").first).to_be_visible()
    page.click("#audit-check")
    expect(page.locator("#audit-state")).to_have_text("Chain verified")


WEB = ROOT / "src" / "gazeveil" / "gatekeeper" / "web"
SCRIPTS = sorted(WEB.rglob("*.js"))


def test_scripts_are_short_parse_and_never_make_markup_of_text() -> None:
    assert len(SCRIPTS) > 15
    for script in SCRIPTS:
        text = script.read_text(encoding="utf-8")
        assert len(text.splitlines()) < 400, script.name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
        ), script.name
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the scripts are parsed by Chromium alone")
    parse = (
        "for (const f of process.argv.slice(1)) new"
        " (require('vm').SourceTextModule)(require('fs').readFileSync(f, 'utf8'), { identifier:"
        " f })"
    )
    done = subprocess.run(
        [node, "--experimental-vm-modules", "--no-warnings", "-e", parse, *map(str, SCRIPTS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


EVIL = "<img src=x onerror=document.title='broken'>"


def test_what_apps_call_themselves_is_shown_as_text(desk: Desk) -> None:
    token = desk.app("honest")
    with httpx.Client(
        base_url=desk.process.address, headers={"Authorization": f"Bearer {token}"}
    ) as app:
        assert app.post("/v1/ask", json={"want": "follow"}).json()["state"] == "waiting"
    assert desk.api.post("/v1/apps", json={"name": EVIL, "origins": []}).status_code == 422, (
        "the service takes plain names alone"
    )

    def renamed(route: Route) -> None:
        # Were such a name to come through, the page must still hold.
        answer = route.fetch().json()
        for one in answer.get("apps", answer.get("asks", [])):
            one["app"] = EVIL
        route.fulfill(json=answer)

    page = desk.owner_page()
    page.route(re.compile(r"/v1/(apps|asks)$"), renamed)
    page.goto(desk.process.address)
    expect(page.locator(".ask h3 q")).to_have_text(EVIL)
    expect(page.locator(".app h3").first).to_have_text(EVIL)
    page.get_by_role("button", name="Allow").first.click()
    expect(page.locator("#grant-title")).to_contain_text(EVIL)
    assert page.locator("img").count() == 1, "the one picture is the page's own"
    assert page.title() != "broken"
    # The page asks again and again: a request on its way when it closes is nobody's failure.
    page.unroute_all(behavior="ignoreErrors")


CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour, under) => {
    for (const one of [under, colour]) { canvas.fillStyle = one; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const weights = [0.2126, 0.7152, 0.0722];
  const light = (c) => weights.reduce((sum, weight, i) => sum + linear(c[i] / 255) * weight, 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return colour;
    }
    return "white";
  };
  const says = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  const poor = [];
  for (const e of document.querySelectorAll("main *, header *")) {
    if (!says(e) || !e.checkVisibility()) continue;
    const under = ground(e);
    const [a, b] = [light(rgb(getComputedStyle(e).color, under)), light(rgb(under, "white"))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const text = e.textContent.slice(0, 30);
    if (ratio < 4.5) poor.push([e.tagName, e.className, text, ratio.toFixed(2)]);
  }
  return { poor, page: light(rgb(getComputedStyle(document.body).backgroundColor, "white")) };
}"""


def test_text_is_readable_in_light_and_in_dark(desk: Desk) -> None:
    page = desk.owner(reduced_motion="reduce")
    desk.app("avatar", preset="follow", lasts="until-stopped")
    with desk.as_app(desk.app("asks")) as app:
        app.post("/v1/ask", json={"want": "choose"})
    expect(page.locator('.app[data-app="avatar"]')).to_contain_text("Allowed")
    expect(page.locator(".ask").first).to_be_visible()
    for dark in (False, True):
        page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
        found = page.evaluate(CONTRAST)
        assert (found["poor"], found["page"] < 0.05) == ([], dark)
    assert (
        page.evaluate(
            "getComputedStyle(document.querySelector('.switch .knob')).transitionDuration"
        )
        == "0s"
    )


UNLABELLED = """() => {
  const said = (e) => e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length;
  const controls = document.querySelectorAll("button, input, select, textarea, canvas, a");
  return [...controls].filter((e) => !said(e)).length;
}"""


def test_the_pages_need_no_other_host_and_no_inline_script(desk: Desk) -> None:
    page = desk.owner_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    answer = page.goto(desk.process.address)
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    expect(page.locator("#board")).to_be_visible()
    assert asked
    assert {url for url in asked if not url.startswith(desk.process.address)} == set()
    assert page.evaluate(
        "[...document.querySelectorAll('script')].every((s) => s.src && !s.textContent)"
    )
    assert page.evaluate(UNLABELLED) == 0
