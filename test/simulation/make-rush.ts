import { times, type Random } from "./random.ts";
import type { CallPlan, KeyPlan, Scenario } from "./scenario.ts";

type World = Pick<Scenario, "gateways" | "pools" | "models" | "keys">;

/**
 * Many small concurrent calls of one key within its guarantee, then a few of another key of the
 * same pool, at the same gateway.
 */
export function makeRush(world: World, spanMs: number, random: Random): readonly CallPlan[] {
  const pool = world.pools.find(({ maxInFlight }) => maxInFlight !== undefined);
  const owners = world.keys.filter(({ key }) => key.provisionedPool === pool?.name);
  const model = world.models.find(
    ({ kind, targets }) => kind === "chat" && targets.some((target) => target.pool === pool?.name),
  );
  const [rushing, ...others] = owners;
  if (pool === undefined || model === undefined || rushing === undefined) return [];
  if (others.length === 0 || random.chance(0.5)) return [];
  const atMs = random.number(0, spanMs);
  const gateway = random.whole(0, world.gateways.length - 1);
  const call = (id: string, owner: KeyPlan, afterMs: number): CallPlan => ({
    id,
    atMs: atMs + afterMs,
    gateway,
    key: owner.key.id,
    secret: 0,
    alias: model.alias,
    kind: "stream",
    promptBytes: random.whole(20, 60),
    parts: 1,
    cap: random.whole(1, 20),
    outputTokens: random.whole(1, 20),
    capacity: "auto",
    deadlineMs: undefined,
    leave: undefined,
    readMs: 0,
  });
  return [
    ...times(random.whole(5, 20), (index) => call(`rush${index}`, rushing, random.number(0, 20))),
    ...times(random.whole(1, 4), (index) =>
      call(`behind${index}`, random.pick(others), random.number(20, 200)),
    ),
  ];
}
