import { expect } from "bun:test";
import { ReplicaStack, testWithReplicas } from "./replica-stack.ts";

const limit = 1_000;
const calls = 4_000;

testWithReplicas(
  `of ${calls} calls at once through three gateways, a limit of ${limit} admits exactly ${limit}`,
  async () => {
    await using stack = await ReplicaStack.create();
    const limits = ["--requests-per-minute", String(limit), "--tokens-per-minute", "100000000"];
    const key = await stack.createKey("Shop", ["--plan", "enterprise", ...limits]);
    const statuses = await Promise.all(Array.from({ length: calls }, () => call(stack.url, key)));
    expect(countOf(statuses)).toEqual({ 200: limit, 429: calls - limit });
  },
);

async function call(url: string, key: string): Promise<number> {
  const response = await fetch(`${url}/v1/embeddings`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "embed-text-v2", input: "hi" }),
  });
  await response.text();
  return response.status;
}

function countOf(statuses: readonly number[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
