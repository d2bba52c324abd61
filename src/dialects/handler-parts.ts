import type { CallServices } from "../call/services.ts";
import type { AnswerKeeping } from "../idempotency/repeatable-calls.ts";

/** Settings of handlers that are not in a call's snapshot. */
export interface ApiSettings {
  /** How long the headers of a stream wait for its first event. */
  readonly holdHeadersMs: number;
  readonly keepAlive: "comment" | "chunk" | "off";
  readonly keepAliveIntervalMs: number;
  /** How long a reader may leave a written event unread before its connection is closed. */
  readonly writeTimeoutMs: number;
  /** Most bytes of text that the token ids of one request may decode to. */
  readonly decodedLimitBytes: number;
}

/** Dependencies of handlers of calls. */
export interface HandlerParts {
  readonly services: CallServices;
  /** Read for each call: a reload changes it. */
  readonly settings: () => ApiSettings;
  readonly keeping: AnswerKeeping;
}
