import { expect, test } from "bun:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { generateApiKey, readPublicId } from "../domain/api-key.ts";
import { encodeBase62 } from "../domain/base62.ts";
import { GatewayError } from "../domain/gateway-error.ts";
import type { Key } from "../domain/key.ts";
import type { Plan } from "../domain/plan.ts";
import { keyOf } from "../storage/contract/key-store-contract.ts";
import type { StoredSecret } from "../storage/store.ts";
import { createAuthenticate, createKeyDigest } from "./authenticate.ts";

const digest = createKeyDigest("a pepper that is long enough for it");
const production = { name: "production", models: new Map() };
const standard: Plan = {
  name: "standard",
  limits: { requestsPerMinute: 300, tokensPerMinute: 500_000 },
  provisioned: false,
};

function setUp(values: Partial<Key> = {}, expiresAt?: number) {
  const clock = new ManualClock({ wallMs: 10_000 });
  const missing: string[] = [];
  const { publicId, text } = generateApiKey((target) => crypto.getRandomValues(target));
  const secret = { publicId, keyId: "key_a", digest: digest(text), createdAt: 0, expiresAt };
  const secrets = new Map<string, StoredSecret>([
    [publicId, { key: keyOf("key_a", values), secret }],
  ]);
  const authenticate = createAuthenticate({
    digest,
    clock,
    secrets: () => secrets,
    plans: () => new Map([["standard", standard]]),
    onPlanMissing: (keyId, plan) => missing.push(`${keyId} ${plan}`),
  });
  return { authenticate, text, secrets, clock, publicId, missing };
}

function refusalOf(run: () => unknown): GatewayError {
  try {
    run();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("was not refused");
}

test("a key opens its environment with the limits of its plan, whatever the scheme's case", () => {
  const { authenticate, text } = setUp();
  for (const scheme of ["Bearer", "bearer", "BEARER"]) {
    const caller = authenticate(`${scheme} ${text}`, production);
    expect(caller.key.id).toBe("key_a");
    expect(caller.limits).toEqual({ requestsPerMinute: 300, tokensPerMinute: 500_000 });
  }
});

test("limits of the key itself go before those of its plan", () => {
  const limits = { requestsPerMinute: 1, tokensPerMinute: 2 };
  const { authenticate, text } = setUp({ limits });
  expect(authenticate(`Bearer ${text}`, production).limits).toBe(limits);
});

test("whatever is wrong, the refusal has one shape and the searched-for text", () => {
  const stranger = generateApiKey((target) => crypto.getRandomValues(target)).text;
  const good = setUp();
  const { text, publicId } = good;
  // Well-formed in every way, checksum included: only the digest can tell it from the real one.
  const forgedBody = `${text.slice(0, 16)}${stranger.slice(16, 59)}`;
  const forged = forgedBody + encodeBase62(Bun.hash.crc32(forgedBody), 6);
  expect(readPublicId(forged)).toBe(publicId);
  const cases: readonly (readonly [string, () => unknown])[] = [
    ["missing", () => good.authenticate(null, production)],
    ["another scheme", () => good.authenticate(`Basic ${text}`, production)],
    ["no scheme", () => good.authenticate(text, production)],
    ["junk", () => good.authenticate("Bearer junk", production)],
    ["unknown", () => good.authenticate(`Bearer ${stranger}`, production)],
    ["known id, other secret", () => good.authenticate(`Bearer ${forged}`, production)],
    ["other environment", () => good.authenticate(`Bearer ${text}`, { ...production, name: "x" })],
    ["revoked", () => using(setUp({ revokedAt: 5 }))],
    ["expired", () => using(setUp({}, 10_000))],
  ];
  for (const [name, run] of cases) {
    const error = refusalOf(run);
    expect([name, error.status, error.code, error.type, error.param]).toEqual([
      name,
      401,
      "invalid_api_key",
      "invalid_request_error",
      null,
    ]);
    expect(error.message).toContain("Incorrect API key provided");
    expect(error.message).not.toContain(text.slice(20, 50));
  }
  expect(publicId).toHaveLength(8);
});

function using({ authenticate, text }: ReturnType<typeof setUp>): unknown {
  return authenticate(`Bearer ${text}`, production);
}

test("a key whose plan is not configured is good but cannot be served, and that is told", () => {
  const { authenticate, text, missing } = setUp({ plan: "gold" });
  const error = refusalOf(() => authenticate(`Bearer ${text}`, production));
  expect([error.status, error.code]).toEqual([503, "model_unavailable"]);
  expect(missing).toEqual(["key_a gold"]);
});

test("a secret holds until the moment it expires", () => {
  const { authenticate, text, clock } = setUp({}, 11_000);
  expect(authenticate(`Bearer ${text}`, production).key.id).toBe("key_a");
  clock.advance(999);
  expect(authenticate(`Bearer ${text}`, production).key.id).toBe("key_a");
  clock.advance(1);
  expect(refusalOf(() => authenticate(`Bearer ${text}`, production)).status).toBe(401);
});

test("a key that leaves the snapshot is refused at once", () => {
  const { authenticate, text, secrets } = setUp();
  authenticate(`Bearer ${text}`, production);
  secrets.clear();
  expect(refusalOf(() => authenticate(`Bearer ${text}`, production)).status).toBe(401);
});

test("the digest depends on the pepper and on every character", () => {
  const other = createKeyDigest("another pepper that is long enough");
  expect(digest("text")).toEqual(digest("text"));
  expect(digest("text")).not.toEqual(other("text"));
  expect(digest("text")).not.toEqual(digest("texu"));
});
