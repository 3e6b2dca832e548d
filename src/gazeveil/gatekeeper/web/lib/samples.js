/**
 * A private stream as an async iterator: `for await (const batch of gaze.follow())`.
 *
 * Batches that the app has not taken yet wait in a bounded queue; when it is full the oldest goes and `lost` counts it, so that an app
 * that is slow reads fresh gaze and never grows memory. Leaving the loop ends the subscription. When the Gatekeeper refuses or ends the
 * stream, what is queued is handed out and then the loop throws the GazeError.
 * @module
 */

export class SampleStream {
  #socket;
  #id = 0;
  #queue = [];
  #takers = [];
  #error = null;
  #done = false;
  #finished = new AbortController();

  /**
   * @param {import("./socket.js").StreamSocket} socket
   * @param {{request: object, most_waiting?: number, signal?: AbortSignal}} options the fields of the subscription
   */
  constructor(socket, { request, most_waiting = 64, signal }) {
    /** The mechanism that protects the samples; null until the stream is open. @type {string|null} */
    this.mechanism = null;
    /** Batches thrown away here because the app did not take them in time. */
    this.lost = 0;
    /** What the mechanism promises; null until the stream is open. @type {any} */
    this.guarantee = null;
    this.#socket = socket;
    let opened, refused;
    /** Resolves with the guarantee when the stream is open, rejects with the GazeError when it is refused. */
    this.opened = new Promise((resolve, reject) => { opened = resolve; refused = reject; });
    this.opened.catch(() => {}); // Who iterates gets the same error from the loop.
    signal?.throwIfAborted();
    this.#id = socket.subscribe({
      request,
      onOpen: (answer) => { this.mechanism = answer.mechanism ?? null; this.guarantee = answer.guarantee ?? null; opened(this.guarantee); },
      onMessage: (value) => this.#put(value, most_waiting),
      onEnd: (error) => { refused(error); this.#end(error); },
    });
    signal?.addEventListener("abort", () => {
      this.#socket.unsubscribe(this.#id);
      refused(signal.reason);
      this.#queue.length = 0;
      this.#end(signal.reason);
    }, { once: true, signal: this.#finished.signal });
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** @returns {Promise<IteratorResult<import("./wire.js").Batch>>} */
  next() {
    if (this.#queue.length > 0) return Promise.resolve({ value: this.#queue.shift(), done: false });
    if (this.#error) {
      const error = this.#error;
      this.#error = null;
      return Promise.reject(error);
    }
    if (this.#done) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve, reject) => this.#takers.push({ resolve, reject }));
  }

  /** Leaving the loop early ends the subscription. */
  async return() {
    this.#socket.unsubscribe(this.#id);
    this.#queue.length = 0;
    this.#error = null;
    this.#finish();
    return { value: undefined, done: true };
  }

  #put(value, most) {
    if (this.#done) return;
    const taker = this.#takers.shift();
    if (taker) {
      taker.resolve({ value, done: false });
      return;
    }
    this.#queue.push(value);
    if (this.#queue.length > most) {
      this.#queue.shift();
      this.lost += 1;
    }
  }

  #end(error) {
    if (this.#done) return;
    const taker = this.#takers.shift();
    if (taker) taker.reject(error);
    else this.#error = error;
    this.#finish();
  }

  #finish() {
    this.#done = true;
    this.#finished.abort(); // A signal that lives longer than the stream must not keep it.
    for (const taker of this.#takers.splice(0)) taker.resolve({ value: undefined, done: true });
  }
}
