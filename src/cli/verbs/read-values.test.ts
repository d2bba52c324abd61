import { expect, test } from "bun:test";
import { InvalidArgumentError } from "commander";
import {
  FromNow,
  limitUpTo,
  readCount,
  readDays,
  readList,
  readSeconds,
  readTime,
} from "./read-values.ts";

test("counts are exact, and lists have no empty values", () => {
  expect(readCount("12")).toBe(12);
  expect(readList("a, b,,c")).toEqual(["a", "b", "c"]);
  expect(limitUpTo(1000)("1000")).toBe(1000);
  expect(readDays("90d")).toBe(90);
});

test.each([
  ["0s", 0],
  ["30m", 1800],
  ["24h", 86_400],
  ["7d", 604_800],
])("the duration %s is %i seconds", (text, seconds) => {
  expect(readSeconds(text)).toBe(seconds);
});

test.each([
  ["2027-01-31", "2027-01-31T00:00:00.000Z"],
  ["2027-01-31T09:30Z", "2027-01-31T09:30:00.000Z"],
  ["2027-01-31T09:30:00Z", "2027-01-31T09:30:00.000Z"],
  ["2027-01-31T09:30:00.250Z", "2027-01-31T09:30:00.250Z"],
  ["2027-01-31T09:30:00+02:00", "2027-01-31T07:30:00.000Z"],
])("the time %s is %s", (text, expected) => {
  expect(readTime(text)).toBe(expected);
});

test("a duration of a future time stays a duration, so that a repeat is the same request", () => {
  expect(readTime("30d")).toEqual(new FromNow(30 * 86_400));
});

test.each([
  ["a count with a fraction", () => readCount("1.5")],
  ["a count below zero", () => readCount("-1")],
  ["a count too long to be exact", () => readCount("9".repeat(16))],
  ["a limit of nothing", () => limitUpTo(Infinity)("0")],
  ["a limit that is too high", () => limitUpTo(1000)("1001")],
  ["a duration without a unit", () => readSeconds("5")],
  ["a duration below zero", () => readSeconds("-5s")],
  ["a duration of more than a week", () => readSeconds("8d")],
  ["days beyond a year", () => readDays("366d")],
  ["days that are not whole", () => readDays("36h")],
  ["a date that is none", () => readTime("2027-13-45")],
  ["an hour that no day has", () => readTime("2027-01-31T25:30")],
  ["a zone without a time", () => readTime("2027-01-31Z")],
  ["a time without a zone", () => readTime("2027-01-31T09:30")],
  ["a word where a time belongs", () => readTime("tomorrow")],
])("%s is a mistake of the command line", (_, work) => {
  expect(work).toThrow(InvalidArgumentError);
});
