import { expect, test } from "bun:test";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { closedCall, LedgerLog, TestFolder } from "../../test/support/ledger-fixtures.ts";
import { writeDeadLetter } from "./dead-letter.ts";
import { findLeftFiles } from "./replay.ts";

test("a file name with an unsafe number is not a spool file", () => {
  using folder = new TestFolder();
  for (const name of ["00000007.spool", "99999999999999999999.spool"]) {
    writeFileSync(join(folder.path, name), "");
  }
  const left = findLeftFiles(folder.path, new LedgerLog());
  expect(left.paths).toEqual([join(folder.path, "00000007.spool")]);
  expect(left.nextNumber).toBe(8);
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
