import { expect, test } from "bun:test";
import fc from "fast-check";
import type { BudgetScope } from "../../src/domain/money/budget.ts";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import { BudgetTally } from "../../src/store/limits/budget-tally.ts";
import type { ValkeyClient } from "../../src/store/limits/valkey/client.ts";
import type { ValkeyLimits } from "../../src/store/limits/valkey/limit-store.ts";
import { budgetOf } from "../contracts/limit-budget-contract.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { sizeOf } from "../support/requirement.ts";
import { type Fault, Line } from "../support/valkey-line.ts";
import { clientOf, limitsOver, steeredBy } from "../support/valkey-limits.ts";
import { describeWithValkey, valkeyOfTests, type ValkeyServer } from "../support/valkey-server.ts";

const limitNano = 1_000;
const scopes = minuteScopes(
  "key:contract",
  { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000 },
  { owner: "contract" },
);
const first = budgetOf(limitNano);
const periods: readonly BudgetScope[] = [
  first,
  { ...first, period: { id: "2026-12", startsAt: first.period.endsAt, endsAt: Infinity } },
];
const sinceKey = "sluice:{0}:since";
const savedIn = "1";

interface Process {
  readonly id: string;
  readonly line: Line;
  readonly limits: ValkeyLimits;
}

/** A call: what it reserves, then what it costs, and whether its row is in the table. */
interface Row {
  readonly process: string;
  readonly callId: string;
  readonly period: number;
  nano: number;
  hasEnded: boolean;
  isStored: boolean;
}

const step = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.record({
      kind: fc.constant("call"),
      process: fc.nat(2),
      nano: fc.constantFrom(50, 200, 350, 600),
      period: fc.nat(1),
      at: fc.constantFrom("once", "many"),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant("settle"), call: fc.nat(50), part: fc.nat(100) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("wait"), ms: fc.nat(3_000) }) },
  // By then nobody waits for a process that ended.
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("wait"), ms: fc.constant(62_000) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("catch up") }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("store"), count: fc.nat(8) }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("tell"), process: fc.nat(2) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("fault"),
      process: fc.nat(2),
      fault: fc.constantFrom<Fault[]>("unreachable", "frozen", "late"),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("heal") }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("crash"),
      process: fc.nat(2),
      isSilent: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("flush") }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("delete"), which: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("save") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("go-back") }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

/** Processes that share budgets, and what all of their calls really cost. */
class History {
  readonly #server: ValkeyServer;
  readonly #client: ValkeyClient;
  readonly #clock = new ManualClock({ monotonicMs: 1_000_000, wallMs: first.period.startsAt });
  readonly #processes: Process[] = [];
  readonly #rows: Row[] = [];
  readonly #errors: unknown[] = [];
  #silent: string[] = [];
  #epoch = 0;
  #count = 0;
  #isSaved = false;

  constructor(server: ValkeyServer, client: ValkeyClient) {
    this.#server = server;
    this.#client = client;
  }

  async begin(): Promise<void> {
    await this.#server.command("FLUSHALL");
    await this.#server.command("SET", sinceKey, "0::");
    for (let at = 0; at < 3; at += 1) this.#processes.push(await this.#newProcess());
    await this.#wait(2_000);
    for (const { limits } of this.#processes) this.#tell(limits);
  }

  async run(next: Step): Promise<void> {
    switch (next.kind) {
      case "call": {
        const times = next.at === "many" ? 5 : 1;
        await Promise.all(Array.from({ length: times }, () => this.call(next)));
        return;
      }
      case "settle":
        return this.#settle(next.call, next.part);
      case "wait":
        return this.#wait(next.ms);
      case "store":
        for (const row of this.#rows.filter((of) => of.hasEnded && !of.isStored)) {
          if (this.#rows.indexOf(row) % 9 <= next.count) row.isStored = true;
        }
        return;
      case "catch up":
        await this.#wait(1_500);
        for (const { limits } of this.#processes) this.#tell(limits);
        return;
      case "tell":
        return this.#tell(this.#at(next.process).limits);
      case "fault":
        this.#at(next.process).line.fault = next.fault;
        return;
      case "heal":
        return this.#heal();
      case "crash": {
        const ended = this.#at(next.process);
        for (const row of this.#rows) {
          if (row.process !== ended.id) continue;
          row.hasEnded = true;
          row.isStored ||= next.isSilent;
        }
        // As if its machine could not be reached: its row stays.
        if (next.isSilent) this.#silent.push(ended.id);
        // It tells nothing more, whatever its commands under way do.
        ended.line.fault = "unreachable";
        this.#processes[next.process] = await this.#newProcess();
        return;
      }
      case "flush":
        await this.#server.command("FLUSHDB");
        return;
      case "delete": {
        const all = (await this.#keys("sluice:{0}:*")).filter((key) => !key.includes(":budget:"));
        const key = all[next.which % Math.max(1, all.length)];
        if (key !== undefined) await this.#server.command("DEL", key);
        return;
      }
      case "save":
        this.#isSaved = true;
        for (const key of await this.#keys("*")) {
          await this.#server.command("COPY", key, key, "DB", savedIn, "REPLACE");
        }
        return;
      case "go-back": {
        if (!this.#isSaved) return;
        // As a server that was killed and has read its snapshot: another run, on new connections.
        this.#isSaved = false;
        await this.#server.command("SWAPDB", "0", savedIn);
        const found = await this.#server.command("GET", sinceKey);
        const [at = "0"] = typeof found === "string" ? found.split(":") : [];
        await this.#server.command("SET", sinceKey, `${at}:${"0".repeat(40)}:`);
        for (const { line } of this.#processes) line.reconnected();
        return;
      }
      default:
        next satisfies never;
    }
  }

  /** Whether it was admitted; undefined: nobody could decide. */
  async call(asked: {
    process: number;
    nano: number;
    period: number;
  }): Promise<boolean | undefined> {
    const { id, limits } = this.#at(asked.process);
    const budgets = periods.slice(asked.period, asked.period + 1);
    const callId = `call ${(this.#count += 1)}`;
    const request = { callId, scopes, tokens: 1, budgets, reserveNano: asked.nano };
    const decision = await limits.acquire(request);
    if (!decision.isAdmitted) return decision.budgets?.length === 0 ? undefined : false;
    const row = { process: id, callId, period: asked.period, nano: asked.nano };
    this.#rows.push({ ...row, hasEnded: false, isStored: false });
    expect(this.spent(asked.period)).toBeLessThanOrEqual(limitNano);
    return true;
  }

  /** As `call`, once what was lost is found: a deleted hash is noticed by the first call that needs it. */
  async decided(asked: Parameters<History["call"]>[0]): Promise<boolean | undefined> {
    for (let tries = 0; tries < 5; tries += 1) {
      const isAdmitted = await this.call(asked);
      if (isAdmitted !== undefined) return isAdmitted;
      await this.settled();
    }
    return undefined;
  }

  /** By all calls of a period, ended or not. */
  spent(period: number): number {
    return this.#rows.reduce((sum, row) => sum + (row.period === period ? row.nano : 0), 0);
  }

  /** All is over, and the table has every row. */
  async end(): Promise<void> {
    await this.#heal();
    for (const row of this.#rows) if (!row.hasEnded) await this.#settleRow(row, 50);
    for (const row of this.#rows) row.isStored = true;
    this.#silent = [];
    for (let seconds = 0; seconds < 70; seconds += 1) {
      await this.#wait(1_000);
      for (const { limits } of this.#processes) this.#tell(limits);
    }
    expect(this.#errors).toEqual([]);
  }

  async settled(): Promise<void> {
    for (let times = 0; times < 2; times += 1) {
      await this.#wait(3_000);
      for (const { limits } of this.#processes) this.#tell(limits);
    }
  }

  async #heal(): Promise<void> {
    for (const { line } of this.#processes) line.fault = "none";
    for (const { limits } of this.#processes) await limits.tick();
  }

  async #settle(call: number, part: number): Promise<void> {
    const open = this.#rows.filter(({ hasEnded }) => !hasEnded);
    const row = open[call % Math.max(1, open.length)];
    if (row !== undefined) await this.#settleRow(row, part);
  }

  async #settleRow(row: Row, part: number): Promise<void> {
    const of = this.#processes.find(({ id }) => id === row.process);
    row.hasEnded = true;
    row.nano = Math.floor((row.nano * part) / 100);
    await of?.limits.settle(row.callId, 1, row.nano);
  }

  async #wait(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 500) {
      this.#clock.advance(Math.min(500, left));
      for (const { limits } of this.#processes) await limits.tick();
    }
  }

  #tell(limits: ValkeyLimits): void {
    const live = this.#processes.map(({ id }) => id);
    const isComplete = this.#rows.every(
      ({ process, isStored }) => isStored || live.includes(process),
    );
    const spend = periods.map(({ budget, period }, index) => {
      const byProcess: Record<string, number> = {};
      for (const row of this.#rows) {
        if (!row.isStored || row.period !== index) continue;
        byProcess[row.process] = (byProcess[row.process] ?? 0) + row.nano;
      }
      return { budgetId: budget.id, periodId: period.id, byProcess };
    });
    this.#epoch += 1;
    limits.updateSpend({
      epoch: this.#epoch,
      isWhole: true,
      spend,
      isComplete,
      processes: live,
      silent: this.#silent,
    });
  }

  async #newProcess(): Promise<Process> {
    const line = new Line(steeredBy(this.#clock, this.#client));
    const tally = new BudgetTally(crypto.randomUUID());
    const limits = await limitsOver(line, {
      clock: this.#clock,
      processes: () => 3,
      timeoutMs: 50,
      tally,
      onError: (error) => this.#errors.push(error),
    });
    return { id: tally.process, line, limits };
  }

  #at(index: number): Process {
    const process = this.#processes[index];
    if (process === undefined) throw new RangeError(`there is no process ${index}`);
    return process;
  }

  async #keys(pattern: string): Promise<string[]> {
    const found = await this.#server.command("KEYS", pattern);
    return Array.isArray(found) ? found.map(String).toSorted() : [];
  }
}

describeWithValkey(() => {
  const running = valkeyOfTests();

  test("nothing that happens to processes or the server lets them spend more than a budget", async () => {
    const client = await clientOf(running.server);
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 80 }), async (steps) => {
          const history = new History(running.server, client);
          await history.begin();
          for (const next of steps) await history.run(next);
          await history.end();
          for (const period of [0, 1]) {
            const rest = limitNano - history.spent(period);
            expect(await history.decided({ process: 0, nano: rest + 1, period })).toBe(false);
            if (rest > 0) {
              expect(await history.decided({ process: 1, nano: rest, period })).toBe(true);
            }
          }
        }),
        { numRuns: sizeOf({ quick: 100, all: 2_000, measured: 5_000 }) },
      );
    } finally {
      client.close();
    }
  }, 600_000);
});
