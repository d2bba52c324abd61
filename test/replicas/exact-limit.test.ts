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
    const admitted = all.filter(({ status }) => status === 200);
    const refused = all.filter(({ status }) => status === 429);
    expect([admitted.length, refused.length]).toEqual([limit, calls - limit]);
  },
);
