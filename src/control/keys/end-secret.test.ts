import { afterEach, beforeEach, expect, test } from "bun:test";
import { AdminFixture, auditor, holderOf } from "../../../test/support/admin-fixture.ts";
import { readPublicId } from "../../domain/keys/api-key.ts";
import { keySchema, rotatedKeySchema } from "../contract.ts";

let admin: AdminFixture;
beforeEach(() => {
  admin = new AdminFixture();
});
afterEach(() => admin[Symbol.asyncDispose]());

interface RotatedKey {
  readonly id: string;
  readonly accountId: string;
  /** Public ids. */
  readonly older: string;
  readonly newer: string;
}

async function rotatedKey(account = "owner"): Promise<RotatedKey> {
  const application = await admin.application(account);
  const { key, text } = await admin.issue(application.id);
  const rotated = await admin.run(rotatedKeySchema, "rotateKey", { id: key.id });
  const newer = readPublicId(rotated.api_key) ?? "";
  return { id: key.id, accountId: key.accountId, older: readPublicId(text) ?? "", newer };
}

function end(id: string, publicId: string, as?: Parameters<typeof holderOf>[0]) {
  const request = { id, publicId, ...(as !== undefined && { as: holderOf(as) }) };
  return admin.run(keySchema, "endSecret", request);
}

const live = ({ secrets }: Awaited<ReturnType<typeof end>>): string[] =>
  secrets.filter(({ status }) => status === "live").map(({ public_id: publicId }) => publicId);

test("the older secret of a rotated key ends now, and the newer one stays live", async () => {
  const { id, older, newer } = await rotatedKey();
  const changes = admin.keyChanges;
  const key = await end(id, older);
  expect(live(key)).toEqual([newer]);
  expect(key.secrets.find(({ public_id: publicId }) => publicId === older)?.expires_at).toBe(
    new Date(admin.clock.now()).toISOString(),
  );
  expect(admin.keyChanges).toBe(changes + 1);
  const [entry] = await admin.audit();
  expect(entry).toMatchObject({
    action: "key.end_secret",
    subject: { type: "key", id },
    after: { expires_at: new Date(admin.clock.now()).toISOString() },
  });
});

test("repeating it changes nothing, also when the secret is named by its beginning", async () => {
  const { id, older } = await rotatedKey();
  const first = await end(id, older);
  admin.clock.advance(1_000);
  const entries = (await admin.audit()).length;
  expect(await end(`sk-slc_${older}`, `sk-slc_${older}`)).toEqual(first);
  expect(await admin.audit()).toHaveLength(entries);
});

test("the newer one may be ended too; the only live one may not", async () => {
  const { id, older, newer } = await rotatedKey();
  expect(live(await end(id, newer))).toEqual([older]);
  const entries = (await admin.audit()).length;
  const refusal = await admin.refusal("endSecret", { id, publicId: older });
  expect([refusal.status, refusal.code]).toEqual([409, "wrong_state"]);
  expect(refusal.message).toContain("only live secret");
  expect(await admin.audit()).toHaveLength(entries);
});

test("a revoked key has no secret to end", async () => {
  const { id, older } = await rotatedKey();
  await admin.result("revokeKey", { id });
  const entries = (await admin.audit()).length;
  expect(live(await end(id, older))).toEqual([]);
  expect(await admin.audit()).toHaveLength(entries);
});

test("an account holder ends secrets of its keys; those of other accounts and keys are not found", async () => {
  const own = await rotatedKey("owner");
  const other = await rotatedKey("other");
  expect(live(await end(own.id, own.older, own.accountId))).toEqual([own.newer]);
  const as = holderOf(own.accountId);
  for (const [id, publicId] of [
    [other.id, other.older],
    [own.id, other.older],
    [own.id, "00000000"],
    [own.id, ""],
  ] as const) {
    expect((await admin.refusal("endSecret", { as, id, publicId })).code).toBe("not_found");
  }
  const { roles } = admin.operation("endSecret");
  expect(roles.includes(auditor.role)).toBe(false);
});
