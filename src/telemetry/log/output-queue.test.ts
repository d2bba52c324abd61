import { expect, test } from "bun:test";
import { ManualTimers } from "../../../test/support/manual-timers.ts";
import { OutputQueue } from "./log-output.ts";

const busy = Object.assign(new Error("busy"), { code: "EAGAIN" });
const full = Object.assign(new Error("full"), { code: "ENOSPC" });

/** A system that answers each write as the test says, with a byte count or an error. */
class StagedFiles {
  readonly #answers: (number | Error)[];
  readonly writes: (readonly [number, string])[] = [];

  constructor(...answers: (number | Error)[]) {
    this.#answers = answers;
  }

  readonly write = (file: number, bytes: Uint8Array): Promise<number> => {
    const answer = this.#answers.shift() ?? bytes.length;
    if (typeof answer !== "number") return Promise.reject(answer);
    this.writes.push([file, Buffer.from(bytes.subarray(0, answer)).toString()]);
    return Promise.resolve(answer);
  };

  /** A file; all others are pipes. */
  readonly isRegular = (file: number): boolean => file === 3;
}

function setUp(...answers: (number | Error)[]) {
  const files = new StagedFiles(...answers);
  const clock = new ManualTimers();
  const queue = new OutputQueue(clock, files);
  const ends: string[] = [];
  const onEnd = (error: unknown, lost: number): void =>
    void ends.push(error === undefined ? "ok" : `${lost} lost`);
  const append = (file: number, line: string): void => queue.append(file, line, onEnd);
  return { files, clock, queue, ends, append, onEnd };
}

test("lines that wait behind a write are batched by file, in order, and bytes are written alone", async () => {
  const { files, queue, ends, append, onEnd } = setUp();
  append(2, "a");
  for (const text of ["b", "c"]) append(2, text);
  append(1, "d");
  append(2, "e");
  queue.push(2, Buffer.from("bytes"), onEnd);
  append(2, "f");
  expect(queue.waitingBytes).toBe(17);
  await queue.idle();
  expect(files.writes).toEqual([
    [2, "a\n"],
    [2, "b\nc\n"],
    [1, "d\n"],
    [2, "e\n"],
    [2, "bytes"],
    [2, "f\n"],
  ]);
  expect(ends).toEqual(["ok", "ok", "ok", "ok", "ok", "ok"]);
  expect(queue.waitingBytes).toBe(0);
});

test("lines that follow a write wait for each other, unless they fill a batch", async () => {
  const { files, clock, queue, append } = setUp();
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  };
  const texts = (): readonly string[] => files.writes.map(([, text]) => text);
  append(2, "first");
  await turns();
  for (const text of ["a", "b"]) {
    append(2, text);
    await turns();
  }
  expect(texts()).toEqual(["first\n"]);
  clock.advance(20);
  await turns();
  expect(texts()).toEqual(["first\n", "a\nb\n"]);
  append(2, "x".repeat(5_000));
  append(2, "last");
  await turns();
  expect(texts()).toHaveLength(3);
  await queue.idle();
  expect(texts().at(-1)).toBe("last\n");
});

test("a partial write is continued", async () => {
  const { files, queue, ends, append } = setUp(2, 1);
  append(2, "hello");
  await queue.idle();
  expect(files.writes.map(([, text]) => text)).toEqual(["he", "l", "lo\n"]);
  expect(ends).toEqual(["ok"]);
});

test("complete lines before a failure count as written, and a torn line is ended before the next", async () => {
  const { files, queue, ends, append } = setUp(2, 4, full, full);
  append(2, "a");
  for (const text of ["b", "cut", "lost"]) append(2, text);
  await queue.idle();
  expect(ends).toEqual(["ok", "2 lost"]);
  append(2, "d");
  await queue.idle();
  append(2, "e");
  await queue.idle();
  expect(ends.slice(2)).toEqual(["1 lost", "ok"]);
  expect(files.writes.map(([, text]) => text)).toEqual(["a\n", "b\ncu", "\ne\n"]);
});

test("a busy pipe is retried, and nothing is lost", async () => {
  const { files, clock, queue, ends, append } = setUp(busy, 1, busy);
  append(2, "ab");
  for (let tries = 0; tries < 2; tries += 1) {
    await Bun.sleep(1);
    expect(ends).toEqual([]);
    clock.advance(1_000);
  }
  await queue.idle();
  expect(files.writes.map(([, text]) => text)).toEqual(["a", "b\n"]);
  expect(ends).toEqual(["ok"]);
});

test("lines are written together only as far as a pipe of several processes keeps them whole", async () => {
  const { files, queue, append } = setUp(full);
  append(2, "lost");
  await queue.idle();
  for (let line = 0; line < 100; line += 1) append(2, "x".repeat(99));
  await queue.idle();
  const [first = "", ...rest] = files.writes.map(([, text]) => text);
  expect(first).toStartWith("\n");
  for (const text of [first, ...rest]) {
    expect(text.length).toBeLessThanOrEqual(4_096);
    expect(text).toEndWith("\n");
  }
  expect(`${first}${rest.join("")}`).toHaveLength(1 + 100 * 100);
});

test("a file takes more lines in one write", async () => {
  const { files, queue, append } = setUp();
  for (let line = 0; line < 1_000; line += 1) append(3, "x".repeat(99));
  await queue.idle();
  expect(files.writes.map(([, text]) => text.length)).toEqual([100, 65_500, 34_400]);
});
