import type { UpstreamFailureKind } from "../errors/failure-kind.ts";

/** The routing of a call: the targets considered, and every attempt. */
export interface CallRouting {
  /** In the order to be tried. */
  readonly candidates: readonly CandidateNote[];
  readonly attempts: readonly AttemptNote[];
}

export interface CandidateNote {
  /** `-`: all targets of the model. */
  readonly target: string;
  /** Alias; differs from the caller's for a fallback. */
  readonly model: string;
  /** Why it has this position, such as `priority 1`, or why it was skipped. */
  readonly why: string;
}

/** Outcome of one attempt. */
export type AttemptOutcome =
  | UpstreamFailureKind
  | "answered"
  /** Another attempt answered first, or the caller left. */
  | "given-up";

export interface AttemptNote {
  readonly target: string;
  readonly model: string;
  /** Milliseconds since the call arrived. */
  readonly startMs: number;
  readonly durationMs: number;
  readonly outcome: AttemptOutcome;
  /** Whether the provider may bill an answer that nobody received. */
  readonly mayBeBilled: boolean;
  /** The decision after a failure, with its rule; undefined: there was none. */
  readonly decision?: string | undefined;
}

/** Limits on the attempts and candidates that are stored with a call. */
const keptAttempts = 10;
const keptCandidates = 64;
const longestText = 200;

/**
 * Bounds the routing stored with a call. The last attempt is always included: it shows how the call
 * ended.
 */
export function keptRouting({ candidates, attempts }: CallRouting): CallRouting {
  const kept =
    attempts.length > keptAttempts
      ? [...attempts.slice(0, keptAttempts - 1), ...attempts.slice(-1)]
      : attempts;
  return {
    candidates: candidates.slice(0, keptCandidates).map(keptCandidate),
    attempts: kept.map(keptAttempt),
  };
}

/** Reads a stored routing from its JSON; undefined if it is invalid. */
export function readRouting(value: unknown): CallRouting | undefined {
  const candidates = readList(value, "candidates", readCandidate);
  const attempts = readList(value, "attempts", readAttempt);
  return candidates === undefined || attempts === undefined ? undefined : { candidates, attempts };
}

function keptCandidate({ target, model, why }: CandidateNote): CandidateNote {
  return { target: short(target), model: short(model), why: short(why) };
}

function keptAttempt(attempt: AttemptNote): AttemptNote {
  return {
    target: short(attempt.target),
    model: short(attempt.model),
    startMs: tenths(attempt.startMs),
    durationMs: tenths(attempt.durationMs),
    outcome: attempt.outcome,
    mayBeBilled: attempt.mayBeBilled,
    ...(attempt.decision !== undefined && { decision: short(attempt.decision) }),
  };
}

function short(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText - 1)}…` : text;
}

function tenths(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}

/** Undefined if any item is unreadable: a partial routing would be misleading. */
function readList<Item>(
  value: unknown,
  name: string,
  read: (fields: ReadonlyMap<string, unknown>) => Item | undefined,
): readonly Item[] | undefined {
  const list = fieldsOf(value).get(name);
  if (!Array.isArray(list)) return undefined;
  const items = list.map((item: unknown) => read(fieldsOf(item)));
  const found = items.filter((item) => item !== undefined);
  return found.length === items.length ? found : undefined;
}

function readCandidate(fields: ReadonlyMap<string, unknown>): CandidateNote | undefined {
  const [target, model, why] = ["target", "model", "why"].map((name) => fields.get(name));
  if (typeof target !== "string" || typeof model !== "string") return undefined;
  return typeof why === "string" ? { target, model, why } : undefined;
}

function readAttempt(fields: ReadonlyMap<string, unknown>): AttemptNote | undefined {
  const [target, model] = [fields.get("target"), fields.get("model")];
  const [startMs, durationMs] = [fields.get("startMs"), fields.get("durationMs")];
  const outcome = outcomes.get(fields.get("outcome"));
  const mayBeBilled = fields.get("mayBeBilled");
  if (typeof target !== "string" || typeof model !== "string") return undefined;
  if (typeof startMs !== "number" || typeof durationMs !== "number") return undefined;
  if (outcome === undefined || typeof mayBeBilled !== "boolean") return undefined;
  const decision = fields.get("decision");
  const note = { target, model, startMs, durationMs, outcome, mayBeBilled };
  return typeof decision === "string" ? { ...note, decision } : note;
}

function fieldsOf(value: unknown): ReadonlyMap<string, unknown> {
  return new Map(typeof value === "object" && value !== null ? Object.entries(value) : []);
}

/** An object, so that the compiler reports a missing outcome. */
const allOutcomes = {
  answered: "answered",
  "given-up": "given-up",
  throttled: "throttled",
  overloaded: "overloaded",
  unavailable: "unavailable",
  "connect-failed": "connect-failed",
  "timed-out": "timed-out",
  "connection-lost": "connection-lost",
  "broken-answer": "broken-answer",
  "answer-too-large": "answer-too-large",
  "unfit-answer": "unfit-answer",
  "bad-credential": "bad-credential",
  "account-blocked": "account-blocked",
  "stale-credential": "stale-credential",
  "unknown-model": "unknown-model",
  "context-overflow": "context-overflow",
  unsupported: "unsupported",
  "invalid-request": "invalid-request",
  "content-refused": "content-refused",
} as const satisfies { readonly [Outcome in AttemptOutcome]: Outcome };
const outcomes: ReadonlyMap<unknown, AttemptOutcome> = new Map(
  Object.values(allOutcomes).map((outcome) => [outcome, outcome]),
);
