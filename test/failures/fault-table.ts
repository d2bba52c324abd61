import type { ChatKind } from "../support/gateway.ts";
import { isComplete } from "../support/requirement.ts";

/**
 * What the caller gets if the only target has the fault, and the source of the counts in the
 * ledger.
 */
export type Outcome =
  /** A complete answer with the upstream's counts. */
  | "whole"
  /** A complete answer without the upstream's counts. */
  | "whole, uncounted"
  /** A complete answer except for one malformed event. */
  | "whole but for an event"
  /** 200, then an error frame and no `[DONE]`. */
  | "broken"
  /** The same, with an error of the caller. */
  | "broken, refused"
  /** `model_unavailable`, unless another target serves. */
  | "503"
  /** Either: the runtime may lose bytes that came with the end of a connection. */
  | "broken or 503"
  | "400 context_length_exceeded"
  | "400 without code";

export type FaultRow = readonly [
  fault: string,
  plain: Outcome,
  streamed: Outcome,
  embeddings: Outcome,
];

const everyCall = (outcome: Outcome) => [outcome, outcome, outcome] as const;
/** Faults of frames do not affect answers without frames. */
const onlyStreams = (outcome: Outcome) => ["whole", outcome, "whole"] as const;

/** A TLS call of a port without TLS; not a fault of the simulator. */
export const noHandshake = "no-handshake";

const common: readonly FaultRow[] = [
  ["ok", ...everyCall("whole")],
  ["ok-no-usage", ...everyCall("whole, uncounted")],
  ["wrong-usage", ...everyCall("whole")],
  ["usage-twice", ...everyCall("whole")],
  ["slow-first-byte-100", ...everyCall("whole")],
  ["slow-first-byte-1500", ...onlyStreams("503")],
  ["stall-mid-100", ...everyCall("whole")],
  ["stall-mid", "503", "broken", "503"],
  ["dribble", ...everyCall("whole")],
  ["random-splits-1", ...everyCall("whole")],
  ["random-splits-2", ...everyCall("whole")],
  ["random-splits-3", ...everyCall("whole")],
  ["cut-before-headers", ...everyCall("503")],
  ["cut-after-headers", ...everyCall("503")],
  ["cut-mid-chunk", "503", "broken or 503", "503"],
  ["reset", "503", "broken", "503"],
  ["reset-before-headers", ...everyCall("503")],
  ["bad-json", "503", "whole but for an event", "503"],
  ["non-sse-200", ...everyCall("503")],
  ["html-502", ...everyCall("503")],
  ["throttle-429", ...everyCall("503")],
  ["throttle-429-bare", ...everyCall("503")],
  ["error-500", ...everyCall("503")],
  ["overloaded-503", ...everyCall("503")],
  ["giant-chunk-2", ...everyCall("whole")],
  [`million-chunks-${isComplete ? 1_000_000 : 20_000}`, ...everyCall("whole")],
  ["gzip-bomb", ...everyCall("503")],
  ["chained-encodings", ...everyCall("503")],
  // Only a stream marks its own end.
  ["never-closes", "503", "whole", "503"],
  ["error-event-mid-stream", "503", "broken", "503"],
  ["redirect", ...everyCall("503")],
  ["tls-fail", ...everyCall("503")],
  [noHandshake, ...everyCall("503")],
  ["role-every-chunk", ...everyCall("whole")],
  ["context-overflow", ...everyCall("400 context_length_exceeded")],
  ["bad-credential", ...everyCall("503")],
  ["error-200", ...everyCall("503")],
  ["model-not-found-404", ...everyCall("503")],
  ["bad-request-400", ...everyCall("400 without code")],
  ["comments", ...everyCall("whole")],
];

const overOpenai: readonly FaultRow[] = [
  ["missing-finish-reason", ...onlyStreams("broken")],
  ["no-done", ...everyCall("whole")],
  ["crlf-framing", ...everyCall("whole")],
];

/** The same frames, but an answer always says why it ended. */
const overMessages: readonly FaultRow[] = [
  ["missing-finish-reason", "503", "broken", "503"],
  ...overOpenai.slice(1),
];

/** Texts of overflows, which must all be recognised as such. */
const overflows: readonly FaultRow[] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(
  (which) => [`context-overflow-${which}`, ...everyCall("400 context_length_exceeded")] as const,
);

const exceptions: readonly FaultRow[] = [
  ["exception-validation", ...everyCall("400 without code")],
  ["exception-model-identifier", ...everyCall("503")],
  ["exception-on-demand", ...everyCall("503")],
  ["exception-resource-not-found", ...everyCall("503")],
  ["exception-legacy-model", ...everyCall("503")],
  ["exception-form-not-filled", ...everyCall("503")],
  ["exception-access-denied", ...everyCall("503")],
  ["exception-marketplace", ...everyCall("503")],
  ["exception-operation-not-allowed", ...everyCall("503")],
  ["exception-account-not-authorized", ...everyCall("503")],
  ["exception-channel-account", ...everyCall("503")],
  ["exception-unrecognized-client", ...everyCall("503")],
  ["exception-invalid-signature", ...everyCall("503")],
  ["exception-incomplete-signature", ...everyCall("503")],
  ["exception-expired-token", ...everyCall("503")],
  ["exception-request-expired", ...everyCall("503")],
  ["exception-throttling", ...everyCall("503")],
  ["exception-throttling-tokens", ...everyCall("503")],
  ["exception-throttling-daily", ...everyCall("503")],
  ["exception-model-not-ready", ...everyCall("503")],
  ["exception-service-quota", ...everyCall("503")],
  ["exception-model-timeout", ...everyCall("503")],
  ["exception-model-error", ...everyCall("503")],
  ["exception-model-error-throttled", ...everyCall("503")],
  ["exception-internal-server", ...everyCall("503")],
  ["exception-service-unavailable", ...everyCall("503")],
  ["exception-conflict", ...everyCall("503")],
  ["exception-unknown-operation", ...everyCall("503")],
  ["exception-serialization", ...everyCall("503")],
  ["exception-in-body", ...everyCall("503")],
  ["exception-untyped", ...everyCall("503")],
  ["exception-empty", ...everyCall("503")],
  ["first-frame-internal-server", ...everyCall("503")],
  ["first-frame-model-stream-error", ...everyCall("503")],
  ["first-frame-validation", ...everyCall("400 without code")],
  ["first-frame-throttling", ...everyCall("503")],
  ["first-frame-service-unavailable", ...everyCall("503")],
  ["first-frame-model-timeout", ...everyCall("503")],
  // After messageStart alone nothing has reached the caller.
  ["mid-stream-internal-server-1", ...everyCall("503")],
  ["mid-stream-internal-server", "503", "broken", "503"],
  ["mid-stream-model-stream-error", "503", "broken", "503"],
  ["mid-stream-validation", "400 without code", "broken, refused", "400 without code"],
  ["mid-stream-throttling", "503", "broken", "503"],
  ["mid-stream-service-unavailable", "503", "broken", "503"],
  ["mid-stream-model-timeout", "503", "broken", "503"],
];

const frames: readonly FaultRow[] = [
  ["missing-finish-reason", "503", "broken", "whole"],
  ["truncated-frame", ...onlyStreams("broken")],
  ["truncated-frame-0", ...onlyStreams("503")],
  ["cut-in-length-prefix", ...onlyStreams("broken")],
  ["cut-in-length-prefix-0", ...onlyStreams("503")],
  ["bad-prelude-crc", ...onlyStreams("broken")],
  ["bad-prelude-crc-0", ...onlyStreams("503")],
  ["bad-message-crc", ...onlyStreams("broken")],
  ["bad-message-crc-0", ...onlyStreams("503")],
  ["oversized-length", ...onlyStreams("broken")],
  ["undersized-length", ...onlyStreams("broken")],
  ["bad-headers-length", ...onlyStreams("broken")],
  ["no-message-stop", ...onlyStreams("broken")],
  ["no-metadata", ...onlyStreams("whole, uncounted")],
  // The usage is in the last event.
  ["no-done", ...onlyStreams("whole, uncounted")],
  ["transport-error-frame", ...onlyStreams("broken")],
  ["transport-error-frame-0", ...onlyStreams("503")],
];

export const faultTables: Readonly<Record<ChatKind, readonly FaultRow[]>> = {
  openai: [...common, ...overOpenai],
  bedrock: [...common, ...overflows, ...exceptions, ...frames],
  anthropic: [...common, ...overMessages],
};
