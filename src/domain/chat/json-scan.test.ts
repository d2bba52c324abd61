import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { GatewayError } from "../errors/gateway-error.ts";
import { JsonScan, scanJson, valueCosts, type JsonLimits } from "./json-scan.ts";

const unbounded: JsonLimits = { jsonDepth: Infinity, jsonValues: Infinity };

/** Result of scanning a text in chunks of this size. */
function refusal(json: string, limits: Partial<JsonLimits>, pieceBytes = 1 << 20) {
  const scan = new JsonScan({ ...unbounded, ...limits });
  const bytes = new TextEncoder().encode(json);
  try {
    for (let start = 0; start < bytes.length; start += pieceBytes) {
      scan.push(bytes.subarray(start, start + pieceBytes));
    }
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  return undefined;
}

const exceeds = (json: string, depth: number, pieceBytes?: number): boolean =>
  refusal(json, { jsonDepth: depth }, pieceBytes) !== undefined;

/** The lowest limit that accepts the text. */
function costOf(json: string, pieceBytes?: number): number {
  let low = 0;
  let high = 1_000_000;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (refusal(json, { jsonValues: middle }, pieceBytes) === undefined) high = middle;
    else low = middle + 1;
  }
  return low;
}

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

/** The cost from the parsed value; the first value of a list or object is free. */
function expectedCost(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const items = Object.values(value);
  const names = Array.isArray(value) ? 0 : items.length;
  return (
    valueCosts.container +
    Math.max(0, items.length - 1) * valueCosts.plain +
    names * valueCosts.field +
    items.reduce((sum: number, item) => sum + expectedCost(item), 0)
  );
}

describe("depth:", () => {
  test("nesting at the limit passes, one deeper does not", () => {
    for (const [open, close] of [["[", "]"] as const, ['{"a":', "}"] as const]) {
      expect(exceeds(`${open.repeat(64)}1${close.repeat(64)}`, 64)).toBeFalse();
      expect(exceeds(`${open.repeat(65)}1${close.repeat(65)}`, 64)).toBeTrue();
    }
    expect(refusal("[[", { jsonDepth: 1 })?.message).toContain("deeper than 1 levels");
  });

  test("sibling brackets do not add up", () => {
    expect(exceeds(`[${"[],".repeat(1000)}{}]`, 2)).toBeFalse();
  });

  test("brackets in strings do not count, wherever the string ends", () => {
    for (let length = 0; length < 100; length += 1) {
      const padding = "x".repeat(length);
      const siblings = "[],".repeat(9);
      expect(exceeds(`[${siblings}"${padding}[[[["]`, 3)).toBeFalse();
      expect(exceeds(`[${siblings}"${padding}\\"[[[["]`, 3)).toBeFalse();
      expect(exceeds(`[${siblings}"${padding}\\\\",[[[1]]]]`, 3)).toBeTrue();
      expect(exceeds(`[${siblings}"${padding}\\\\\\"[[[[\\\\",[[1]]]`, 3)).toBeFalse();
    }
  });

  test("a truncated text is measured up to its end", () => {
    expect(exceeds("[".repeat(1_000_000), 64)).toBeTrue();
    expect(exceeds(`[[[["[[[[[[[[`, 4)).toBeFalse();
    expect(exceeds(`[[[["${"[".repeat(200)}\\`, 4)).toBeFalse();
    expect(exceeds("", 0)).toBeFalse();
    expect(exceeds("[", 0)).toBeTrue();
  });
});

describe("values:", () => {
  test.each([
    ["[]", 4],
    ["[1,2,3]", 6],
    ['{"a":1}', 24],
    ['{"a":1,"a":2}', 45],
    ['["a,b:[{"]', 4],
    [String.raw`["\n\n\n\n"]`, 8],
    [String.raw`["\u0041\\\"\/"]`, 8],
    [String.raw`["\\\\"]`, 6],
  ])("%s costs %d", (json, cost) => {
    expect(costOf(json)).toBe(cost);
    expect(refusal(json, { jsonValues: cost - 1 })?.status).toBe(400);
  });

  test("strings without escapes are free at any length", () => {
    expect(costOf(`["${"A".repeat(2_000_000)}"]`)).toBe(valueCosts.container);
  });

  test("the message explains the costs", () => {
    expect(refusal("[1,2]", { jsonValues: 4 })?.message).toContain("more than 4 values");
  });
});

test("depth and cost match the parsed value, for any JSON in chunks of any size", () => {
  const cases = fc.tuple(
    fc.jsonValue({ maxDepth: 8 }),
    fc.nat({ max: 8 }),
    fc.integer({ min: 1, max: 40 }),
  );
  fc.assert(
    fc.property(cases, ([value, limit, pieceBytes]) => {
      const json = JSON.stringify(value);
      expect(exceeds(json, limit, pieceBytes)).toBe(depthOf(value) > limit);
      const escapes = json.split("\\").length - 1;
      const cost = costOf(json, pieceBytes) - expectedCost(JSON.parse(json));
      expect(cost).toBeGreaterThanOrEqual(0);
      expect(cost).toBeLessThanOrEqual(escapes * valueCosts.escape);
    }),
    { numRuns: 2000 },
  );
});

test("strings of quotes, backslashes and brackets do not affect the result", () => {
  const text = fc.string({
    unit: fc.constantFrom('"', "\\", "[", "]", "{", "}", "é", "x".repeat(40)),
    maxLength: 60,
  });
  const cases = fc.tuple(
    fc.array(fc.tuple(text, fc.array(text, { maxLength: 2 }))),
    fc.integer({ min: 1, max: 100 }),
  );
  fc.assert(
    fc.property(cases, ([value, pieceBytes]) => {
      const json = JSON.stringify(value);
      expect(exceeds(json, depthOf(value), pieceBytes)).toBeFalse();
      expect(exceeds(json, depthOf(value) - 1, pieceBytes)).toBeTrue();
    }),
    { numRuns: 2000 },
  );
});

test("a whole body is scanned in several turns of the event loop", async () => {
  const bytes = new TextEncoder().encode(`"${" ".repeat(5_000_000)}"`);
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await scanJson(bytes, unbounded);
  isOver = true;
  expect(turns).toBeGreaterThanOrEqual(4);
  const limits = { jsonDepth: 2, jsonValues: 100 };
  expect(() => scanJson(Buffer.from("[[["), limits)).toThrow(GatewayError);
  const large = Buffer.from(`${" ".repeat(5_000_000)}[[[`);
  expect(await rejectionOf(scanJson(large, limits))).toBeInstanceOf(GatewayError);
});

async function rejectionOf(work: number | Promise<number>): Promise<unknown> {
  try {
    await work;
    return undefined;
  } catch (error) {
    return error;
  }
}
