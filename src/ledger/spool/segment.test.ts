import { expect, test } from "bun:test";
import { closedCall, TestFolder } from "../../../test/support/ledger-fixtures.ts";
import { CallEntry, Segment } from "./segment.ts";
import { systemFiles, type SpoolFiles } from "./spool-files.ts";

test("a call that ended during a sync is kept until the next one", async () => {
  using folder = new TestFolder();
  const disk = Promise.withResolvers<void>();
  const files: SpoolFiles = { ...systemFiles, sync: () => disk.promise };
  const segment = new Segment({ folder: folder.path, number: 1, files, createdAt: 0 });
  const [before, during] = [ended("req_1"), ended("req_2")];
  segment.append(new Uint8Array(100));
  segment.hasEnded(before, true);
  const earlier = segment.sync();
  segment.append(new Uint8Array(50));
  segment.hasEnded(during, true);
  expect(segment.unsynced).toEqual([before, during]);
  disk.resolve();
  await earlier;
  expect(segment.unsynced).toEqual([during]);
  await segment.sync();
  expect(segment.unsynced).toEqual([]);
  await segment.close();
});

function ended(id: string): CallEntry {
  const entry = new CallEntry();
  entry.record = closedCall(id);
  return entry;
}
