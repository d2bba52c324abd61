import { eventFrame } from "../reply/event-frames.ts";

/** An event that no published model of the service names, with headers of every type. */
export function unknownEvent(note: string): Uint8Array<ArrayBuffer> {
  return eventFrame("contentBlockNote", JSON.stringify({ note }), {
    "is-known": false,
    "is-final": true,
    revision: 7,
    serial: 9_007_199_254_740_993n,
    made: new Date(1_767_225_600_000),
    digest: new Uint8Array([0, 1, 254, 255]),
  });
}
