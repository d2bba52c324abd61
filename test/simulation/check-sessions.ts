import type { CallRecord } from "./records.ts";
import type { Stage } from "./simulate.ts";
import { violate } from "./world.ts";

/**
 * The calls of a session rank two targets alike in every process, whichever others serve; calls of
 * no session have no ranks.
 */
export function checkSessions({ world }: Stage): void {
  const { keys, models } = world.scenario;
  const firstOf = new Map<string, string>();
  for (const record of world.calls.values()) {
    const { plan, closed } = record;
    const ranked = ranksIn(record);
    if (plan.session === undefined) {
      if (ranked.length > 0) violate(world, "affinity", "has ranks and no session", plan.id);
      continue;
    }
    // A pool of the key's units has ranks of its own.
    if (closed?.capacityClass !== "on-demand") continue;
    const account = keys.find(({ key }) => key.id === plan.key)?.key.accountId;
    const priorityOf = (id: string): number | undefined =>
      models.flatMap(({ targets }) => targets).find((target) => target.id === id)?.priority;
    for (const one of ranked) {
      for (const other of ranked) {
        const arePeers =
          one.model === other.model && priorityOf(one.target) === priorityOf(other.target);
        if (!arePeers || one.rank >= other.rank) continue;
        const pair = [one.target, other.target].toSorted();
        const name = [account, plan.alias, plan.session, ...pair].join(" ");
        const first = firstOf.get(name) ?? one.target;
        firstOf.set(name, first);
        if (first === one.target) continue;
        const text = `${one.target} comes before ${first}, and came after it`;
        violate(world, "affinity", text, plan.id);
      }
    }
  }
}

interface RankedTarget {
  readonly target: string;
  readonly model: string;
  readonly rank: number;
}

/** What explain tells of them. */
export function ranksIn({ closed }: Pick<CallRecord, "closed">): readonly RankedTarget[] {
  return (closed?.routing?.candidates ?? []).flatMap(({ target, model, why }) => {
    const rank = /affinity: session, rank (\d+)/.exec(why)?.[1];
    return rank === undefined ? [] : [{ target, model, rank: Number(rank) }];
  });
}
