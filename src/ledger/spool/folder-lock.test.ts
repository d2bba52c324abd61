import { expect, test } from "bun:test";
import { mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FolderLock } from "./folder-lock.ts";

test("a lock that cannot be opened or taken is named with its path", () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-lock-"));
  symlinkSync("/no-such-folder/lock", join(folder, "lock"));
  expect(() => new FolderLock(folder)).toThrow(`${join(folder, "lock")} cannot be locked`);
  writeFileSync(join(folder, "leader.lock"), "this is no database ".repeat(100));
  expect(() => new FolderLock(folder, "leader.lock").take()).toThrow(
    `${join(folder, "leader.lock")} cannot be locked`,
  );
});
