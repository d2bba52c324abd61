import type { PipelineServices } from "../call/services.ts";
import type { AnswerSharing } from "../idempotency/repeatable-calls.ts";

/** What handlers need of the configuration, beside the snapshot of a call. */
export interface ApiSettings {
  /** How long the headers of a stream wait for its first event. */
  readonly holdHeadersMs: number;
  readonly keepAlive: "comment" | "chunk" | "off";
  readonly keepAliveIntervalMs: number;
  /** How long a reader may leave a written event unread. */
  readonly writeTimeoutMs: number;
  /** Most bytes of text that the token ids of one request may stand for. */
  readonly decodedLimitBytes: number;
}

/** What handlers of calls work with. */
export interface HandlerParts {
  readonly services: PipelineServices;
  /** Read for each call: a reload changes it. */
  readonly settings: () => ApiSettings;
  readonly sharing: AnswerSharing;
}
