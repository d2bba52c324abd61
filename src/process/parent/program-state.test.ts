import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readProgramState } from "./program-state.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "sluice-program-"));
  mkdirSync(join(root, "src/part"), { recursive: true });
  writeFileSync(join(root, "package.json"), "{}");
  writeFileSync(join(root, "src/part/one.ts"), "1");
});
afterEach(() => rmSync(root, { recursive: true }));

test("the state of a program stays while its files do", () => {
  const before = readProgramState(root);
  expect(before).toBeString();
  writeFileSync(join(root, "README.md"), "read me");
  expect(readProgramState(root)).toBe(before);
});

test("a file replaced by one of the same size and time is another program", () => {
  const path = join(root, "src/part/one.ts");
  const time = new Date(0);
  utimesSync(path, time, time);
  const before = readProgramState(root);
  writeFileSync(`${path}.new`, "2");
  utimesSync(`${path}.new`, time, time);
  renameSync(`${path}.new`, path);
  expect(readProgramState(root)).not.toBe(before);
});

test("a program without its files has no state", () => {
  rmSync(join(root, "package.json"));
  expect(readProgramState(root)).toBeUndefined();
});
