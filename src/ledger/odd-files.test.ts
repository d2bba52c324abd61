import { expect, test } from "bun:test";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { closedCall, TestFolder } from "../../test/support/ledger-fixtures.ts";
import { writeDeadLetter } from "./ingest/dead-letter.ts";
import { listSegments } from "./spool/segment-files.ts";

test("a file name with an unsafe number is not a spool file", () => {
  using folder = new TestFolder();
  for (const name of ["00000007.spool", "99999999999999999999.spool"]) {
    writeFileSync(join(folder.path, name), "");
  }
  const path = join(folder.path, "00000007.spool");
  expect(listSegments(folder.path)).toEqual([{ number: 7, path }]);
});

test("a FIFO in place of the dead-letter file is refused without blocking", () => {
  using folder = new TestFolder();
  const path = join(folder.path, "dead-letter.ndjson");
  expect(Bun.spawnSync(["mkfifo", path]).exitCode).toBe(0);
  const row = { record: closedCall("req_1"), error: new Error("constraint") };
  expect(() => writeDeadLetter(folder.path, row, 0)).toThrow("ENXIO");
  // Opened for reading and writing, the FIFO has a reader.
  const reader = openSync(path, "r+");
  expect(() => writeDeadLetter(folder.path, row, 0)).toThrow("is a FIFO");
  closeSync(reader);
});
