import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { budgetSchema } from "../../src/control/contract.ts";
import { startSimulator } from "../../simulator/simulator.ts";
import { type FaultProcess, startFaultProcess } from "../support/fault-process.ts";
import { runSluice } from "../support/sluice-process.ts";
import { setLimit, storedBudgets } from "../support/stored-budgets.ts";
import { until } from "../support/until.ts";
import { startValkey, valkeyProgram, type ValkeyServer } from "../support/valkey-server.ts";

const accounts = ["one", "two", "three"];
const callers = 4;
const hello = {
  model: "chat-model",
  max_tokens: 40,
  messages: [{ role: "user", content: "Hello" }],
};
const keysSchema = z.object({ data: z.array(z.object({ account_id: z.string() })) });

test.each([
  ["memory", 1],
  ["Valkey", 2],
] as const)(
  "with limits in %s no account spends more than its budget, whatever happens to %d processes",
  async (store, processes) => {
    if (store === "Valkey" && valkeyProgram === null) return;
    await using valkey = store === "Valkey" ? await startValkey() : undefined;
    await using simulator = startSimulator({ tokensPerSecond: 400 });
    const target =
      "{ model: simulated-chat, upstream: simulator, price: { input: 100, cache_read: 0, output: 100 } }";
    const gateway = await startFaultProcess(
      {
        processes: String(processes),
        http: "{ idle_timeout: 2s }",
        ...(valkey !== undefined && { limits: `{ store: "${valkey.url}" }` }),
        upstreams: `{ simulator: { kind: openai, base_url: "${simulator.url}" } }`,
        models: `{ chat-model: { kind: chat, context_window: 200000, max_output_tokens: 64000, targets: [${target}] } }`,
      },
      accounts,
    );
    await using _ = gateway;
    const found = await gateway.admin("GET", "/admin/v1/keys");
    const ids = new Set(keysSchema.parse(await found.json()).data.map((key) => key.account_id));
    const budgets = await Promise.all(
      Array.from(ids, async (account_id) => {
        const body = { account_id, limit_usd: "0.2", period: "total" };
        return budgetSchema.parse(
          await (await gateway.admin("POST", "/admin/v1/budgets", body)).json(),
        );
      }),
    );
    expect(budgets).toHaveLength(accounts.length);
    const load = new Load(gateway);
    const underWay = load.run();
    for (const [index, trouble] of troubles(gateway, valkey).entries()) {
      await trouble();
      await Bun.sleep(1_500);
      const limit_usd = (0.2 + 0.15 * (index + 1)).toFixed(2);
      const before = load.served;
      for (const { id } of budgets) await setLimit(gateway, id, limit_usd);
      await until(() => load.served > before + 20);
    }
    load.isOver = true;
    await underWay;
    expect(
      [...load.statuses.keys()].filter((status) => ![0, 200, 429, 503].includes(status)),
    ).toEqual([]);
    await gateway.stopAndReadRows();
    await using again = await gateway.restart();
    again.signal("SIGTERM");
    await again.exited;
    await check(gateway, load);
  },
  600_000,
);

/** One after the other, while calls are made. */
function troubles(
  gateway: FaultProcess,
  valkey: ValkeyServer | undefined,
): readonly (() => Promise<unknown>)[] {
  const kill = async (): Promise<void> => {
    process.kill(gateway.serving.processPid, "SIGKILL");
  };
  // Processes that were killed may not be back yet.
  const restart = (): Promise<void> =>
    until(async () => {
      const { exitCode } = await runSluice(["restart", "--config", gateway.configPath]);
      return exitCode === 0;
    });
  const priceRise = async (): Promise<void> => {
    const text = readFileSync(gateway.configPath, "utf8");
    writeFileSync(gateway.configPath, text.replace("output: 100", "output: 250"));
    gateway.serving.signal("SIGHUP");
  };
  const flush = async (): Promise<unknown> => valkey?.command("FLUSHALL");
  const outage = async (): Promise<void> => {
    valkey?.signal("SIGSTOP");
    await Bun.sleep(2_000);
    valkey?.signal("SIGCONT");
  };
  return valkey === undefined
    ? [kill, restart, priceRise]
    : [kill, restart, priceRise, flush, restart, outage, kill];
}

/** Calls of all accounts, without a pause while they are served. */
class Load {
  readonly statuses = new Map<number, number>();
  readonly #gateway: FaultProcess;
  isOver = false;

  constructor(gateway: FaultProcess) {
    this.#gateway = gateway;
  }

  get served(): number {
    return this.statuses.get(200) ?? 0;
  }

  async run(): Promise<void> {
    const keys = Array.from({ length: callers }, () => this.#gateway.keys).flat();
    await Promise.all(keys.map((key, index) => this.#callOn(key, index % 2 === 0)));
  }

  async #callOn(key: string, keepalive: boolean): Promise<void> {
    while (!this.isOver) {
      const status = await this.#call(key, keepalive);
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
      if (status !== 200) await Bun.sleep(50);
    }
  }

  async #call(key: string, keepalive: boolean): Promise<number> {
    try {
      const answer = await fetch(`${this.#gateway.serving.dataUrl}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify(hello),
        keepalive,
      });
      await answer.text();
      return answer.status;
    } catch {
      return 0;
    }
  }
}

/** What is spent is the sum of the rows, and close to the limit, and never above it. */
async function check(gateway: FaultProcess, load: Load): Promise<void> {
  const budgets = await storedBudgets(gateway);
  expect(budgets).toHaveLength(accounts.length);
  for (const { spentNano, rowsNano, limitNano } of budgets) {
    expect(spentNano).toBe(rowsNano);
    expect(spentNano).toBeLessThanOrEqual(limitNano);
    expect(spentNano).toBeGreaterThan(limitNano / 2);
  }
  expect(load.served).toBeGreaterThan(100);
}
