/**
 * Runs seeds of the simulation in `test/simulation`, or its outages.
 *
 * `--seed N` replays one, with `--trace` line by line; `--from A --count N` runs a range, with
 * `--processes P` in as many parts at once. A seed that breaks a rule is shrunk and shown; the exit
 * code is then 1.
 *
 * `--outages` runs the cells of the outage grid at 50 calls a second on the simulation's clock and
 * prints a table; the exit code is 1 when a cell breaks a promise. `--only WORDS`, which may be
 * repeated, takes the cells whose names have all of these parts (`stall,stream`), `--list` names
 * them, `--seconds N` is how long the fault lasts (60; twice that where it comes and goes), `--trace`
 * shows every line.
 */
import { parseArgs } from "node:util";
import {
  describeFailure,
  formatTrace,
  violationLine,
} from "../test/simulation/describe-failure.ts";
import { makeScenario } from "../test/simulation/make-scenario.ts";
import { namesOfOutages, runOutages } from "../test/simulation/outage/run-outages.ts";
import type { Scenario } from "../test/simulation/scenario.ts";
import { simulate, type RunResult } from "../test/simulation/simulate.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    from: { type: "string", default: "1" },
    count: { type: "string", default: "1000" },
    processes: { type: "string", default: "1" },
    trace: { type: "boolean", default: false },
    outages: { type: "boolean", default: false },
    only: { type: "string", multiple: true, default: [] },
    seconds: { type: "string", default: "60" },
    list: { type: "boolean", default: false },
  },
});
/** Seeds that are shrunk; some more of a range are named, and the others counted. */
const shownFailures = 3;
const namedFailures = 20;

/** Unhandled rejections, which would end the process of a gateway. */
const unhandled: unknown[] = [];
process.on("unhandledRejection", (reason) => unhandled.push(reason));

process.exitCode = await main();

async function main(): Promise<number> {
  try {
    if (values.outages) return await (values.list ? listOutages() : judgeOutages());
    const { seed } = values;
    if (seed !== undefined) return await replay(wholeNumber("seed", seed));
    return await (values.processes === "1" ? runRange() : runParts());
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    console.error(error.message);
    return 2;
  }
}

function wholeNumber(name: string, text: string): number {
  const number = Number(text);
  if (/^[0-9]{1,12}$/.test(text) && number >= 1) return number;
  throw new RangeError(`--${name} takes a whole number from 1 on, not '${text}'`);
}

/** Runs a scenario until the runtime would have reported unhandled rejections. */
async function run(scenario: Scenario, keepsTrace = false): Promise<RunResult> {
  const result = simulate(scenario, keepsTrace);
  await new Promise((resolve) => setImmediate(resolve));
  const violations = unhandled.splice(0).map((reason) => {
    const text = `nobody handled ${reason instanceof Error ? reason.stack : String(reason)}`;
    return { rule: "rejections", text, call: undefined };
  });
  return { ...result, violations: [...result.violations, ...violations] };
}

function listOutages(): number {
  for (const name of namesOfOutages(values.only)) console.log(name);
  return 0;
}

async function judgeOutages(): Promise<number> {
  const isGood = await runOutages({
    only: values.only,
    faultSeconds: Number(values.seconds),
    flappingSeconds: 2 * Number(values.seconds),
    print: (line) => console.log(line),
    run: async (scenario) => {
      const result = await run(scenario, values.trace);
      for (const line of formatTrace(result.lines)) console.log(line);
      return result;
    },
  });
  return isGood ? 0 : 1;
}

async function replay(seed: number): Promise<number> {
  const result = await run(makeScenario(seed), values.trace);
  for (const line of formatTrace(result.lines)) console.log(line);
  console.log(`seed ${seed} digest ${result.digest} ${JSON.stringify(result.figures)}`);
  if (result.violations.length === 0) return 0;
  for (const violation of result.violations) console.log(violationLine(violation));
  console.log(describeFailure(result));
  return 1;
}

/** Each process prints its own part. */
async function runParts(): Promise<number> {
  const from = wholeNumber("from", values.from);
  const count = wholeNumber("count", values.count);
  const processes = Math.min(count, wholeNumber("processes", values.processes));
  const startOf = (part: number): number => from + Math.floor((count * part) / processes);
  const children = Array.from({ length: processes }, (_, part) => {
    const range = ["--from", startOf(part), "--count", startOf(part + 1) - startOf(part)];
    return Bun.spawn([process.execPath, import.meta.path, ...range.map(String)], {
      stdio: ["ignore", "inherit", "inherit"],
    });
  });
  return Math.max(...(await Promise.all(children.map(({ exited }) => exited))));
}

async function runRange(): Promise<number> {
  const from = wholeNumber("from", values.from);
  const count = wholeNumber("count", values.count);
  const startedAt = performance.now();
  let failures = 0;
  let calls = 0;
  let attempts = 0;
  for (let seed = from; seed < from + count; seed += 1) {
    const result = await run(makeScenario(seed));
    calls += result.figures.calls;
    attempts += result.figures.attempts;
    const [first] = result.violations;
    if (first === undefined) continue;
    failures += 1;
    if (failures > namedFailures) continue;
    console.log(
      failures > shownFailures ? `seed ${seed}: ${violationLine(first)}` : describeFailure(result),
    );
  }
  const seedMs = ((performance.now() - startedAt) / count).toFixed(1);
  console.log(
    `${count} seeds from ${from}: ${failures} broke a rule; ` +
      `${calls} calls, ${attempts} attempts, ${seedMs} ms a seed`,
  );
  return failures === 0 ? 0 : 1;
}
