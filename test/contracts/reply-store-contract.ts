import { beforeEach, describe, expect, test } from "bun:test";
import { replyRowBytes, type KeptReply, type ReplyStore } from "../../src/store/store.ts";

const roomy = 1_000_000;

export interface ReplyStoreFixture {
  readonly store: ReplyStore;
  /** Marks an account as erased. */
  erase(accountId: string): Promise<void>;
}

/** What every store of replies must do. */
export function replyStoreContract(
  name: string,
  create: () => ReplyStoreFixture | Promise<ReplyStoreFixture>,
): void {
  describe(`reply store contract: ${name}`, () => {
    let fixture: ReplyStoreFixture;
    let store: ReplyStore;
    beforeEach(async () => {
      fixture = await create();
      ({ store } = fixture);
    });

    async function keptOf(ids: readonly string[]): Promise<readonly string[]> {
      const found = await Promise.all(ids.map((id) => find(store, id)));
      return found.flatMap((reply) => (reply === undefined ? [] : [reply.id]));
    }

    /** How many others went. */
    async function putAll(replies: readonly KeptReply[], limitBytes = roomy): Promise<number> {
      let gone = 0;
      for (const reply of replies) gone += await put(store, reply, limitBytes);
      return gone;
    }

    test("a reply comes back as it was given, one without a body included", async () => {
      const whole = replyOf("a", { body: new Uint8Array([0, 255, 7]) });
      const bodiless = replyOf("b", { body: undefined });
      await putAll([whole, bodiless]);
      expect(await find(store, "a")).toEqual(whole);
      expect(await find(store, "b")).toEqual(bodiless);
      expect(await find(store, "c")).toBeUndefined();
    });

    test("a reply takes the place of one with its id", async () => {
      await putAll([replyOf("a", { keptAt: 1 })]);
      const later = replyOf("a", { keptAt: 2, requestDigest: "other", body: bodyOf(5) });
      await put(store, later, roomy);
      expect(await find(store, "a")).toEqual(later);
    });

    test("the oldest go first when there is no room for more, and no more than it takes", async () => {
      const limit = 3 * (replyRowBytes + 100);
      const ages = [
        ["c", 30],
        ["a", 10],
        ["b", 20],
      ] as const;
      await putAll(
        ages.map(([id, keptAt]) => replyOf(id, { keptAt })),
        limit,
      );
      expect(await keptOf(["a", "b", "c"])).toEqual(["a", "b", "c"]);
      expect(await put(store, replyOf("d", { keptAt: 40 }), limit)).toBe(1);
      expect(await keptOf(["a", "b", "c", "d"])).toEqual(["b", "c", "d"]);
      expect(await put(store, replyOf("e", { keptAt: 50, body: bodyOf(101) }), limit)).toBe(2);
      expect(await keptOf(["b", "c", "d", "e"])).toEqual(["d", "e"]);
    });

    test("a reply counts once, however often it is put anew", async () => {
      const limit = 2 * (replyRowBytes + 100);
      await putAll([replyOf("a", { keptAt: 1 }), replyOf("b", { keptAt: 2 })], limit);
      for (let count = 0; count < 5; count += 1) {
        await put(store, replyOf("b", { keptAt: 3 + count }), limit);
      }
      expect(await keptOf(["a", "b"])).toEqual(["a", "b"]);
    });

    test("replies without a body count as well", async () => {
      const limit = 3 * replyRowBytes;
      const ids = ["a", "b", "c", "d", "e"];
      await putAll(
        ids.map((id, keptAt) => replyOf(id, { keptAt, body: undefined })),
        limit,
      );
      expect(await keptOf(ids)).toEqual(["c", "d", "e"]);
    });

    test("room for a large reply takes as many small ones as it needs", async () => {
      const limit = 1_000 * replyRowBytes;
      const ids = Array.from({ length: 1_000 }, (_, place) => `small-${place}`);
      await putAll(
        ids.map((id, keptAt) => replyOf(id, { keptAt, body: undefined })),
        limit,
      );
      const large = replyOf("large", { keptAt: 2_000, body: bodyOf(899 * replyRowBytes) });
      expect(await put(store, large, limit)).toBe(900);
      expect(await find(store, "large")).toEqual(large);
      expect(await keptOf(ids)).toEqual(ids.slice(900));
    });

    test("a limit that has become smaller holds from the next reply on", async () => {
      await putAll(["a", "b", "c", "d"].map((id, keptAt) => replyOf(id, { keptAt })));
      await put(store, replyOf("e", { keptAt: 5 }), 2 * (replyRowBytes + 100));
      expect(await keptOf(["a", "b", "c", "d", "e"])).toEqual(["d", "e"]);
    });

    describe("of several accounts,", () => {
      const place = replyRowBytes + 100;
      const limit = 4 * place;
      const of = (id: string, accountId: string, keptAt: number): KeptReply =>
        replyOf(id, { accountId, keptAt });

      test("the one that has most makes room, though others have older replies", async () => {
        await putAll([of("small", "acc_small", 1)], limit);
        const flood = Array.from({ length: 20 }, (_, count) => `flood-${count}`);
        const gone = await putAll(
          flood.map((id, count) => of(id, "acc_large", 10 + count)),
          limit,
        );
        expect(gone).toBe(17);
        expect(await keptOf(["small", ...flood])).toEqual(["small", ...flood.slice(-3)]);
        await put(store, of("small-2", "acc_small", 40), limit);
        expect(await keptOf(["small", "small-2", ...flood])).toEqual([
          "small",
          "small-2",
          ...flood.slice(-2),
        ]);
      });

      test("nobody with less loses anything to who comes anew, or grows", async () => {
        await putAll(
          [of("a", "acc_1", 1), of("b", "acc_1", 2), of("c", "acc_2", 3), of("d", "acc_2", 4)],
          limit,
        );
        // With its own it would have most: it makes room for itself.
        await put(store, of("e", "acc_2", 5), limit);
        expect(await keptOf(["a", "b", "c", "d", "e"])).toEqual(["a", "b", "d", "e"]);
        await put(store, of("f", "acc_3", 6), limit);
        const kept = await keptOf(["a", "b", "d", "e", "f"]);
        expect(kept).toContain("f");
        expect(kept).toHaveLength(4);
      });

      test("who has nothing but the new reply has it kept, however large it is", async () => {
        await putAll(
          [of("a", "acc_1", 1), of("b", "acc_1", 2), of("c", "acc_2", 3), of("d", "acc_2", 4)],
          limit,
        );
        const large = { accountId: "acc_3", keptAt: 5, body: bodyOf(2 * place + 100) };
        expect(await put(store, replyOf("large", large), limit)).toBe(3);
        expect(await keptOf(["large"])).toEqual(["large"]);
      });

      test("what was removed or replaced is no longer of their share", async () => {
        const ids = Array.from({ length: 4 }, (_, count) => `old-${count}`);
        await putAll(
          ids.map((id) => of(id, "acc_1", 1)),
          limit,
        );
        await store.prune(2, 10);
        await putAll([of("a", "acc_1", 3), of("b", "acc_2", 4), of("c", "acc_2", 5)], limit);
        for (let count = 0; count < 5; count += 1) await put(store, of("a", "acc_1", 3), limit);
        expect(await putAll([of("d", "acc_3", 6), of("e", "acc_3", 7)], limit)).toBe(1);
        expect(await keptOf(["a", "b", "c", "d", "e"])).toContain("a");
      });
    });

    test("what is older than a time is removed, a number at a time", async () => {
      const ids = ["a", "b", "c", "d"];
      await putAll(ids.map((id, place) => replyOf(id, { keptAt: place * 10 })));
      expect(await store.prune(30, 2)).toBe(2);
      expect(await store.prune(30, 2)).toBe(1);
      expect(await store.prune(30, 2)).toBe(0);
      expect(await keptOf(ids)).toEqual(["d"]);
    });

    test("what was removed makes room", async () => {
      const limit = 2 * (replyRowBytes + 100);
      await putAll([replyOf("a", { keptAt: 1 }), replyOf("b", { keptAt: 2 })], limit);
      await store.prune(2, 10);
      await put(store, replyOf("c", { keptAt: 3 }), limit);
      expect(await keptOf(["a", "b", "c"])).toEqual(["b", "c"]);
    });

    test("of an account that was erased, replies go and none is kept any more", async () => {
      await putAll([replyOf("a", { accountId: "acc_gone" }), replyOf("b")]);
      await fixture.erase("acc_gone");
      expect(await store.prune(0, 10)).toBe(1);
      await put(store, replyOf("c", { accountId: "acc_gone" }), roomy);
      expect(await keptOf(["a", "b", "c"])).toEqual(["b"]);
    });
  });
}

function put(store: ReplyStore, reply: KeptReply, limitBytes: number): Promise<number> {
  return store.keep({ reply, holder: "req_1", limitBytes });
}

async function find(store: ReplyStore, id: string): Promise<KeptReply | undefined> {
  const wanted = { id, holder: "req_2", requestDigest: "digest", olderIds: [], keptAfter: -1 };
  const answer = await store.claim(wanted);
  if (answer.kind === "kept") return answer.reply;
  await store.release(wanted);
  return undefined;
}

function replyOf(id: string, values: Partial<KeptReply> = {}): KeptReply {
  return {
    id,
    accountId: "acc_1",
    requestDigest: "digest",
    body: bodyOf(100),
    keptAt: 1_000,
    ...values,
  };
}

function bodyOf(bytes: number): Uint8Array {
  return new Uint8Array(bytes).fill(3);
}
