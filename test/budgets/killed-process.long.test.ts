import { expect, test } from "bun:test";
import { budgetSchema } from "../../src/control/contract.ts";
import { startSimulator } from "../../simulator/simulator.ts";
import { type FaultProcess, startFaultProcess } from "../support/fault-process.ts";
import { postgresPrograms, startPostgres } from "../support/postgres-server.ts";
import { sizeOf } from "../support/requirement.ts";
import { processesOf } from "../support/sluice-process.ts";
import { setLimit } from "../support/stored-budgets.ts";
import { until } from "../support/until.ts";
import { startValkey, valkeyProgram } from "../support/valkey-server.ts";
import { startWebhookReceiver, webhookSecret } from "../support/webhook-receiver.ts";

const canShare = postgresPrograms !== undefined && valkeyProgram !== null;
const kills = sizeOf({ quick: 4, all: 20, measured: 20 });
const hello = {
  model: "chat-model",
  max_completion_tokens: 40,
  messages: [{ role: "user", content: "Hello" }],
};

/** Calls without a pause until `isOver`; counts the answers by status, 0 for none. */
async function keepCalling(
  gateway: FaultProcess,
  isOver: () => boolean,
): Promise<Map<number, number>> {
  const counts = new Map<number, number>();
  while (!isOver()) {
    const status = await gateway.post(hello).then(
      async (answer) => {
        await answer.text();
        return answer.status;
      },
      () => 0,
    );
    counts.set(status, (counts.get(status) ?? 0) + 1);
    if (status !== 200) await Bun.sleep(20);
  }
  return counts;
}

async function statusOf(gateway: FaultProcess): Promise<number> {
  const answer = await gateway.post(hello);
  await answer.text();
  return answer.status;
}

async function spentOf(gateway: FaultProcess, id: string) {
  const { connection, spend, control } = gateway.openStores();
  await using _ = connection;
  const told = await spend.since(0, 0);
  const sums = told.spend
    .filter(({ budgetId }) => budgetId === id)
    .map(({ byProcess }) => Object.values(byProcess).reduce((sum, nano) => sum + nano, 0));
  const budget = await control.read(({ budgets }) => budgets.get(id));
  return { spentNano: sums[0] ?? 0, limitNano: budget?.limitNano ?? 0, periods: sums.length };
}

const installations = [
  ["SQLite and limits in memory", 1],
  ["PostgreSQL and limits in Valkey", 3],
] as const;

test.each(installations)(
  "with %s, what is spent is the sum of the rows and at most the limit, however often one of %d processes is killed",
  async (name, processes) => {
    const isShared = name.startsWith("PostgreSQL");
    if (isShared && !canShare) return;
    await using postgres = isShared ? await startPostgres() : undefined;
    await using valkey = isShared ? await startValkey() : undefined;
    await using simulator = startSimulator();
    await using receiver = startWebhookReceiver();
    const sections = {
      processes: String(processes),
      ...(valkey && { limits: `{ store: "${valkey.url}" }` }),
      ledger: `{ flush_interval: 10ms, events: { webhook: { url: "${receiver.url}", secret: ${webhookSecret}, longest_pause: 1s } } }`,
      upstreams: `{ simulator: { kind: openai, base_url: "${simulator.url}" } }`,
      models: `{ chat-model: { kind: chat, context_window: 200000, max_output_tokens: 64000, targets: [{ model: simulated-chat, upstream: simulator, price: { input: 100, cache_read: 0, output: 100 } }] } }`,
    };
    const url = await postgres?.createDatabase();
    await using gateway = await startFaultProcess(sections, undefined, url);
    const keys = await (await gateway.admin("GET", "/admin/v1/keys")).json();
    const { data } = keys as { data: readonly { id: string }[] };
    const body = { key_id: data[0]?.id, limit_usd: "0.5", period: "total" };
    const made = await gateway.admin("POST", "/admin/v1/budgets", body);
    const budget = budgetSchema.parse(await made.json());
    let isOver = false;
    const callers = Array.from({ length: 6 }, () => keepCalling(gateway, () => isOver));
    for (let kill = 0; kill < kills; kill += 1) {
      // Some of the time all is spent, and some of it not.
      await Bun.sleep(200);
      const serving = processesOf(gateway.serving.pid);
      const killed = serving[kill % serving.length];
      if (killed !== undefined) process.kill(killed, "SIGKILL");
      // Now and then there is more to spend.
      const limit_usd = ((5 + 2 * (kill + 1)) / 10).toFixed(1);
      await setLimit(gateway, budget.id, limit_usd);
    }
    // The last calls need not fit to the last nano-USD, so 100 percent may never be reached.
    await until(() => receiver.alerts.length > 0);
    await until(async () => (await statusOf(gateway)) === 429);
    isOver = true;
    const counts = await Promise.all(callers);
    const rows = await gateway.stopAndReadRows();
    await using again = await gateway.restart();
    again.signal("SIGTERM");
    await again.exited;
    const { spentNano, limitNano, periods } = await spentOf(gateway, budget.id);
    expect(periods).toBe(1);
    const sum = rows.reduce((total, { costNano = 0 }) => total + costNano, 0);
    expect(spentNano).toBe(sum);
    expect(spentNano).toBeLessThanOrEqual(limitNano);
    expect(counts.some((byStatus) => (byStatus.get(429) ?? 0) > 0)).toBe(true);
    const events = receiver.alerts.map(({ data: { id, thresholds, limit_usd } }) =>
      JSON.stringify({ id, thresholds, limit_usd }),
    );
    // Repeats are equal, and no threshold of one limit is told by two events.
    const told = [...new Set(events)].flatMap((event) => {
      const { thresholds, limit_usd } = JSON.parse(event) as {
        thresholds: readonly number[];
        limit_usd: string;
      };
      return thresholds.map((threshold) => `${threshold} of ${limit_usd}`);
    });
    expect(new Set(told).size).toBe(told.length);
  },
  60_000 + kills * 30_000,
);
