import { bedrockModes, type BedrockMode } from "./bedrock-modes.ts";

/** Faults of every wire. Arguments are milliseconds unless stated otherwise. */
export const commonModes = {
  ok: "a proper answer",
  "ok-no-usage": "no usage in the answer, even when asked for",
  "wrong-usage": "usage counts that are ten times too high",
  "usage-twice": "a stream that reports its usage twice",
  "slow-first-byte": "no byte for a while (argument, default 2000)",
  "stall-mid": "silence in the middle, for the argument or until the caller leaves",
  dribble: "one byte per write (argument: pause between them, default 0)",
  "random-splits": "writes that split and join frames at random (argument: seed)",
  "cut-before-headers": "the connection is closed without an answer",
  "cut-after-headers": "the connection is closed after the head of the answer",
  "cut-mid-chunk": "the connection is closed inside a chunk of the body",
  reset: "TCP reset in the middle of the answer",
  "reset-before-headers": "TCP reset without an answer",
  "bad-json": "JSON that ends too early",
  "non-sse-200": "status 200 with an HTML page",
  "html-502": "status 502 with an HTML page",
  "throttle-429": "status 429 with retry-after (argument, default 2000)",
  "throttle-429-bare": "status 429 without retry-after",
  "throttled-burst": "status 429 for a model's first calls (argument: how many, default 3)",
  "error-500": "status 500",
  "overloaded-503": "status 503",
  flap: "alternates between a proper answer and status 503",
  "giant-chunk": "one delta of a mebibyte (argument: how many)",
  "million-chunks": "a million deltas (argument: how many)",
  "gzip-bomb": "a body of a few MB that unpacks to 1024 MiB (argument: MiB)",
  "chained-encodings": "content-encoding gzip, four times over (argument: how often)",
  "never-closes": "the connection stays open after the end of the answer",
  "error-event-mid-stream": "an error event in the middle of a stream, status 500 otherwise",
  redirect: "status 307 to another path",
  "tls-fail": "a TLS alert in place of an HTTP answer",
  "missing-finish-reason": "an answer without a finish reason",
  "no-done": "a stream without its last event",
  "role-every-chunk": "every delta repeats the role",
  "context-overflow": "status 400, too long a prompt (argument: which of Bedrock's texts)",
  "bad-credential": "status 401 or 403",
  "error-200": "status 200 with an error body",
  "model-not-found-404": "status 404",
  "bad-request-400": "status 400",
  comments: "a comment or unknown event before every event",
} as const;

/** Faults of server-sent events. */
export const openaiModes = {
  "crlf-framing": "events end in CRLF",
} as const;

/** All faults, with their meanings. */
export const faultModes: Readonly<Record<string, string>> = {
  ...commonModes,
  ...openaiModes,
  ...bedrockModes,
};

export type FaultMode = keyof typeof commonModes | keyof typeof openaiModes | BedrockMode;

export interface Fault {
  readonly mode: FaultMode;
  readonly argument: number | undefined;
}

/** Whether the fault exists on the wire. */
export function isOnWire(mode: FaultMode, wire: "openai" | "bedrock"): boolean {
  return mode in commonModes || mode in (wire === "openai" ? openaiModes : bedrockModes);
}

/** One step of a plan: this fault for the next `times` calls. */
export interface FaultStep {
  readonly mode: FaultMode;
  readonly argument?: number;
  /** Default 1; `Infinity`: until there is another plan. */
  readonly times?: number;
  /** The share of those calls that gets it, evenly spread, in (0, 1]. Default 1. */
  readonly share?: number;
}

export const noFault: Fault = { mode: "ok", argument: undefined };

/** Reads `mode` or `mode:argument`; undefined when there is no such mode. */
export function parseFault(text: string): Fault | undefined {
  const parts = /^\s*([a-z0-9-]+)(?::(\d+))?\s*$/.exec(text);
  const mode = parts?.[1];
  if (mode === undefined || !isFaultMode(mode)) return undefined;
  return { mode, argument: parts?.[2] === undefined ? undefined : Number(parts[2]) };
}

/** Finds `fault-<mode>` or `fault-<mode>-<argument>` in the name of a model. */
export function faultInModelName(model: string): Fault | undefined {
  const place = model.indexOf("fault-");
  if (place < 0) return undefined;
  const rest = model.slice(place + "fault-".length);
  // The longest mode first: `throttle-429-bare` begins with `throttle-429`.
  const mode = Object.keys(faultModes)
    .filter(isFaultMode)
    .sort((first, second) => second.length - first.length)
    .find((name) => rest.startsWith(name) && !/^[a-z0-9]/.test(rest.slice(name.length)));
  if (mode === undefined) return undefined;
  const argument = /^-(\d+)(?![a-z0-9])/.exec(rest.slice(mode.length))?.[1];
  return { mode, argument: argument === undefined ? undefined : Number(argument) };
}

function isFaultMode(name: string): name is FaultMode {
  return Object.hasOwn(faultModes, name);
}
