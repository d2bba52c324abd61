import { beforeEach, describe, expect, test } from "bun:test";
import type { IdempotencySettings } from "../domain/idempotency-settings.ts";
import { StorageUnavailable } from "../store/errors.ts";
import { MemoryReplyStore } from "../../test/support/memory-reply-store.ts";
import type { KeptReply, ReplyStore } from "../store/store.ts";
import { SteppedClock } from "../../test/support/stepped-clock.ts";
import { testPeppers } from "../../test/support/test-peppers.ts";
import type { KeptAnswer } from "./shared/answer.ts";
import { nameCall } from "./call-names.ts";
import type { AllRequestNames } from "./request-names.ts";
import { KeptAnswers } from "./kept-answers.ts";

const dayMs = 86_400_000;

/** A store that can be unavailable, or refuse the bodies of some replies. */
class FallibleReplies implements ReplyStore {
  readonly #kept = new MemoryReplyStore();
  isReadable = true;
  isWritable = true;
  /** There is no room for bodies above this size. */
  bodyLimitBytes = Number.POSITIVE_INFINITY;
  /** The reply with this name is always refused. */
  refusedId: string | undefined;
  finds = 0;
  puts = 0;

  async find(id: string): Promise<KeptReply | undefined> {
    this.finds += 1;
    if (!this.isReadable) throw new StorageUnavailable("away");
    return this.#kept.find(id);
  }

  async put(reply: KeptReply, limitBytes: number): Promise<number> {
    this.puts += 1;
    if (!this.isWritable || reply.id === this.refusedId) throw new StorageUnavailable("away");
    if ((reply.body?.byteLength ?? 0) >= this.bodyLimitBytes) throw new StorageUnavailable("full");
    return this.#kept.put(reply, limitBytes);
  }

  prune(before: number, limit: number): Promise<number> {
    return this.#kept.prune(before, limit);
  }
}

let clock: SteppedClock;
let store: FallibleReplies;
let settings: IdempotencySettings;
let answers: KeptAnswers;
let told: string[];
const onAnswer = (result: string, amount = 1): void => void told.push(`${result} ${amount}`);

beforeEach(() => {
  clock = new SteppedClock();
  store = new FallibleReplies();
  told = [];
  settings = {
    answerLimitBytes: 1_000,
    memoryLimitBytes: 1_000_000,
    storageLimitBytes: 1_000_000,
    keepMs: dayMs,
  };
  answers = make();
});

function make(): KeptAnswers {
  return new KeptAnswers({
    store,
    clock,
    random: (target) => crypto.getRandomValues(target),
    settings: () => settings,
    onAnswer,
  });
}

function namesOf(idempotencyKey: string, body = "{}", peppers = testPeppers()): AllRequestNames {
  const call = { keyId: "key_a", endpoint: "chat", capacity: "auto" } as const;
  return nameCall({ ...call, idempotencyKey, bodyDigest: body }, peppers);
}

function answerOf(text: string): KeptAnswer {
  return { headers: {}, isStreamed: false, text };
}

function keep(key: string, answer: KeptAnswer | undefined): Promise<void> {
  return answers.keep({ names: namesOf(key), accountId: "acc_1", answer });
}

async function textOf(names: AllRequestNames): Promise<string | undefined> {
  const reply = await answers.find(names);
  return reply && answers.open(reply, names).text;
}

describe("answers that are kept", () => {
  test("are found by the same request, also by the next process", async () => {
    await keep("a", answerOf("hello"));
    expect(await textOf(namesOf("a"))).toBe("hello");
    answers = make();
    expect(await textOf(namesOf("a"))).toBe("hello");
    expect(await textOf(namesOf("b"))).toBeUndefined();
  });

  test("are found after a rotation of the peppers, as long as the old one is there", async () => {
    await keep("a", answerOf("hello"));
    expect(await textOf(namesOf("a", "{}", testPeppers("new", "test")))).toBe("hello");
    expect(await textOf(namesOf("a", "{}", testPeppers("new")))).toBeUndefined();
    expect(textOf(namesOf("a", "other", testPeppers("new", "test")))).rejects.toMatchObject({
      code: "idempotency_key_reused",
    });
  });

  test("are not shown to another request", async () => {
    await keep("a", answerOf("hello"));
    expect(textOf(namesOf("a", "other"))).rejects.toMatchObject({
      status: 409,
      code: "idempotency_key_reused",
      param: "Idempotency-Key",
    });
  });

  test("that were too large are refused as such", async () => {
    await keep("a", undefined);
    expect(textOf(namesOf("a"))).rejects.toMatchObject({ status: 409, code: "answer_not_kept" });
  });

  test("expire", async () => {
    await keep("a", answerOf("hello"));
    clock.advance(dayMs - 1);
    expect(await textOf(namesOf("a"))).toBe("hello");
    clock.advance(1);
    expect(await textOf(namesOf("a"))).toBeUndefined();
  });

  test("are reported, with the answers that were evicted for them", async () => {
    settings = { ...settings, storageLimitBytes: 2_000 };
    for (const key of ["a", "b"]) await keep(key, answerOf("hello"));
    await keep("c", undefined);
    await keep("d", answerOf("x".repeat(1_300)));
    expect(told).toEqual(["stored 1", "stored 1", "too_large 1", "evicted 3", "stored 1"]);
  });
});

describe("while the store is unavailable", () => {
  test("a repeat is refused, because its call may have been made", async () => {
    store.isReadable = false;
    expect(textOf(namesOf("a"))).rejects.toMatchObject({
      status: 503,
      code: "model_unavailable",
      headers: { "retry-after": "5", "retry-after-ms": "5000" },
    });
  });

  test("a new answer is found, and is stored before the store is asked for others", async () => {
    store.isWritable = false;
    await keep("a", answerOf("hello"));
    expect(await textOf(namesOf("a"))).toBe("hello");
    expect(answers.find(namesOf("b"))).rejects.toMatchObject({ status: 503 });
    store.isWritable = true;
    expect(await textOf(namesOf("b"))).toBeUndefined();
    answers = make();
    expect(await textOf(namesOf("a"))).toBe("hello");
  });

  test("answers wait in bounded memory; without room only the record of the call is kept", async () => {
    settings = { ...settings, memoryLimitBytes: 500 };
    store.isWritable = false;
    await keep("a", answerOf("x".repeat(300)));
    await keep("b", answerOf("y".repeat(300)));
    expect(await textOf(namesOf("a"))).toHaveLength(300);
    expect(textOf(namesOf("b"))).rejects.toMatchObject({ code: "answer_not_kept" });
    store.isWritable = true;
    await answers.find(namesOf("c"));
    store.isWritable = false;
    await keep("d", answerOf("z".repeat(300)));
    expect(await textOf(namesOf("d"))).toHaveLength(300);
  });

  test("stored answers are found while nothing can be stored, and no new call is made", async () => {
    await keep("a", answerOf("hello"));
    store.isWritable = false;
    await keep("b", answerOf("later"));
    expect(await textOf(namesOf("a"))).toBe("hello");
    expect(answers.find(namesOf("c"))).rejects.toMatchObject({ status: 503 });
  });

  test("answers are stored once it is available again, without a request for them", async () => {
    store.isWritable = false;
    for (const key of ["a", "b"]) await keep(key, answerOf(`to ${key}`));
    expect(clock.scheduled.size).toBe(1);
    await clock.runScheduled();
    expect(clock.scheduled.size).toBe(1);
    store.isWritable = true;
    await clock.runScheduled();
    expect(clock.scheduled.size).toBe(0);
    answers = make();
    for (const key of ["a", "b"]) expect(await textOf(namesOf(key))).toBe(`to ${key}`);
  });

  test("answers are stored on close, if possible", async () => {
    store.isWritable = false;
    await keep("a", answerOf("hello"));
    await answers.close();
    expect(clock.scheduled.size).toBe(0);
    store.isWritable = true;
    await answers.close();
    answers = make();
    expect(await textOf(namesOf("a"))).toBe("hello");
  });

  test("one answer that cannot be stored stops no other, and its call is recorded", async () => {
    store.isWritable = false;
    const large = "x".repeat(500);
    for (const text of [large, "small", large, "tiny"]) {
      await keep(`${text.length} of ${store.puts}`, answerOf(text));
    }
    store.isWritable = true;
    store.bodyLimitBytes = 400;
    expect(await textOf(namesOf("another"))).toBeUndefined();
    expect(clock.scheduled.size).toBe(1);
    await clock.runScheduled();
    expect(clock.scheduled.size).toBe(0);
    answers = make();
    expect(await textOf(namesOf("5 of 1"))).toBe("small");
    expect(await textOf(namesOf("4 of 3"))).toBe("tiny");
    expect(textOf(namesOf("500 of 0"))).rejects.toMatchObject({ code: "answer_not_kept" });
    expect(textOf(namesOf("500 of 2"))).rejects.toMatchObject({ code: "answer_not_kept" });
    expect(told.toSorted()).toEqual(["stored 1", "stored 1", "too_large 1", "too_large 1"]);
  });

  test("a reply that the store always refuses stops no other, and is still found", async () => {
    store.isWritable = false;
    for (const key of ["a", "b", "c"]) await keep(key, answerOf(`to ${key}`));
    store.isWritable = true;
    store.refusedId = namesOf("a").id;
    expect(await textOf(namesOf("another"))).toBeUndefined();
    expect(await textOf(namesOf("a"))).toBe("to a");
    answers = make();
    expect(await textOf(namesOf("b"))).toBe("to b");
    expect(await textOf(namesOf("c"))).toBe("to c");
  });

  test("a run ends after a few failures, and the next one starts with other answers", async () => {
    store.isWritable = false;
    const keys = Array.from({ length: 10 }, (_, index) => `key-${index}`);
    for (const key of keys) await keep(key, undefined);
    store.puts = 0;
    expect(answers.find(namesOf("another"))).rejects.toMatchObject({ status: 503 });
    await clock.runScheduled();
    expect(store.puts).toBeLessThanOrEqual(6);
    store.isWritable = true;
    await clock.runScheduled();
    answers = make();
    for (const key of keys) {
      expect(textOf(namesOf(key))).rejects.toMatchObject({ code: "answer_not_kept" });
    }
  });

  test("an answer that replaces another is the one that is stored, and counts once", async () => {
    settings = { ...settings, memoryLimitBytes: 500, keepMs: 60_000 };
    store.isWritable = false;
    for (let count = 0; count < 5; count += 1) {
      clock.advance(60_000);
      await keep("a", answerOf(`${count}`.repeat(300)));
    }
    expect(await textOf(namesOf("a"))).toBe("4".repeat(300));
    store.isWritable = true;
    await clock.runScheduled();
    expect(clock.scheduled.size).toBe(0);
    answers = make();
    expect(await textOf(namesOf("a"))).toBe("4".repeat(300));
  });

  test("an answer that arrives while an earlier one is being stored is not lost", async () => {
    settings = { ...settings, keepMs: 60_000 };
    store.isWritable = false;
    await keep("a", answerOf("earlier"));
    store.isWritable = true;
    const saving = clock.runScheduled();
    store.isWritable = false;
    await Promise.all([saving, keep("a", answerOf("later"))]);
    store.isWritable = true;
    await clock.runScheduled();
    answers = make();
    expect(await textOf(namesOf("a"))).toBe("later");
  });
});

test("the call of an answer that cannot be encrypted is recorded", async () => {
  answers = new KeptAnswers({
    store,
    clock,
    random: () => {
      throw new Error("no randomness");
    },
    settings: () => settings,
    onAnswer,
  });
  await keep("a", answerOf("hello"));
  expect(textOf(namesOf("a"))).rejects.toMatchObject({ code: "answer_not_kept" });
});
