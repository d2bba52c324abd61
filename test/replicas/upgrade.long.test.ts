import { expect } from "bun:test";
import pg from "pg";
import { simulatorUpstream } from "../support/gateway.ts";
import { testWhere } from "../support/requirement.ts";
import { beginStream, mixedCalls, twoModels } from "./mixed-calls.ts";
import { copyOfThis, nextVersion, olderVersion, OtherProgram, schemaIn } from "./other-programs.ts";
import { ReplicaStack, type StackOptions, testWithReplicas } from "./replica-stack.ts";
import { checkLedger, untilStored } from "./stack-ledger.ts";
import { mostWithinMinute, type StackCall, StackLoad } from "./stack-load.ts";

const gateways = 3;
const limit = 60;
const unlimited = [
  "--plan",
  "enterprise",
  "--requests-per-minute",
  "1000000",
  "--tokens-per-minute",
  "1000000000",
];
const limited = [
  "--plan",
  "enterprise",
  "--requests-per-minute",
  String(limit),
  "--tokens-per-minute",
  "1000000",
];
/** A table, and a column of the table that every call writes. */
const addition =
  "CREATE TABLE regions (id text PRIMARY KEY); ALTER TABLE usage ADD COLUMN region text;";

/** Gateways under a load, each with a version of its own. */
class UpgradeBench implements AsyncDisposable {
  readonly stack: ReplicaStack;
  readonly #installed: readonly OtherProgram[];
  readonly #loads: StackLoad[] = [];
  readonly #streams: StackCall[] = [];

  private constructor(stack: ReplicaStack, installed: readonly OtherProgram[]) {
    this.stack = stack;
    this.#installed = installed;
  }

  static async create(older: OtherProgram, options: StackOptions = {}): Promise<UpgradeBench> {
    const installed = Array.from({ length: gateways }, () => new OtherProgram());
    for (const program of installed) program.replaceBy(older);
    const stack = await ReplicaStack.create({
      replicas: gateways,
      program: (index) => installed[index]?.command ?? [],
      simulator: { tokensPerSecond: 20 },
      models: (simulator) => twoModels(simulatorUpstream(simulator, "openai")),
      settings: "shutdown: { pre_stop: 0s, drain_timeout: 10m }",
      ...options,
    });
    const bench = new UpgradeBench(stack, installed);
    const keys = [
      await stack.createKey("Shop", unlimited),
      await stack.createKey("Bank", unlimited),
    ];
    bench.#loads.push(
      new StackLoad({ url: stack.url, keys, perSecond: 16, call: mixedCalls(20) }),
      new StackLoad({
        url: stack.url,
        keys: [await stack.createKey("Limited", limited)],
        perSecond: 4,
        call: mixedCalls(1),
      }),
    );
    return bench;
  }

  /** Replaces a gateway as one of several: nginx sends it no more calls, it drains and ends. */
  async replace(index: number, by: OtherProgram): Promise<void> {
    const { process } = this.stack.replica(index);
    const key = await this.stack.createKey(`Streams ${crypto.randomUUID()}`, unlimited);
    await this.stack.rest(index);
    const streams = await Promise.all([1, 2].map(() => beginStream(process.dataUrl, key, 60)));
    process.signal("SIGTERM");
    for (const { status, requestId, rest } of streams) {
      this.#streams.push({ atMs: 0, latencyMs: 0, status, requestId });
      expect((await rest).endsWith("data: [DONE]\n\n")).toBe(true);
    }
    expect(await process.exited).toBe(0);
    this.#installed[index]?.replaceBy(by);
    await this.stack.start(index);
    await this.stack.resume(index);
  }

  /** Replaces the processes of a gateway one by one, while nginx sends it calls. */
  async restart(index: number, by: OtherProgram): Promise<void> {
    this.#installed[index]?.replaceBy(by);
    const { exitCode, errors } = await this.stack.sluiceAt(index, "restart");
    expect([exitCode, errors]).toEqual([0, "restarted\n"]);
  }

  install(index: number, program: OtherProgram): void {
    this.#installed[index]?.replaceBy(program);
  }

  /** How many steps of the schema the database has. */
  async schema(): Promise<number> {
    const client = new pg.Client({ connectionString: this.stack.storageUrl });
    await client.connect();
    try {
      const { rows } = await client.query<{ version: string }>(
        "SELECT version FROM schema_version",
      );
      return Number(rows[0]?.version);
    } finally {
      await client.end();
    }
  }

  /** Ends the load; no call has failed, each has one row, and no minute has more than the limit. */
  async check(mostInMinute: number): Promise<void> {
    const [calls = [], held = []] = await Promise.all(this.#loads.map((load) => load.stop()));
    const failed = [
      ...calls.filter(({ status }) => status !== 200),
      ...held.filter(({ status }) => status !== 200 && status !== 429),
    ];
    expect(failed).toEqual([]);
    const all = [...calls, ...held, ...this.#streams];
    await untilStored(this.stack.storageUrl, all);
    expect(await checkLedger(this.stack.storageUrl, all)).toEqual({ lost: 0, doubled: 0 });
    const most = mostWithinMinute(held);
    process.stdout.write(`${all.length} calls; at most ${most} in a minute\n`);
    expect(most).toBeGreaterThanOrEqual(limit / 2);
    expect(most).toBeLessThanOrEqual(mostInMinute);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#loads.map((load) => load.stop()));
    await this.stack[Symbol.asyncDispose]();
    for (const program of this.#installed) program[Symbol.dispose]();
  }
}

const timeoutMs = 600_000;

testWithReplicas(
  "gateways are upgraded and rolled back one by one without a failed call",
  async () => {
    using current = copyOfThis();
    using next = nextVersion({ sql: addition });
    await using bench = await UpgradeBench.create(current);
    const before = await bench.schema();
    await bench.replace(0, next);
    expect(await bench.schema()).toBe(before + 1);
    await bench.restart(1, next);
    await bench.replace(2, next);
    await bench.restart(0, current);
    await bench.replace(1, current);
    expect(await bench.schema()).toBe(before + 1);
    await bench.check(limit);
  },
  timeoutMs,
);
