import { beforeEach, describe, expect, test } from "bun:test";
import { ManualClock } from "../support/manual-clock.ts";
import type { Application } from "../../src/store/entities.ts";
import type { Key } from "../../src/domain/keys/key.ts";
import type { ControlStore } from "../../src/store/repositories/control-store.ts";
import type { KeyChange, KeyStore } from "../../src/store/store.ts";
import { accountOf, applicationOf, insertKey, keyOf, secretOf } from "./control-fixtures.ts";

/** Of keys that may not be used: which, why and since when. */
function endsOf(changes: readonly KeyChange[]): readonly string[] {
  return changes
    .filter(({ live }) => live === undefined)
    .map(({ keyId, ended }) => `${keyId} ${ended?.reason} at ${ended?.at}`);
}

export interface KeyStores {
  readonly keys: KeyStore;
  readonly control: ControlStore;
}

/** What every key store must do, beside the control store that it follows. */
export function keyStoreContract(
  name: string,
  create: (clock: ManualClock) => KeyStores | Promise<KeyStores>,
): void {
  describe(`key store contract: ${name}`, () => {
    const most = 100;
    let clock: ManualClock;
    let keys: KeyStore;
    let control: ControlStore;
    let application: Application;
    let key: Key;

    beforeEach(async () => {
      clock = new ManualClock({ wallMs: 10_000_000 });
      ({ keys, control } = await create(clock));
      ({ application, key } = await insertKey(control, {
        account: "acct_a",
        application: "app_a",
        key: "key_a",
      }));
    });

    /** What changed by a change, and nothing of before. */
    async function changesOf(change: () => Promise<unknown>): Promise<readonly KeyChange[]> {
      const { epoch } = await keys.loadKeys(0, most);
      await change();
      const { changes, epoch: after } = await keys.loadKeys(epoch, most);
      expect(after >= epoch).toBe(true);
      expect((await keys.loadKeys(after, most)).changes).toEqual([]);
      return changes;
    }

    async function liveKeys(): Promise<readonly string[]> {
      const { changes } = await keys.loadKeys(0, most);
      return changes.filter(({ live }) => live !== undefined).map(({ keyId }) => keyId);
    }

    test("a digest is put under another pepper once, and followers of the key hear of it", async () => {
      const renewed = { digest: new Uint8Array(32).fill(1), pepper: "mark" };
      const stored = secretOf("of_key_a", "key_a").digest;
      const publicId = "of_key_a";
      const changes = await changesOf(() => keys.renewDigest({ publicId, stored, renewed }));
      const [secret] = changes[0]?.live?.secrets ?? [];
      expect([[...(secret?.digest ?? [])], secret?.pepper]).toEqual([[...renewed.digest], "mark"]);
      // It has changed meanwhile: what was seen before is worth nothing.
      const again = { digest: new Uint8Array(32).fill(2), pepper: "other" };
      expect(await changesOf(() => keys.renewDigest({ publicId, stored, renewed: again }))).toEqual(
        [],
      );
      const use = await control.pepperUse(0);
      expect([...use.secrets]).toEqual([["mark", 1]]);
    });

    test("a key is loaded whole, with its secrets and their digests, byte for byte", async () => {
      const rich = keyOf("key_b", application, {
        plan: "enterprise",
        limits: { requestsPerMinute: 7, tokensPerMinute: 900 },
        provisionedUnits: 3,
        provisionedPool: "main",
        allowedModels: ["alpha-sonnet-4"],
        allowedNetworks: ["10.0.0.0/8", "2001:db8::/32"],
        note: "of the night shift",
        expiresAt: 99_000_000,
      });
      const secret = secretOf("bbbbbbbb", "key_b", { expiresAt: 20_000_000, lastUsedAt: 5_000 });
      const changes = await changesOf(() =>
        control.change(async (transaction) => {
          await transaction.keys.insert(rich);
          await transaction.secrets.insert(secret);
        }),
      );
      expect(changes).toHaveLength(1);
      expect(changes[0]?.keyId).toBe("key_b");
      expect(changes[0]?.live?.key).toEqual(rich);
      expect(changes[0]?.live?.secrets).toHaveLength(1);
      expect({
        ...changes[0]?.live?.secrets[0],
        digest: Buffer.from(changes[0]?.live?.secrets[0]?.digest ?? []).toHex(),
      }).toEqual({ ...secret, digest: Buffer.from(secret.digest).toHex() });
    });

    test("an epoch asked for again tells of nothing", async () => {
      const { epoch, hasMore } = await keys.loadKeys(0, most);
      expect(hasMore).toBe(false);
      expect(await keys.loadKeys(epoch, most)).toEqual({ changes: [], epoch, hasMore: false });
    });

    test("changes come in pages that miss nothing and repeat nothing", async () => {
      for (let place = 0; place < 9; place += 1) {
        const names = { account: "acct_a", application: "app_a", key: `key_${place}` };
        await insertKey(control, names);
      }
      // One change of all ten keys at once.
      await control.change((transaction) => transaction.applications.update(application));
      const seen: string[] = [];
      let epoch = 0;
      for (let isDone = false; !isDone;) {
        const page = await keys.loadKeys(epoch, 3);
        expect(page.changes.length).toBeLessThanOrEqual(3);
        expect(page.epoch).toBeGreaterThan(epoch);
        seen.push(...page.changes.map(({ keyId }) => keyId));
        epoch = page.epoch;
        isDone = !page.hasMore;
      }
      expect(seen).toHaveLength(10);
      expect(new Set(seen).size).toBe(10);
    });

    test("a change of a key or of its secrets is told, with what holds afterwards", async () => {
      const other = { account: "acct_a", application: "app_a", key: "key_b" };
      await insertKey(control, other);
      const updated = await changesOf(() =>
        control.change((transaction) => transaction.keys.update({ ...key, plan: "pro" })),
      );
      expect(updated.map(({ live }) => live?.key.plan)).toEqual(["pro"]);
      const added = await changesOf(() =>
        control.change((transaction) =>
          transaction.secrets.insert(secretOf("new", "key_a", { createdAt: 2_000 })),
        ),
      );
      const publicIds = added.map(({ live }) => live?.secrets.map(({ publicId }) => publicId));
      expect(publicIds).toEqual([["new", "of_key_a"]]);
      const ended = await changesOf(() =>
        control.change((transaction) => transaction.secrets.expire("of_key_a", 11_000_000)),
      );
      const ends = ended.map(({ live }) => live?.secrets.map(({ expiresAt }) => expiresAt));
      expect(ends).toEqual([[undefined, 11_000_000]]);
    });

    test("a change that was undone is not told", async () => {
      const changes = await changesOf(async () => {
        const undone = control.change(async (transaction) => {
          await transaction.keys.update({ ...key, plan: "pro" });
          throw new Error("no");
        });
        expect(undone).rejects.toThrow("no");
        await undone.catch(() => undefined);
      });
      expect(changes).toEqual([]);
    });

    test("a revoked or disabled key is told of as gone, and comes back when enabled", async () => {
      const disabled = await changesOf(() =>
        control.change(async (transaction) => {
          key = await transaction.keys.update({ ...key, disabledAt: 5 });
        }),
      );
      expect(endsOf(disabled)).toEqual(["key_a key_disabled at 5"]);
      const enabled = await changesOf(() =>
        control.change(async (transaction) => {
          key = await transaction.keys.update({ ...key, disabledAt: undefined });
        }),
      );
      expect(enabled[0]?.live?.key.id).toBe("key_a");
      const revoked = await changesOf(() =>
        control.change((transaction) => transaction.keys.update({ ...key, revokedAt: 6 })),
      );
      expect(endsOf(revoked)).toEqual(["key_a key_revoked at 6"]);
    });

    test("a removed key is told of as gone, even when it lived until then", async () => {
      const changes = await changesOf(() =>
        control.change((transaction) => transaction.keys.delete("key_a")),
      );
      expect(changes).toEqual([{ keyId: "key_a", live: undefined }]);
      expect(await liveKeys()).toEqual([]);
    });

    test("a disabled application takes exactly its own keys along", async () => {
      await insertKey(control, { account: "acct_a", application: "app_a", key: "key_a2" });
      await insertKey(control, { account: "acct_a", application: "app_b", key: "key_b" });
      const changes = await changesOf(() =>
        control.change((transaction) =>
          transaction.applications.update({ ...application, disabledAt: 5 }),
        ),
      );
      expect(changes.map(({ keyId }) => keyId).toSorted()).toEqual(["key_a", "key_a2"]);
      expect(endsOf(changes).toSorted()).toEqual([
        "key_a application_disabled at 5",
        "key_a2 application_disabled at 5",
      ]);
      expect(await liveKeys()).toEqual(["key_b"]);
    });

    test("live keys of an account are counted, as far as one asks", async () => {
      for (const name of ["key_b", "key_c"]) {
        await insertKey(control, { account: "acct_a", application: "app_a", key: name });
      }
      await insertKey(control, { account: "acct_z", application: "app_z", key: "key_z" });
      const count = (upTo: number): Promise<number> =>
        control.read((view) => view.keys.countLive("acct_a", upTo));
      expect([await count(10), await count(3), await count(2)]).toEqual([3, 3, 2]);
      await control.change((to) => to.keys.update({ ...key, revokedAt: 5 }));
      expect(await count(10)).toBe(2);
    });

    test("a renamed application shows in its keys", async () => {
      const changes = await changesOf(() =>
        control.change((transaction) =>
          transaction.applications.update({ ...application, name: "renamed" }),
        ),
      );
      expect(changes.map(({ live }) => live?.key.application)).toEqual(["renamed"]);
    });

    test("a change of an application that says nothing of its keys is none of them", async () => {
      const changes = await changesOf(() =>
        control.change(({ applications }) =>
          applications.update({ ...application, note: "changed" }),
        ),
      );
      expect(changes).toEqual([]);
    });

    test("a disabled account takes the keys of all its applications along", async () => {
      await insertKey(control, { account: "acct_a", application: "app_b", key: "key_b" });
      await insertKey(control, { account: "acct_z", application: "app_z", key: "key_z" });
      const changes = await changesOf(() =>
        control.change((transaction) =>
          transaction.accounts.update({ ...accountOf("acct_a"), disabledAt: 5 }),
        ),
      );
      expect(changes.map(({ keyId }) => keyId).toSorted()).toEqual(["key_a", "key_b"]);
      expect(endsOf(changes).toSorted()).toEqual([
        "key_a account_disabled at 5",
        "key_b account_disabled at 5",
      ]);
      expect(await liveKeys()).toEqual(["key_z"]);
    });

    test("the secrets of a key that ended are told for a day, the reason as long as it is there", async () => {
      await control.change(async (transaction) => {
        await transaction.keys.update({ ...key, revokedAt: clock.now() });
        await transaction.applications.update({ ...application, disabledAt: 5 });
      });
      const told = async (): Promise<unknown> => {
        const { changes } = await keys.loadKeys(0, most);
        return [...endsOf(changes), changes[0]?.ended?.secrets.map(({ publicId }) => publicId)];
      };
      expect(await told()).toEqual(["key_a key_revoked at 10000000", ["of_key_a"]]);
      clock.advance(86_400_000);
      expect(await told()).toEqual(["key_a key_revoked at 10000000", []]);
    });

    test("a change of an account that says nothing of its keys is none of them", async () => {
      const account = accountOf("acct_a");
      const changes = await changesOf(async () => {
        await control.change(async ({ accounts }) => {
          const renamed = await accounts.update({ ...account, name: "other", maxKeys: 7 });
          await accounts.update({ ...renamed, plans: [], note: "changed" });
        });
      });
      expect(changes).toEqual([]);
    });

    test("keys that were revoked are told of once, whatever becomes of their account", async () => {
      const revoked = await insertKey(control, {
        account: "acct_a",
        application: "app_a",
        key: "key_revoked",
      });
      const revoking = await changesOf(() =>
        control.change((to) => to.keys.update({ ...revoked.key, revokedAt: 5 })),
      );
      expect(revoking).toMatchObject([{ keyId: "key_revoked", live: undefined }]);
      const changes = await changesOf(() =>
        control.change(async ({ accounts }) => {
          const account = await accounts.update({ ...accountOf("acct_a"), disabledAt: 5 });
          await accounts.update({ ...account, disabledAt: undefined });
        }),
      );
      expect(changes.map(({ keyId }) => keyId)).toEqual(["key_a"]);
      expect(await liveKeys()).toEqual(["key_a"]);
    });

    test("a secret that ended stays for an hour, so that a refusal can name the reason", async () => {
      await control.change((transaction) =>
        transaction.secrets.expire("of_key_a", clock.now() - 1_000),
      );
      const publicIds = async (): Promise<unknown> =>
        (await keys.loadKeys(0, most)).changes[0]?.live?.secrets.map(({ publicId }) => publicId);
      expect(await publicIds()).toEqual(["of_key_a"]);
      clock.advance(3_600_000);
      expect(await publicIds()).toEqual([]);
    });

    test("last uses only move forward, and are no change of the keys", async () => {
      const lastUsedAt = (): Promise<number | undefined> =>
        control.read(async (view) => (await view.secrets.get("of_key_a"))?.lastUsedAt);
      const changes = await changesOf(async () => {
        await keys.recordLastUse(new Map([["of_key_a", 5_000]]));
        expect(await lastUsedAt()).toBe(5_000);
        await keys.recordLastUse(
          new Map([
            ["of_key_a", 4_000],
            ["unknown", 9_000],
          ]),
        );
        await keys.recordLastUse(new Map());
      });
      expect(await lastUsedAt()).toBe(5_000);
      expect(changes).toEqual([]);
    });

    test("whoever comes from a later epoch than there is begins anew", async () => {
      const { epoch } = await keys.loadKeys(0, most);
      const page = await keys.loadKeys(epoch + 1_000, most);
      expect(page.changes.map(({ keyId }) => keyId)).toEqual(["key_a"]);
      expect(page.epoch).toBe(epoch);
    });

    test("keys of other environments and applications do not mix", async () => {
      const staging = applicationOf("app_s", { environment: "staging", name: application.name });
      await control.change(async (transaction) => {
        await transaction.applications.insert(staging);
        await transaction.keys.insert(keyOf("key_s", staging));
      });
      const { changes } = await keys.loadKeys(0, most);
      const environments = new Map(
        changes.map(({ keyId, live }) => [keyId, live?.key.environment]),
      );
      expect(environments).toEqual(
        new Map([
          ["key_a", "production"],
          ["key_s", "staging"],
        ]),
      );
      expect(changes.find(({ keyId }) => keyId === "key_s")?.live?.secrets).toEqual([]);
    });
  });
}
