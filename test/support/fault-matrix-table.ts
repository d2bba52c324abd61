import type { FaultStep } from "../../src/simulator/faults/fault-mode.ts";
import { isComplete } from "./requirement.ts";

/** What a caller gets when the target that shows the fault is the only one. */
export type Outcome =
  /** The whole answer with the upstream's counts. */
  | "whole"
  /** The whole answer, of which the upstream told no counts. */
  | "uncounted"
  /** The whole answer but for the event that made no sense. */
  | "holed"
  /** 200, then one error frame and no `[DONE]`. */
  | "broken"
  /** 503 `model_unavailable`; another target serves in its place. */
  | "unavailable"
  /** One of the last two: the runtime may forget what came along with the end of a connection. */
  | "broken or unavailable";

export interface FaultVariant {
  /** One of the 24. */
  readonly mode: (typeof faultModeNames)[number];
  readonly name: string;
  readonly fault: Pick<FaultStep, "mode" | "argument">;
  readonly plain: readonly Outcome[];
  readonly streamed: readonly Outcome[];
  /** Attempts of each call while there is no other target. */
  readonly attempts: readonly number[];
  /** With a second target, which is asked next whatever failed. */
  readonly attemptsOfTwo: readonly number[];
  /** Asked over TLS, of a port that does not speak it. */
  readonly isSecure?: boolean;
}

/** Every way of failing that the routing is held to. */
export const faultModeNames = [
  "ok",
  "ok without usage",
  "wrong usage",
  "usage twice",
  "slow first byte",
  "stall in the middle",
  "dribble",
  "cut before or after the headers",
  "cut within a chunk",
  "reset",
  "bad JSON",
  "200 that is no stream",
  "HTML 502",
  "429",
  "500 storm",
  "flap",
  "giant chunk",
  "a million chunks",
  "gzip bomb",
  "chained encodings",
  "never closes",
  "error event in the middle",
  "redirect",
  "TLS failure",
] as const;

/**
 * Of the upstream that shows the faults. What waits longer than this has failed; a stream of a
 * million chunks must not be silent that long on a busy machine.
 */
export const faultTimeouts = isComplete
  ? "{ connect: 1s, first_byte: 2s, idle: 3s, total: 5m }"
  : "{ connect: 200ms, first_byte: 400ms, idle: 400ms, total: 5m }";
const shortPauseMs = 80;
const longPauseMs = 60_000;

const chunkCount = isComplete ? 1_000_000 : 20_000;

/** Of one call, all targets together; also what its budget allows a model that is hardly called. */
export const attemptLimit = 4;

/** The first wait for a second try at the same target is short, and no provider is waited for long. */
export const faultRouting =
  `{ attempts: ${attemptLimit}, retry_budget: 20, retry_floor: ${attemptLimit - 1}, ` +
  "first_backoff: 5ms, longest_backoff: 50ms }";

type Row = readonly [
  mode: FaultVariant["mode"],
  name: string,
  fault: FaultStep["mode"] | readonly [FaultStep["mode"], number],
  plain: Outcome | readonly Outcome[],
  streamed: Outcome | readonly Outcome[],
  more?: Partial<Omit<FaultVariant, "mode" | "name" | "fault" | "plain" | "streamed">>,
];

const refused = ["unavailable", "unavailable"] as const;
const whole = ["whole", "whole"] as const;
/** Nothing of a plain answer has reached the caller when it breaks off. */
const breaking = ["unavailable", "broken"] as const;
/** Every other request fails: the next try of the same call does not. */
const byTurns: readonly Outcome[] = ["whole", "whole", "whole", "whole"];
const triesByTurns = { attempts: [1, 2, 2, 2], attemptsOfTwo: [1, 2, 1, 2] };
/** Asks for two seconds, which is longer than the gateway waits. */
const askedToWait = { attempts: [1] };

const rows: readonly Row[] = [
  ["ok", "a proper answer", "ok", ...whole],
  ["ok without usage", "no usage", "ok-no-usage", "uncounted", "uncounted"],
  ["wrong usage", "counts ten times too high", "wrong-usage", ...whole],
  ["usage twice", "usage told twice", "usage-twice", ...whole],
  ["slow first byte", "a late first byte", ["slow-first-byte", shortPauseMs], ...whole],
  ["slow first byte", "no first byte in time", ["slow-first-byte", longPauseMs], ...refused],
  ["stall in the middle", "a short silence within", ["stall-mid", shortPauseMs], ...whole],
  ["stall in the middle", "silence without an end", "stall-mid", ...breaking],
  ["dribble", "one byte a write", "dribble", ...whole],
  ["cut before or after the headers", "a cut before them", "cut-before-headers", ...refused],
  ["cut before or after the headers", "a cut after them", "cut-after-headers", ...refused],
  ["cut within a chunk", "a cut", "cut-mid-chunk", "unavailable", "broken or unavailable"],
  ["reset", "a reset within the answer", "reset", ...breaking],
  ["reset", "a reset without an answer", "reset-before-headers", ...refused],
  ["bad JSON", "JSON that ends too early", "bad-json", "unavailable", "holed"],
  ["200 that is no stream", "a page with status 200", "non-sse-200", ...refused],
  ["HTML 502", "a page with status 502", "html-502", ...refused],
  ["429", "429 with Retry-After", "throttle-429", ...refused, askedToWait],
  ["429", "429 without Retry-After", "throttle-429-bare", ...refused],
  ["500 storm", "500 to everything", "error-500", ...refused],
  ["500 storm", "503 to everything", "overloaded-503", ...refused],
  ["flap", "well by turns", "flap", byTurns, byTurns, triesByTurns],
  ["giant chunk", "a mebibyte in one delta", "giant-chunk", ...whole],
  ["a million chunks", `${chunkCount} deltas`, ["million-chunks", chunkCount], ...whole],
  ["gzip bomb", "a bomb of 1024 MiB", "gzip-bomb", ...refused],
  ["chained encodings", "gzip four times over", "chained-encodings", ...refused],
  // Only a stream says by itself that it is over.
  ["never closes", "an answer that is not closed", "never-closes", "unavailable", "whole"],
  ["error event in the middle", "an error event", "error-event-mid-stream", ...breaking],
  ["redirect", "307", "redirect", ...refused],
  ["TLS failure", "an alert in place of HTTP", "tls-fail", ...refused],
  ["TLS failure", "a handshake that fails", "ok", ...refused, { isSecure: true }],
];

export const faultVariants: readonly FaultVariant[] = rows.map(
  ([mode, name, fault, plain, streamed, more = {}]) => ({
    mode,
    name,
    fault: typeof fault === "string" ? { mode: fault } : { mode: fault[0], argument: fault[1] },
    plain: listed(plain),
    streamed: listed(streamed),
    attempts: [attemptLimit],
    attemptsOfTwo: [2],
    ...more,
  }),
);

function listed(outcomes: Outcome | readonly Outcome[]): readonly Outcome[] {
  return typeof outcomes === "string" ? [outcomes] : outcomes;
}
