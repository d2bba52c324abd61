import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { TestFolder } from "../../../test/support/ledger-fixtures.ts";
import { listSegments } from "./segment-files.ts";

test("a file name with an unsafe number is not a spool file", () => {
  using folder = new TestFolder();
  for (const name of ["00000007.spool", "99999999999999999999.spool"]) {
    writeFileSync(join(folder.path, name), "");
  }
  const path = join(folder.path, "00000007.spool");
  expect(listSegments(folder.path)).toEqual([{ number: 7, path }]);
});
