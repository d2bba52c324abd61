import type { EventLog } from "./event-log.ts";
import type { Random } from "./random.ts";
import type { Attempt, CallRecord, Violation } from "./records.ts";
import type { Scenario } from "./scenario.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** What all parts of a run share. */
export interface World {
  readonly scenario: Scenario;
  readonly time: VirtualTime;
  readonly log: EventLog;
  /** Fork it: what one part draws must not change what another does. */
  readonly random: Random;
  /** By the id of the call. */
  readonly calls: ReadonlyMap<string, CallRecord>;
  /** What gateways asked targets on their own account. */
  readonly probes: Attempt[];
  readonly violations: Violation[];
  /** By the budgets of processes. */
  readonly grantedRetries: RetryCount;
  /** Of these, those that became an attempt. */
  readonly madeRetries: RetryCount;
}

/** Retries in each process. */
export class RetryCount {
  readonly #counts = new Map<string, number>();

  /** What it returns: all of the process. */
  add(process: string): number {
    const count = this.of(process) + 1;
    this.#counts.set(process, count);
    return count;
  }

  of(process: string): number {
    return this.#counts.get(process) ?? 0;
  }
}

export function violate(world: World, rule: string, text: string, call?: string): void {
  world.log.note(`VIOLATION ${rule}: ${text}`, call);
  // The first ones tell what happened; thousands more of them tell nothing.
  if (world.violations.length < 50) world.violations.push({ rule, text, call });
}
