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
}

function setUp(...answers: (number | Error)[]) {
  const files = new StagedFiles(...answers);
  const clock = new ManualTimers();
  const queue = new OutputQueue(clock, files.write);
  const ends: string[] = [];
  const push = (file: number, text: string): void => {
    const bytes = Buffer.from(text);
    const onEnd = (error?: unknown): void => void ends.push(error === undefined ? "ok" : "lost");
    queue.push({ file, bytes, onEnd });
  };
  return { files, clock, queue, ends, push };
}

test("outputs that wait behind a write are batched by file, in order", async () => {
  const { files, queue, ends, push } = setUp();
  push(2, "a\n");
  for (const text of ["b\n", "c\n"]) push(2, text);
  push(1, "d\n");
  push(2, "e\n");
  expect(queue.waitingBytes).toBe(10);
  await queue.idle();
  expect(files.writes).toEqual([
    [2, "a\n"],
    [2, "b\nc\n"],
    [1, "d\n"],
    [2, "e\n"],
  ]);
  expect(ends).toEqual(["ok", "ok", "ok", "ok", "ok"]);
  expect(queue.waitingBytes).toBe(0);
});

test("lines that follow a write wait for each other, unless they fill a batch", async () => {
  const { files, clock, queue, push } = setUp();
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  };
  const texts = (): readonly string[] => files.writes.map(([, text]) => text);
  push(2, "first\n");
  await turns();
  for (const text of ["a\n", "b\n"]) {
    push(2, text);
    await turns();
  }
  expect(texts()).toEqual(["first\n"]);
  clock.advance(20);
  await turns();
  expect(texts()).toEqual(["first\n", "a\nb\n"]);
  push(2, `${"x".repeat(5_000)}\n`);
  await turns();
  expect(texts()).toHaveLength(3);
  push(2, "last\n");
  await queue.idle();
  expect(texts().at(-1)).toBe("last\n");
});

test("a partial write is continued", async () => {
  const { files, queue, ends, push } = setUp(2, 1);
  push(2, "hello\n");
  await queue.idle();
  expect(files.writes.map(([, text]) => text)).toEqual(["he", "l", "lo\n"]);
  expect(ends).toEqual(["ok"]);
});

test("complete lines before a failure count as written, and a torn line is ended before the next", async () => {
  const { files, queue, ends, push } = setUp(2, 4, full, full);
  push(2, "a\n");
  for (const text of ["b\n", "cut\n", "lost\n"]) push(2, text);
  await queue.idle();
  expect(ends).toEqual(["ok", "ok", "lost", "lost"]);
  push(2, "d\n");
  await queue.idle();
  push(2, "e\n");
  await queue.idle();
  expect(ends.slice(4)).toEqual(["lost", "ok"]);
  expect(files.writes.map(([, text]) => text)).toEqual(["a\n", "b\ncu", "\ne\n"]);
});

test("a busy pipe is retried, and nothing is lost", async () => {
  const { files, clock, queue, ends, push } = setUp(busy, 1, busy);
  push(2, "ab\n");
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
  const { files, queue, push } = setUp(full);
  push(2, "lost\n");
  await queue.idle();
  for (let line = 0; line < 100; line += 1) push(2, `${"x".repeat(99)}\n`);
  await queue.idle();
  const [first = "", ...rest] = files.writes.map(([, text]) => text);
  expect(first).toStartWith("\n");
  for (const text of [first, ...rest]) {
    expect(text.length).toBeLessThanOrEqual(4_096);
    expect(text).toEndWith("\n");
  }
  expect(`${first}${rest.join("")}`).toHaveLength(1 + 100 * 100);
});
