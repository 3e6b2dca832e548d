/** The Gatekeeper's client: six calls, and the names of David-John et al. (2021) on top of them. */

export type Want = "choose" | "count" | "follow" | "study";
export type Answer = "granted" | "refused" | "dismissed";
/** Where an avatar's eyes go, as the wearer sees left and right. */
export type Region = "at-you" | "left" | "right" | "up" | "down" | "closed";

/** Degrees of the device's space: x to the right, y downwards; 0, 0 is the middle of a screen, 180, 90 straight ahead of a head. */
export interface Rect { x_deg: number; y_deg: number; width_deg: number; height_deg: number; name?: string }
/** CSS pixels of the viewport. */
export interface PixelRect { x: number; y: number; width: number; height: number; name?: string }
/** An element is followed as it moves; a rectangle stays. */
export type Thing = Element | PixelRect | Rect;

export interface AreaMetrics {
  fixations: number;
  visits: number;
  dwell_ms: number;
  order: number | null;
  first_fixation_ms: number | null;
  first_saccade_ms: number | null;
}
export interface PublicEvent { number: number; kind: string; x_deg: number; y_deg: number; t_ms: number; duration_ms: number }
export interface RegionEvent { region: Region; t_ms: number }
export interface StartEvent { t_ms: number }
export interface PausedEvent { reason?: "tracker" | "clock" | "network"; t_ms?: number }
/** `kind` is what was asked for ("fixation", "areas", ...), or "grant" where all ends that the wearer allowed. */
export interface EndedEvent { kind: string; code: string; reason: string }
export interface Batch { sequence: number; dropped: number; t_ms: Float64Array; x_deg: Float32Array; y_deg: Float32Array; valid: Uint8Array }
export interface Area extends Rect { id: number | string; name: string }
export interface Range { since_ms?: number; until_ms?: number; after?: number; limit?: number }
/** What the Gatekeeper says about the app; `t_ms` is the time that events count in, null without a grant. */
export interface Me {
  app: string; state: string; want: Want | null; left_s: number | null; t_ms: number | null;
  level: { name: string; resolution_deg: number; tick_ms: number; least_side_deg: number; tiles: [number, number] };
  space: { kind: "screen" | "sphere"; width_deg: number; height_deg: number; width_mm?: number; height_mm?: number; distance_mm?: number };
  rate_hz: number; tracker: { connected: boolean; mouse: boolean };
  [more: string]: any;
}
export interface Ending { signal?: AbortSignal }
export interface Open { close(): void }

/** Whatever is refused or ends: `code` to compare, `reason` to show. */
export class GazeError extends Error {
  code: string;
  reason: string;
  status: number;
}

export class Gaze {
  constructor(url: string, options?: { token?: string; signal?: AbortSignal });

  /** Opens the wearer's question and waits for the answer; where the answer was yes before, there is no question. */
  ask(want: Want, options?: Ending): Promise<Answer>;
  /** The thing that the wearer chose. Nothing is told before. */
  choose<T extends Thing>(things: Iterable<T> | T, options?: Ending & { by?: "confirm" | "dwell"; dwell_ms?: number }): Promise<T>;
  /** Numbers of each thing, at once and after each change. */
  observe<T extends Thing>(things: Iterable<T> | T, callback: (seen: AreaMetrics & { thing: T }) => void, options?: Ending): Promise<Open>;
  on(kind: "fixation", callback: (event: PublicEvent) => void, options?: Ending): Promise<Open>;
  on(kind: "saccade-start", callback: (event: StartEvent) => void, options?: Ending): Promise<Open>;
  on(kind: "region", callback: (event: RegionEvent) => void, options?: Ending): Promise<Open>;
  on(kind: "paused" | "resumed", callback: (event: PausedEvent) => void, options?: Ending): Promise<Open>;
  on(kind: "ended", callback: (event: EndedEvent) => void, options?: Ending): Promise<Open>;
  /** Where the eyes go: regions for an avatar, protected samples in a study, as `follow<RegionEvent>()` or `follow<Batch>()`. The device picks what protects them. */
  follow<T extends RegionEvent | Batch = RegionEvent | Batch>(options?: Ending): AsyncGenerator<T, void, void>;
  /** Seconds until the grant ends or is used up; Infinity where only the wearer ends it, 0 without one. */
  left(): Promise<number>;

  me(): Promise<Me>;
  close(): void;

  registerArea(name: string, rect: Rect): Promise<Area>;
  areas(): Promise<Area[]>;
  removeArea(area: Area): Promise<void>;
  metrics(area: Rect | Area): Promise<AreaMetrics>;
  getFixations(area: Rect | Area, range?: Range): Promise<PublicEvent[]>;
  getSaccades(area: Rect | Area, range?: Range): Promise<PublicEvent[]>;
  getDwellTime(fixation: PublicEvent | number): Promise<number>;
  currentTile(): Promise<number | null>;
  addEventListener(kind: "fixation" | "saccade" | "pursuit" | "tile" | "ended" | "statechange", callback: (event: any) => void,
    options?: Ending & { mode?: "end" | "start-stop" | "start"; once?: boolean }): Promise<null>;
  removeEventListener(kind: string, callback: (event: any) => void, options?: { mode?: string }): void;
  samples(options?: Ending & { mechanism?: string; encoding?: "binary" | "json"; batch?: number; most_waiting?: number }): AsyncIterable<Batch>;
}

/** Another Gatekeeper, or an app with a token of its own. */
export function connect(url?: string, options?: { token?: string; signal?: AbortSignal }): Gaze;

/** The app that this page is. */
declare const gaze: Gaze;
export default gaze;
