import { expect, test } from "bun:test";
import fc from "fast-check";
import type { BudgetScope } from "../../src/domain/money/budget.ts";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import { type LimitsNote, OwnLimits } from "../../src/process/own-limits.ts";
import { budgetOf } from "../contracts/limit-budget-contract.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { sizeOf } from "../support/requirement.ts";

const limitNano = 1_000;
const scopes = minuteScopes(
  "key:a",
  { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000 },
  { owner: "account" },
);
const first = budgetOf(limitNano);
const budgets: readonly BudgetScope[] = [
  first,
  { ...first, period: { id: "2026-12", startsAt: first.period.endsAt, endsAt: Infinity } },
  budgetOf(limitNano, { id: "newer" }),
];

const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant("call"),
      process: fc.nat(3),
      nano: fc.constantFrom(10, 100, 240, 500),
      of: fc.nat(2),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant("settle"), call: fc.nat(50), part: fc.nat(100) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("give") }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("end") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("take back") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("kill") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("minute") }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("store"), every: fc.nat(3) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

interface Row {
  readonly process: string;
  readonly callId: string;
  readonly of: number;
  nano: number;
  hasEnded: boolean;
  isStored: boolean;
}

/** Processes that follow one another, and what all of their calls really cost. */
class Chain {
  readonly #clock = new ManualClock({ wallMs: first.period.startsAt });
  /** Those that serve, the oldest first: each has given its limits to the next one. */
  readonly #serving: OwnLimits[] = [];
  readonly #rows: Row[] = [];
  #hasKilled = false;
  #calls = 0;
  #epoch = 0;

  constructor() {
    this.#serving.push(this.#newProcess());
  }

  run(next: Step): void {
    switch (next.kind) {
      case "call":
        this.call(next);
        return;
      case "settle": {
        const open = this.#rows.filter(({ hasEnded }) => !hasEnded);
        const row = open[next.call % Math.max(1, open.length)];
        if (row !== undefined) this.#settle(row, next.part);
        return;
      }
      case "give": {
        if (this.#serving.length > 3) return;
        const after = this.#newProcess();
        const given = this.newest.give((note) => after.hear(copyOf<LimitsNote>(note)));
        after.goOn(copyOf(given), 0);
        this.#serving.push(after);
        return;
      }
      case "end":
        this.#end();
        return;
      case "take back":
        this.#takeBack();
        return;
      case "kill":
        // The oldest one: its calls are what they reserved, and its successor hears nothing.
        if (this.#serving.length > 1) {
          const ended = this.#serving.shift();
          for (const row of this.#rows) if (row.process === ended?.process) row.hasEnded = true;
          this.#hasKilled = true;
          this.#tell();
        }
        return;
      case "minute":
        // The successor of one that was killed forgets it then.
        if (this.#hasKilled) this.#serving[0]?.giversEnded();
        this.#hasKilled = false;
        return;
      case "store":
        for (const [index, row] of this.#rows.entries()) {
          if (row.hasEnded && index % 4 <= next.every) row.isStored = true;
        }
        this.#tell();
        return;
      default:
        next satisfies never;
    }
  }

  call({ process, nano, of }: { process: number; nano: number; of: number }): boolean | undefined {
    const limits = this.#serving[process % this.#serving.length] ?? this.newest;
    const callId = `call ${(this.#calls += 1)}`;
    const under = budgets.slice(of, of + 1);
    const request = { callId, scopes, tokens: 1, budgets: under, reserveNano: nano };
    const decision = limits.acquire(request);
    if (!decision.isAdmitted) return decision.budgets?.length === 0 ? undefined : false;
    const row = { process: limits.process, callId, of, nano };
    this.#rows.push({ ...row, hasEnded: false, isStored: false });
    expect(this.spent(of)).toBeLessThanOrEqual(limitNano);
    return true;
  }

  spent(of: number): number {
    return this.#rows.reduce((sum, row) => sum + (row.of === of ? row.nano : 0), 0);
  }

  /** Only the newest process is left, and all is stored. */
  finish(): void {
    for (const row of this.#rows) if (!row.hasEnded) this.#settle(row, 40);
    while (this.#serving.length > 1) this.#end();
    this.newest.giversEnded();
    for (const row of this.#rows) row.isStored = true;
    this.#tell();
    this.#clock.advance(90_000);
    this.#tell();
  }

  get newest(): OwnLimits {
    const newest = this.#serving.at(-1);
    if (newest === undefined) throw new Error("one process always serves");
    return newest;
  }

  /** The oldest process has ended all of its calls, and tells its successor. */
  #end(): void {
    if (this.#serving.length < 2) return;
    const ended = this.#serving.shift();
    for (const row of this.#rows) {
      if (row.process === ended?.process && !row.hasEnded) this.#settle(row, 50, ended);
    }
    ended?.end();
    this.#serving[0]?.giversEnded();
    this.#tell();
  }

  /** The newest process could not start: it has admitted nothing. */
  #takeBack(): void {
    const failed = this.#serving.at(-1);
    if (this.#serving.length < 2 || this.#rows.some(({ process }) => process === failed?.process)) {
      return;
    }
    this.#serving.pop();
    this.newest.takeBack();
    this.#tell();
  }

  #settle(row: Row, part: number, by?: OwnLimits): void {
    const limits = by ?? this.#serving.find(({ process }) => process === row.process);
    row.hasEnded = true;
    row.nano = Math.floor((row.nano * part) / 100);
    limits?.settle(row.callId, 1, row.nano);
  }

  #tell(): void {
    const processes = this.#serving.map(({ process }) => process);
    const isComplete = this.#rows.every(
      ({ process, isStored }) => isStored || processes.includes(process),
    );
    const spend = budgets.map(({ budget, period }, of) => {
      const byProcess: Record<string, number> = {};
      for (const row of this.#rows) {
        if (row.of !== of || !row.isStored) continue;
        byProcess[row.process] = (byProcess[row.process] ?? 0) + row.nano;
      }
      return { budgetId: budget.id, periodId: period.id, byProcess };
    });
    this.#epoch += 1;
    const note = { epoch: this.#epoch, isWhole: true, spend, isComplete, processes, silent: [] };
    for (const limits of this.#serving) limits.updateSpend(note);
  }

  #newProcess(): OwnLimits {
    const limits = new OwnLimits({ clock: this.#clock, random: () => 0 });
    const processes = [...this.#serving.map(({ process }) => process), limits.process];
    limits.updateSpend({
      epoch: 0,
      isWhole: true,
      spend: [],
      isComplete: true,
      processes,
      silent: [],
    });
    return limits;
  }
}

/** As it arrives over the socket. */
function copyOf<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value), (_, field: unknown) =>
    field === null ? Infinity : field,
  ) as Value;
}

test("processes that follow one another never spend more than a budget, and nothing stays reserved", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 60 }), (steps) => {
      const chain = new Chain();
      for (const next of steps) chain.run(next);
      chain.finish();
      for (const of of [0, 1, 2]) {
        const rest = limitNano - chain.spent(of);
        expect(chain.call({ process: 0, nano: rest + 1, of })).toBe(false);
        if (rest > 0) expect(chain.call({ process: 0, nano: rest, of })).toBe(true);
      }
    }),
    { numRuns: sizeOf({ quick: 1_000, all: 20_000, measured: 50_000 }) },
  );
});
