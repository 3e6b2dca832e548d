/**
 * One WebSocket to /v1/stream that carries all subscriptions of an app, comes back after a failure, and says why it ended.
 *
 * Nothing is opened before the first subscription. After a failure the socket is tried again with a back-off that doubles from 0.25 s
 * to 10 s, and every subscription still wanted is asked for anew: the policy decides again. A token that is not accepted is final.
 * @module
 */
import { GazeError, errorFrom } from "./errors.js";
import { batchFromBinary, batchFromJson } from "./wire.js";

/**
 * @typedef {object} Wanted
 * @property {object} request the fields of the subscribe message, without type and id
 * @property {(message: any) => void} onMessage an event, a tile, or a Batch
 * @property {(answer: any) => void} onOpen the "subscribed" answer
 * @property {(error: GazeError) => void} onEnd refused or ended, called once
 * @property {(() => object)} [renew] fields that have changed since, for a subscription that is asked for anew
 */

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
/** Close codes after which trying again is useless: messages that cannot be read, a token that is not accepted, an app that may not come. */
const FINAL = [1008, 4001, 4003];

export class StreamSocket {
  /**
   * @param {URL} base address of the Gatekeeper
   * @param {() => string} token
   * @param {(state: "connecting"|"open"|"waiting"|"closed", detail?: GazeError) => void} onState
   * @param {(message: any) => void} onNews the welcome, and what belongs to no subscription: paused, resumed, ended
   */
  constructor(base, token, onState, onNews) {
    const address = new URL("/v1/stream", base);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    this.address = address;
    this.token = token;
    this.onState = onState;
    this.onNews = onNews;
    /** Whether the connection is wanted without a subscription too. */
    this.stays = false;
    /** @type {Map<number, Wanted>} */
    this.wanted = new Map();
    /** @type {WebSocket|null} */
    this.socket = null;
    this.welcome = null;
    this.nextId = 1;
    this.failures = 0;
    this.timer = 0;
    this.closed = false;
  }

  /**
   * @param {Wanted} wanted
   * @returns {number} its id
   */
  subscribe(wanted) {
    if (this.closed) throw new GazeError("network", "This connection is closed. Call connect again.");
    const id = this.nextId;
    this.nextId = (this.nextId % 65535) + 1;
    this.wanted.set(id, wanted);
    if (this.welcome) this.#ask(id, wanted);
    else this.#need();
    return id;
  }

  /** Keeps the connection open also without a subscription, from when the app has a pass. */
  stay() {
    this.stays = true;
    this.wake();
  }

  /** The app has a pass now. */
  wake() {
    if (this.stays && this.token()) this.#need();
  }

  /** Sends a message where the connection is open; nobody waits for it. @param {object} message */
  send(message) {
    if (this.welcome) this.#send(message);
  }

  /** @param {number} id */
  unsubscribe(id) {
    if (!this.wanted.delete(id)) return;
    if (this.welcome) this.#send({ type: "unsubscribe", id });
  }

  /** Ends everything; subscriptions end with code "closed". */
  close() {
    this.#finish(new GazeError("closed", "The app closed the connection."));
  }

  #need() {
    if (!this.closed && !this.socket && !this.timer) this.#open();
  }

  /** @param {number} id @param {Wanted} wanted */
  #ask(id, wanted) {
    this.#send({ type: "subscribe", id, ...wanted.request, ...wanted.renew?.() });
  }

  #open() {
    this.timer = 0;
    this.onState("connecting");
    const socket = new WebSocket(this.address);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    /** @type {GazeError|null} */
    let refusal = null;
    socket.onopen = () => socket.send(JSON.stringify({ type: "hello", token: this.token() }));
    socket.onmessage = (event) => {
      if (typeof event.data !== "string") {
        const batch = batchFromBinary(event.data);
        this.wanted.get(batch.id)?.onMessage(batch);
        return;
      }
      const message = JSON.parse(event.data);
      if (message.type === "welcome") this.#welcomed(message);
      else if (message.type === "error") refusal = errorFrom(message, 401);
      else this.#deliver(message);
    };
    socket.onclose = (event) => {
      if (this.socket !== socket) return;
      this.socket = null;
      this.welcome = null;
      if (FINAL.includes(event.code)) this.#fail(refusal ?? new GazeError("token", event.reason || "The Gatekeeper did not accept the token. Ask the owner for a new one."));
      else this.#later();
    };
  }

  /** @param {any} message */
  #welcomed(message) {
    this.welcome = message;
    this.failures = 0;
    this.onState("open");
    this.onNews(message);
    for (const [id, wanted] of this.wanted) this.#ask(id, wanted);
  }

  /** @param {any} message */
  #deliver(message) {
    if (message.id === undefined) return this.onNews(message);
    const wanted = this.wanted.get(message.id);
    if (!wanted) return;
    // A service that stops says so and closes the socket: what was wanted is asked for again when it is back.
    if (message.type === "ended" && message.code === "shutdown") return;
    if (message.type === "subscribed") wanted.onOpen(message);
    else if (message.type === "refused" || message.type === "ended") {
      this.wanted.delete(message.id);
      wanted.onEnd(errorFrom(message, 403));
    } else if (message.kind === "choice") {
      this.wanted.delete(message.id); // The choice is the end.
      wanted.onMessage(message);
    } else if (message.type === "samples") wanted.onMessage(batchFromJson(message));
    else wanted.onMessage(message);
  }

  #later() {
    if (this.closed || (this.wanted.size === 0 && !this.stays)) return;
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.failures) * (0.75 + Math.random() / 2);
    this.failures += 1;
    this.onState("waiting");
    this.timer = setTimeout(() => this.#open(), wait);
  }

  /** @param {GazeError} error */
  #finish(error) {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = null;
    this.welcome = null;
    socket?.close(1000);
    this.#fail(error);
  }

  /** Ends every subscription; an app that may come after all, because it has asked, begins anew. @param {GazeError} error */
  #fail(error) {
    const ending = [...this.wanted.values()];
    this.wanted.clear();
    for (const wanted of ending) wanted.onEnd(error);
    this.onState("closed", error);
  }

  /** @param {object} message */
  #send(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}
