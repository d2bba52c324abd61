import { beforeEach, describe, expect, test } from "bun:test";
import { auditDigest, firstDigest } from "../../src/store/audit.ts";
import type { AuditFilter } from "../../src/store/control-store.ts";
import type { ControlStore } from "../../src/store/repositories/control-store.ts";
import { auditEntryOf } from "./control-fixtures.ts";

/** The chain as a store keeps it; what a tampered chain looks like is a matter of each backend. */
export function auditContract(create: () => ControlStore | Promise<ControlStore>): void {
  describe("audit", () => {
    const { signal } = new AbortController();
    let store: ControlStore;
    beforeEach(async () => {
      store = await create();
    });

    async function list(filter: AuditFilter, limit = 100): Promise<readonly number[]> {
      const sequences: number[] = [];
      let after: string | undefined;
      do {
        const page = await store.read((view) => view.audit.list(filter, { limit, after }));
        sequences.push(...page.items.map(({ sequence }) => sequence));
        after = page.next;
      } while (after !== undefined);
      return sequences;
    }

    test("an audit without entries is intact", async () => {
      expect(await store.verifyAudit(signal)).toEqual({
        isIntact: true,
        entries: 0,
        lastDigest: firstDigest,
        problem: undefined,
        first: undefined,
      });
    });

    test("each entry continues from the one before, and comes back as it was given", async () => {
      const entries = [
        auditEntryOf(1_000),
        auditEntryOf(1_001, {
          actor: { kind: "local", id: undefined, name: "local" },
          address: undefined,
          requestId: undefined,
          accountId: undefined,
          before: undefined,
          after: { list: [1, "two", null, { deep: true }], text: 'quote " and \u{1f511}' },
        }),
        auditEntryOf(1_002, { before: {}, after: undefined }),
      ];
      const records = await store.change(async (to) => {
        const appended = [];
        for (const entry of entries) appended.push(await to.audit.append(entry));
        return appended;
      });
      let previousDigest = firstDigest;
      for (const [place, entry] of entries.entries()) {
        const sequence = place + 1;
        const digest = auditDigest(entry, sequence, previousDigest);
        expect(records[place]).toEqual({ ...entry, sequence, previousDigest, digest });
        previousDigest = digest;
      }
      const { items } = await store.read((view) => view.audit.list({}, { limit: 10 }));
      expect(items).toEqual(records.toReversed());
      expect(await store.verifyAudit(signal)).toEqual({
        isIntact: true,
        entries: 3,
        lastDigest: previousDigest,
        problem: undefined,
        first: { sequence: 1, at: 1_000 },
      });
    });

    test("text that is no well-formed Unicode does not break the chain", async () => {
      await store.change((to) =>
        to.audit.append(
          auditEntryOf(1, {
            actor: { kind: "session", id: "u", name: "half \ud800 a pair" },
            after: { name: "half \udc00", "\ud800": "key", nul: "a\0b" },
            subject: { type: "key", id: "a\0b" },
          }),
        ),
      );
      expect((await store.verifyAudit(signal)).isIntact).toBe(true);
    });

    test("an entry of a change that is undone leaves no gap", async () => {
      await store.change((to) => to.audit.append(auditEntryOf(1)));
      const undone = store.change(async (to) => {
        await to.audit.append(auditEntryOf(2));
        throw new Error("no");
      });
      expect(undone).rejects.toThrow("no");
      await undone.catch(() => undefined);
      const record = await store.change((to) => to.audit.append(auditEntryOf(3)));
      expect(record.sequence).toBe(2);
      expect((await store.verifyAudit(signal)).entries).toBe(2);
    });

    test("changes at once make one chain", async () => {
      const append = (_: unknown, at: number): Promise<unknown> =>
        store.change(async (to) => {
          await new Promise((resolve) => setImmediate(resolve));
          await to.audit.append(auditEntryOf(at));
        });
      await Promise.all(Array.from({ length: 20 }, append));
      expect(await store.verifyAudit(signal)).toMatchObject({ isIntact: true, entries: 20 });
    });

    test("entries are listed newest first, in pages, by every filter", async () => {
      await store.change(async (to) => {
        await to.audit.append(auditEntryOf(10, { accountId: "acct_b" }));
        await to.audit.append(auditEntryOf(20, { action: "key.rotate" }));
        await to.audit.append(auditEntryOf(30, { subject: { type: "key", id: "key_b" } }));
        await to.audit.append(
          auditEntryOf(40, { actor: { kind: "token", id: "user_b", name: "b" } }),
        );
      });
      for (const limit of [1, 2, 3, 4]) expect(await list({}, limit)).toEqual([4, 3, 2, 1]);
      expect(await list({ accountId: "acct_a" }, 1)).toEqual([4, 3, 2]);
      expect(await list({ action: "key.rotate" })).toEqual([2]);
      expect(await list({ subjectId: "key_b" })).toEqual([3]);
      expect(await list({ actorId: "user_b" })).toEqual([4]);
      expect(await list({ since: 20, until: 40 })).toEqual([3, 2]);
    });

    test("a chain of several pages is followed to its end, unless told to stop", async () => {
      await store.change(async (to) => {
        for (let at = 0; at < 2_100; at += 1) await to.audit.append(auditEntryOf(at));
      });
      expect(await store.verifyAudit(signal)).toMatchObject({ isIntact: true, entries: 2_100 });
      expect(store.verifyAudit(AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
    });
  });
}
