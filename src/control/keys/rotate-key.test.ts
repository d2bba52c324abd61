import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AdminFixture, operator } from "../../../test/support/admin-fixture.ts";
import { readPublicId } from "../../domain/keys/api-key.ts";
import { issuedKeySchema, keySchema, rotatedKeySchema } from "../contract.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

let admin: AdminFixture;
beforeEach(() => {
  admin = new AdminFixture();
});
afterEach(() => admin[Symbol.asyncDispose]());

async function newKey(plan = "standard"): Promise<{ id: string; publicId: string }> {
  await admin.account("owner").catch(() => undefined);
  const application = await admin.application("owner");
  const { key, text } = await admin.issue(application.id, { plan });
  return { id: key.id, publicId: readPublicId(text) ?? "" };
}

function rotate(id: string, body?: unknown) {
  return admin.run(rotatedKeySchema, "rotateKey", { id, body });
}

async function live(id: string): Promise<string[]> {
  const key = await admin.run(keySchema, "getKey", { id });
  return key.secrets.filter(({ status }) => status === "live").map(({ public_id }) => public_id);
}

describe("rotation", () => {
  test("the new secret works at once, and the previous one for another day", async () => {
    const { id, publicId } = await newKey();
    const rotated = await rotate(id);
    const newest = readPublicId(rotated.api_key) ?? "";
    expect(rotated.ended).toEqual([]);
    expect(rotated.overlap_until).toBe(new Date(admin.clock.now() + dayMs).toISOString());
    expect(await live(id)).toEqual([newest, publicId]);
    expect(rotated.key.secrets[1]?.expires_at).toBe(rotated.overlap_until);
    admin.clock.advance(dayMs - 1);
    expect(await live(id)).toEqual([newest, publicId]);
    admin.clock.advance(1);
    expect(await live(id)).toEqual([newest]);
  });

  test("id, limits and revision of the key stay the same", async () => {
    const { id } = await newKey();
    const before = await admin.run(keySchema, "getKey", { id });
    const { key } = await rotate(id);
    expect({ ...key, secrets: [] }).toEqual({ ...before, secrets: [] });
  });

  test("an overlap of zero ends the previous secret now", async () => {
    const { id, publicId } = await newKey();
    const rotated = await rotate(id, { overlap_seconds: 0 });
    expect(rotated.ended).toEqual([publicId]);
    expect(rotated.overlap_until).toBeNull();
    expect(await live(id)).toEqual([readPublicId(rotated.api_key) ?? ""]);
  });

  test("an unused newest secret is replaced; the older one keeps its end", async () => {
    const { id, publicId } = await newKey();
    const lost = await rotate(id, { overlap_seconds: 3600 });
    admin.clock.advance(60_000);
    const again = await rotate(id, { overlap_seconds: 604_800 });
    expect(again.ended).toEqual([readPublicId(lost.api_key) ?? ""]);
    expect(again.overlap_until).toBe(lost.overlap_until);
    expect(await live(id)).toEqual([readPublicId(again.api_key) ?? "", publicId]);
  });

  test("a shorter requested overlap applies also when the newest secret is replaced", async () => {
    const { id, publicId } = await newKey();
    await rotate(id, { overlap_seconds: 86_400 });
    const sooner = await rotate(id, { overlap_seconds: 60 });
    expect(sooner.overlap_until).toBe(new Date(admin.clock.now() + 60_000).toISOString());
    expect(sooner.key.secrets.find(({ public_id }) => public_id === publicId)?.expires_at).toBe(
      sooner.overlap_until,
    );
    expect((await rotate(id)).overlap_until).toBe(sooner.overlap_until);
    const now = await rotate(id, { overlap_seconds: 0 });
    expect(now.ended).toContain(publicId);
    expect(now.overlap_until).toBeNull();
    expect(await live(id)).toEqual([readPublicId(now.api_key) ?? ""]);
  });

  test("the answer's overlap ends with the key at the latest, and lasts when the key is extended", async () => {
    const { id, publicId } = await newKey();
    const keyEnd = new Date(admin.clock.now() + hourMs).toISOString();
    await admin.result("updateKey", { id, body: { revision: 1, expires_at: keyEnd } });
    expect((await rotate(id)).overlap_until).toBe(keyEnd);
    expect((await rotate(id)).overlap_until).toBe(keyEnd);
    const body = { revision: 2, expires_at: null };
    const { secrets } = await admin.run(keySchema, "updateKey", { id, body });
    expect(secrets.find(({ public_id }) => public_id === publicId)?.expires_at).toBe(
      new Date(admin.clock.now() + dayMs).toISOString(),
    );
  });

  test("the older of two ends when the newest was used, by the store's record or the process's", async () => {
    for (const writer of ["store", "process"] as const) {
      const { id, publicId } = await newKey();
      const second = readPublicId((await rotate(id)).api_key) ?? "";
      const uses = new Map([[second, admin.clock.now()]]);
      if (writer === "store") await admin.stores.keys.recordLastUse(uses);
      else admin.lastUses.set(second, admin.clock.now());
      const third = await rotate(id, { overlap_seconds: 60 });
      expect(third.ended).toEqual([publicId]);
      expect(third.overlap_until).toBe(new Date(admin.clock.now() + 60_000).toISOString());
      expect(await live(id)).toEqual([readPublicId(third.api_key) ?? "", second]);
    }
  });

  test("compromised ends every other secret now, with any overlap", async () => {
    const { id, publicId } = await newKey();
    const second = readPublicId((await rotate(id)).api_key) ?? "";
    const third = await rotate(id, { compromised: true, overlap_seconds: 3600 });
    expect(third.ended.toSorted()).toEqual([publicId, second].toSorted());
    expect(third.overlap_until).toBeNull();
    expect(await live(id)).toEqual([readPublicId(third.api_key) ?? ""]);
  });

  test("a key whose only secret was ended after a leak gets a new one", async () => {
    const application = await admin.application("owner");
    const { key, text } = await admin.issue(application.id);
    await admin.result("reportLeaks", { body: { api_keys: [text] } });
    const rotated = await rotate(key.id);
    expect(rotated.ended).toEqual([]);
    expect(rotated.overlap_until).toBeNull();
    expect(await live(key.id)).toEqual([readPublicId(rotated.api_key) ?? ""]);
  });

  test("a revoked or expired key cannot be rotated, a disabled one can", async () => {
    const { id } = await newKey();
    await admin.result("updateKey", { id, body: { revision: 1, disabled: true } });
    await rotate(id);
    const expiresAt = new Date(admin.clock.now() + hourMs).toISOString();
    await admin.result("updateKey", { id, body: { revision: 2, expires_at: expiresAt } });
    admin.clock.advance(hourMs);
    expect((await admin.refusal("rotateKey", { id })).code).toBe("wrong_state");
    await admin.result("revokeKey", { id });
    expect((await admin.refusal("rotateKey", { id })).status).toBe(409);
  });

  test("an overlap of more than a week, or less than zero, is refused", async () => {
    const { id } = await newKey();
    for (const overlap_seconds of [604_801, -1, 0.5]) {
      const refusal = await admin.refusal("rotateKey", { id, body: { overlap_seconds } });
      expect(refusal.param).toBe("overlap_seconds");
    }
  });

  test("repeated rotations after lost answers never leave a third live secret", async () => {
    const { id, publicId } = await newKey();
    for (let time = 0; time < 130; time += 1) {
      admin.clock.advance(1000);
      await rotate(id);
    }
    const alive = await live(id);
    expect(alive).toHaveLength(2);
    expect(alive[1]).toBe(publicId);
  });
});

test("at most two secrets are live, and a used one keeps its overlap, under any sequence", async () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant("rotate"), overlap: fc.nat(7200) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("compromised"), overlap: fc.nat(10) }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant("use"), overlap: fc.nat(1) }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("wait"), overlap: fc.nat(4000) }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
      const { id, publicId } = await newKey();
      /** When each secret may end at the earliest. */
      const promised = new Map<string, number>([[publicId, Number.POSITIVE_INFINITY]]);
      let newest = publicId;
      for (const [index, { kind, overlap }] of steps.entries()) {
        const now = admin.clock.now();
        const alive = await live(id);
        if (kind === "wait") admin.clock.advance(overlap * 1000);
        else if (kind === "use") admin.lastUses.set(alive[overlap] ?? newest, now);
        else {
          const body = { overlap_seconds: overlap, compromised: kind === "compromised" };
          const request = { id, body, key: `${id} ${index}` };
          const rotated = await admin.run(rotatedKeySchema, "rotateKey", request);
          expect(await admin.run(rotatedKeySchema, "rotateKey", request)).toEqual(rotated);
          const isReplaced = alive.length === 2 && !admin.lastUses.has(newest);
          if (kind === "compromised") promised.clear();
          else {
            const staying = isReplaced ? alive.find((other) => other !== newest) : newest;
            alive.filter((other) => other !== staying).forEach((other) => promised.delete(other));
            const planned = promised.get(staying ?? "") ?? 0;
            promised.set(staying ?? "", Math.min(planned, now + overlap * 1000));
          }
          newest = readPublicId(rotated.api_key) ?? "";
          promised.set(newest, Number.POSITIVE_INFINITY);
        }
        const living = await live(id);
        expect(living.length).toBeLessThanOrEqual(2);
        const due = [...promised]
          .filter(([, end]) => end > admin.clock.now())
          .map(([name]) => name);
        expect(living.toSorted()).toEqual(due.toSorted());
      }
    }),
    { numRuns: 60 },
  );
});

test("a rotation is audited with public ids, not with the secret", async () => {
  const { id, publicId } = await newKey();
  const rotated = await rotate(id, { compromised: true });
  const [entry] = await admin.audit();
  expect(entry).toMatchObject({
    action: "key.rotate",
    actor: { kind: operator.kind, name: "local" },
    address: "192.0.2.7",
    requestId: "req_test",
    subject: { type: "key", id },
    after: {
      public_id: readPublicId(rotated.api_key),
      ended: [publicId],
      compromised: true,
      overlap_until: null,
    },
  });
  expect(JSON.stringify(await admin.audit())).not.toContain(rotated.api_key.slice(16));
});

test("the process loads an issued key before the answer, and nothing for a refused one", async () => {
  const application = await admin.application("owner");
  const body = { application_id: application.id, plan: "standard" };
  await admin.run(issuedKeySchema, "createKey", { body });
  expect(admin.keyChanges).toBe(1);
  await admin.refusal("createKey", { body: { ...body, plan: "none" } });
  expect(admin.keyChanges).toBe(1);
});
