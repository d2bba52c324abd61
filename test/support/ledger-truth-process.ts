import { metricsOf } from "./metrics-of.ts";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/domain/clock.ts";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import {
  type Simulator,
  type SimulatorOptions,
  startSimulator,
} from "../../simulator/simulator.ts";
import { openStores } from "../../src/store/sqlite/open-stores.ts";
import { makeCall, type CallPlace, type SeenCall } from "./ledger-truth-caller.ts";
import { mixSections, type PlannedCall } from "./ledger-truth-mix.ts";
import { sumRollUps, type LedgerSums } from "./ledger-truth.ts";
import { createKeysOf, type KeyPlan } from "./process-key.ts";
import { startServing, type ServingProcess } from "./sluice-process.ts";
import { testPeppers } from "./test-peppers.ts";

export interface ProcessBenchOptions {
  readonly keys: number;
  /** Of each key; default: without effective limits. */
  readonly plan?: KeyPlan;
  readonly simulator?: SimulatorOptions;
  /** Default: `data` in the bench's folder. */
  readonly dataDir?: string;
  /** Default: in the bench's folder. */
  readonly database?: string;
  /** Further sections of the configuration. */
  readonly sections?: Readonly<Record<string, string>>;
}

export interface StoredLedger {
  readonly rows: readonly UsageRecord[];
  readonly rollUps: Readonly<Record<string, LedgerSums>>;
}

/** Successive gateway processes on the same data; the upstream outlives them. */
export class ProcessBench implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "sluice-truth-"));
  readonly configPath = join(this.folder, "sluice.yaml");
  readonly simulator: Simulator;
  readonly database: string;
  readonly calls: SeenCall[] = [];
  #keys: readonly { readonly id: string; readonly text: string }[] = [];

  private constructor({ simulator, database }: ProcessBenchOptions) {
    this.simulator = startSimulator({ truthLogLimit: 1_000_000, ...simulator });
    this.database = database ?? join(this.folder, "sluice.db");
  }

  static async create(options: ProcessBenchOptions): Promise<ProcessBench> {
    const bench = new ProcessBench(options);
    const dataDir = options.dataDir ?? join(bench.folder, "data");
    mkdirSync(dataDir, { recursive: true });
    const sections = {
      listen: `{ data: "127.0.0.1:0", admin: "127.0.0.1:0" }`,
      storage: `{ url: "sqlite:${bench.database}" }`,
      data_dir: dataDir,
      shutdown: "{ pre_stop: 0s }",
      overload: "{ loop_delay: 10s }",
      environments: `[{ name: test, hosts: ["*"], models: ["*"] }]`,
      ...mixSections(bench.simulator),
      ...options.sections,
    };
    const lines = Object.entries(sections).map(([name, section]) => `${name}: ${section}\n`);
    await Bun.write(bench.configPath, lines.join(""));
    bench.#keys = await createKeysOf(bench.configPath, options.keys, options.plan);
    return bench;
  }

  /** `options` are further options of the command line. */
  serve(...options: readonly string[]): Promise<ServingProcess> {
    return startServing(["--config", this.configPath, ...options]);
  }

  /** Callers with these keys, each with one call after the other while there are calls. */
  async call(
    { dataUrl }: ServingProcess,
    keys: { readonly from: number; readonly count: number },
    next: () => PlannedCall | undefined,
  ): Promise<void> {
    const { from, count } = keys;
    const callUntilDone = async (place: CallPlace): Promise<void> => {
      for (let planned = next(); planned !== undefined; planned = next()) {
        const seen = await makeCall(planned, place);
        this.calls.push(seen);
        const isUnanswered = seen.saw === "lost" && seen.id === undefined;
        if (seen.saw === "turned-away" || isUnanswered) await Bun.sleep(50);
      }
    };
    const own = this.#keys.slice(from, from + count);
    await Promise.all(
      own.map(({ id: keyId, text: key }) => callUntilDone({ url: dataUrl, key, keyId })),
    );
  }

  /** A single call with the first key, which is not recorded. */
  fetch(
    { dataUrl }: Pick<ServingProcess, "dataUrl">,
    { path, body }: Pick<PlannedCall, "path" | "body">,
    more: Readonly<Record<string, string>> = {},
    options: { readonly keepalive?: boolean } = {},
  ): Promise<Response> {
    const headers = {
      ...more,
      authorization: `Bearer ${this.#keys[0]?.text}`,
      "content-type": "application/json",
    };
    return fetch(`${dataUrl}${path}`, {
      ...options,
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
  }

  /** Until the upstream has seen the end of all its calls. */
  untilUpstreamIsFree(): Promise<void> {
    return until("no call is open", () => this.simulator.openCalls === 0);
  }

  /** The content of the database; no gateway may run. */
  async stored(): Promise<StoredLedger> {
    const { reports, connection } = openStores(this.database, systemClock, {
      peppers: testPeppers(),
    });
    await using _ = connection;
    const rows: UsageRecord[] = [];
    let after: string | undefined;
    do {
      const filter = { since: 0, until: Number.MAX_SAFE_INTEGER };
      const page = await reports.calls(filter, { limit: 500, after });
      rows.push(...page.items);
      after = page.next;
    } while (after !== undefined);
    return { rows, rollUps: await sumRollUps(reports) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.simulator[Symbol.asyncDispose]();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const timeoutMs = 60_000;

export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`waited too long until ${what}`);
    await Bun.sleep(10);
  }
}

/** Until the database has all rows of the gateway, and the spools of its processes are empty. */
export function untilStored({ adminUrl }: ServingProcess): Promise<void> {
  return until("the spools are empty", async () => {
    const metrics = await metricsOf(adminUrl);
    return ["sluice_ledger_queue_rows", "sluice_ledger_spool_bytes"].every((name) => {
      const values = [...metrics.matchAll(new RegExp(`^${name} (\\d+)$`, "gm"))];
      return values.length > 0 && values.every(([, value]) => value === "0");
    });
  });
}
