import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { report } from "./scorecard.ts";

let folder: string;
let before: string | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-scorecard-test-"));
  before = process.env["SLUICE_SCORECARD"];
});
afterEach(() => {
  if (before === undefined) delete process.env["SLUICE_SCORECARD"];
  else process.env["SLUICE_SCORECARD"] = before;
  rmSync(folder, { recursive: true, force: true });
});

const figure = { check: 18, name: "upstream closed", value: "3 ms", limit: "<= 50 ms" };

test("every figure is a line of the file that the environment names, met or not", () => {
  const file = join(folder, "figures.jsonl");
  process.env["SLUICE_SCORECARD"] = file;
  const lines = [
    { ...figure, isMet: true },
    { ...figure, value: "70 ms", isMet: false },
  ];
  for (const line of lines) report(line);
  const written = readFileSync(file, "utf8").trim().split("\n");
  expect(written.map((text): unknown => JSON.parse(text))).toEqual(lines);
});

test("without such a file a figure is printed all the same", () => {
  delete process.env["SLUICE_SCORECARD"];
  expect(() => report({ ...figure, isMet: false })).not.toThrow();
});
