import { describe, expect, test } from "bun:test";
import { testPeppers } from "../../test/support/test-peppers.ts";
import { plainKey } from "../../test/support/plain-key.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { bearer, generateApiKey, readPublicId } from "../domain/keys/api-key.ts";
import { encodeBase62 } from "../domain/keys/base62.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { Key } from "../domain/keys/key.ts";
import type { Plan } from "../domain/limits/plan.ts";
import type { RefusalRule } from "../domain/errors/refusal.ts";
import type { KeyChange, KeyChanges, KeyStore, RenewedSecret } from "../store/store.ts";
import { createAuthenticate } from "./authenticate.ts";
import { createKeyDigest } from "../domain/keys/peppers.ts";
import { KeyRing } from "./key-ring.ts";

const peppers = testPeppers("first", "second");
const { digest } = peppers.first;
const production = { name: "production", models: new Map() };
const snapshotMaxAgeMs = 900_000;
const standard: Plan = {
  name: "standard",
  limits: { requestsPerMinute: 300, tokensPerMinute: 500_000 },
  provisioned: false,
  queueTimeoutMs: 0,
  isIdempotent: false,
  responsesKeepMs: 0,
  uncapped: "debt",
  overrunFactor: 3,
  whenLimitsUnavailable: "local",
};

function newText(): string {
  return generateApiKey((target) => crypto.getRandomValues(target)).text;
}

function publicIdOf(text: string): string {
  const publicId = readPublicId(text);
  if (publicId === undefined) throw new Error("not a key");
  return publicId;
}

/** The same public id and a valid checksum: only the secret part differs. */
function forge(text: string): string {
  const body = `${text.slice(0, 16)}${newText().slice(16, 59)}`;
  return body + encodeBase62(Bun.hash.crc32(body), 6);
}

function keyOf(values: Partial<Key>): Key {
  return plainKey({ environment: "production", ...values });
}

/** A store that records its calls and can be unavailable. */
class SayingStore implements Pick<KeyStore, "loadKeys"> {
  isUnavailable = false;
  #epoch = 0;
  #waiting: KeyChange[] = [];

  say(change: KeyChange): void {
    this.#waiting.push(change);
    this.#epoch += 1;
  }

  loadKeys(): Promise<KeyChanges> {
    if (this.isUnavailable) return Promise.reject(new Error("database is locked"));
    const changes = this.#waiting;
    this.#waiting = [];
    return Promise.resolve({ changes, epoch: this.#epoch, hasMore: false });
  }
}

function headersOf(authorization: string | null): Headers {
  return new Headers(authorization === null ? {} : { authorization });
}

interface SetUp {
  /** Digests the stored secret. */
  readonly digestOf?: (text: string) => Uint8Array;
  readonly key?: Partial<Key>;
  readonly secretExpiresAt?: number;
}

async function setUp({ key = {}, secretExpiresAt, digestOf = digest }: SetUp = {}) {
  const clock = new ManualClock({ wallMs: 10_000 });
  const store = new SayingStore();
  const text = newText();
  const publicId = publicIdOf(text);
  const live = {
    key: keyOf(key),
    secrets: [
      {
        publicId,
        keyId: "key_a",
        digest: digestOf(text),
        createdAt: 0,
        expiresAt: secretExpiresAt,
        lastUsedAt: undefined,
      },
    ],
  };
  store.say({ keyId: "key_a", live });
  const secrets = new KeyRing({
    store,
    clock,
    intervalMs: 500,
    onReloaded: () => undefined,
    onReloadFailed: () => undefined,
  });
  await secrets.reload();
  const missingPlans: string[] = [];
  const used: string[] = [];
  const outdated: RenewedSecret[] = [];
  const authenticate = createAuthenticate({
    form: bearer,
    peppers,
    clock,
    secrets,
    snapshotMaxAgeMs,
    plans: () => new Map([["standard", standard]]),
    onUsed: (usedId, at) => used.push(`${usedId} ${at}`),
    onOutdated: (secret) => outdated.push(secret),
    onPlanMissing: (keyId, plan) => missingPlans.push(`${keyId} ${plan}`),
  });
  const asked: string[] = [];
  const call = (sent: string | null = `Bearer ${text}`, address = "192.0.2.1") =>
    authenticate(bearer.read(headersOf(sent)), production, () => {
      asked.push(address);
      return address;
    });
  return {
    call,
    authenticate,
    secrets,
    store,
    live,
    clock,
    text,
    publicId,
    used,
    outdated,
    missingPlans,
    asked,
  };
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

function ruleOf(run: () => unknown): RefusalRule | undefined {
  return refusalOf(run).explanation?.rule;
}

test("a key works in its environment with the limits of its plan; the scheme's case does not matter", async () => {
  const { call, text } = await setUp();
  for (const scheme of ["Bearer", "bearer", "BEARER"]) {
    const caller = call(`${scheme} ${text}`);
    expect(caller.key.id).toBe("key_a");
    expect(caller.limits).toEqual({ requestsPerMinute: 300, tokensPerMinute: 500_000 });
  }
});

test("limits of the key itself override those of its plan", async () => {
  const limits = { requestsPerMinute: 1, tokensPerMinute: 2 };
  const { call } = await setUp({ key: { limits } });
  expect(call().limits).toBe(limits);
});

test("the use of an accepted secret is recorded, that of a refused one is not", async () => {
  const { call, publicId, used, text, clock } = await setUp();
  call();
  clock.advance(7);
  call();
  refusalOf(() => call(`Bearer ${forge(text)}`));
  expect(used).toEqual([`${publicId} 10000`, `${publicId} 10007`]);
});

/** Only a text that is not in the form of a key gets another message. */
const ofAKeysForm =
  /^Incorrect API key provided: sk-slc_\S+ It may have been rotated, revoked or expired\. Send /;
const messages: Readonly<Partial<Record<RefusalRule, RegExp>>> = {
  key_missing: /^You didn't provide an API key\. Send .* Authorization header \(Authorization: /,
  key_malformed: /^Incorrect API key provided: \S+ Send the key of your application for this /,
};

describe("every refusal has the same shape, and only the explanation names the rule:", () => {
  const cases: readonly (readonly [RefusalRule, string, () => Promise<() => unknown>])[] = [
    ["key_missing", "no header", async () => sending(await setUp(), null)],
    ["key_missing", "another scheme", async () => sending(await setUp(), "Basic x")],
    ["key_malformed", "junk", async () => sending(await setUp(), "Bearer junk")],
    ["key_unknown", "never issued", async () => sending(await setUp(), `Bearer ${newText()}`)],
    ["key_mismatch", "a known id, another secret", mismatch],
    [
      "other_environment",
      "another environment",
      async () => good({ key: { environment: "test" } }),
    ],
    ["key_revoked", "revoked", async () => good({ key: { revokedAt: 5 } })],
    ["key_disabled", "disabled", async () => good({ key: { disabledAt: 5 } })],
    ["key_expired", "the key expired", async () => good({ key: { expiresAt: 10_000 } })],
    ["secret_ended", "the secret expired", async () => good({ secretExpiresAt: 10_000 })],
    ["key_removed", "removed", removed],
  ];
  test.each(cases)("%s: %s", async (rule, _what, prepare) => {
    const run = await prepare();
    const error = refusalOf(run);
    expect([error.status, error.code, error.type, error.param, error.headers]).toEqual([
      401,
      "invalid_api_key",
      "invalid_request_error",
      null,
      {},
    ]);
    expect(error.message).toMatch(messages[rule] ?? ofAKeysForm);
    expect(error.explanation?.rule).toBe(rule);
  });
});

function sending({ call }: Awaited<ReturnType<typeof setUp>>, sent: string | null) {
  return () => call(sent);
}

async function good(values: SetUp): Promise<() => unknown> {
  const { call } = await setUp(values);
  return () => call();
}

async function mismatch(): Promise<() => unknown> {
  const { call, text } = await setUp();
  return () => call(`Bearer ${forge(text)}`);
}

async function removed(): Promise<() => unknown> {
  const { call, store, secrets } = await setUp();
  store.say({ keyId: "key_a", live: undefined });
  await secrets.reload();
  return () => call();
}

test("an explanation names the key only when the whole key was sent", async () => {
  const { call, text, publicId } = await setUp({ key: { expiresAt: 1 } });
  const known = { keyId: "key_a", accountId: "acct_a", application: "search" };
  expect(refusalOf(() => call()).explanation).toMatchObject({
    ...known,
    publicId,
    environment: "production",
  });
  const forged = refusalOf(() => call(`Bearer ${forge(text)}`)).explanation;
  expect(forged).toMatchObject({ rule: "key_mismatch", publicId });
  expect(forged).not.toHaveProperty("keyId");
  const unknown = newText();
  expect(refusalOf(() => call(`Bearer ${unknown}`)).explanation).toMatchObject({
    publicId: publicIdOf(unknown),
  });
  expect(refusalOf(() => call("Bearer junk")).explanation).not.toHaveProperty("publicId");
});

test("no part of a refusal holds the secret part of a key", async () => {
  const { call, text } = await setUp({ key: { expiresAt: 1 } });
  for (const sent of [text, forge(text), newText(), `${text.slice(0, -1)}!`]) {
    const error = refusalOf(() => call(`Bearer ${sent}`));
    const shown = JSON.stringify([error.message, error.headers, error.explanation]);
    expect(shown).not.toContain(sent.slice(16, 26));
    expect(shown).not.toContain(sent.slice(30, 40));
  }
});

test("a valid key whose plan is not configured gets a 503 that is logged", async () => {
  const { call, missingPlans } = await setUp({ key: { plan: "gold" } });
  const error = refusalOf(() => call());
  expect([error.status, error.code, error.explanation?.rule]).toEqual([
    503,
    "model_unavailable",
    "plan_missing",
  ]);
  expect(missingPlans).toEqual(["key_a gold"]);
});

test.each<SetUp>([{ secretExpiresAt: 11_000 }, { key: { expiresAt: 11_000 } }])(
  "an expiry takes effect on time without a read of the store: %j",
  async (values) => {
    const { call, clock } = await setUp(values);
    clock.advance(999);
    expect(call().key.id).toBe("key_a");
    clock.advance(1);
    expect(refusalOf(() => call()).status).toBe(401);
  },
);

describe("networks", () => {
  const allowedNetworks = ["10.1.0.0/16", "2001:db8::/32"];

  test("a key bound to networks works only from them", async () => {
    const { call } = await setUp({ key: { allowedNetworks } });
    for (const address of ["10.1.2.3", "2001:db8::7"]) {
      expect(call(undefined, address).key.id).toBe("key_a");
    }
    for (const address of ["10.2.0.1", "2001:db9::1", "unknown", ""]) {
      const error = refusalOf(() => call(undefined, address));
      expect([error.status, error.code]).toEqual([403, "network_not_allowed"]);
      expect(error.explanation).toMatchObject({ rule: "network_not_allowed", keyId: "key_a" });
    }
  });

  test("a wrong secret does not reveal the networks of its key", async () => {
    const { call, text, asked } = await setUp({ key: { allowedNetworks } });
    expect(refusalOf(() => call(`Bearer ${forge(text)}`, "10.2.0.1")).status).toBe(401);
    expect(asked).toEqual([]);
  });

  test("an empty list allows no address", async () => {
    const { call } = await setUp({ key: { allowedNetworks: [] } });
    expect(refusalOf(() => call()).status).toBe(403);
  });

  test("the address is not read when the key has no networks", async () => {
    const { call, asked } = await setUp();
    call();
    expect(asked).toEqual([]);
  });
});

describe("while the store is unavailable", () => {
  test("known keys work, and unknown ones get a 503 instead of a 401", async () => {
    const { call, clock } = await setUp();
    clock.advance(5_001);
    expect(call().key.id).toBe("key_a");
    const error = refusalOf(() => call(`Bearer ${newText()}`));
    expect([error.status, error.code, error.explanation?.rule]).toEqual([
      503,
      "model_unavailable",
      "snapshot_stale",
    ]);
    expect(error.headers["retry-after"]).toMatch(/^[1-9][0-9]*$/);
  });

  test("a snapshot is complete for up to ten missed polls", async () => {
    const { call, clock } = await setUp();
    clock.advance(5_000);
    expect(refusalOf(() => call(`Bearer ${newText()}`)).status).toBe(401);
  });

  test("malformed keys and wrong secrets of known ids still get a 401", async () => {
    const { call, clock, text } = await setUp();
    clock.advance(60_000);
    const typo = `${text.slice(0, -1)}${text.endsWith("0") ? "1" : "0"}`;
    for (const sent of [null, "Bearer junk", `Bearer ${typo}`, `Bearer ${forge(text)}`]) {
      expect(refusalOf(() => call(sent)).status).toBe(401);
    }
  });

  test("a revocation seen before stays in force", async () => {
    const { call, clock, store, secrets } = await setUp();
    store.say({ keyId: "key_a", live: undefined });
    await secrets.reload();
    clock.advance(60_000);
    expect(ruleOf(() => call())).toBe("key_removed");
  });

  test("known keys stop working after snapshot_max_age", async () => {
    const { call, clock, secrets } = await setUp();
    clock.advance(snapshotMaxAgeMs);
    expect(call().key.id).toBe("key_a");
    clock.advance(1);
    const error = refusalOf(() => call());
    expect([error.status, error.explanation?.rule]).toEqual([503, "snapshot_stale"]);
    expect(error.explanation?.keyId).toBe("key_a");
    await secrets.reload();
    expect(call().key.id).toBe("key_a");
  });
});

test("of 20,000 random texts and near misses, none is accepted", async () => {
  const { authenticate, text } = await setUp();
  const refused = (sent: string): GatewayError =>
    refusalOf(() => authenticate(sent, production, () => "192.0.2.1"));
  const random = (): string => Buffer.from(crypto.getRandomValues(new Uint8Array(48))).toString();
  for (let index = 0; index < 5_000; index += 1) {
    const position = index % text.length;
    const near = `${text.slice(0, position)}${text.charAt(position) === "x" ? "y" : "x"}${text.slice(position + 1)}`;
    for (const sent of [newText(), forge(text), near, random()]) {
      expect(refused(sent).status).toBe(401);
    }
  }
});

test("the digest depends on the pepper and every character", () => {
  const other = createKeyDigest("another pepper that is long enough");
  expect(digest("text")).toEqual(digest("text"));
  expect(digest("text")).not.toEqual(other("text"));
  expect(digest("text")).not.toEqual(digest("texu"));
});

test("a secret under an older pepper works, and onOutdated gets its digest under the first", async () => {
  const [, second] = peppers.all;
  const { call, text, publicId, live, outdated } = await setUp({
    digestOf: second?.digest ?? digest,
  });
  expect(call().key.id).toBe("key_a");
  const [secret] = live.secrets;
  const renewed = { digest: digest(text), pepper: peppers.first.mark };
  expect(outdated).toEqual([{ publicId, stored: secret?.digest ?? digest(""), renewed }]);
});

test("a secret under the first pepper is not outdated, and one under an unknown pepper is refused", async () => {
  const own = await setUp();
  own.call();
  expect(own.outdated).toEqual([]);
  const foreign = await setUp({ digestOf: testPeppers("foreign").first.digest });
  expect(ruleOf(() => foreign.call())).toBe("key_mismatch");
  expect(foreign.outdated).toEqual([]);
});
