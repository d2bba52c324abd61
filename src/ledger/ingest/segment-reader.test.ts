import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { TestFolder } from "../../../test/support/ledger-fixtures.ts";
import { headerBytes, sealFrame } from "../spool/frame.ts";
import { SegmentReader } from "./segment-reader.ts";

const payloads = ["one", "the second, längere", "", "drei 😀", "x".repeat(300)];

function frames(texts: readonly string[]): Uint8Array {
  const header = Buffer.alloc(headerBytes);
  return Buffer.concat(texts.map((text) => sealFrame(Buffer.concat([header, Buffer.from(text)]))));
}

/** The payloads that a reader has at the moment. */
function readOn(reader: SegmentReader, isSealed: boolean): string[] {
  const texts: string[] = [];
  for (let next = reader.next(isSealed); next !== undefined; next = reader.next(isSealed)) {
    texts.push(next.toString());
  }
  return texts;
}

function readAll(folder: TestFolder, bytes: Uint8Array) {
  const path = join(folder.path, "00000001.spool");
  writeFileSync(path, bytes);
  const reader = new SegmentReader(path);
  const texts = readOn(reader, true);
  reader.close();
  return { texts, skippedBytes: reader.skippedBytes };
}

test("records are read in the order written", () => {
  using folder = new TestFolder();
  expect(readAll(folder, frames(payloads))).toEqual({ texts: payloads, skippedBytes: 0 });
});

test("a file cut anywhere yields the frames before the cut, and the torn one is not damage", () => {
  using folder = new TestFolder();
  const whole = frames(payloads);
  const ends = payloads.map((_, index) => frames(payloads.slice(0, index + 1)).length);
  for (let length = 0; length <= whole.length; length += 1) {
    const complete = ends.filter((end) => end <= length).length;
    const expected = { texts: payloads.slice(0, complete), skippedBytes: 0 };
    expect(readAll(folder, whole.subarray(0, length))).toEqual(expected);
  }
});

test("a flipped bit costs only its own frame, and is counted", () => {
  using folder = new TestFolder();
  const whole = frames(payloads);
  const ends = payloads.map((_, index) => frames(payloads.slice(0, index + 1)).length);
  // In the last frame a flipped length looks like a torn write.
  const inspected = ends.at(-2) ?? 0;
  for (let bit = 0; bit < inspected * 8; bit += 1) {
    const damaged = Buffer.from(whole);
    damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    const hit = ends.findIndex((end) => end > bit >> 3);
    const length = (ends[hit] ?? 0) - (ends[hit - 1] ?? 0);
    const { texts, skippedBytes } = readAll(folder, damaged);
    expect([texts, skippedBytes]).toEqual([payloads.toSpliced(hit, 1), length]);
  }
});

test("reading continues after a gap longer than one read", () => {
  using folder = new TestFolder();
  const gap = Buffer.alloc(700_000, 0xf5);
  const bytes = Buffer.concat([frames(["before"]), gap, frames(["after"])]);
  expect(readAll(folder, bytes)).toEqual({ texts: ["before", "after"], skippedBytes: 700_000 });
});

test("records that span two reads are whole", () => {
  using folder = new TestFolder();
  const texts = Array.from({ length: 400 }, (_, index) => `${index}`.repeat(1 + (index % 997)));
  expect(readAll(folder, frames(texts))).toEqual({ texts, skippedBytes: 0 });
});

test("zeros after the last frame are not damage, other bytes are", () => {
  using folder = new TestFolder();
  const whole = frames(["only"]);
  const zeros = Buffer.concat([whole, Buffer.alloc(5_000)]);
  expect(readAll(folder, zeros)).toEqual({ texts: ["only"], skippedBytes: 0 });
  const rubbish = Buffer.concat([whole, Buffer.alloc(5_000, 7)]);
  expect(readAll(folder, rubbish)).toEqual({ texts: ["only"], skippedBytes: 5_000 });
});

test("a file that grows is read as far as it is written, and a torn record later, when it is whole", () => {
  using folder = new TestFolder();
  const path = join(folder.path, "00000001.spool");
  const whole = frames(payloads);
  writeFileSync(path, "");
  const reader = new SegmentReader(path);
  const texts: string[] = [];
  for (let length = 0; length <= whole.length; length += 7) {
    writeFileSync(path, whole.subarray(0, length));
    texts.push(...readOn(reader, false));
  }
  writeFileSync(path, whole);
  texts.push(...readOn(reader, true));
  reader.close();
  expect({ texts, skippedBytes: reader.skippedBytes }).toEqual({
    texts: payloads,
    skippedBytes: 0,
  });
});

test("bytes after the last record of a file that grows may be replaced", () => {
  using folder = new TestFolder();
  const path = join(folder.path, "00000001.spool");
  writeFileSync(path, Buffer.concat([frames(["one"]), Buffer.alloc(70_000)]));
  const reader = new SegmentReader(path);
  expect(readOn(reader, false)).toEqual(["one"]);
  writeFileSync(path, frames(["one", "two"]));
  expect(readOn(reader, true)).toEqual(["two"]);
  expect(reader.skippedBytes).toBe(0);
  reader.close();
});
