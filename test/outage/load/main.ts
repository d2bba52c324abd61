/**
 * Callers in a separate process. Takes a plan as JSON on its standard input and prints the rows of
 * all calls by the name of their load, as one line of JSON.
 */
import { loadPlanSchema, type Call, type Load, type LoadPlan } from "./load-plan.ts";
import { sendCall } from "./send-call.ts";

const plan = loadPlanSchema.parse(JSON.parse(await Bun.stdin.text()));
const results = await Promise.all(plan.loads.map((load, index) => drive(plan, load, index)));
const rows = results.map((calls) =>
  calls.map(({ startedAt, latencyMs, servedBy, failure }) => [
    startedAt,
    Math.round(latencyMs * 100) / 100,
    servedBy,
    failure,
  ]),
);
const byName = plan.loads.map(({ name }, index) => [name, rows[index] ?? []] as const);
process.stdout.write(`${JSON.stringify(Object.fromEntries(byName))}\n`);

/** Sends each call when it is due, independently of earlier ones. */
async function drive(
  { startsAt, seconds, loads }: LoadPlan,
  load: Load,
  index: number,
): Promise<readonly Call[]> {
  const gapMs = 1000 / load.perSecond;
  // Loads do not call at the same moments.
  const firstAt = startsAt + (gapMs * index) / loads.length;
  const endsAt = startsAt + seconds * 1000;
  const calls: Promise<Call>[] = [];
  for (let due = firstAt; due < endsAt; due += gapMs) {
    const waitMs = due - Date.now();
    if (waitMs > 0) await Bun.sleep(waitMs);
    calls.push(sendCall(load));
  }
  return Promise.all(calls);
}
