import { afterAll, expect, test } from "bun:test";
import { appendFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EventOutbox } from "./event-outbox.ts";

const root = mkdtempSync(join(tmpdir(), "sluice-events-"));
const opened: EventOutbox[] = [];
afterAll(async () => {
  await Promise.all(opened.map((outbox) => outbox.close()));
  rmSync(root, { recursive: true, force: true });
});
let folders = 0;

function setUp(segmentBytes = 1_000_000) {
  folders += 1;
  const folder = join(root, String(folders));
  const open = (): EventOutbox => {
    const outbox = new EventOutbox({ folder, segmentBytes });
    opened.push(outbox);
    return outbox;
  };
  return { folder, open };
}

async function readAll(outbox: EventOutbox, mostEvents = 100): Promise<readonly string[]> {
  const lines: string[] = [];
  for (;;) {
    const batch = await outbox.next(mostEvents);
    if (batch === undefined) return lines;
    lines.push(...batch.lines);
    await outbox.confirm(batch);
  }
}

test("events come in the order in which they were added, in batches", async () => {
  const outbox = setUp().open();
  expect(await outbox.next(10)).toBeUndefined();
  await outbox.append(["1", "2", "3"]);
  await outbox.append(["ä", "5"]);
  expect((await outbox.next(2))?.lines).toEqual(["1", "2"]);
  expect(await readAll(outbox, 2)).toEqual(["1", "2", "3", "ä", "5"]);
  await outbox.append(["6"]);
  expect(await readAll(outbox)).toEqual(["6"]);
});

test("what was not confirmed comes again after a restart, and nothing else", async () => {
  const { open } = setUp();
  const before = open();
  await before.append(["1", "2", "3"]);
  const batch = await before.next(1);
  if (batch !== undefined) await before.confirm(batch);
  await before.next(2);
  // As after a crash, the file is left open.
  const after = open();
  await after.append(["4"]);
  expect(await readAll(after)).toEqual(["2", "3", "4"]);
});

test("files whose events the receiver has are removed", async () => {
  const { folder, open } = setUp(10);
  const outbox = open();
  const lines = Array.from({ length: 20 }, (_, index) => `event ${index}`);
  for (const line of lines) await outbox.append([line]);
  expect(readdirSync(folder).length).toBeGreaterThan(5);
  expect(await readAll(outbox, 3)).toEqual(lines);
  expect(readdirSync(folder).filter((name) => name.endsWith(".ndjson"))).toHaveLength(1);
  expect(await readAll(open())).toEqual([]);
});

test("a line that a crash has cut is removed, because its row is stored again", async () => {
  const { folder, open } = setUp();
  const before = open();
  await before.append(["1"]);
  const [name = ""] = readdirSync(folder);
  appendFileSync(join(folder, name), '{"id":"req_2"');
  const after = open();
  await after.append(["2"]);
  expect(await readAll(after)).toEqual(["1", "2"]);
});

test("events can be added while others are read", async () => {
  const outbox = setUp(50).open();
  const lines = Array.from({ length: 200 }, (_, index) => `event ${index}`);
  const got: string[] = [];
  const adding = (async () => {
    for (const line of lines) await outbox.append([line]);
  })();
  while (got.length < lines.length) got.push(...(await readAll(outbox, 7)));
  await adding;
  expect(got).toEqual(lines);
});
