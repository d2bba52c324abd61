import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keepLastGood, readLastGood } from "./last-good.ts";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-last-good-"));
  path = join(folder, "config.last-good");
});
afterEach(() => rmSync(folder, { recursive: true }));

test("the configuration that was accepted last is kept, for its owner alone", async () => {
  expect(readLastGood(folder)).toBeUndefined();
  await keepLastGood(folder, "one");
  expect(readLastGood(folder)).toBe("one");
  await keepLastGood(folder, "two");
  expect(readLastGood(folder)).toBe("two");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(["config.last-good"]);
});

test("one that is kept already is not written again", async () => {
  await keepLastGood(folder, "one");
  const before = statSync(path).ino;
  await keepLastGood(folder, "one");
  expect(statSync(path).ino).toBe(before);
});

test("what a killed process had half written is replaced", async () => {
  writeFileSync(`${path}.new`, "half", { mode: 0o644 });
  await keepLastGood(folder, "whole");
  expect(readLastGood(folder)).toBe("whole");
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("a directory that cannot be written to is an error, and has no configuration", async () => {
  const missing = join(folder, "missing");
  expect(await keepLastGood(missing, "one").catch((error: unknown) => error)).toHaveProperty(
    "code",
    "ENOENT",
  );
  expect(readLastGood(missing)).toBeUndefined();
});
