import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RotatedFile } from "./rotated-file.ts";

test("lines are read after all that was to be written over before them", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-events-"));
  const path = join(folder, "events.ndjson");
  const file = new RotatedFile({ path, rotateBytes: 1e6 }, () => 0);
  const linesNow = () => Promise.resolve([readFileSync(path, "utf8").trim()]);
  await file.append(() => Promise.resolve(['{"end_user":"x"}']));
  const parts = new Map([['"end_user":"x"', '"end_user":""']]);
  await Promise.all([file.overwrite(() => true, parts), file.append(linesNow)]);
  expect(readFileSync(path, "utf8")).toBe('{"end_user":"" }\n'.repeat(2));
  await file.close();
  rmSync(folder, { recursive: true });
});
