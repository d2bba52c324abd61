import { expect } from "bun:test";
import { MachineStack, testWithMachines } from "./machine-stack.ts";
import { embed } from "./stack-load.ts";

const limit = 1_000;
const calls = 4_000;

testWithMachines(
  `of ${calls} calls at once through three gateways, a limit of ${limit} admits no more, and all of it after one retry`,
  async () => {
    await using stack = await MachineStack.create();
    const limits = ["--requests-per-minute", String(limit), "--tokens-per-minute", "100000000"];
    const key = await stack.createKey("Shop", ["--plan", "enterprise", ...limits]);
    const admittedOf = async (count: number): Promise<number> => {
      const all = await Promise.all(Array.from({ length: count }, () => embed(stack.url, key)));
      expect(all.filter(({ status }) => status !== 200 && status !== 429)).toEqual([]);
      return all.filter(({ status }) => status === 200).length;
    };
    const first = await admittedOf(calls);
    expect(first).toBeLessThanOrEqual(limit);
    // What was leased and not used comes back when its second has ended.
    await Bun.sleep(2_000);
    expect(first + (await admittedOf(calls - first))).toBe(limit);
  },
);
