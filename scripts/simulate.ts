/**
 * Runs seeds of the simulation in `test/simulation`.
 *
 * `--seed N` replays one, with `--trace` line by line; `--from A --count N` runs a range. A seed that
 * breaks a rule is made as small as it gets and shown; the exit code is then 1.
 */
import { parseArgs } from "node:util";
import { describeFailure, formatTrace, tell } from "../test/simulation/describe-failure.ts";
import { simulateSeed, type RunResult } from "../test/simulation/simulate.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    from: { type: "string", default: "1" },
    count: { type: "string", default: "1000" },
    trace: { type: "boolean", default: false },
  },
});
/** Seeds that are made small; some more of a range are named, and the others counted. */
const shownFailures = 3;
const namedFailures = 20;

/** What nobody handled would end the process of a gateway. */
const unhandled: unknown[] = [];
process.on("unhandledRejection", (reason) => unhandled.push(reason));

process.exitCode = values.seed === undefined ? await runRange() : await replay(Number(values.seed));

/** Runs a seed to where the runtime would have told of rejections that nobody handled. */
async function run(seed: number, keepsTrace = false): Promise<RunResult> {
  const result = simulateSeed(seed, keepsTrace);
  await new Promise((resolve) => setImmediate(resolve));
  const violations = unhandled.splice(0).map((reason) => {
    const text = `nobody handled ${reason instanceof Error ? reason.stack : String(reason)}`;
    return { rule: "rejections", text, call: undefined };
  });
  return { ...result, violations: [...result.violations, ...violations] };
}

async function replay(seed: number): Promise<number> {
  const result = await run(seed, values.trace);
  for (const line of formatTrace(result.lines)) console.log(line);
  console.log(`seed ${seed} digest ${result.digest} ${JSON.stringify(result.figures)}`);
  if (result.violations.length === 0) return 0;
  for (const violation of result.violations) console.log(tell(violation));
  console.log(describeFailure(result));
  return 1;
}

async function runRange(): Promise<number> {
  const from = Number(values.from);
  const count = Number(values.count);
  const startedAt = performance.now();
  let failures = 0;
  let calls = 0;
  let attempts = 0;
  for (let seed = from; seed < from + count; seed += 1) {
    const result = await run(seed);
    calls += result.figures.calls;
    attempts += result.figures.attempts;
    const [first] = result.violations;
    if (first === undefined) continue;
    failures += 1;
    if (failures > namedFailures) continue;
    console.log(
      failures > shownFailures ? `seed ${seed}: ${tell(first)}` : describeFailure(result),
    );
  }
  const seedMs = ((performance.now() - startedAt) / count).toFixed(1);
  console.log(
    `${count} seeds from ${from}: ${failures} broke a rule; ` +
      `${calls} calls, ${attempts} attempts, ${seedMs} ms a seed`,
  );
  return failures === 0 ? 0 : 1;
}
