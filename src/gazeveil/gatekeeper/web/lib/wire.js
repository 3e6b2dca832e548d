/**
 * Batches of protected samples, as JSON messages and as compact binary frames.
 *
 * A binary frame is little endian: version u8 (1), kind u8 (1), subscription u16, count u32, sequence u64, dropped u64, then
 * t_ns i64[count], x_deg f32[count], y_deg f32[count], valid u8[count]. A lost sample has valid 0 and NaN places.
 * @module
 */

/**
 * @typedef {object} Batch
 * @property {number} id subscription the batch belongs to
 * @property {number} sequence number of the first sample, counted from 0 over all the subscription was given, dropped ones too
 * @property {number} dropped samples the Gatekeeper left out because this reader was slow, since the stream began
 * @property {Float64Array} t_ms times in milliseconds
 * @property {Float32Array} x_deg degrees to the right
 * @property {Float32Array} y_deg degrees downwards
 * @property {Uint8Array} valid 1 where the sample holds, 0 where gaze was lost
 */

const HEADER_BYTES = 24;
const SAMPLE_BYTES = 8 + 4 + 4 + 1;

/**
 * @param {ArrayBuffer} buffer
 * @returns {Batch}
 */
export function batchFromBinary(buffer) {
  const view = new DataView(buffer);
  if (buffer.byteLength < HEADER_BYTES || view.getUint8(0) !== 1 || view.getUint8(1) !== 1) {
    throw new RangeError("This binary message is not a batch of version 1.");
  }
  const count = view.getUint32(4, true);
  if (buffer.byteLength !== HEADER_BYTES + SAMPLE_BYTES * count) {
    throw new RangeError(`A batch of ${count} samples has ${HEADER_BYTES + SAMPLE_BYTES * count} bytes. Got ${buffer.byteLength} instead.`);
  }
  const t_ms = new Float64Array(count);
  const x_deg = new Float32Array(count);
  const y_deg = new Float32Array(count);
  for (let i = 0; i < count; i += 1) {
    t_ms[i] = Number(view.getBigInt64(HEADER_BYTES + 8 * i, true)) / 1e6;
    x_deg[i] = view.getFloat32(HEADER_BYTES + 8 * count + 4 * i, true);
    y_deg[i] = view.getFloat32(HEADER_BYTES + 12 * count + 4 * i, true);
  }
  return {
    id: view.getUint16(2, true),
    sequence: Number(view.getBigUint64(8, true)),
    dropped: Number(view.getBigUint64(16, true)),
    t_ms,
    x_deg,
    y_deg,
    valid: new Uint8Array(buffer.slice(HEADER_BYTES + 16 * count)),
  };
}

/**
 * @param {any} message a message of type "samples"
 * @returns {Batch}
 */
export function batchFromJson(message) {
  const number = (/** @type {any} */ value) => (value === null ? NaN : Number(value));
  return {
    id: message.id,
    sequence: message.sequence,
    dropped: message.dropped ?? 0,
    t_ms: Float64Array.from(message.t_ms, number),
    x_deg: Float32Array.from(message.x_deg, number),
    y_deg: Float32Array.from(message.y_deg, number),
    valid: Uint8Array.from(message.valid, (value) => (value ? 1 : 0)),
  };
}
