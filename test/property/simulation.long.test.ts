import { describe, expect, test } from "bun:test";
import { makeScenario } from "../simulation/make-scenario.ts";
import { simulate, simulateSeed } from "../simulation/simulate.ts";
import { isComplete, sizeOf } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";

const seeds = sizeOf({ quick: 200, all: 2_000, measured: 10_000 });
const processes = isComplete ? 2 : 1;
/** The guaranteed time of 10,000 seeds, and the bound on a busy machine. */
const promisedMs = 300_000;
const boundMs = 3 * promisedMs;

describe("the simulation", () => {
  test("the same seed makes the same run, in this process and in another", async () => {
    const seed = 4711;
    const here = simulateSeed(seed);
    expect(simulateSeed(seed, true).digest).toBe(here.digest);
    const { output } = await runScript("--seed", String(seed));
    expect(output).toContain(`digest ${here.digest}`);
    expect(simulateSeed(seed + 1).digest).not.toBe(here.digest);
  });

  test("seeds cover every kind of event", () => {
    const runs = Array.from({ length: 20 }, (_, index) => simulateSeed(index + 1).figures);
    const kinds = ["answered", "refused", "left", "crashed", "provisioned", "ranked"] as const;
    for (const kind of [...kinds, "attempts"] as const) {
      expect([kind, runs.some((figures) => figures[kind] > 0)]).toEqual([kind, true]);
    }
  });

  test("seeds have limits in a server, and in one to four processes", () => {
    const scenarios = Array.from({ length: 40 }, (_, index) => makeScenario(index + 1));
    const processes = scenarios.map(({ limiter, gateways }) =>
      limiter.kind === "networked" ? 0 : gateways.length,
    );
    expect(new Set(processes)).toEqual(new Set([0, 1, 2, 3, 4]));
  });

  test("leaving out calls of a run does not change the arrival of others", () => {
    const scenario = makeScenario(12);
    const [first] = scenario.calls;
    const { lines } = simulate({ ...scenario, calls: scenario.calls.slice(0, 1) }, true);
    const arrival = lines.find(({ text }) => text.startsWith("arrives"));
    expect(arrival?.atMs).toBe(first?.atMs ?? 0);
  });

  test(
    `no rule is broken in ${seeds} seeds`,
    async () => {
      const startedAt = performance.now();
      const each = seeds / processes;
      const runs = await Promise.all(
        Array.from({ length: processes }, (_, index) =>
          runScript("--from", String(1 + index * each), "--count", String(each)),
        ),
      );
      const durationMs = performance.now() - startedAt;
      const counts = runs.map(({ output }) => readCounts(output));
      const sum = (name: keyof Counts): number =>
        counts.reduce((total, count) => total + count[name], 0);
      const seconds = Math.round(durationMs / 1_000);
      report({
        check: "simulation",
        name: `simulated seeds that break a rule (${sum("calls")} calls, ${sum("attempts")} attempts)`,
        value: `${sum("failures")} of ${sum("seeds")}`,
        limit: "0",
        isMet: sum("failures") === 0 && sum("seeds") === seeds,
      });
      if (isComplete) {
        report({
          check: "simulation",
          name: `time of ${seeds} simulated seeds, in ${processes} processes`,
          value: `${seconds} s`,
          limit: "< 300 s",
          isMet: durationMs < promisedMs,
        });
      }
      if (sum("failures") > 0) process.stdout.write(runs.map(({ output }) => output).join("\n"));
      expect(sum("failures")).toBe(0);
      expect(sum("seeds")).toBe(seeds);
      expect(durationMs).toBeLessThan(boundMs);
    },
    boundMs + 60_000,
  );
});

interface Counts {
  readonly seeds: number;
  readonly failures: number;
  readonly calls: number;
  readonly attempts: number;
}

/** The last line of the script's output. Throws with the whole output if there is none. */
function readCounts(output: string): Counts {
  const match =
    /(\d+) seeds from \d+: (\d+) broke a rule; (\d+) calls, (\d+) attempts/.exec(output) ??
    undefined;
  if (match === undefined) throw new Error(`the simulation did not end:\n${output}`);
  const [seedCount, failures, calls, attempts] = match.slice(1).map(Number);
  return {
    seeds: seedCount ?? 0,
    failures: failures ?? 0,
    calls: calls ?? 0,
    attempts: attempts ?? 0,
  };
}

async function runScript(...args: readonly string[]): Promise<{ readonly output: string }> {
  const child = Bun.spawn([process.execPath, "scripts/simulate.ts", ...args], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const output = await new Response(child.stdout).text();
  await child.exited;
  return { output };
}
