import { expect, test } from "bun:test";
import { nextOf, WaitingReader, type Flow } from "./flow.ts";

/** A flow of numbers that the test gives; it fails at 0. */
class Numbers implements Flow<number> {
  readonly #reader = new WaitingReader();
  readonly #given: number[] = [];
  isOver = false;

  give(number: number): void {
    this.#given.push(number);
    this.#reader.wake();
  }

  end(): void {
    this.isOver = true;
    this.#reader.wake();
  }

  take(): number | undefined {
    const number = this.#given.shift();
    if (number === 0) throw new Error("it failed");
    return number;
  }

  whenReady(call: () => void): void {
    this.#reader.whenReady(call);
  }
}

test("the next item is what is there, or what comes, or the end", async () => {
  const numbers = new Numbers();
  numbers.give(1);
  expect(await nextOf(numbers)).toBe(1);
  const second = nextOf(numbers);
  numbers.give(2);
  expect(await second).toBe(2);
  const third = nextOf(numbers);
  numbers.end();
  expect(await third).toBeUndefined();
  expect(await nextOf(numbers)).toBeUndefined();
});

test("a failure that comes reaches who waits", async () => {
  const numbers = new Numbers();
  const next = nextOf(numbers);
  numbers.give(0);
  expect(next).rejects.toThrow("it failed");
});

test("a reader that waits is called once", () => {
  const reader = new WaitingReader();
  let calls = 0;
  reader.wake();
  reader.whenReady(() => (calls += 10));
  reader.whenReady(() => (calls += 1));
  reader.wake();
  reader.wake();
  expect(calls).toBe(1);
});
