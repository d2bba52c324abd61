import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Clock } from "../../src/domain/clock.ts";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import type { ValkeyClient } from "../../src/store/limits/valkey/client.ts";
import type { ValkeyLimits } from "../../src/store/limits/valkey/limit-store.ts";
import { sizeOf } from "../support/requirement.ts";
import { Line } from "../support/valkey-line.ts";
import { clientOf, limitsOver, steeredBy } from "../support/valkey-limits.ts";
import { describeWithValkey, valkeyOfTests, type ValkeyServer } from "../support/valkey-server.ts";

const windowMs = 60_000;
/** A loss touches what follows it for as long as processes grant their shares. */
const lossMs = 61_000;
/** The database of the server's snapshot. */
const savedIn = "1";
const sinceKey = "sluice:{0}:since";
const limit = { requestsPerMinute: 24, tokensPerMinute: 600 };

interface Admission {
  readonly key: number;
  readonly atMs: number;
  tokens: number;
}

interface Process {
  readonly line: Line;
  readonly limits: ValkeyLimits;
}

class History {
  readonly #server: ValkeyServer;
  readonly #clock: SameClock;
  readonly #processes: Process[] = [];
  readonly #admitted: Admission[] = [];
  readonly #open: { readonly process: Process; readonly callId: string; readonly of: Admission }[] =
    [];
  readonly #losses: { atMs: number; untilMs: number }[] = [];
  readonly #errors: unknown[] = [];
  #isSaved = false;
  #calls = 0;

  constructor(server: ValkeyServer, clock: SameClock) {
    this.#server = server;
    this.#clock = clock;
  }

  async begin(client: ValkeyClient, count: number, isLeasing: boolean): Promise<void> {
    await this.#server.command("FLUSHALL");
    await this.#server.command("SET", sinceKey, "0::");
    for (let index = 0; index < count; index += 1) {
      const line = new Line(steeredBy(this.#clock, client));
      const limits = await limitsOver(line, {
        clock: this.#clock,
        processes: () => count,
        timeoutMs: 50,
        isLeasing,
        onError: (error) => this.#errors.push(error),
      });
      this.#processes.push({ line, limits });
    }
  }

  async run(step: Step): Promise<void> {
    switch (step.kind) {
      case "wait":
        return this.#wait(step.ms);
      case "call":
        return this.#call(step);
      case "settle": {
        const [call] = this.#open.splice(step.call % Math.max(1, this.#open.length), 1);
        if (call === undefined) return;
        const used = Math.min(step.tokens, call.of.tokens);
        await call.process.limits.settle(call.callId, used);
        call.of.tokens = used;
        return;
      }
      case "fault": {
        const process = this.#processes[step.process % this.#processes.length];
        if (process === undefined) return;
        this.#lose(Infinity);
        process.line.fault = step.fault;
        return this.#wait(0);
      }
      case "heal":
        for (const { line } of this.#processes) line.fault = "none";
        await Promise.all(this.#processes.map(({ limits }) => limits.tick()));
        for (const loss of this.#losses) {
          if (loss.untilMs === Infinity) loss.untilMs = this.#clock.monotonic() + 2_000;
        }
        return;
      case "flush":
        this.#lose(2_000);
        await this.#server.command("FLUSHDB");
        return;
      case "evict": {
        // As if the server had evicted it and counted that: it then knows of one more than before.
        this.#lose(2_000);
        const all = await this.#keys("sluice:{0}:c*");
        const key = all[step.which % Math.max(1, all.length)];
        const [at = "", run = "", evicted = "0"] = (await this.#since()).split(":");
        if (key === undefined || evicted === "0") return;
        await this.#server.command("DEL", key);
        await this.#server.command(
          "SET",
          "sluice:{0}:since",
          `${at}:${run}:${Number(evicted) - 1}`,
        );
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
        this.#lose(2_000);
        this.#isSaved = false;
        await this.#server.command("SWAPDB", "0", savedIn);
        const [at = "", , evicted = ""] = (await this.#since()).split(":");
        await this.#server.command("SET", sinceKey, `${at}:${"0".repeat(40)}:${evicted}`);
        for (const { line } of this.#processes) line.reconnected();
        return;
      }
      default:
        step satisfies never;
    }
  }

  /** Windows vanish without a trace, as when somebody deletes them. */
  async drop(): Promise<void> {
    for (const key of await this.#keys("sluice:{0}:c*")) await this.#server.command("DEL", key);
  }

  get admitted(): number {
    return this.#admitted.length;
  }

  /** The end: all is healed, and nothing went wrong inside. */
  async check(): Promise<void> {
    for (const { line } of this.#processes) line.fault = "none";
    expect(this.#errors).toEqual([]);
    const bound = 2 - 1 / this.#processes.length;
    for (const [number] of keys.entries()) {
      const admitted = this.#admitted.filter(({ key }) => key === number);
      for (const { atMs: endMs } of admitted) {
        const inWindow = admitted.filter(({ atMs }) => atMs <= endMs && atMs > endMs - windowMs);
        const isTouched = this.#losses.some(
          ({ atMs, untilMs }) => endMs >= atMs && endMs - windowMs <= untilMs + lossMs,
        );
        const factor = isTouched ? bound : 1;
        const tokens = inWindow.reduce((sum, each) => sum + each.tokens, 0);
        expect(inWindow.length).toBeLessThanOrEqual(factor * limit.requestsPerMinute);
        expect(tokens).toBeLessThanOrEqual(factor * limit.tokensPerMinute);
      }
    }
  }

  async #keys(pattern: string): Promise<readonly string[]> {
    const keys = await this.#server.command("KEYS", pattern);
    return Array.isArray(keys) ? keys.map(String).toSorted() : [];
  }

  async #since(): Promise<string> {
    return String(await this.#server.command("GET", sinceKey));
  }

  #lose(forMs: number): void {
    const atMs = this.#clock.monotonic();
    this.#losses.push({ atMs, untilMs: atMs + forMs });
  }

  async #wait(ms: number): Promise<void> {
    for (let left = ms; left >= 0; left -= 1_000) {
      this.#clock.advance(Math.min(left, 1_000));
      for (let ticks = 0; ticks < 6; ticks += 1) {
        this.#clock.advance(ticks === 0 ? 0 : 60);
        await Promise.all(this.#processes.map(({ limits }) => limits.tick()));
      }
    }
  }

  async #call({ process: number, key, tokens, count }: StepOf<"call">): Promise<void> {
    const process = this.#processes[number % this.#processes.length];
    const scopes = keys[key];
    if (process === undefined || scopes === undefined) return;
    const calls = Array.from({ length: count }, async () => {
      const callId = `call ${(this.#calls += 1)}`;
      const counted = await process.limits.count(scopes);
      if (!counted.isAdmitted) return;
      const of: Admission = { key, atMs: this.#clock.monotonic(), tokens: 0 };
      this.#admitted.push(of);
      const decision = await process.limits.acquire({
        callId,
        scopes,
        tokens,
        counted: counted.counted,
      });
      if (!decision.isAdmitted) return;
      of.tokens = tokens;
      this.#open.push({ process, callId, of });
    });
    await Promise.all(calls);
  }
}

const keys = ["one", "two", "three"].map((id) =>
  minuteScopes(id, limit, { owner: `account of ${id}` }),
);

/** Its wall clock does not differ from the server's. */
class SameClock implements Clock {
  #nowMs = 1_000_000_000;
  now(): number {
    return this.#nowMs;
  }
  monotonic(): number {
    return this.#nowMs;
  }
  schedule(): () => void {
    return () => undefined;
  }
  advance(ms: number): void {
    this.#nowMs += ms;
  }
}

const process = fc.nat(7);
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("wait"),
      ms: fc.constantFrom(0, 300, 900, 7_000, 30_000, 61_000),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant("call"),
      process,
      key: fc.nat(keys.length - 1),
      tokens: fc.integer({ min: 0, max: 60 }),
      count: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 40 })),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("settle"), call: fc.nat(60), tokens: fc.nat(60) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("fault"),
      process,
      fault: fc.constantFrom("unreachable" as const, "frozen" as const, "late" as const),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("heal") }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("save") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("go-back") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("flush") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("evict"), which: fc.nat(20) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;
type StepOf<Kind extends Step["kind"]> = Extract<Step, { readonly kind: Kind }>;

/** Some keys, so that the count of evictions can be taken back. */
async function evictSome(server: ValkeyServer): Promise<void> {
  await server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
  for (let key = 0; key < 200; key += 1) {
    await server.command("SET", `filler ${key}`, "x".repeat(9_000));
  }
  await server.command("CONFIG", "SET", "maxmemory", "1500000");
  await server.command("SET", "one more", "x");
  await server.command("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction");
  const [, evicted = "0"] =
    /evicted_keys:(\d+)/.exec(String(await server.command("INFO", "stats"))) ?? [];
  expect(Number(evicted)).toBeGreaterThan(100);
}

describeWithValkey(() => {
  const of = valkeyOfTests();

  test("no window exceeds its limit, except those that touch a loss: they hold (2 - 1/N) times", async () => {
    const client = await clientOf(of.server);
    await evictSome(of.server);
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.boolean(),
        fc.array(step, { minLength: 10, maxLength: 60 }),
        async (count, isLeasing, steps) => {
          const history = new History(of.server, new SameClock());
          await history.begin(client, count, isLeasing);
          for (const each of steps) await history.run(each);
          await history.check();
        },
      ),
      { numRuns: sizeOf({ quick: 40, all: 500, measured: 2_000 }) },
    );
    client.close();
  });

  test("an answer that came late does not hide that the server has lost an account", async () => {
    const client = await clientOf(of.server);
    const history = new History(of.server, new SameClock());
    const processes = 3;
    await history.begin(client, processes, false);
    const callOfEach = async (count: number): Promise<void> => {
      for (let number = 0; number < processes; number += 1) {
        await history.run({ kind: "call", process: number, key: 0, tokens: 0, count });
      }
    };
    for (let number = 0; number < processes; number += 1) {
      await history.run({ kind: "fault", process: number, fault: "late" });
    }
    await callOfEach(1);
    await history.run({ kind: "heal" });
    await callOfEach(limit.requestsPerMinute / processes - 1);
    await callOfEach(1);
    expect(history.admitted).toBe(limit.requestsPerMinute);
    await history.drop();
    for (let call = 0; call < 10; call += 1) await callOfEach(1);
    // Each process notices it with the first answer.
    expect(history.admitted).toBeLessThanOrEqual(limit.requestsPerMinute + processes);
    client.close();
  });
});
