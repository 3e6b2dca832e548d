/**
 * The owner's page: who asks, what each app gets, how much is left, and the switch that ends it all.
 * @module
 */
import { GazeError } from "./lib/errors.js";
import { appCard, askCard } from "./dash/apps.js";
import { showDevice } from "./dash/budgets.js";
import { byId, renew, say } from "./dash/dom.js";
import { openGrant } from "./dash/grant.js";
import { Live } from "./dash/live.js";
import { confirmGesture, deleteApp, dismiss, grant, newToken, owner, revoke, unblock } from "./dash/owner.js";
import { ask as askFirst } from "./dash/question.js";
import { AuditTable, Certificate } from "./dash/records.js";
import { SessionList } from "./dash/sessions.js";
import { Switch } from "./dash/switch.js";
import { openAdd, showToken } from "./dash/tokens.js";
import { UseBar } from "./dash/use.js";
import { appName, plainName, sentence, wantTitle } from "./dash/words.js";

const EVERY_MS = 2000;
/** While nobody answers the page looks more often, so that it says soon that the service is back. */
const GONE_EVERY_MS = 1000;
const PATIENCE_MS = 2500;

/** @type {any} */
let device = null;
/** @type {{asks: any[], budgets: any[]}} */
let last = { asks: [], budgets: [] };
/** Whether the last look at the service was answered. */
let known = false;
/** @type {Set<string>} */
const announced = new Set();
/** @type {{live: Live, audit: AuditTable, certificate: Certificate, sessions: SessionList}|null} */
let parts = null;
/** The look that is under way, and the one that follows it. @type {Promise<void>|null} */
let looking = null;
/** @type {Promise<void>|null} */
let queued = null;
let certified = "";
/** @type {any} */
let soon = 0;

const sharing = new Switch(() => refresh());
const useBar = new UseBar((app) => stop(app));

/** Runs a change, says how it went, and shows the new state. */
async function change(work, words) {
  const answer = await work();
  say(answer?.written === false ? `${words} Not written yet: the database does not answer.` : words);
  await refresh();
}

const quietly = (/** @type {Promise<any>} */ work) => work.catch((error) => say(sentence(error)));

/** A call that has to be answered soon. @template T @param {Promise<T>} call @returns {Promise<T>} */
function within(call) {
  let timer = 0;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new GazeError("slow", "The service is slow to answer.")), PATIENCE_MS); });
  return Promise.race([call, late]).finally(() => clearTimeout(timer));
}

const cardButton = (/** @type {string} */ app, name = "grant") => document.querySelector(`.app[data-app="${CSS.escape(app)}"] [data-name="${name}"]`);

const SWAPPED = "What the app asks has changed since you read it. Nothing was allowed. Read it again.";

const allowed = (/** @type {string} */ app) => `${plainName(app)} is allowed.${device.consent ? "" : " It starts when sharing is on."}`;

/** The card of the question is gone: the keyboard goes on at the next one, or at the app's own card. */
const goOn = (/** @type {string} */ app) => (document.querySelector("#asks-list .primary") ?? cardButton(app) ?? byId("add")).focus();

/** The wearer's yes. It carries the number of the question that was read: where the app asks for something else by now, nothing is granted. */
async function allow(ask, lasts) {
  try {
    await change(() => grant(ask.app, { preset: ask.want, lasts, ask: ask.id }), allowed(ask.app));
  } catch (error) {
    if (error.code !== "changed") throw error;
    say(SWAPPED);
    await refresh();
  }
  goOn(ask.app);
}

function decide(app, given) {
  openGrant({
    app, presets: device.presets, grant: given,
    onGrant: async (body) => change(() => grant(app, body), allowed(app)),
    // The button that opened the dialog has the focus again, unless its card is gone.
    onDone: () => refresh().then(() => { if (document.activeElement === document.body) goOn(app); }),
  });
}

function stop(app) {
  quietly(change(() => revoke(app), `${plainName(app)} gets nothing from now on.`));
}

const actions = {
  onGrant: (app) => decide(app.app, app.state === "granted" || app.state === "spent" ? app.grant : null),
  onRevoke: (app) => stop(app.app),
  onToken: (app) => quietly(newToken(app.app).then((made) => { showToken(made.app, made.token); return refresh(); })),
  onUnblock: (app) => quietly(change(() => unblock(app.app), `${plainName(app.app)} can ask again.`)),
  onDelete: (app) => askFirst({
    title: ["Delete ", appName(app.app), "?"], yes: "Delete",
    text: "It gets nothing from now on, and is forgotten. What it has used up stays counted.",
    onYes: () => deleteApp(app.app),
    onDone: () => deleted(app.app),
  }),
};

const askActions = {
  onGrant: (ask, lasts) => quietly(allow(ask, lasts)),
  onRefuse: (ask) => quietly(refused(ask)),
};

/** The card is gone, and with it the button that opened the question: the keyboard goes on at the card in its place. */
async function deleted(app) {
  const place = device.apps.findIndex((/** @type {any} */ one) => one.app === app);
  say(`${app} is deleted.`);
  await refresh();
  const next = device.apps[Math.min(Math.max(0, place), device.apps.length - 1)];
  if (document.activeElement === document.body) (next ? cardButton(next.app, "delete") : byId("add"))?.focus();
}

/** After the third no the service blocks the app's questions; the page says so at once. */
async function refused(ask) {
  await dismiss(ask.id);
  await refresh();
  const blocked = device.apps.find((/** @type {any} */ app) => app.app === ask.app)?.blocked;
  say(blocked ? `You said no three times. ${plainName(ask.app)} can ask no more until you unblock it.` : `You said no to ${plainName(ask.app)}.`);
}

function showAsks(asks) {
  const presets = new Map(device.presets.map((preset) => [preset.name, preset]));
  const allowed = new Map(device.apps.filter((app) => app.state === "granted").map((app) => [app.app, app.grant?.preset]));
  const notes = (/** @type {any} */ ask) => [
    allowed.has(ask.app) ? `A yes replaces what it has now: ${wantTitle(allowed.get(ask.app)).toLowerCase()}.` : "",
    device.consent ? "" : "Sharing is off: a yes counts from when you switch it on.",
  ].filter(Boolean);
  renew(byId("asks-list"), asks.map((ask) => ({ ...ask, notes: notes(ask) })), (ask) => String(ask.id), (ask) => askCard(ask, presets.get(ask.want), askActions), () => cardButton(device.apps[0]?.app ?? "") ?? byId("add"));
  byId("asks").hidden = asks.length === 0;
  byId("asks-bar").textContent = asks.length > 1 ? `${asks.length} questions wait for your decision` : "A question waits for your decision";
  showBar();
  for (const ask of asks) {
    if (announced.has(String(ask.id))) continue;
    announced.add(String(ask.id));
    say(`${plainName(ask.app)} asks: ${wantTitle(ask.want).toLowerCase()}.`);
  }
}

/** Whether the questions lie where the page is scrolled to; a bar leads there otherwise. */
let seen = false;
const showBar = () => { byId("asks-bar").hidden = seen || byId("asks").hidden || byId("board").hidden; };
new IntersectionObserver((entries) => { seen = entries.at(-1)?.isIntersecting ?? false; showBar(); }, { rootMargin: "-15% 0px" }).observe(byId("asks"));

const GONE = "The tracker is gone. Apps get nothing until it is back.";
const isGone = () => device.tracker?.connected === false;

function showHead() {
  const { name, resolution_deg, tick_ms } = device.level;
  const seen = device.tracker ? `${device.tracker.name}${device.tracker.connected ? "" : " (not connected)"}, ` : "";
  const trouble = device.tracker?.trouble || (isGone() ? GONE : "");
  // The sentence is set only when it changes: a screen reader would say it again at every look.
  if (byId("tracker-trouble").textContent !== trouble) byId("tracker-trouble").textContent = trouble;
  byId("tracker-trouble").hidden = trouble === "";
  byId("device").textContent = `${device.device}: ${seen}${Math.round(device.rate_hz)} Hz, level ${name} (${resolution_deg}°, ${tick_ms} ms)`;
  const { name: wearer, known: isNamed } = device.wearer;
  byId("wearer").className = isNamed ? "badge info" : "badge warn";
  byId("wearer").hidden = false;
  byId("wearer").replaceChildren(...(isNamed ? ["You: ", appName(wearer)] : ["Worn by somebody unknown: nothing is shared"]));
}

function showApps() {
  const presets = new Map(device.presets.map((preset) => [preset.name, preset]));
  const cards = device.apps.map((app) => ({
    ...app, known, calls_last_minute: 0, streams: known ? (app.streams ?? []).map(({ what, mechanism }) => ({ what, mechanism })) : [], in_use: [], consent: device.consent, preset: presets.get(app.grant?.preset), budgets: last.budgets.filter((budget) => budget.app === app.app),
  }));
  renew(byId("apps-list"), cards, (app) => app.app, (app) => appCard(app, actions), () => byId("add"));
  byId("apps-none").hidden = cards.length > 0;
  // What was sent a moment ago is shown for some seconds; of an app that was stopped only what is open still.
  const using = device.apps.filter((app) => app.state === "granted" || app.state === "spent" || app.streams?.length);
  useBar.show(known ? using : [], last.asks.length, isGone());
  const select = (/** @type {any} */ app) => (app.grant?.preset === "choose" || app.grant?.scopes?.includes("select")) && app.state === "granted";
  byId("confirm").hidden = !known || !device.apps.some(select);
}

function showAll() {
  showHead();
  showAsks(last.asks);
  showApps();
  showDevice(byId("budgets-list"), last.budgets.filter((budget) => budget.app === null));
  parts?.live.describe(device);
  // The certificate speaks of grants and consent; what was spent since then is one press away.
  const promised = JSON.stringify([device.consent, device.apps.map(({ app, state, grant: given }) => [app, state, given])]);
  if (parts && promised !== certified && device.ledger !== false) {
    certified = promised;
    parts.certificate.fetch().catch(() => { certified = ""; });
  }
}

async function look() {
  const press = sharing.presses;
  const answer = await within(owner("GET", "/v1/apps"));
  // Asks and budgets need the database; what is in force does not.
  const [asks, budgets] = await Promise.allSettled([within(owner("GET", "/v1/asks")), within(owner("GET", "/v1/budgets"))]);
  if (asks.status === "fulfilled") last.asks = asks.value.asks;
  if (budgets.status === "fulfilled") last.budgets = budgets.value.budgets;
  device = answer;
  known = true;
  unlock();
  if (press === sharing.presses && sharing.wanted === null) sharing.know(answer);
  showAll();
  // Each has its own patience: a service that hangs in the middle of a look must not end the looking.
  await Promise.allSettled([within(parts.audit.fetch()), within(parts.sessions.fetch())]);
}

/** Looks at the service. Resolves after a look that began after this call: what was changed just before is in it. @returns {Promise<void>} */
function refresh() {
  if (looking === null) {
    looking = look().catch(lost).finally(() => { looking = null; });
    return looking;
  }
  queued ??= looking.catch(() => {}).then(() => { queued = null; return refresh(); });
  return queued;
}

/** The service did not answer, or not to us. */
function lost(error) {
  if (error.status === 401 && (error.code !== "late" || !device)) lock(error.code === "session" ? "" : error.reason);
  else if (error.status === 403) lock(error.reason);
  else if (!device) lock(sentence(error));
  else {
    known = false;
    if (error.code === "network") sharing.gone();
    else if (error.code === "slow") sharing.slow();
    else sharing.lose(sentence(error));
    showApps();
  }
}

function lock(why) {
  byId("locked").hidden = false;
  byId("locked-why").textContent = why;
  for (const id of ["board", "nav", "device", "wearer", "in-use", "tracker-trouble", "asks-bar"]) byId(id).hidden = true;
}

function unlock() {
  byId("locked").hidden = true;
  for (const id of ["board", "nav", "device"]) byId(id).hidden = false;
  parts?.live.open();
  if (parts) return;
  const later = () => { clearTimeout(soon); soon = setTimeout(refresh, 150); };
  parts = { live: new Live(later, refresh), audit: new AuditTable(), certificate: new Certificate(), sessions: new SessionList(lock) };
  parts.live.open();
}

/** Looks again and again; a page that nobody sees rests, but says at once when it is seen again. */
function watch() {
  const shown = device && !byId("board").hidden && !document.hidden;
  Promise.resolve(shown ? refresh() : null).finally(() => setTimeout(watch, known ? EVERY_MS : GONE_EVERY_MS));
}

for (const link of byId("nav").children) link.addEventListener("click", () => byId(`${link.hash.slice(1)}-more`)?.setAttribute("open", "")); // a link to a closed card opens it
byId("locked-again").addEventListener("click", refresh);
byId("add").addEventListener("click", () => openAdd((name, token) => { showToken(name, token); refresh(); }));
byId("confirm").addEventListener("click", () => quietly(confirmGesture().then(() => say("Confirmed."))));
document.addEventListener("visibilitychange", () => { if (!document.hidden && device) refresh(); });
refresh().then(watch);
