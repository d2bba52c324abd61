import type { Limits } from "../../src/domain/limits/plan.ts";
import { times, type Random } from "./random.ts";
import {
  faults,
  type EventPlan,
  type Fault,
  type GatewayPlan,
  type KeyPlan,
  type UpstreamPlan,
} from "./scenario.ts";

interface EventTargets {
  readonly gateways: readonly GatewayPlan[];
  readonly upstreams: readonly UpstreamPlan[];
  readonly keys: readonly KeyPlan[];
}

/** The faults and changes while calls run. */
export function makeEvents(
  world: EventTargets,
  spanMs: number,
  random: Random,
): readonly EventPlan[] {
  const at = (): number => random.number(0, spanMs);
  const events: EventPlan[] = [];
  const add = (share: number, most: number, make: () => EventPlan): void => {
    if (random.chance(share)) events.push(...times(random.whole(1, most), make));
  };
  add(0.6, 3, () => ({ type: "faults", ...makeFaultSpan(world, random), atMs: at() }));
  if (random.chance(0.2)) events.push(...makeFlapping(world, at(), random));
  add(0.4, 2, () => ({
    type: "crash",
    atMs: at(),
    gateway: random.whole(0, world.gateways.length - 1),
    downMs: random.number(10, 20_000),
  }));
  add(0.2, 2, () => ({
    type: "wall-jump",
    atMs: at(),
    gateway: random.whole(0, world.gateways.length - 1),
    byMs: random.whole(-3_600_000, 3_600_000),
  }));
  add(0.4, 4, () => changeLimits(world, at(), random));
  add(0.4, 4, () => ({
    type: "units",
    atMs: at(),
    ...changeUnits(random.pick(world.keys), random),
  }));
  add(0.15, 1, () => ({ type: "revoke", atMs: at(), key: random.pick(world.keys).key.id }));
  add(0.3, 3, () => ({
    type: "places",
    atMs: at(),
    upstream: random.pick(world.upstreams).name,
    maxInFlight: random.whole(1, 10),
  }));
  add(0.2, 2, () => ({
    type: "limiter-slow",
    atMs: at(),
    forMs: random.number(100, 10_000),
    delayMs: random.number(50, 2_000),
  }));
  add(0.2, 2, () => ({ type: "database-down", atMs: at(), forMs: random.number(100, 30_000) }));
  return events;
}

function makeFaultSpan(
  world: EventTargets,
  random: Random,
): { upstream: string; forMs: number; fault: Fault; share: number } {
  return {
    upstream: random.pick(world.upstreams).name,
    forMs: random.number(1_000, 40_000),
    fault: random.pick(faults.filter((fault) => fault !== "skewed")),
    share: random.pick([0.3, 0.7, 1]),
  };
}

/** An upstream that alternates between working and failing. */
function makeFlapping(world: EventTargets, atMs: number, random: Random): readonly EventPlan[] {
  const span = makeFaultSpan(world, random);
  const periodMs = random.number(300, 4_000);
  return times(random.whole(3, 8), (index) => ({
    type: "faults",
    ...span,
    share: 1,
    forMs: periodMs / 2,
    atMs: atMs + index * periodMs,
  }));
}

function changeLimits(world: EventTargets, atMs: number, random: Random): EventPlan {
  const { key, limits } = random.pick(world.keys);
  const factor = random.pick([0.1, 0.5, 2, 10]);
  const scaled: Limits = {
    requestsPerMinute: Math.max(1, Math.round(limits.requestsPerMinute * factor)),
    tokensPerMinute: Math.max(1, Math.round(limits.tokensPerMinute * factor)),
  };
  const changed = random.chance(0.5) ? scaled : makeLimits(random);
  return { type: "limits", atMs, key: key.id, limits: changed };
}

/** At most twice the units for which the pools are sized; 0 returns all of them. */
function changeUnits({ key }: KeyPlan, random: Random): { key: string; units: number } {
  return { key: key.id, units: random.whole(0, 2 * key.provisionedUnits) };
}

export function makeLimits(random: Random): Limits {
  return {
    requestsPerMinute: random.whole(2, 40),
    tokensPerMinute: random.whole(1_000, 25_000),
  };
}
