import { expect, test } from "bun:test";
import { Arguments } from "./arguments.ts";
import { UsageError } from "./command.ts";

const specs = {
  name: { type: "string", about: "" },
  count: { type: "string", about: "" },
  list: { type: "string", about: "" },
  wait: { type: "string", about: "" },
  at: { type: "string", about: "" },
  sure: { type: "boolean", short: "s", about: "" },
} as const;

const read = (...commandLine: string[]): Arguments<keyof typeof specs> =>
  new Arguments(commandLine, specs);
const nowMs = Date.UTC(2027, 0, 1, 12);

test("options are read by what they mean, in any order with other arguments", () => {
  const args = read("--name", "", "first", "--count=12", "--list", "a, b,,c", "-s");
  expect(args.one("thing")).toBe("first");
  expect(args.text("name")).toBe("");
  expect(args.count("count")).toBe(12);
  expect(args.list("list")).toEqual(["a", "b", "c"]);
  expect(args.flag("sure")).toBe(true);
});

test("what was not given is undefined, not a default", () => {
  const args = read();
  expect(args.text("name")).toBeUndefined();
  expect(args.count("count")).toBeUndefined();
  expect(args.list("list")).toBeUndefined();
  expect(args.durationMs("wait")).toBeUndefined();
  expect(args.time("at", nowMs)).toBeUndefined();
  expect(args.flag("sure")).toBe(false);
  expect(() => args.none()).not.toThrow();
});

test.each([
  ["0s", 0],
  ["30m", 1_800_000],
  ["24h", 86_400_000],
  ["7d", 604_800_000],
])("the duration %s is %i milliseconds", (text, durationMs) => {
  expect(read("--wait", text).durationMs("wait")).toBe(durationMs);
});

test.each([
  ["30d", "2027-01-31T12:00:00.000Z"],
  ["2027-01-31", "2027-01-31T00:00:00.000Z"],
  ["2027-01-31T09:30", "2027-01-31T09:30:00.000Z"],
  ["2027-01-31 09:30:15", "2027-01-31T09:30:15.000Z"],
  ["2027-01-31T09:30Z", "2027-01-31T09:30:00.000Z"],
  ["2027-01-31T09:30:00Z", "2027-01-31T09:30:00.000Z"],
  ["2027-01-31T09:30:00.250Z", "2027-01-31T09:30:00.250Z"],
  ["2027-01-31T09:30:00+02:00", "2027-01-31T07:30:00.000Z"],
])("the time %s is %s", (text, expected) => {
  expect(read("--at", text).time("at", nowMs)).toBe(expected);
});

test("a time that was is as far back as its duration says, or the same as one to come", () => {
  expect(read("--at", "7d").pastTime("at", nowMs)).toBe("2026-12-25T12:00:00.000Z");
  expect(read("--at", "2026-11-21").pastTime("at", nowMs)).toBe("2026-11-21T00:00:00.000Z");
  expect(read().pastTime("at", nowMs)).toBeUndefined();
});

test("whoever writes a time wrongly is told every form of one", () => {
  for (const form of ["2026-11-21)", "2026-11-21T09:00 in UTC", "Z", "+02:00", "30m, 24h, 7d"]) {
    expect(() => read("--at", "yesterday").pastTime("at", nowMs)).toThrow(form);
  }
});

test.each([
  ["an unknown option", () => read("--bogus")],
  ["an option without its value", () => read("--name")],
  ["no argument where one is needed", () => read().one("thing")],
  ["two arguments where one is needed", () => read("a", "b").one("thing")],
  ["an argument that is empty", () => read("").one("thing")],
  ["an argument where none belongs", () => read("a").none()],
  ["a needed option that is empty", () => read("--name", "").required("name")],
  ["a count with a fraction", () => read("--count", "1.5").count("count")],
  ["a count below zero", () => read("--count=-1").count("count")],
  ["a count too long to be exact", () => read("--count", "9".repeat(16)).count("count")],
  ["a duration without a unit", () => read("--wait", "5").durationMs("wait")],
  ["a duration below zero", () => read("--wait=-5s").durationMs("wait")],
  ["a date that is none", () => read("--at", "2027-13-45").time("at", nowMs)],
  ["a day that its month does not have", () => read("--at", "2027-02-30").time("at", nowMs)],
  ["an hour that no day has", () => read("--at", "2027-01-31T25:30").time("at", nowMs)],
  ["a zone without a time", () => read("--at", "2027-01-31Z").time("at", nowMs)],
  ["a word where a time belongs", () => read("--at", "tomorrow").time("at", nowMs)],
])("%s is a mistake of the command line", (_, work) => {
  expect(work).toThrow(UsageError);
});
