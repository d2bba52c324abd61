import { expect } from "bun:test";
import { ReplicaStack, testWithReplicas } from "./replica-stack.ts";
import { embed } from "./stack-load.ts";

const limit = 1_000;
const calls = 4_000;

testWithReplicas(
  `of ${calls} calls at once through three gateways, a limit of ${limit} admits exactly ${limit}`,
  async () => {
    await using stack = await ReplicaStack.create();
    const limits = ["--requests-per-minute", String(limit), "--tokens-per-minute", "100000000"];
    const key = await stack.createKey("Shop", ["--plan", "enterprise", ...limits]);
    const all = await Promise.all(Array.from({ length: calls }, () => embed(stack.url, key)));
    const counts = Map.groupBy(all, ({ status }) => status);
    expect(Object.fromEntries([...counts].map(([status, of]) => [status, of.length]))).toEqual({
      200: limit,
      429: calls - limit,
    });
  },
);
