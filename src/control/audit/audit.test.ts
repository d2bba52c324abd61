import { expect, test } from "bun:test";
import { AdminFixture } from "../../../test/support/admin-fixture.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";
import { writeCheckpoint } from "../../domain/audit/audit-checkpoint.ts";
import { AuditSeals } from "../../domain/audit/audit-seals.ts";
import { auditVerdictSchema } from "../contract.ts";

const seals = new AuditSeals(testPeppers());

async function filled(): Promise<AdminFixture> {
  const admin = new AdminFixture();
  for (const name of ["one", "two", "three"]) {
    await admin.result("createAccount", { body: { name } });
  }
  return admin;
}

test("a noted digest or checkpoint must be in the chain", async () => {
  await using admin = await filled();
  const verify = (query: Record<string, string> = {}) =>
    admin.run(auditVerdictSchema, "verifyAudit", { query });
  const { last_digest: digest, ...verdict } = await verify();
  expect(verdict).toEqual({ is_intact: true, entries: 3, problem: null, removed: null });
  const checkpoint = writeCheckpoint({ at: "then", sequence: 3, digest }, seals);
  await admin.result("createAccount", { body: { name: "four" } });
  expect((await verify({ expect: digest })).is_intact).toBe(true);
  expect((await verify({ checkpoint })).is_intact).toBe(true);
  expect(await verify({ expect: "0123456789abcdef".repeat(4) })).toMatchObject({
    is_intact: false,
    problem: { what: "the chain has no entry with the expected digest" },
  });
  const later = writeCheckpoint({ at: "then", sequence: 7, digest }, seals);
  expect(await verify({ checkpoint: later })).toMatchObject({
    is_intact: false,
    problem: { sequence: 4, what: "the chain ends here, but once had 7 entries" },
  });
});

test("a checkpoint that this installation did not write is refused", async () => {
  await using admin = await filled();
  const foreign = new AuditSeals(testPeppers("other"));
  const link = { at: "then", sequence: 3, digest: "0".repeat(64) };
  for (const checkpoint of [writeCheckpoint(link, foreign), "{}", "no json"]) {
    const refused = await admin.refusal("verifyAudit", { query: { checkpoint } });
    expect(refused.message).toContain("this installation did not write it");
  }
});

test("reports what retention removed, and that it kept less than configured now", async () => {
  await using admin = await filled();
  const at = admin.clock.now();
  const keptMs = 3_600_000;
  const now = at + keptMs + 1;
  admin.clock.advance(keptMs + 1);
  const limits = { now, audit: now - keptMs, keys: 0, access: 0, replies: 0 };
  await admin.services.store.prune(limits, 100);
  const verdict = await admin.run(auditVerdictSchema, "verifyAudit");
  expect(verdict).toMatchObject({ is_intact: true, entries: 0 });
  expect(verdict.removed).toEqual({
    until: new Date(at).toISOString(),
    at: new Date(now).toISOString(),
    kept_hours: 1,
    configured_hours: 3650 * 24,
  });
});
