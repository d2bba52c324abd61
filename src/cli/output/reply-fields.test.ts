import { expect, test } from "bun:test";
import { CommandError } from "../command.ts";
import { cellOf, formatValue, readRecord, readRecords, readText } from "./reply-fields.ts";
import { formatRecord } from "./show-reply.ts";

test("values become cells for people: times to the second, numbers rounded", () => {
  expect(formatValue("2027-01-31T09:30:05.123Z")).toBe("2027-01-31 09:30:05");
  expect(formatValue(918.557_247)).toBe(919);
  expect(formatValue(1.128_838)).toBe(1.1);
  expect(formatValue(12_345_678)).toBe(12_345_678);
  expect(formatValue(["a", "b"])).toBe("a,b");
  expect([null, undefined, "", []].map(formatValue)).toEqual(["-", "-", "-", "-"]);
  expect([true, false].map(formatValue)).toEqual(["yes", "no"]);
});

test("control characters in names and notes are replaced", () => {
  const shown = String(formatValue("a\u001b[31mred\u202ereversed\nline\u009b2J"));
  expect(shown).toBe("a\ufffd[31mred\ufffdreversed\ufffdline\ufffd2J");
  expect(formatRecord({ note: "x\u001b]0;title\u0007" })).not.toContain("\u001b");
  expect(formatRecord({ deep: { note: "x\u001b]0;title\u0007" } })).not.toContain("\u001b");
});

test("dots lead into objects, and absent fields are a dash", () => {
  expect(cellOf({ actor: { name: "ada" } }, "actor.name")).toBe("ada");
  expect(cellOf({ actor: null }, "actor.name")).toBe("-");
  expect(cellOf({}, "actor.name")).toBe("-");
});

test("an object is shown with its lists of objects as tables below", () => {
  const text = formatRecord({
    id: "key_1",
    limits: { requests_per_minute: 5, tokens_per_minute: 90 },
    secrets: [{ hint: "a" }, { hint: "b", status: "live" }],
  });
  expect(text).toBe(
    "id      key_1\nlimits  requests_per_minute 5, tokens_per_minute 90\n\n" +
      "secrets:\nHINT  STATUS\na     -\nb     live",
  );
});

test("an answer of another shape is reported, not shown as empty", () => {
  expect(() => readRecord([])).toThrow(CommandError);
  expect(() => readRecords({ data: {} }, "data")).toThrow(CommandError);
  expect(() => readRecords({ data: ["text"] }, "data")).toThrow(CommandError);
  expect(() => readText({ id: 5 }, "id")).toThrow(CommandError);
});
