import type { LogLine } from "./event-log.ts";
import { makeScenario } from "./make-scenario.ts";
import type { Violation } from "./records.ts";
import { shrink } from "./shrink.ts";
import type { RunResult } from "./simulate.ts";

/** The most lines of a trace that are readable. */
const longestTrace = 150;

/** Everything needed to examine a seed that broke a rule. */
export function describeFailure({ seed, violations }: RunResult): string {
  const [first] = violations;
  if (first === undefined) return `seed ${seed}: nothing was wrong`;
  const { scenario, result, runs } = shrink(makeScenario(seed), first.rule);
  const [kept = first] = result.violations.filter(({ rule }) => rule === first.rule);
  const { calls, events, keys, models, upstreams, gateways, limiter } = scenario;
  const used = new Set(calls.map(({ key }) => key));
  return [
    `seed ${seed} breaks ${violations.length} rules; the first: ${violationLine(first)}`,
    `replay: npx bun scripts/simulate.ts --seed ${seed} --trace`,
    `smallest after ${runs} runs: ${calls.length} calls, ${events.length} events: ${violationLine(kept)}`,
    ...[...gateways, ...upstreams, ...models].map((each) => `  ${JSON.stringify(each)}`),
    `  ${JSON.stringify(limiter)}`,
    ...keys
      .filter(({ key }) => used.has(key.id))
      .map(({ key, ...rest }) => {
        const { id, accountId, provisionedUnits, provisionedPool } = key;
        return `  ${JSON.stringify({ id, accountId, provisionedUnits, provisionedPool, ...rest })}`;
      }),
    ...calls.map((call) => `  ${JSON.stringify(call)}`),
    ...formatTrace(result.lines.slice(-longestTrace)),
  ].join("\n");
}

export function violationLine({ rule, text, call }: Violation): string {
  return call === undefined ? `${rule}: ${text}` : `${rule}: ${call}: ${text}`;
}

export function formatTrace(lines: readonly LogLine[]): readonly string[] {
  return lines.map(({ atMs, call, text }) => {
    return `${atMs.toFixed(2).padStart(12)} ${(call ?? "").padEnd(5)} ${text}`;
  });
}
