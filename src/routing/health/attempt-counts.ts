import type { EndedAttempts } from "../../domain/live-facts.ts";

const hourMs = 3_600_000;

/** Attempts that ended in this hour of the wall clock and in the one before it, as the ledger's sums. */
export class AttemptCounts {
  #hour = 0;
  /** By outcome. */
  #current = new Map<string, number>();
  #before = new Map<string, number>();
  #lastFailure: EndedAttempts["lastFailure"];

  ended(outcome: string, now: number): void {
    this.#turn(now);
    this.#current.set(outcome, (this.#current.get(outcome) ?? 0) + 1);
    if (isFailure(outcome)) this.#lastFailure = { kind: outcome, at: now };
  }

  at(now: number): EndedAttempts {
    this.#turn(now);
    let attempts = 0;
    const failures: Record<string, number> = {};
    for (const [outcome, count] of [...this.#before, ...this.#current]) {
      attempts += count;
      if (isFailure(outcome)) failures[outcome] = (failures[outcome] ?? 0) + count;
    }
    return { attempts, failures, lastFailure: this.#lastFailure };
  }

  #turn(now: number): void {
    const hour = Math.floor(now / hourMs);
    if (hour === this.#hour) return;
    this.#before = hour === this.#hour + 1 ? this.#current : new Map<string, number>();
    this.#current = new Map();
    this.#hour = hour;
  }
}

/** Who left, or was served by another attempt in time, says nothing of the target. */
function isFailure(outcome: string): boolean {
  return outcome !== "ok" && outcome !== "left";
}
