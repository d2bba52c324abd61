import { beforeEach, describe, expect, test } from "bun:test";
import type { IdempotencySettings } from "../../domain/idempotency-settings.ts";
import { StorageUnavailable } from "../../storage/errors.ts";
import { MemoryReplyStore } from "../../storage/memory/reply-store.ts";
import type { KeptReply, ReplyStore } from "../../storage/store.ts";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { createKeyDigest } from "../authenticate.ts";
import type { KeptAnswer } from "./answer-seal.ts";
import { nameCall, type CallNames } from "./call-names.ts";
import { KeptAnswers } from "./kept-answers.ts";

const digest = createKeyDigest("a pepper for tests that is long enough");
const dayMs = 86_400_000;

/** A store that can be away. */
class FallibleReplies implements ReplyStore {
  readonly #kept = new MemoryReplyStore();
  isReadable = true;
  isWritable = true;
  finds = 0;

  async find(id: string): Promise<KeptReply | undefined> {
    this.finds += 1;
    if (!this.isReadable) throw new StorageUnavailable("away");
    return this.#kept.find(id);
  }

  async put(reply: KeptReply, limitBytes: number): Promise<void> {
    if (!this.isWritable) throw new StorageUnavailable("away");
    return this.#kept.put(reply, limitBytes);
  }

  prune(before: number, limit: number): Promise<number> {
    return this.#kept.prune(before, limit);
  }
}

let clock: ManualClock;
let store: FallibleReplies;
let settings: IdempotencySettings;
let answers: KeptAnswers;

beforeEach(() => {
  clock = new ManualClock();
  store = new FallibleReplies();
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
    digest,
    random: (target) => crypto.getRandomValues(target),
    settings: () => settings,
  });
}

function namesOf(idempotencyKey: string, body = "{}"): CallNames {
  const call = { keyId: "key_a", endpoint: "chat", capacity: "auto" } as const;
  return nameCall({ ...call, idempotencyKey, body: Buffer.from(body) }, digest);
}

function answerOf(text: string): KeptAnswer {
  return { headers: {}, isStreamed: false, text };
}

function keep(key: string, answer: KeptAnswer | undefined): Promise<void> {
  return answers.keep({ names: namesOf(key), accountId: "acc_1", answer });
}

async function textOf(names: CallNames): Promise<string | undefined> {
  const reply = await answers.look(names);
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

  test("are not shown to another request", async () => {
    await keep("a", answerOf("hello"));
    expect(textOf(namesOf("a", "other"))).rejects.toMatchObject({
      status: 409,
      code: "idempotency_key_reused",
      param: "Idempotency-Key",
    });
  });

  test("say so when they were too large", async () => {
    await keep("a", undefined);
    expect(textOf(namesOf("a"))).rejects.toMatchObject({ status: 409, code: "answer_not_kept" });
  });

  test("are known for their time and no longer", async () => {
    await keep("a", answerOf("hello"));
    clock.advance(dayMs - 1);
    expect(await textOf(namesOf("a"))).toBe("hello");
    clock.advance(1);
    expect(await textOf(namesOf("a"))).toBeUndefined();
  });

  test("are looked for once by all who look at the same time, who go on in their order", async () => {
    const order: number[] = [];
    await Promise.all(
      [1, 2, 3].map((who) => answers.look(namesOf("a")).then(() => order.push(who))),
    );
    expect(order).toEqual([1, 2, 3]);
    expect(store.finds).toBe(1);
    await answers.look(namesOf("a"));
    expect(store.finds).toBe(2);
  });
});

describe("while the store is away", () => {
  test("nobody is told that a call was not made", async () => {
    store.isReadable = false;
    expect(textOf(namesOf("a"))).rejects.toMatchObject({
      status: 503,
      code: "model_unavailable",
      headers: { "retry-after": "5", "retry-after-ms": "5000" },
    });
  });

  test("an answer that came meanwhile is found, and is stored before anything else is asked", async () => {
    store.isWritable = false;
    await keep("a", answerOf("hello"));
    expect(await textOf(namesOf("a"))).toBe("hello");
    expect(answers.look(namesOf("b"))).rejects.toMatchObject({ status: 503 });
    store.isWritable = true;
    expect(await textOf(namesOf("b"))).toBeUndefined();
    answers = make();
    expect(await textOf(namesOf("a"))).toBe("hello");
  });

  test("answers wait in bounded memory; of what finds no room it is known that it was made", async () => {
    settings = { ...settings, memoryLimitBytes: 500 };
    store.isWritable = false;
    await keep("a", answerOf("x".repeat(300)));
    await keep("b", answerOf("y".repeat(300)));
    expect(await textOf(namesOf("a"))).toHaveLength(300);
    expect(textOf(namesOf("b"))).rejects.toMatchObject({ code: "answer_not_kept" });
    store.isWritable = true;
    await answers.look(namesOf("c"));
    store.isWritable = false;
    await keep("d", answerOf("z".repeat(300)));
    expect(await textOf(namesOf("d"))).toHaveLength(300);
  });
});
