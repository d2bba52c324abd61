import { expect, test } from "bun:test";
import { ManualTimers } from "../../../test/support/manual-timers.ts";
import { LogOutput, OutputQueue } from "./log-output.ts";

/** A log whose reader the test controls. */
class StagedLog {
  readonly clock = new ManualTimers();
  readonly lines: string[] = [];
  #isFull = false;
  #reader: PromiseWithResolvers<void> | undefined;
  readonly queue = new OutputQueue(this.clock, {
    write: async (_, bytes) => {
      await this.#reader?.promise;
      if (this.#isFull) throw new Error("full");
      this.lines.push(...Buffer.from(bytes).toString().split("\n").slice(0, -1));
      return bytes.length;
    },
    isRegular: () => false,
  });
  readonly output = new LogOutput(this.queue, this.clock);

  constructor(limitBytes: number) {
    this.output.configure({ limitBytes, describeDropped: (lines) => `dropped ${lines}` });
  }

  write(count: number, text = "line"): void {
    for (let line = 0; line < count; line += 1) this.output.write(text);
  }

  set isFull(value: boolean) {
    this.#isFull = value;
  }

  stopReading(): void {
    this.#reader = Promise.withResolvers();
  }

  readOn(): void {
    this.#reader?.resolve();
    this.#reader = undefined;
  }

  async second(): Promise<void> {
    this.clock.advance(1_000);
    await this.queue.idle();
  }
}

test("failed lines are counted and reported in one line once writing works", async () => {
  const log = new StagedLog(1_000);
  log.isFull = true;
  log.write(3);
  await log.queue.idle();
  await log.second();
  await log.second();
  expect(log.output.droppedLines).toBe(3);
  log.write(2);
  await log.queue.idle();
  log.isFull = false;
  await log.second();
  await log.second();
  // The line before may have been cut short.
  expect(log.lines).toEqual(["", "dropped 5"]);
  log.write(1);
  await log.queue.idle();
  expect(log.lines).toEqual(["", "dropped 5", "line"]);
});

test("lines beyond the limit are dropped and reported once, when there is room", async () => {
  const log = new StagedLog(50);
  log.stopReading();
  log.write(30);
  expect(log.queue.waitingBytes).toBe(50);
  expect(log.output.droppedLines).toBe(20);
  // The waiting bytes still leave no room.
  log.clock.advance(5_000);
  expect(log.queue.waitingBytes).toBe(50);
  log.readOn();
  await log.queue.idle();
  await log.second();
  await log.second();
  const tenLines = Array.from({ length: 10 }, () => "line");
  expect(log.lines).toEqual([...tenLines, "dropped 20"]);
});

test("a count that waits to be written is not reported twice", async () => {
  const log = new StagedLog(1_000);
  log.isFull = true;
  log.write(1);
  await log.queue.idle();
  log.isFull = false;
  log.stopReading();
  log.clock.advance(1_000);
  // Another line is lost while the first count waits.
  log.write(1, "x".repeat(2_000));
  log.clock.advance(1_000);
  log.readOn();
  await log.queue.idle();
  await log.second();
  expect(log.lines).toEqual(["", "dropped 1", "dropped 1"]);
});

test("the end reports the remaining count and leaves no timer", async () => {
  const log = new StagedLog(1_000);
  log.isFull = true;
  log.write(4);
  await log.queue.idle();
  log.isFull = false;
  log.output.end();
  await log.queue.idle();
  await log.second();
  expect(log.lines).toEqual(["", "dropped 4"]);
});
