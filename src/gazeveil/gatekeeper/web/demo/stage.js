/**
 * Where a drawn scene lies in the device's space: all around the viewer on a headset, on the whole screen at a desk.
 *
 * A scene has its own units. Around the viewer the gallery is 360 units wide, one for a degree; on a screen fewer paintings hang, so that
 * each is an area as large as the device's level asks for.
 * @module
 */

/** Units of the gallery for one painting. */
export const COLUMN = 60;

/**
 * @typedef {object} Stage
 * @property {number} columns paintings that hang in the gallery
 * @property {number} top first unit that is shown
 * @property {number} width units
 * @property {number} height units
 * @property {number} sharp_deg radius of a sharp region that suits the space
 * @property {(rect: {x: number, y: number, width: number, height: number}) => import("/lib/gaze.js").Rect} toSpace units to degrees
 * @property {(x_deg: number, y_deg: number) => [number, number]} toUnits degrees to units
 */

/**
 * @param {{kind: string, width_deg: number, height_deg: number}} space
 * @param {number} least_side_deg smallest side of an area
 * @returns {Stage}
 */
export function stageOf(space, least_side_deg) {
  const sphere = space.kind === "sphere";
  const columns = sphere ? 6 : Math.min(6, Math.max(1, Math.floor(space.width_deg / (1.2 * least_side_deg))));
  const [left_deg, top_deg] = sphere ? [0, 0] : [-space.width_deg / 2, -space.height_deg / 2];
  const width = COLUMN * columns;
  const [top, height] = sphere ? [0, 180] : [35, 100];
  const [across, down] = [space.width_deg / width, space.height_deg / height];
  return {
    columns, top, width, height, sharp_deg: sphere ? 24 : space.width_deg / 8,
    toSpace: (rect) => ({ x_deg: left_deg + rect.x * across, y_deg: top_deg + (rect.y - top) * down, width_deg: rect.width * across, height_deg: rect.height * down }),
    toUnits: (x_deg, y_deg) => [(x_deg - left_deg) / across, top + (y_deg - top_deg) / down],
  };
}

/** The stage before the device has said what it is. */
export const AROUND = stageOf({ kind: "sphere", width_deg: 360, height_deg: 180 }, 10);
