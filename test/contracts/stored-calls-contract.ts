import { beforeEach, describe, expect, test } from "bun:test";
import type { StoredCalls, UsageStore } from "../../src/store/store.ts";
import { closedCall } from "../support/ledger-fixtures.ts";

export interface StoredCallsStores {
  readonly usage: UsageStore;
  /** Of as many gateways as wanted. */
  readonly open: () => StoredCalls;
}

/** What the delivery of stored calls needs from every database. */
export function storedCallsContract(name: string, create: () => Promise<StoredCallsStores>): void {
  describe(`stored calls contract: ${name}`, () => {
    let stores: StoredCallsStores;
    beforeEach(async () => {
      stores = await create();
    });
    const store = (...ids: readonly string[]): Promise<void> =>
      stores.usage.insert(ids.map((id) => closedCall(id)));
    const request = { holder: "one", nowMs: 1_000, untilMs: 2_000, limit: 2 };

    test("begins with what is stored after its first use, in the order of storing", async () => {
      const calls = stores.open();
      await store("req_9");
      expect(await calls.next(request)).toBeUndefined();
      await store("req_5");
      await store("req_3", "req_4");
      const first = await calls.next(request);
      expect(first?.calls).toEqual([closedCall("req_5"), closedCall("req_3")]);
      expect((await calls.next(request))?.calls).toEqual(first?.calls);
      if (first !== undefined) await calls.confirm("one", first);
      const second = await stores.open().next(request);
      expect(second?.calls.map(({ id }) => id)).toEqual(["req_4"]);
      if (second !== undefined) await calls.confirm("one", second);
      await store("req_4");
      expect(await calls.next(request)).toBeUndefined();
    });

    test("one gateway has the turn until its time is over", async () => {
      const [one, other] = [stores.open(), stores.open()];
      await one.next(request);
      await store("req_1");
      const batch = await one.next(request);
      expect(await other.next({ ...request, holder: "other" })).toBeUndefined();
      const later = { holder: "other", nowMs: 2_001, untilMs: 3_000, limit: 2 };
      expect((await other.next(later))?.calls).toEqual([closedCall("req_1")]);
      // Too late: another one has the turn.
      if (batch !== undefined) await one.confirm("one", batch);
      expect((await other.next(later))?.calls).toHaveLength(1);
    });
  });
}
