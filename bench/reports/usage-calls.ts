import {
  callDialects,
  type CallOutcome,
  type CapacityClass,
  type UsageRecord,
} from "../../src/domain/usage/usage.ts";

const keys = 50;
const models = [
  "alpha-sonnet-4",
  "alpha-haiku-3.5",
  "alpha-sonnet-3.5",
  "beta-3-70b",
  "beta-3-405b",
  "gamma-8x7b",
  "gamma-large",
  "embed-text-v2",
] as const;
const targets = ["east/model", "west/model", "south/model"] as const;
const classes: readonly CapacityClass[] = ["on-demand", "on-demand", "provisioned", "spillover"];
/** Most calls succeed; the rest fail as at a working gateway. */
const endings: readonly (readonly [share: number, status: number, outcome: CallOutcome])[] = [
  [0.94, 200, "completed"],
  [0.97, 499, "abandoned"],
  [0.98, 200, "abandoned"],
  [0.99, 503, "failed"],
  [0.997, 400, "failed"],
  [1, 500, "interrupted"],
];

/** The distribution of a generated ledger's calls over time, oldest first. */
export interface CallSpan {
  readonly since: number;
  readonly until: number;
  readonly count: number;
  /** The number of the first one; default 0. */
  readonly first?: number;
}

/** The call at this position, always the same, of any key and model. */
export function callOf(index: number, { since, until, count, first = 0 }: CallSpan): UsageRecord {
  const number = first + index;
  const random = randomOf(number);
  const key = integer(random(), keys);
  const account = key % 12;
  const ending = random();
  const [, status, outcome] = endings.find(([share]) => ending < share) ?? [1, 200, "completed"];
  const firstEventMs = 80 + 2_000 * random() ** 4;
  return {
    id: `req_${number.toString(36).padStart(6, "0")}${integer(random(), 2 ** 32).toString(36)}`,
    startedAt: Math.floor(since + ((until - since) * index) / count),
    environment: key % 10 === 0 ? "staging" : "production",
    accountId: `acct_00000000000${account}`,
    applicationId: applicationId(key % 25),
    application: `application ${key % 25}`,
    keyId: keyId(key),
    model: models[integer(random() ** 2, models.length)] ?? models[0],
    dialect: callDialects[integer(random() ** 3, callDialects.length)] ?? "chat",
    target: status === 400 ? undefined : targets[integer(random() ** 2, targets.length)],
    capacityClass: classes[integer(random(), classes.length)] ?? "on-demand",
    inputTokens: 100 + integer(random(), 4_000),
    outputTokens: outcome === "completed" ? 20 + integer(random(), 900) : 0,
    cachedInputTokens: 0,
    usageSource: outcome === "completed" ? "upstream" : "counted",
    outcome,
    status,
    code: status === 503 ? "model_unavailable" : undefined,
    isStreamed: random() < 0.7,
    attempts: 1,
    firstEventMs: outcome === "failed" ? undefined : firstEventMs,
    durationMs: firstEventMs + 20_000 * random() ** 3,
  };
}

export function keyId(number: number): string {
  return `key_${String(number).padStart(16, "0")}`;
}

export function applicationId(number: number): string {
  return `app_${String(number).padStart(16, "0")}`;
}

function integer(share: number, limit: number): number {
  return Math.floor(share * limit);
}

/** Mulberry32: repeatable numbers from a seed. */
function randomOf(seed: number): () => number {
  let state = Math.imul(seed, 0x9e3779b1);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
