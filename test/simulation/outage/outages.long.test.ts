import { describe, expect, test } from "bun:test";
import { pickNamed } from "../../outage/report/pick-named.ts";
import { isMet, rowLines } from "../../outage/report/table.ts";
import { isComplete } from "../../support/requirement.ts";
import { simulate } from "../simulate.ts";
import { namesOfOutages } from "./run-outages.ts";
import { allOutages, type Outage } from "./run-suite.ts";
import { secondsIn, withoutSpans } from "./spans.ts";

/** Every distinct fault, rest, wire, kind of call and course. */
const sample = [
  "throttle-retry-after,both,bedrock,stream,one-key",
  "error-500,second,openai,stream,restart,twenty-keys",
  "refused,second,openai,whole,flapping,one-key",
  "black-hole,second,openai,embeddings,one-key,default",
  "slow-headers,fallback,bedrock,whole,twenty-keys,default",
  "stall,both,openai,stream,one-key,short",
  "half,fallback,openai,whole,one-key",
  "throttle,second,openai,whole,twenty-keys,slow-answers",
  "tenants,timeouts,two-targets,own-accounts,short,bursts",
];
const sampleLengths = { faultSeconds: 6, flappingSeconds: 12 };
const allLengths = { faultSeconds: 6, flappingSeconds: 24 };

/** Filters of cells without a promise; docs/reliability.md says what is not promised. */
const notPromised: readonly string[] = [
  "stall,whole,default",
  "stall,embeddings,default",
  "black-hole,default,flapping",
  "slow-headers,default,flapping",
  "black-hole,default,restart",
  "slow-headers,default,restart",
  // Only streams have a time for their first byte.
  "slow-headers,whole,flapping",
  "slow-headers,embeddings,flapping",
  "slow-headers,whole,restart",
  "slow-headers,embeddings,restart",
];

describe("at fifty calls a second, on the simulation's clock,", () => {
  const left = new Set(namesOfOutages(notPromised));
  const outages = (isComplete ? byTurns(allOutages()) : pickNamed(allOutages(), sample)).filter(
    ({ name }) => !left.has(name),
  );
  const lengths = isComplete ? allLengths : sampleLengths;
  for (const outage of outages) {
    test(`callers do not notice ${outage.name}`, async () => {
      const row = await outage.judge({ ...lengths, run: (scenario) => simulate(scenario) });
      expect(isMet(row) ? [] : rowLines(row)).toEqual([]);
    });
  }
});

/** Alternately the first and the last of each four cells, which differ in callers and timeouts. */
function byTurns(outages: readonly Outage[]): readonly Outage[] {
  return outages
    .filter((_, index) => index % 4 === (Math.floor(index / 4) % 2 === 0 ? 0 : 3))
    .filter(isShort);
}

/** An idle timeout of five minutes, or a single account, is only for the command. */
function isShort({ name }: Outage): boolean {
  const parts = name.split("/");
  const has = (...words: readonly string[]): boolean => words.every((word) => parts.includes(word));
  return !has("stall", "bedrock", "stream", "default") && !has("tenants", "one-account");
}

test("spans without others are their uncovered parts", () => {
  const spans = [
    { fromMs: 0, untilMs: 10_000 },
    { fromMs: 20_000, untilMs: 23_000 },
  ];
  const others = [
    { fromMs: 4_000, untilMs: 5_000 },
    { fromMs: 0, untilMs: 1_000 },
    { fromMs: 20_000, untilMs: 21_000 },
  ];
  const left = withoutSpans(spans, others);
  expect(left).toEqual([
    { fromMs: 1_000, untilMs: 4_000 },
    { fromMs: 5_000, untilMs: 10_000 },
    { fromMs: 21_000, untilMs: 23_000 },
  ]);
  expect(secondsIn(left)).toBe(10);
});
