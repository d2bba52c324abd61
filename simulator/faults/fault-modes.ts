import { type BedrockMode, bedrockModes } from "./bedrock-modes.ts";

/** Faults of every wire. Arguments are milliseconds unless stated otherwise. */
export const commonModes = {
  ok: "a proper answer",
  "ok-no-usage": "no usage in the answer, even when asked for",
  "wrong-usage": "usage counts that are ten times too high",
  "usage-twice": "a stream that reports its usage twice",
  "slow-first-byte": "no byte for a while (argument, default 2000)",
  "stall-mid": "silence in the middle, for the argument or until the caller leaves",
  dribble: "one byte per write (argument: pause between them, default 0)",
  "random-splits": "writes that split frames at random (argument: seed)",
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
const openaiModes = {
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

/** The header that names the fault of one call: `x-simulator-fault: stall-mid:500`. */
export const faultHeader = "x-simulator-fault";

const defaultBurstLength = 3;
const modelsLimit = 10_000;
/** Ten times 0.1 adds up to slightly less than 1. */
const roundingError = 1e-9;

interface PlannedFault {
  readonly fault: Fault;
  times: number;
  readonly share: number;
  /** The sum of shares since the last fault; the next fault is due at 1. */
  owed: number;
}

/** Chooses the fault of a call: from its header, else its model's name, else the plan. */
export class FaultChooser {
  #plan: PlannedFault[] = [];
  /** Calls of models whose faults depend on it. */
  readonly #calls = new Map<string, number>();

  setPlan(steps: readonly FaultStep[]): void {
    this.#plan = steps
      .map(({ mode, argument, times = 1, share = 1 }) => {
        return { fault: { mode, argument }, times, share, owed: 0 };
      })
      .filter(({ times }) => times > 0);
  }

  /** Undefined when the header names a fault that does not exist. */
  choose(header: string | null, model: string): Fault | undefined {
    const fault = header === null ? this.#withoutHeader(model) : parseFault(header);
    const isCounted = fault?.mode === "flap" || fault?.mode === "throttled-burst";
    return isCounted ? this.#byCount(model, fault) : fault;
  }

  #withoutHeader(model: string): Fault {
    return faultInModelName(model) ?? this.#nextOfPlan() ?? noFault;
  }

  #nextOfPlan(): Fault | undefined {
    const [step] = this.#plan;
    if (step === undefined) return undefined;
    step.times -= 1;
    if (step.times <= 0) this.#plan.shift();
    step.owed += step.share;
    if (step.owed < 1 - roundingError) return undefined;
    step.owed -= 1;
    return step.fault;
  }

  /** Every second call of a model fails, or its first ones. */
  #byCount(model: string, { mode, argument = defaultBurstLength }: Fault): Fault {
    const count = this.#calls.get(model) ?? 0;
    // Callers choose the names of models, so the map is bounded.
    if (this.#calls.size >= modelsLimit) this.#calls.clear();
    this.#calls.set(model, count + 1);
    const fails = mode === "flap" ? count % 2 === 1 : count < argument;
    if (!fails) return noFault;
    return { mode: mode === "flap" ? "overloaded-503" : "throttle-429-bare", argument: undefined };
  }
}

/** The lines that list all faults with their meanings, by wire. */
export function faultListing(): readonly string[] {
  return [
    ...linesOf(commonModes),
    "",
    "On OpenAI's wire only:",
    "",
    ...linesOf(openaiModes),
    "",
    "On Bedrock's wire only, arguments being how many good frames come before the fault:",
    "",
    ...linesOf(bedrockModes),
  ];
}

function linesOf(modes: Readonly<Record<string, string>>): string[] {
  const width = Math.max(...Object.keys(faultModes).map((mode) => mode.length));
  return Object.entries(modes).map(([mode, meaning]) => `  ${mode.padEnd(width)}  ${meaning}`);
}
