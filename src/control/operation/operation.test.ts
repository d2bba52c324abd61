import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { operator } from "../../../test/support/admin-fixture.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { defineOperation } from "./operation.ts";
import { readRange, readTime } from "../values/time-range.ts";

const operation = defineOperation({
  id: "paint",
  method: "POST",
  path: "/admin/v1/paint",
  resource: "Paint",
  summary: "Paint",
  roles: ["operator"],
  scope: "write",
  status: 200,
  query: z.strictObject({ coats: z.string().optional() }),
  body: z.strictObject({
    colour: z.enum(["red", "blue"]),
    walls: z.array(z.strictObject({ height: z.int().min(1) })).max(2),
  }),
  answer: z.object({ painted: z.int() }),
  run: ({ body }) => {
    const surplus = { painted: body.walls.length, digest: "must not get out" };
    return surplus;
  },
});

const call = {
  id: "req_1",
  principal: operator,
  signal: new AbortController().signal,
  address: undefined,
};
const good = { colour: "red", walls: [{ height: 2 }] };

async function refusal(body: unknown, query?: unknown): Promise<GatewayError> {
  try {
    await operation.run({ call, parameters: {}, query, body });
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("was not refused");
}

describe("an operation", () => {
  test("answers only with the fields of its answer's schema", async () => {
    const answer = await operation.run({ call, parameters: {}, query: undefined, body: good });
    expect(answer).toEqual({ painted: 1 });
  });

  test("refuses a body with the path of the field and a code", async () => {
    const faults: [unknown, string, string | null][] = [
      [{ ...good, colour: undefined }, "missing_required_parameter", "colour"],
      [undefined, "missing_required_parameter", "colour"],
      [{ ...good, walls: [{ height: "2" }] }, "invalid_type", "walls[0].height"],
      [{ ...good, walls: [{ height: 0 }] }, "invalid_value", "walls[0].height"],
      [{ ...good, walls: [{ height: 1, width: 2 }] }, "invalid_value", "walls[0].width"],
      [{ ...good, colour: "green" }, "invalid_value", "colour"],
      [{ ...good, doors: 1 }, "invalid_value", "doors"],
      ["text", "invalid_type", null],
    ];
    for (const [body, code, param] of faults) {
      const error = await refusal(body);
      expect([error.status, error.code, error.param]).toEqual([400, code, param]);
    }
  });

  test("refuses unknown parameters of the query", async () => {
    expect((await refusal(good, { coat: "2" })).param).toBe("coat");
  });

  test("its messages repeat no value, and only the beginning of a name", async () => {
    const name = "secret".repeat(100);
    const error = await refusal({ ...good, colour: "hunter2", [name]: 1 });
    expect(error.message).not.toContain("hunter2");
    expect((await refusal({ ...good, [name]: 1 })).message.length).toBeLessThan(200);
  });
});

describe("times of a query", () => {
  const now = Date.UTC(2026, 0, 2);

  test("are a point in time or an age", () => {
    expect(readTime("30m", "since", now)).toBe(now - 1_800_000);
    expect(readTime("12h", "since", now)).toBe(now - 43_200_000);
    expect(readTime("7d", "since", now)).toBe(now - 604_800_000);
    expect(readTime("2026-01-01T00:00:00Z", "since", now)).toBe(Date.UTC(2026, 0, 1));
    expect(readTime("2026-01-01T01:00:00.5+01:00", "since", now)).toBe(Date.UTC(2026, 0, 1) + 500);
    expect(readTime("2026-01-01", "since", now)).toBe(Date.UTC(2026, 0, 1));
  });

  test("are refused in other forms", () => {
    for (const text of ["", "0m", "5", "1w", "2026-13-01", "2026-01-01T00:00:00", "Jan 1 2026"]) {
      expect(() => readTime(text, "since", now)).toThrow("Invalid value for 'since'");
    }
  });

  test("make a range that begins before it ends, by default a day", () => {
    expect(readRange({}, now)).toEqual({ since: now - 86_400_000, until: now });
    expect(readRange({ until: "1d" }, now)).toEqual({
      since: now - 2 * 86_400_000,
      until: now - 86_400_000,
    });
    expect(() => readRange({ since: "1h", until: "1h" }, now)).toThrow("before");
  });
});
