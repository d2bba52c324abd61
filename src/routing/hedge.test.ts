import { describe, expect, test } from "bun:test";
import { firstToAnswer, type HedgedAttempt } from "./hedge.ts";

interface Played {
  readonly attempt: HedgedAttempt<string>;
  readonly resolve: (answer: string) => void;
  readonly reject: (error: Error) => void;
  readonly log: readonly string[];
}

/** An attempt that the test controls. */
function play(): Played {
  const { promise: answer, resolve, reject } = Promise.withResolvers<string>();
  const log: string[] = [];
  const attempt = {
    answer,
    abort: () => void log.push("aborted"),
    isFinalFor: (error: unknown) => error === final,
    discard: (late: string) => void log.push(`discarded ${late}`),
  };
  return { attempt, resolve, reject, log };
}

const passing = new Error("passing");
const final = new Error("final");

function hedge(): { one: Played; other: Played; outcome: Promise<string> } {
  const one = play();
  const other = play();
  const outcome = firstToAnswer({ one: one.attempt, other: other.attempt });
  return { one, other, outcome: outcome.catch((error: unknown) => String(error)) };
}

describe("a hedge", () => {
  test("returns the first answer and aborts the other attempt", async () => {
    const { one, other, outcome } = hedge();
    other.resolve("fast");
    expect(await outcome).toBe("fast");
    expect(one.log).toEqual(["aborted"]);
  });

  test("discards a second answer", async () => {
    const { one, other, outcome } = hedge();
    one.resolve("first");
    other.resolve("second");
    expect(await outcome).toBe("first");
    expect(other.log).toEqual(["aborted", "discarded second"]);
  });

  test("waits for the other attempt when one has failed", async () => {
    const { one, other, outcome } = hedge();
    one.reject(passing);
    await Promise.resolve();
    other.resolve("late");
    expect(await outcome).toBe("late");
    expect(other.log).toEqual([]);
  });

  test("fails with the later failure when both fail", async () => {
    const { one, other, outcome } = hedge();
    one.reject(new Error("earlier"));
    await Promise.resolve();
    other.reject(passing);
    expect(await outcome).toBe("Error: passing");
  });

  test("fails at once on a failure that is final for the other attempt", async () => {
    const { one, other, outcome } = hedge();
    one.reject(final);
    expect(await outcome).toBe("Error: final");
    expect(other.log).toEqual(["aborted"]);
    other.resolve("late");
    await other.attempt.answer;
    expect(other.log).toEqual(["aborted", "discarded late"]);
  });
});
