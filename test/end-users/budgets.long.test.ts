import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { startSimulator } from "../../simulator/simulator.ts";
import { budgetSchema } from "../../src/control/contract.ts";
import { nanoOf } from "../support/budget-gateway.ts";
import { readLocalAccess } from "../../src/control/sign-in/bootstrap/local-access.ts";
import { startFaultProcess } from "../support/fault-process.ts";
import { until } from "../support/until.ts";

const keysSchema = z.object({ data: z.array(z.object({ account_id: z.string() })) });
const foundSchema = z.object({ data: z.array(z.object({ end_user: z.string() })) });

/** The files below a folder that have one of these texts. */
function filesWith(root: string, texts: readonly string[]): readonly string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => texts.some((text) => readFileSync(path).includes(text)));
}

test("what an end user has spent outlives every end of the process, and goes when it is erased", async () => {
  await using simulator = startSimulator();
  const price = "price: { input: 0, cache_read: 0, output: 1000 }";
  const target = `{ model: simulated-chat, upstream: simulator, ${price} }`;
  await using gateway = await startFaultProcess({
    upstreams: `{ simulator: { kind: openai, base_url: "${simulator.url}" } }`,
    models: `{ chat-model: { kind: chat, context_window: 200000, max_output_tokens: 64000, targets: [${target}] } }`,
  });
  let { serving } = gateway;
  const json = async (method: string, path: string, body?: object): Promise<unknown> => {
    const { token } = readLocalAccess(join(dirname(gateway.configPath), "data")) ?? {};
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const sent = body !== undefined && { body: JSON.stringify(body) };
    const answer = await fetch(`${serving.adminUrl}/admin/v1${path}`, { method, headers, ...sent });
    const text = await answer.text();
    expect([answer.ok, text]).toEqual([true, text]);
    return JSON.parse(text);
  };
  const ask = async (user: string, max_tokens = 40): Promise<number> => {
    const messages = [{ role: "user", content: "Hello" }];
    const answer = await fetch(`${serving.dataUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "chat-model", max_tokens, messages, user }),
    });
    await answer.text();
    return answer.status;
  };
  const account_id = keysSchema.parse(await json("GET", "/keys")).data[0]?.account_id ?? "";
  const made = { account_id, each_end_user: true, limit_usd: "0.1", period: "month" };
  const { id } = budgetSchema.parse(await json("POST", "/budgets", made));
  const spent = async () => {
    return nanoOf(budgetSchema.parse(await json("GET", `/budgets/${id}`)).state.spent_usd);
  };
  const name = "jane.doe@example.com";
  await until(async () => (await ask("nobody else", 1)) === 200);
  await until(async () => (await ask(name)) === 429);
  await until(async () => (await spent()) > 60_000_000);
  const before = await spent();
  const again = async (): Promise<void> => {
    await until(async () => (await ask("john", 1).catch(() => 0)) === 200);
    expect(await ask(name)).toBe(429);
  };
  process.kill(gateway.serving.processPid, "SIGKILL");
  await again();
  await gateway.stopAndReadRows();
  await using next = await gateway.restart();
  serving = next;
  await again();
  expect(await spent()).toBe(before);
  const ofAccount = `/accounts/${account_id}`;
  const found = foundSchema.parse(await json("POST", `${ofAccount}/end-users`, { names: [name] }));
  const texts = [name, found.data[0]?.end_user ?? ""];
  const root = dirname(gateway.configPath);
  expect(filesWith(root, texts)).not.toEqual([]);
  await json("POST", `${ofAccount}/erase-end-user`, { name });
  await until(async () => filesWith(root, texts).length === 0);
  await until(async () => (await spent()) < before);
}, 180_000);
