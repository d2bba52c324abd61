import { expect } from "bun:test";
import { isComplete } from "../support/requirement.ts";
import { testWithMachines } from "./machine-stack.ts";
import { soak } from "./soak.ts";
import { describeGrowth, grownIn } from "./soak-samples.ts";

const minutes = Number(process.env["SLUICE_SOAK_MINUTES"] ?? (isComplete ? 3 : 1));
const seed = Number(process.env["SLUICE_SOAK_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

testWithMachines(
  `random faults for ${minutes} minutes lose no row, refuse no key and leave nothing behind`,
  async () => {
    const tell = (line: string): void => void process.stdout.write(`soak: ${line}\n`);
    const result = await soak({ seed, seconds: minutes * 60, tell });
    const { samples, lost, doubled, ...counts } = result;
    tell(`${JSON.stringify(counts)}; ${describeGrowth(samples)}`);
    expect({ lost, doubled }).toEqual({ lost: [], doubled: [] });
    // Each call is recorded before the upstream sees it, also those whose caller got no answer.
    expect(counts.rows).toBeGreaterThanOrEqual(counts.seen);
    expect(counts.completedRows).toBeLessThanOrEqual(counts.seen);
    // 0: cut or not answered; 502 and 504: of the proxy; 503: what failed was there to fail.
    const allowed = new Set([0, 200, 502, 503, 504]);
    const others = Object.entries(counts.statuses).filter(
      ([status]) => !allowed.has(Number(status)),
    );
    expect(others).toEqual([]);
    expect(grownIn(samples)).toEqual([]);
  },
  (minutes * 5 + 10) * 60_000,
);
