import { expect } from "bun:test";
import { z } from "zod";
import { Random } from "../../simulator/answer/random.ts";
import { startSimulator } from "../../simulator/simulator.ts";
import { budgetSchema } from "../../src/control/contract.ts";
import { type FaultProcess, startFaultProcess } from "../support/fault-process.ts";
import {
  postgresPrograms,
  type PostgresServer,
  startPostgres,
} from "../support/postgres-server.ts";
import { sizeOf, testWhere } from "../support/requirement.ts";
import { processesOf, runSluice } from "../support/sluice-process.ts";
import { setLimit, storedBudgets } from "../support/stored-budgets.ts";
import { until } from "../support/until.ts";
import { startValkey, valkeyProgram, type ValkeyServer } from "../support/valkey-server.ts";

const seconds = sizeOf({ quick: 30, all: 60, measured: 600 });
const processes = 3;
const perSecond = 50;
/** Slow answers must not pile up. */
const mostOpen = 60;
const seed = 34;
const accounts = ["ample", "raised", "spent"] as const;
const limits = { ample: "9000", raised: "0.05", spent: "0.1" };
const hello = {
  model: "chat-model",
  max_tokens: 40,
  messages: [{ role: "user", content: "Hello" }],
};
const keysSchema = z.object({
  data: z.array(z.object({ id: z.string(), account_id: z.string(), account: z.string() })),
});

testWhere(
  postgresPrograms !== undefined && valkeyProgram !== null,
  "PostgreSQL, and Valkey or Redis, are not both installed",
)(
  `${seconds} s of kills, restarts, crashes of the database and lost limits leave each of three accounts within its budget`,
  async () => {
    await using postgres = await startPostgres();
    await using valkey = await startValkey();
    await using simulator = startSimulator({ tokensPerSecond: 400 });
    const target =
      "{ model: simulated-chat, upstream: simulator, price: { input: 100, cache_read: 0, output: 100 } }";
    const sections = {
      processes: String(processes),
      http: "{ idle_timeout: 2s }",
      limits: `{ store: "${valkey.url}" }`,
      upstreams: `{ simulator: { kind: openai, base_url: "${simulator.url}" } }`,
      models: `{ chat-model: { kind: chat, context_window: 200000, max_output_tokens: 64000, targets: [${target}] } }`,
    };
    await using gateway = await startFaultProcess(
      sections,
      accounts,
      await postgres.createDatabase(),
    );
    const found = await gateway.admin("GET", "/admin/v1/keys");
    const keys = keysSchema.parse(await found.json()).data;
    const budgets = await Promise.all(
      accounts.map(async (account) => {
        const account_id = keys.find((key) => key.account === account)?.account_id;
        const body = { account_id, limit_usd: limits[account], period: "total" };
        const made = await gateway.admin("POST", "/admin/v1/budgets", body);
        return budgetSchema.parse(await made.json());
      }),
    );
    const load = new Load(gateway);
    const random = new Random(seed);
    let told = 0;
    for (let trouble = 0; load.elapsedMs < seconds * 1_000; trouble += 1) {
      await troubles[trouble % troubles.length]?.({ gateway, postgres, valkey, random });
      await Bun.sleep(random.integer(500, 3_000));
      const raised = budgets.find(({ account }) => account === "raised");
      const limit_usd = (0.05 * (trouble + 2)).toFixed(2);
      await setLimit(gateway, raised?.id ?? "", limit_usd);
      const before = load.statuses.get(200) ?? 0;
      await until(() => (load.statuses.get(200) ?? 0) > before + 20);
      if (load.elapsedMs - told < 30_000) continue;
      told = load.elapsedMs;
      process.stdout.write(`${Math.round(told / 1_000)} s: ${Bun.inspect(load.statuses)}\n`);
    }
    await load.stop();
    process.stdout.write(`${Bun.inspect(load.statuses)} ${Bun.inspect(load.failures)}\n`);
    expect([...load.statuses.keys()].filter((of) => ![0, 200, 429, 503].includes(of))).toEqual([]);
    for (const message of load.failures.keys()) expect(message).toMatch(explained);
    await gateway.stopAndReadRows();
    await using again = await gateway.restart();
    again.signal("SIGTERM");
    await again.exited;
    const stored = await storedBudgets(gateway);
    expect(stored).toHaveLength(accounts.length);
    for (const { spentNano, rowsNano, limitNano } of stored) {
      expect(spentNano).toBe(rowsNano);
      expect(spentNano).toBeLessThanOrEqual(limitNano);
      expect(spentNano).toBeGreaterThan(0);
    }
  },
  seconds * 1_000 + 120_000,
);

/** Nobody knows what is left: processes or the server have just begun. */
const explained = /The budgets that your API key is under cannot be checked at the moment/;

interface Installation {
  readonly gateway: FaultProcess;
  readonly postgres: PostgresServer;
  readonly valkey: ValkeyServer;
  readonly random: Random;
}

async function killOne({ gateway, random }: Installation): Promise<void> {
  const serving = processesOf(gateway.serving.pid);
  const pid = serving[random.integer(0, serving.length - 1)];
  if (pid !== undefined) process.kill(pid, "SIGKILL");
}

/** Processes that were killed may not be back yet. */
function restart({ gateway }: Installation): Promise<void> {
  return until(async () => {
    const { exitCode } = await runSluice(["restart", "--config", gateway.configPath]);
    return exitCode === 0;
  });
}

/** The server comes back without its data. */
async function loseLimits({ valkey }: Installation): Promise<void> {
  await valkey.kill();
  await Bun.sleep(500);
  await valkey.start();
}

async function flush({ valkey }: Installation): Promise<void> {
  await valkey.command("FLUSHALL");
}

/** It comes back with all that was committed. */
async function crashDatabase({ postgres, random }: Installation): Promise<void> {
  await postgres.kill();
  await Bun.sleep(random.integer(0, 2_000));
  await postgres.start();
}

const troubles = [killOne, loseLimits, crashDatabase, killOne, restart, flush];

/** Calls of all accounts at a steady pace. */
class Load {
  /** 0: no answer. */
  readonly statuses = new Map<number, number>();
  /** Texts of answers that say that the gateway failed. */
  readonly failures = new Map<string, number>();
  readonly #gateway: FaultProcess;
  readonly #startedAt = performance.now();
  readonly #open = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;
  #calls = 0;

  constructor(gateway: FaultProcess) {
    this.#gateway = gateway;
    this.#timer = setInterval(() => this.#begin(), 1_000 / perSecond);
  }

  get elapsedMs(): number {
    return performance.now() - this.#startedAt;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#open);
  }

  #begin(): void {
    if (this.#open.size >= mostOpen) return;
    this.#calls += 1;
    const key = this.#gateway.keys[this.#calls % this.#gateway.keys.length] ?? "";
    const call = this.#call(key).finally(() => this.#open.delete(call));
    this.#open.add(call);
  }

  async #call(key: string): Promise<void> {
    let [status, text] = [0, ""];
    try {
      const answer = await fetch(`${this.#gateway.serving.dataUrl}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ ...hello, stream: this.#calls % 2 === 0 }),
        // A new connection comes to any of the processes.
        keepalive: this.#calls % 3 !== 0,
      });
      text = await answer.text();
      ({ status } = answer);
    } catch {
      // It was cut.
    }
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (status >= 500) this.failures.set(text, (this.failures.get(text) ?? 0) + 1);
  }
}
