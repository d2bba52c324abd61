import { expect, test } from "bun:test";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { closedCall, LedgerLog, TestFolder } from "../../test/support/ledger-fixtures.ts";
import { writeDeadLetter } from "./dead-letter.ts";
import { findLeftFiles } from "./replay.ts";

test("a number that nothing can be counted on from is no file of the spool", () => {
  using folder = new TestFolder();
  for (const name of ["00000007.spool", "99999999999999999999.spool"]) {
    writeFileSync(join(folder.path, name), "");
  }
  const left = findLeftFiles(folder.path, new LedgerLog());
  expect(left.paths).toEqual([join(folder.path, "00000007.spool")]);
  expect(left.nextNumber).toBe(8);
});

test("a FIFO in the place of the dead-letter file is refused, and not waited for", () => {
  using folder = new TestFolder();
  const path = join(folder.path, "dead-letter.ndjson");
  expect(Bun.spawnSync(["mkfifo", path]).exitCode).toBe(0);
  const row = { record: closedCall("req_1"), error: new Error("constraint") };
  expect(() => writeDeadLetter(folder.path, row, 0)).toThrow("ENXIO");
  // Open for reading and writing, it has a reader, and opens.
  const reader = openSync(path, "r+");
  expect(() => writeDeadLetter(folder.path, row, 0)).toThrow("is a FIFO");
  closeSync(reader);
});
