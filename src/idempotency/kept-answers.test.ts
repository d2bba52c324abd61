import { beforeEach, describe, expect, test } from "bun:test";
import type { IdempotencySettings } from "../domain/settings.ts";
import { StorageUnavailable } from "../store/errors.ts";
import { MemoryReplyStore } from "../../test/support/memory-reply-store.ts";
import type { AnsweredClaim, KeptReply } from "../store/store.ts";
import { SteppedClock } from "../../test/support/stepped-clock.ts";
import { testPeppers } from "../../test/support/test-peppers.ts";
import type { KeptAnswer } from "./answer.ts";
import { nameCall, type AllRequestNames } from "./request-names.ts";
import { KeptAnswers } from "./kept-answers.ts";
import { AnswerMemory } from "./kept-frames.ts";

const dayMs = 86_400_000;

/** A store that can be unavailable, or refuse the bodies of some replies. */
class FallibleReplies {
  readonly replies = new MemoryReplyStore();
  isWritable = true;
  /** The reply with this name is always refused. */
  refusedId: string | undefined;
  /** No body is accepted. */
  refusesBodies = false;

  async keep(answered: AnsweredClaim): Promise<number> {
    const { id } = answered.reply;
    if (!this.isWritable || id === this.refusedId) throw new StorageUnavailable("away");
    if (this.refusesBodies && answered.reply.body !== undefined) throw new Error("refused");
    return this.replies.keep(answered);
  }
}

let clock: SteppedClock;
let store: FallibleReplies;
let settings: IdempotencySettings;
let answers: KeptAnswers;
let told: string[];
let saved: Set<string>;
let memory: AnswerMemory;
const onAnswer = (result: string, amount = 1): void => void told.push(`${result} ${amount}`);

beforeEach(() => {
  clock = new SteppedClock();
  store = new FallibleReplies();
  told = [];
  saved = new Set();
  settings = {
    answerLimitBytes: 1_000,
    memoryLimitBytes: 1_000_000,
    storageLimitBytes: 1_000_000,
    keepMs: dayMs,
    waitingLimit: 10,
  };
  answers = make();
});

function make(): KeptAnswers {
  memory = new AnswerMemory(() => settings.memoryLimitBytes);
  return new KeptAnswers({
    store,
    clock,
    random: (target) => crypto.getRandomValues(target),
    settings: () => settings,
    memory,
    onAnswer,
  });
}

function namesOf(idempotencyKey: string, body = "{}", peppers = testPeppers()): AllRequestNames {
  const call = { keyId: "key_a", endpoint: "chat", capacity: "auto" } as const;
  return nameCall({ ...call, idempotencyKey, bodyDigest: body }, peppers);
}

function answerOf(text: string): KeptAnswer {
  return { headers: {}, text };
}

function keep(key: string, answer: KeptAnswer | undefined): Promise<void> {
  const claim = { holder: `of ${key}`, saved: () => void saved.add(key) };
  return answers.keep({ names: namesOf(key), claim, accountId: "acc_1", answer });
}

async function find({ id, older }: AllRequestNames): Promise<KeptReply | undefined> {
  const olderIds = older.map((names) => names.id);
  const keptAfter = clock.now() - settings.keepMs;
  const wanted = { id, olderIds, keptAfter, holder: "test", requestDigest: "" };
  const answer = await store.replies.claim(wanted);
  if (answer.kind === "kept") return answer.reply;
  await store.replies.release(wanted);
  return undefined;
}

async function textOf(names: AllRequestNames): Promise<string | undefined> {
  const reply = await find(names);
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
  test("an answer keeps its claim until it is stored", async () => {
    store.isWritable = false;
    await keep("a", answerOf("hello"));
    await clock.runScheduled();
    expect(saved).toEqual(new Set());
    store.isWritable = true;
    await clock.runScheduled();
    expect(saved).toEqual(new Set(["a"]));
    expect(await textOf(namesOf("a"))).toBe("hello");
  });

  test("answers wait in bounded memory; without room only the record of the call is kept", async () => {
    settings = { ...settings, memoryLimitBytes: 500 };
    store.isWritable = false;
    await keep("a", answerOf("x".repeat(300)));
    await keep("b", answerOf("y".repeat(300)));
    store.isWritable = true;
    await clock.runScheduled();
    expect(memory.heldBytes).toBe(0);
    expect(await textOf(namesOf("a"))).toHaveLength(300);
    expect(textOf(namesOf("b"))).rejects.toMatchObject({ code: "answer_not_kept" });
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

  test("an answer that the store always refuses stops no other", async () => {
    store.isWritable = false;
    for (const key of ["a", "b", "c"]) await keep(key, answerOf(`to ${key}`));
    store.isWritable = true;
    store.refusedId = namesOf("b").id;
    await clock.runScheduled();
    await clock.runScheduled();
    expect(saved).toEqual(new Set(["a", "c"]));
    expect(await textOf(namesOf("c"))).toBe("to c");
  });

  test("an answer that the store refuses for itself is not kept, but that its call was made", async () => {
    store.refusesBodies = true;
    await keep("a", answerOf("hello"));
    await clock.runScheduled();
    expect([saved, clock.scheduled.size, memory.heldBytes]).toEqual([new Set(["a"]), 0, 0]);
    expect(textOf(namesOf("a"))).rejects.toMatchObject({ code: "answer_not_kept" });
  });

  test("an answer that expires meanwhile is forgotten, and with it its claim", async () => {
    store.isWritable = false;
    await keep("a", answerOf("hello"));
    clock.advance(dayMs);
    await clock.runScheduled();
    expect([saved, clock.scheduled.size, memory.heldBytes]).toEqual([new Set(["a"]), 0, 0]);
  });
});
