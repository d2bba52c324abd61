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

/** Cells of the rows below the header that begins with these titles. */
function tableBelow(...titles: readonly string[]): readonly (readonly string[])[] {
  const lines = text.split("\n").map(cellsOf);
  const header = lines.findIndex((cells) => titles.every((title, at) => cells[at] === title));
  if (header === -1) throw new Error(`${path} has no table ${titles.join(", ")}`);
  const rows = lines.slice(header + 2);
  return rows.slice(
    0,
    rows.findIndex((cells) => cells.length === 0),
  );
}

function cellsOf(line: string): readonly string[] {
  if (!line.startsWith("|")) return [];
  return line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}

function numberOf(cell: string | undefined): number {
  return Number(cell?.replaceAll(",", ""));
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
    const rows = tableBelow("units sold", "guaranteed", "held back");
    expect(rows.map(([units]) => units)).toContain(String(sellableUnits(main)));
    for (const row of rows) {
      const units = numberOf(row[0]);
      const guaranteed = guaranteedTokens(units, main);
      expect(row).toEqual([
        count(units),
        count(guaranteed),
        count(heldTokens(guaranteed)),
        count(openTokens(main, units)),
        count(openPlaces(main, units)),
        count(sellableUnits(main) - units),
      ]);
    }
    expect(prose).toContain(`of its ${main.maxInFlight} places`);
    const own = keyPlaces(40, main);
    expect(prose).toContain(
      `40 units of the pool \`main\` above have ${own} of its ${main.maxInFlight} places`,
    );
  });

  test("the window of a guarantee is that of the code", () => {
    const largest = shared?.environments[0]?.models.get("alpha-sonnet-4")?.contextWindow ?? 0;
    expect(prose).toContain(
      `With units of ${count(main.unitTokensPerMinute)} tokens and a model with a context window ` +
        `of ${count(largest)}:`,
    );
    const rows = tableBelow("units", "G", "time");
    for (const row of rows) {
      const units = numberOf(row[0]);
      const guaranteed = guaranteedTokens(units, main);
      const seconds = guaranteeSeconds(guaranteed, largest);
      const tokens = count(guaranteeLimit(guaranteed, seconds));
      expect(row).toEqual([count(units), count(guaranteed), `${count(seconds)} s`, tokens]);
    }
    const [first] = rows;
    expect(prose).toContain(`then needs ${first?.[2]?.replace(" s", "")} seconds for the next`);
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
