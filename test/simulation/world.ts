import type { EventLog } from "./event-log.ts";
import type { Random } from "./random.ts";
import type { CallRecord, Violation } from "./records.ts";
import type { Scenario } from "./scenario.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** The state that all parts of a run share. */
export interface World {
  readonly scenario: Scenario;
  readonly time: VirtualTime;
  readonly log: EventLog;
  /** Fork it, so that the numbers of one part do not change another. */
  readonly random: Random;
  /** By the id of the call. */
  readonly calls: ReadonlyMap<string, CallRecord>;
  readonly violations: Violation[];
  /** Retries granted by the budgets of processes. */
  readonly grantedRetries: RetryCount;
  /** The granted retries that became an attempt. */
  readonly madeRetries: RetryCount;
}

/** The number of retries in each process. */
export class RetryCount {
  readonly #counts = new Map<string, number>();

  /** Returns the process's total. */
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
  // The first ones are enough; thousands more add nothing.
  if (world.violations.length < 50) world.violations.push({ rule, text, call });
}
