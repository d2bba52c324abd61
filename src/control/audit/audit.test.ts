import { expect, test } from "bun:test";
import { AdminFixture } from "../../../test/support/admin-fixture.ts";
import { testPeppers } from "../../../test/support/test-peppers.ts";
import { writeCheckpoint } from "../../store/audit.ts";
import { auditVerdictSchema } from "../contract.ts";

const peppers = testPeppers();

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
  expect(verdict).toMatchObject({
    is_intact: true,
    entries: 3,
    problem: null,
    first: { sequence: 1 },
  });
  const checkpoint = writeCheckpoint({ at: "then", first: 1, sequence: 3, digest }, peppers);
  await admin.result("createAccount", { body: { name: "four" } });
  expect((await verify({ expect: digest })).is_intact).toBe(true);
  expect((await verify({ checkpoint })).is_intact).toBe(true);
  expect(await verify({ expect: "0123456789abcdef".repeat(4) })).toMatchObject({
    is_intact: false,
    problem: { what: "the chain has no entry with the expected digest" },
  });
  const later = writeCheckpoint({ at: "then", first: 1, sequence: 7, digest }, peppers);
  expect(await verify({ checkpoint: later })).toMatchObject({
    is_intact: false,
    problem: { sequence: 4, what: "the chain ends here, but once had 7 entries" },
  });
});

test("a checkpoint that this installation did not write is refused", async () => {
  await using admin = await filled();
  const foreign = testPeppers("other");
  const link = { at: "then", first: 1, sequence: 3, digest: "0".repeat(64) };
  for (const checkpoint of [writeCheckpoint(link, foreign), "{}", "no json"]) {
    const refused = await admin.refusal("verifyAudit", { query: { checkpoint } });
    expect(refused.message).toContain("this installation did not write it");
  }
});

test("names the first entry that retention has kept", async () => {
  await using admin = await filled();
  const limits = { audit: admin.clock.now() + 1, keys: 0, access: 0, replies: 0 };
  await admin.stores.control.prune(limits, 100);
  const verdict = await admin.run(auditVerdictSchema, "verifyAudit");
  expect(verdict).toMatchObject({ is_intact: true, entries: 1, first: { sequence: 3 } });
});
