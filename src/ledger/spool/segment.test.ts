import { expect, test } from "bun:test";
import { TestFolder } from "../../../test/support/ledger-fixtures.ts";
import { Segment } from "./segment.ts";
import { systemFiles, type SpoolFiles } from "./spool-files.ts";

test("a write during the sync of a file that was then cleared is not synced yet", async () => {
  using folder = new TestFolder();
  const disk = Promise.withResolvers<void>();
  const files: SpoolFiles = { ...systemFiles, sync: () => disk.promise };
  const segment = new Segment({ folder: folder.path, number: 1, files, createdAt: 0 });
  segment.append(new Uint8Array(100));
  const earlier = segment.sync();
  segment.clear();
  segment.append(new Uint8Array(50));
  disk.resolve();
  await earlier;
  expect(segment.isSafeUpTo(50)).toBe(false);
  await segment.sync();
  expect(segment.isSafeUpTo(50)).toBe(true);
  await segment.close();
});

test("a write during a sync is not synced yet", async () => {
  using folder = new TestFolder();
  const disk = Promise.withResolvers<void>();
  const files: SpoolFiles = { ...systemFiles, sync: () => disk.promise };
  const segment = new Segment({ folder: folder.path, number: 1, files, createdAt: 0 });
  segment.append(new Uint8Array(100));
  const earlier = segment.sync();
  segment.append(new Uint8Array(50));
  disk.resolve();
  await earlier;
  expect([segment.isSafeUpTo(100), segment.isSafeUpTo(101)]).toEqual([true, false]);
  await segment.close();
});
