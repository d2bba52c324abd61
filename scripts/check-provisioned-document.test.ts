import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { PoolOversold } from "../src/control/keys/pool-oversold.ts";
import type { Config } from "../src/config/config.ts";
import { formatProblems, parseConfig } from "../src/config/load.ts";
import {
  capacityModes,
  floorTokens,
  guaranteedTokens,
  heldTokens,
  sellableUnits,
  type Pool,
} from "../src/domain/limits/capacity.ts";
import type { CapacityClass } from "../src/domain/usage/usage.ts";
import { guaranteeLimit } from "../src/domain/limits/slots.ts";
import {
  guaranteeSeconds,
  keyPlaces,
  openPlaces,
  openTokens,
} from "../src/admission/capacity/guarantee.ts";

const path = "docs/provisioned-throughput.md";
const text = readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
/** Without line breaks, as a reader sees it. */
const prose = text.replaceAll(/\s+/g, " ");

const [shared, dedicated] = [...text.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, yaml]) =>
  configOf(yaml ?? ""),
);
const main = poolOf(shared, "main");
const bought = poolOf(dedicated, "bought");

function configOf(yaml: string): Config {
  const environments = 'environments: [{ name: production, hosts: ["*"], models: ["*"] }]\n';
  const result = parseConfig(environments + yaml, { name: path, env: {} });
  if (!result.ok) throw new Error(formatProblems(path, result.problems));
  return result.config;
}

function poolOf(config: Config | undefined, name: string): Pool {
  const pool = config?.pools.get(name);
  if (pool === undefined) throw new Error(`${path} has no configuration of a pool ${name}`);
  return pool;
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}

describe("in docs/provisioned-throughput.md", () => {
  test("the sellable units are those of the code, step by step", () => {
    const sellable = sellableUnits(main);
    const held = (units: number): string => count(heldTokens(guaranteedTokens(units, main)));
    const room = count(main.tokensPerMinute - floorTokens(main));
    for (const sentence of [
      `${main.onDemandFloorPercent} % are never sold: ${count(floorTokens(main))} tokens per minute. ` +
        `${room} are left.`,
      `${sellable} units are ${count(guaranteedTokens(sellable, main))} tokens, x 60/59 = ` +
        `${held(sellable)} held. ${sellable + 1} would be ${held(sellable + 1)}, more than ${room}. ` +
        `So it sells **${sellable}**.`,
      `Of this pool, ${sellableUnits(bought)} units of ${count(bought.unitTokensPerMinute)} tokens can be sold.`,
    ]) {
      expect(prose).toContain(sentence);
    }
    expect(heldTokens(59_000)).toBe(60_000);
  });

  test("the rest for others is that of the code", () => {
    const left = (units: number) =>
      `${count(openTokens(main, units))}${units === 40 ? " tokens of every minute" : ""} and ${count(openPlaces(main, units))}`;
    const all = sellableUnits(main);
    expect(prose).toContain(
      `With 40 units sold, ${left(40)} places are left for other calls; with ${all}, ${left(all)}.`,
    );
    expect(prose).toContain(`of its ${main.maxInFlight} places`);
    const own = keyPlaces(40, main);
    expect(prose).toContain(
      `40 units of the pool \`main\` above have ${own} of its ${main.maxInFlight} places`,
    );
  });

  test("the window of a guarantee is that of the code", () => {
    const largest = shared?.environments[0]?.models.get("alpha-sonnet-4")?.contextWindow ?? 0;
    const seconds = (units: number) => guaranteeSeconds(guaranteedTokens(units, main), largest);
    expect(prose).toContain(
      `With units of ${count(main.unitTokensPerMinute)} tokens and a model with a context window ` +
        `of ${count(largest)}, one unit suffices for the largest request, and then needs ` +
        `${count(seconds(1))} seconds for the next. From 20 units on, the time is ` +
        `${seconds(20)} seconds.`,
    );
    expect(guaranteeLimit(guaranteedTokens(1, main), seconds(1))).toBe(largest);
    expect([seconds(19), seconds(20)]).toEqual([120, 60]);
    expect(text).toContain(`at most ${count(guaranteeSeconds(1, Number.MAX_SAFE_INTEGER))} s`);
  });

  test("the numbers of a refused sale are those of the control plane", () => {
    expect(text).toContain(new PoolOversold(main, { sold: 60, more: 30 }).message);
    const example = readFileSync(new URL("../docs/admin-api.md", import.meta.url), "utf8");
    const [, details] = /```json\n(\{\n {2}"pool"[\s\S]*?)```/.exec(example) ?? [];
    expect(JSON.parse(details ?? "null")).toEqual(
      new PoolOversold(main, { sold: 60, more: 30 }).details,
    );
  });
});

test("docs/provisioned-throughput.md has every class and every value of x-sluice-capacity", () => {
  const [, classes, modes] =
    /one \*\*class\*\*([\s\S]*?)`x-sluice-capacity`([\s\S]*?)\n\nThe /.exec(text) ?? [];
  const names = (list: string | undefined) =>
    [...(list ?? "").matchAll(/^- `([\w-]+)`: /gm)].map(([, name]) => name);
  // The compiler checks that the list is complete.
  const known: Record<CapacityClass, true> = {
    provisioned: true,
    spillover: true,
    "on-demand": true,
  };
  expect(names(classes)).toEqual(Object.keys(known));
  expect(names(modes)).toEqual([...capacityModes]);
});
