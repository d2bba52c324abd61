import { beforeEach, describe, expect, test } from "bun:test";
import type { UsageRecord } from "../../domain/usage.ts";
import type { UsageStore } from "../store.ts";

export function recordOf(id: string, values: Partial<UsageRecord> = {}): UsageRecord {
  return {
    id,
    startedAt: 10_000,
    environment: "production",
    application: "search",
    keyId: "key_a",
    model: "alpha-sonnet-4",
    target: "bedrock-us/provider.model",
    capacityClass: "on-demand",
    inputTokens: 10,
    outputTokens: 20,
    cachedInputTokens: 3,
    usageSource: "upstream",
    outcome: "completed",
    status: 200,
    code: undefined,
    isStreamed: true,
    attempts: 1,
    firstEventMs: 12.5,
    durationMs: 99.25,
    ...values,
  };
}

/** What every usage store must do. */
export function usageStoreContract(name: string, create: () => UsageStore): void {
  describe(`usage store contract: ${name}`, () => {
    let store: UsageStore;
    beforeEach(() => {
      store = create();
    });

    test("a record comes back as it was given, absent values included", async () => {
      const whole = recordOf("req_1", { startedAt: 20_000 });
      const refused = recordOf("req_2", {
        target: undefined,
        outcome: "failed",
        status: 429,
        code: "rate_limit_exceeded",
        isStreamed: false,
        attempts: 0,
        firstEventMs: undefined,
        usageSource: "estimated",
      });
      await store.insert([whole, refused]);
      expect(await store.listRecent(10)).toEqual([whole, refused]);
    });

    test("a record that is inserted again is left as it is", async () => {
      await store.insert([recordOf("req_1")]);
      await store.insert([recordOf("req_1", { outputTokens: 999 }), recordOf("req_2")]);
      const rows = await store.listRecent(10);
      expect(rows).toHaveLength(2);
      expect(rows.find(({ id }) => id === "req_1")?.outputTokens).toBe(20);
    });

    test("the newest records come first, and no more than asked for", async () => {
      const times = [3, 1, 2, 5, 4];
      await store.insert(times.map((time) => recordOf(`req_${time}`, { startedAt: time })));
      const ids = (await store.listRecent(3)).map(({ id }) => id);
      expect(ids).toEqual(["req_5", "req_4", "req_3"]);
    });

    test("sums are by environment, application, key and model, from a time on", async () => {
      await store.insert([
        recordOf("req_0", { startedAt: 999 }),
        recordOf("req_1", { startedAt: 1_000 }),
        recordOf("req_2", { startedAt: 2_000, outcome: "abandoned", outputTokens: 5 }),
        recordOf("req_3", { startedAt: 2_000, model: "beta-3-70b" }),
        recordOf("req_4", { startedAt: 2_000, keyId: "key_b", application: "chat" }),
      ]);
      const common = { environment: "production", calls: 1, failedCalls: 0 };
      const tokens = { inputTokens: 10, outputTokens: 20, cachedInputTokens: 3 };
      const alpha = { model: "alpha-sonnet-4" };
      expect(await store.summarize(1_000)).toEqual([
        { ...common, ...tokens, ...alpha, application: "chat", keyId: "key_b" },
        {
          ...common,
          ...alpha,
          application: "search",
          keyId: "key_a",
          calls: 2,
          failedCalls: 1,
          inputTokens: 20,
          outputTokens: 25,
          cachedInputTokens: 6,
        },
        { ...common, ...tokens, application: "search", keyId: "key_a", model: "beta-3-70b" },
      ]);
    });

    test("an empty batch and an empty table are no problem", async () => {
      await store.insert([]);
      expect(await store.listRecent(10)).toEqual([]);
      expect(await store.summarize(0)).toEqual([]);
    });
  });
}
