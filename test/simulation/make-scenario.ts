import { guaranteedTokens, heldTokens, type Pool } from "../../src/domain/limits/capacity.ts";
import type { Model, Target } from "../../src/domain/model.ts";
import type { RoutingSettings } from "../../src/domain/settings.ts";
import { plainKey } from "../support/plain-key.ts";
import { makeEvents, makeLimits } from "./make-events.ts";
import { makeRush } from "./make-rush.ts";
import { Random, times } from "./random.ts";
import {
  startOfTime,
  type CallPlan,
  type GatewayPlan,
  type KeyPlan,
  type LeavePlan,
  type LimiterPlan,
  type Scenario,
  type UpstreamPlan,
} from "./scenario.ts";

/** The scenario of a seed. */
export function makeScenario(seed: number): Scenario {
  const random = new Random(seed).fork("scenario");
  const several = times(random.whole(2, 4), (index) => makeGateway(index, random));
  const ofProcesses = new Random(seed).fork("workers");
  const processes = ofProcesses.chance(0.5) ? ofProcesses.whole(1, 3) : undefined;
  const gateways = several.slice(0, processes);
  const upstreams = times(random.whole(1, 3), (index) => makeUpstream(index, random));
  const pools = random.chance(0.6)
    ? times(random.whole(1, 2), (index) => poolOf(index, random))
    : [];
  const models = makeModels(upstreams, pools, random);
  const keys = makeKeys(pools, random);
  const spanMs = random.number(30_000, 150_000);
  const world = { gateways, upstreams, pools: sized(pools, keys, random), models, keys };
  return {
    seed,
    ...world,
    limiter: makeLimiter(processes, random),
    routing: makeRouting(random),
    maxCalls: random.chance(0.1) ? random.whole(3, 10) : 10_000,
    calls: inSessions(
      [
        ...makeCalls(world, spanMs, random),
        ...makeRush(world, spanMs, new Random(seed).fork("rush")),
      ],
      new Random(seed).fork("sessions"),
    ),
    events: makeEvents(world, spanMs, random),
  };
}

function makeGateway(index: number, random: Random): GatewayPlan {
  return {
    name: `g${index}`,
    monotonicMs: random.number(0, 5_000_000),
    wallMs: startOfTime + random.number(-2_000, 2_000),
  };
}

/** A single gateway has its limits itself. */
function makeLimiter(processes: number | undefined, random: Random): LimiterPlan {
  const isNetworked = random.chance(0.8);
  const kind = processes === 1 || !isNetworked ? ("local" as const) : ("networked" as const);
  return { kind, delayMs: random.number(0.1, 20), slowShare: random.pick([0, 0.01, 0.1]) };
}

function makeUpstream(index: number, random: Random): UpstreamPlan {
  return {
    name: `u${index}`,
    // The first one is also used for embeddings.
    kind: index > 0 && random.chance(0.3) ? "bedrock" : "openai",
    timeouts: {
      connectMs: random.whole(200, 2_000),
      firstByteMs: random.whole(2_000, 8_000),
      idleMs: random.whole(1_000, 5_000),
      totalMs: random.whole(8_000, 40_000),
    },
    maxInFlight: random.chance(0.5) ? random.whole(1, 6) : 1_000,
    drain: random.chance(0.2)
      ? { timeoutMs: random.whole(500, 5_000), limit: random.whole(1, 3) }
      : undefined,
    embeddingBatchLimit: random.whole(1, 4),
    thinkMs: random.number(10, 1_500),
    pieceMs: random.number(1, 300),
    faultShare: random.pick([0, 0.03, 0.1, 0.3]),
    tokensPerByte: random.number(0.15, 0.5),
  };
}

function poolOf(index: number, random: Random): Pool {
  return {
    name: `p${index}`,
    kind: random.chance(0.3) ? "dedicated" : "shared",
    tokensPerMinute: 0,
    maxInFlight: random.chance(0.6) ? random.whole(2, 8) : undefined,
    onDemandFloorPercent: random.pick([0, 10, 20, 50]),
    unitTokensPerMinute: random.whole(500, 5_000),
  };
}

/** Large enough for its sold units: the control plane refuses more. */
function sized(pools: readonly Pool[], keys: readonly KeyPlan[], random: Random): readonly Pool[] {
  return pools.map((pool) => {
    const held = keys
      .filter(({ key }) => key.provisionedPool === pool.name)
      .reduce((sum, { key }) => sum + heldTokens(guaranteedTokens(key.provisionedUnits, pool)), 0);
    // Upgrades during the run double a key's units at most.
    const least = (2 * held) / (1 - pool.onDemandFloorPercent / 100);
    return { ...pool, tokensPerMinute: Math.ceil(least + random.whole(1_000, 20_000)) };
  });
}

function makeModels(
  upstreams: readonly UpstreamPlan[],
  pools: readonly Pool[],
  random: Random,
): readonly Model[] {
  const chats = times(random.whole(1, 3), (index) => {
    const hasOwnTimes = random.chance(0.2);
    return {
      alias: `chat-${index}`,
      kind: "chat" as const,
      created: 1,
      contextWindow: random.whole(1_000, 8_000),
      maxOutputTokens: random.whole(200, 1_000),
      fanOut: 1,
      targets: makeTargets(index, { upstreams, pools }, random),
      ...(hasOwnTimes && { timeouts: { firstByteMs: random.whole(1_000, 4_000) } }),
      ...(random.chance(0.25) && { hedgeAfterMs: random.whole(50, 1_000) }),
    };
  });
  const aliases = chats.map(({ alias }) => alias);
  const withFallbacks = chats.map((model) => {
    const others = aliases.filter((alias) => alias !== model.alias);
    return random.chance(0.3) && others.length > 0
      ? { ...model, fallbacks: [random.pick(others)] }
      : model;
  });
  const embedders = upstreams.filter(({ kind }) => kind === "openai");
  const embedding: Model = {
    alias: "embed",
    kind: "embedding",
    created: 1,
    contextWindow: 4_000,
    maxOutputTokens: undefined,
    fanOut: random.whole(1, 3),
    targets: makeTargets(9, { upstreams: embedders, pools: [] }, random),
  };
  return [...withFallbacks, embedding];
}

function makeTargets(
  model: number,
  { upstreams, pools }: { upstreams: readonly UpstreamPlan[]; pools: readonly Pool[] },
  random: Random,
): readonly Target[] {
  const targets = times(random.whole(1, 3), (index) => {
    const upstream = random.pick(upstreams).name;
    const name = `m${model}-${index}`;
    const hasPool = pools.length > 0 && random.chance(0.7);
    return {
      id: `${upstream}/${name}`,
      upstream,
      model: name,
      priority: random.whole(1, 2),
      weight: random.whole(1, 4),
      ...(hasPool && { pool: random.pick(pools).name }),
    };
  });
  return targets;
}

function makeKeys(pools: readonly Pool[], random: Random): readonly KeyPlan[] {
  const accounts = random.whole(2, 6);
  return times(random.whole(3, 12), (index) => {
    const pool = pools.length > 0 && random.chance(0.6) ? random.pick(pools) : undefined;
    const account = random.whole(1, accounts);
    const key = plainKey({
      id: `k${index}`,
      accountId: `acct_${account}`,
      applicationId: `app_${index}`,
      provisionedUnits: pool === undefined ? 0 : random.whole(1, 3),
      provisionedPool: pool?.name,
    });
    return {
      key,
      publicIds: random.chance(0.3) ? [`pub${index}a`, `pub${index}b`] : [`pub${index}a`],
      limits: makeLimits(random),
      queueTimeoutMs: random.chance(0.5) ? 0 : random.whole(100, 3_000),
      uncapped: {
        uncapped: random.pick(["debt", "debt", "cap", "maximum"] as const),
        overrunFactor: random.pick([0, 0.5, 1, 3]),
      },
    };
  });
}

function makeRouting(random: Random): RoutingSettings {
  return {
    attempts: random.whole(1, 5),
    retryBudgetPercent: random.pick([0, 10, 20, 50]),
    retryFloor: random.whole(0, 5),
    firstBackoffMs: random.whole(1, 200),
    longestBackoffMs: random.whole(200, 2_000),
    showsTarget: true,
    showsCost: false,
    hasSessionAffinity: true,
    queueLimit: random.whole(1, 20),
    out: {
      failures: random.whole(2, 6),
      errorPercent: random.whole(20, 90),
      leastAttempts: random.whole(5, 20),
      firstMs: random.whole(500, 10_000),
      longestMs: random.whole(10_000, 60_000),
    },
  };
}

interface Populated {
  readonly gateways: readonly GatewayPlan[];
  readonly models: readonly Model[];
  readonly keys: readonly KeyPlan[];
}

function makeCalls(world: Populated, spanMs: number, random: Random): readonly CallPlan[] {
  // Usually few: the interaction of calls matters, not their number.
  const count = 30 + Math.floor(120 * random.next() ** 2);
  const busy = random.pick(world.keys);
  const bursts = times(random.whole(1, 4), () => random.number(0, spanMs));
  return times(count, (index) => {
    const isBurst = random.chance(0.3);
    const atMs = isBurst ? random.pick(bursts) + random.number(0, 50) : random.number(0, spanMs);
    const owner = random.chance(0.3) ? busy : random.pick(world.keys);
    return makeCall({ id: `c${index}`, atMs, owner, world }, random);
  });
}

/** Half of the calls are of few sessions, which keys and accounts give the same names. */
function inSessions(calls: readonly CallPlan[], random: Random): readonly CallPlan[] {
  return calls.map((call) =>
    random.chance(0.5) ? { ...call, session: `s${random.whole(1, 3)}` } : call,
  );
}

interface CallFrame {
  readonly id: string;
  readonly atMs: number;
  readonly owner: KeyPlan;
  readonly world: Populated;
}

function makeCall({ id, atMs, owner, world }: CallFrame, random: Random): CallPlan {
  const { provisionedPool } = owner.key;
  const own = world.models.filter(({ targets }) => {
    return provisionedPool !== undefined && targets.some(({ pool }) => pool === provisionedPool);
  });
  const model = random.pick(own.length > 0 && random.chance(0.6) ? own : world.models);
  const isEmbedding = model.kind === "embedding";
  const kind = isEmbedding ? "embedding" : random.chance(0.6) ? "stream" : "whole";
  const most = model.maxOutputTokens ?? 0;
  return {
    id,
    atMs,
    gateway: random.whole(0, world.gateways.length - 1),
    key: owner.key.id,
    secret: random.whole(0, owner.publicIds.length - 1),
    alias: model.alias,
    kind,
    promptBytes: random.chance(0.2) ? random.whole(2_000, 6_000) : random.whole(20, 2_000),
    parts: isEmbedding ? random.whole(1, 6) : random.chance(0.1) ? 2 : 1,
    cap: !isEmbedding && random.chance(0.6) ? random.whole(1, most) : undefined,
    outputTokens: random.whole(1, 400),
    capacity: random.weighted({
      auto: 8,
      "provisioned-only": owner.key.provisionedUnits > 0 ? 1 : 0.1,
      "on-demand-only": 1,
    }),
    deadlineMs: random.chance(0.15) ? random.whole(50, 6_000) : undefined,
    leave: random.chance(0.2) ? makeLeave(random) : undefined,
    readMs: random.chance(0.1) ? random.number(10, 1_500) : 0,
  };
}

function makeLeave(random: Random): LeavePlan {
  return {
    afterMs: random.chance(0.7) ? random.number(0, 4_000) : undefined,
    batches: random.whole(1, 5),
    cancelsFirst: random.chance(0.5),
  };
}
