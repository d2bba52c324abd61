import { beforeEach, describe, expect, test } from "bun:test";
import type { ControlStore } from "../../src/store/repositories/control-store.ts";
import { replyRowBytes, type ResponseStore, type StoredResponse } from "../../src/store/store.ts";
import { insertKey } from "./control-fixtures.ts";

export interface ResponseStoreFixture {
  readonly store: ResponseStore & { prune(now: number, limit: number): Promise<number> };
  /** Of the same database. */
  readonly control: ControlStore;
  /** Those of other processes at the same database. */
  readonly others?: readonly ResponseStore[];
}

const roomy = 1_000_000;
const accountId = "acct_a";

function responseOf(id: string, values: Partial<StoredResponse> = {}): StoredResponse {
  const body = new Uint8Array(100).fill(id.charCodeAt(0));
  return { id, accountId, keyId: "key_a", expiresAt: 1_000, body, input: body, ...values };
}

const bytesOfOne = replyRowBytes + 200;

/** What every store of responses must do. */
export function responseStoreContract(
  name: string,
  create: () => ResponseStoreFixture | Promise<ResponseStoreFixture>,
): void {
  describe(`response store contract: ${name}`, () => {
    let fixture: ResponseStoreFixture;
    let store: ResponseStoreFixture["store"];
    beforeEach(async () => {
      fixture = await create();
      ({ store } = fixture);
    });

    const addKey = () =>
      insertKey(fixture.control, { account: accountId, application: "app_a", key: "key_a" });
    const put = (response: StoredResponse, limitBytes = roomy) =>
      store.put({ response, limitBytes });
    const idsOf = async (ids: readonly string[], now = 0): Promise<readonly string[]> => {
      const found = await store.find({ ids, accountId, now, withInput: false });
      return found.map(({ id }) => id).toSorted();
    };

    test("responses come back as they were given, with their inputs if those are wanted", async () => {
      const { id, body, input } = responseOf("a", { input: new Uint8Array([0, 255]) });
      await put(responseOf("a", { input }));
      await put(responseOf("b"));
      const ids = ["a", "c"];
      const bare = await store.find({ ids, accountId, now: 0, withInput: false });
      expect(bare).toEqual([{ id, body }]);
      const whole = await store.find({ ids, accountId, now: 0, withInput: true });
      expect(whole).toEqual([{ id, body, input }]);
    });

    test("other accounts neither find nor remove them", async () => {
      await put(responseOf("a"));
      const wanted = { ids: ["a"], accountId: "acct_b", now: 0 };
      expect(await store.find({ ...wanted, withInput: true })).toEqual([]);
      expect(await store.remove(wanted)).toBeFalse();
      expect(await idsOf(["a"])).toEqual(["a"]);
    });

    test("what has expired is not there", async () => {
      await put(responseOf("a", { expiresAt: 10 }));
      expect(await idsOf(["a"], 9)).toEqual(["a"]);
      expect(await idsOf(["a"], 10)).toEqual([]);
      expect(await store.remove({ ids: ["a"], accountId, now: 10 })).toBeFalse();
    });

    test("one that was removed is gone", async () => {
      await put(responseOf("a"));
      const wanted = { ids: ["a"], accountId, now: 0 };
      expect(await store.remove(wanted)).toBeTrue();
      expect(await store.remove(wanted)).toBeFalse();
      expect(await idsOf(["a"])).toEqual([]);
    });

    test("the oldest of a key go when its responses do not fit, those of others stay", async () => {
      const limit = 3 * bytesOfOne;
      await put(responseOf("x", { keyId: "key_b" }), limit);
      for (const id of ["a", "b", "c"]) await put(responseOf(id), limit);
      expect(await idsOf(["a", "b", "c"])).toEqual(["a", "b", "c"]);
      await put(responseOf("d"), limit);
      expect(await idsOf(["a", "b", "c", "d", "x"])).toEqual(["b", "c", "d", "x"]);
      const long = new Uint8Array(100 + bytesOfOne);
      await put(responseOf("e", { body: long }), limit);
      // It takes the room of two.
      expect(await idsOf(["b", "c", "d", "e", "x"])).toEqual(["d", "e", "x"]);
    });

    test("a flood of one key never has more than its limit", async () => {
      const limit = 5 * bytesOfOne;
      const ids = Array.from({ length: 40 }, (_, index) => `r${index}`);
      for (const id of ids) {
        await put(responseOf(id), limit);
        if (id === "r20") await store.remove({ ids: ["r19", "r20"], accountId, now: 0 });
      }
      const left = await idsOf(ids);
      expect(left.length).toBeLessThanOrEqual(5);
      expect(left).toContain("r39");
    });

    test("a flood of one key at the same time never has more than its limit", async () => {
      const limit = 5 * bytesOfOne;
      const { others = [] } = fixture;
      const ids = Array.from({ length: 60 }, (_, index) => `r${index}`);
      const stores = [store, ...others];
      let isOver = false;
      const flood = Promise.all(
        ids.map((id, index) =>
          (stores[index % stores.length] ?? store).put({
            response: responseOf(id),
            limitBytes: limit,
          }),
        ),
      ).finally(() => (isOver = true));
      while (!isOver) {
        const found = await idsOf(ids);
        expect(found.length).toBeLessThanOrEqual(5);
        await Bun.sleep(0);
      }
      await flood;
      expect(await idsOf(ids)).toHaveLength(5);
    });

    test("nothing is stored for an erased account, and what was is pruned", async () => {
      await addKey();
      await put(responseOf("a"));
      await fixture.control.change(({ accounts }) => accounts.markErased(accountId, 1));
      await put(responseOf("b"));
      expect(await idsOf(["a", "b"])).toEqual(["a"]);
      expect(await store.prune(0, 10)).toBe(1);
      expect(await idsOf(["a", "b"])).toEqual([]);
    });

    test("what has expired, or belongs to a key that is no more, is pruned", async () => {
      await addKey();
      await put(responseOf("a", { expiresAt: 10 }));
      await put(responseOf("b", { expiresAt: 20 }));
      await put(responseOf("c", { keyId: "key_gone" }));
      expect(await store.prune(10, 1)).toBe(1);
      expect(await store.prune(10, 10)).toBe(1);
      expect(await store.prune(10, 10)).toBe(0);
      expect(await idsOf(["a", "b", "c"])).toEqual(["b"]);
    });
  });
}
