import { expect, test } from "bun:test";
import { bearer as bearerForm, generateApiKey } from "../../src/domain/keys/api-key.ts";
import { randomBase62 } from "../../src/domain/keys/base62.ts";
import { GatewayError } from "../../src/domain/errors/gateway-error.ts";
import type { Environment } from "../../src/domain/model.ts";
import { refusalOf } from "../../src/edge/replies/refusal-of.ts";
import { createAuthenticate, type Authenticate } from "../../src/keys/authenticate.ts";
import { KeyRing } from "../../src/keys/key-ring.ts";
import { RefusalLog, refusalBounds } from "../../src/admission/refusals/refusal-log.ts";
import type { KeyStore } from "../../src/store/store.ts";
import { AdminFixture } from "../support/admin-fixture.ts";
import { startGateway } from "../support/gateway.ts";
import { bearer } from "../support/operator.ts";
import { sizeOf } from "../support/requirement.ts";

const guesses = sizeOf({ quick: 20_000, all: 200_000, measured: 1_000_000 });
const guessesOverHttp = sizeOf({ quick: 1_000, all: 5_000, measured: 20_000 });
const liveKeys = 500;
/** The number of kept refusals without a key. */
const strangers = refusalBounds.strangers.limit;

const random = (target: Uint8Array): Uint8Array => crypto.getRandomValues(target);

/** Guesses of every kind in turn. */
class Guesser {
  readonly #live: readonly string[];
  #count = 0;

  constructor(live: readonly string[]) {
    this.#live = live;
  }

  next(): string {
    this.#count += 1;
    const { text } = generateApiKey(random);
    const known = this.#live[this.#count % this.#live.length] ?? "";
    switch (this.#count % 4) {
      case 0:
        return text;
      case 1:
        return text.slice(0, -6) + randomBase62(6, random);
      case 2:
        return withPublicIdOf(known);
      default:
        return withOneWrongCharacter(known, this.#count % 43);
    }
  }
}

/** A well-formed key with the public id of a live secret, but another secret. */
function withPublicIdOf(known: string): string {
  const publicId = new Uint8Array(Buffer.from(known.slice(7, 15)));
  let isFirst = true;
  // The generator draws the public id first, so its random bytes are chosen for these characters.
  return generateApiKey((target) => {
    if (!isFirst) return random(target);
    isFirst = false;
    return target.map((_, index) => base62Value(publicId[index % publicId.length] ?? 0));
  }).text;
}

function base62Value(character: number): number {
  if (character < 0x3a) return character - 0x30;
  return character < 0x5b ? character - 0x41 + 10 : character - 0x61 + 36;
}

function withOneWrongCharacter(known: string, place: number): string {
  const at = 16 + place;
  const other = known.charAt(at) === "a" ? "b" : "a";
  return known.slice(0, at) + other + known.slice(at + 1);
}

const environment: Environment = { name: "production", models: new Map() };

/** A ring of live keys over a real database that counts its reads. */
async function openRing(fixture: AdminFixture) {
  const account = await fixture.account();
  const application = await fixture.application(account.name);
  const issued = [];
  for (let count = 0; count < liveKeys; count += 1) {
    issued.push(await fixture.issue(application.id));
  }
  const { keys } = fixture.stores;
  let reads = 0;
  const store: Pick<KeyStore, "loadKeys"> = {
    loadKeys(since, limit) {
      reads += 1;
      return keys.loadKeys(since, limit);
    },
  };
  const ring = new KeyRing({
    store,
    clock: fixture.clock,
    intervalMs: 500,
    onReloaded: () => undefined,
    onReloadFailed: () => undefined,
  });
  await ring.reload();
  return { ring, texts: issued.map(({ text }) => text), reads: () => reads };
}

function authenticateWith(fixture: AdminFixture, ring: KeyRing, onUsed: () => void): Authenticate {
  return createAuthenticate({
    form: bearerForm,
    peppers: fixture.services.peppers,
    clock: fixture.clock,
    secrets: ring,
    snapshotMaxAgeMs: 900_000,
    plans: () => fixture.platform.plans,
    onUsed,
    onOutdated: () => undefined,
    onPlanMissing: () => undefined,
  });
}

/** The refusal of one guess; undefined if it was accepted. */
function refusalTo(authenticate: Authenticate, text: string): GatewayError | undefined {
  try {
    authenticate(text, environment, () => "192.0.2.1");
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

function heapBytes(): number {
  Bun.gc(true);
  return process.memoryUsage().heapUsed;
}

test(`none of ${guesses} guessed keys is accepted or reads the database, and memory is stable`, async () => {
  await using fixture = new AdminFixture();
  const { ring, texts, reads } = await openRing(fixture);
  let used = 0;
  const authenticate = authenticateWith(fixture, ring, () => (used += 1));
  for (const text of texts) expect(refusalTo(authenticate, text)).toBeUndefined();
  expect(used).toBe(liveKeys);
  const readsBefore = reads();
  const guesser = new Guesser(texts);
  const log = new RefusalLog();
  const rules = new Map<string, number>();
  let heapBefore = 0;
  const began = performance.now();
  for (let guess = 0; guess < guesses; guess += 1) {
    if (guess === guesses / 10) heapBefore = heapBytes();
    const error = refusalTo(authenticate, guesser.next());
    expect(error?.status).toBe(401);
    if (error === undefined) continue;
    const rule = error.explanation?.rule ?? "none";
    rules.set(rule, (rules.get(rule) ?? 0) + 1);
    const refusal = refusalOf({ id: `req_${guess}`, at: guess, error, caller: undefined });
    if (refusal !== undefined) log.record(refusal);
  }
  const microseconds = ((performance.now() - began) / guesses) * 1_000;
  const grownBytes = heapBytes() - heapBefore;
  process.stdout.write(
    `${guesses} guesses: ${JSON.stringify(Object.fromEntries(rules))}, ` +
      `${microseconds.toFixed(1)} us each, heap ${(grownBytes / 1e6).toFixed(1)} MB\n`,
  );
  expect([used, reads() - readsBefore]).toEqual([liveKeys, 0]);
  expect(Object.fromEntries(rules)).toEqual({
    key_unknown: guesses / 4,
    key_mismatch: guesses / 4,
    key_malformed: guesses / 2,
  });
  expect(log.size).toBeLessThanOrEqual(strangers);
  expect(grownBytes).toBeLessThan(16_000_000);
  for (const text of texts) expect(refusalTo(authenticate, text)).toBeUndefined();
}, 180_000);

test(`${guessesOverHttp} guesses over HTTP have the same refusal, and few are kept`, async () => {
  await using gateway = await startGateway();
  const others = await Promise.all(Array.from({ length: 20 }, () => gateway.createKey()));
  const guesser = new Guesser([gateway.key, ...others.map(({ text }) => text)]);
  const shapes = new Map<string, number>();
  const guess = async (): Promise<void> => {
    const response = await gateway.get("/v1/models", bearer(guesser.next()));
    const { error } = (await response.json()) as { error: Record<string, string | null> };
    const { message, ...rest } = error;
    expect(message).toMatch(/^Incorrect API key provided(: sk-slc_|\. Your network address)/);
    const shape = JSON.stringify([response.status, rest, [...response.headers.keys()].toSorted()]);
    shapes.set(shape, (shapes.get(shape) ?? 0) + 1);
  };
  let begun = 0;
  const worker = async (): Promise<void> => {
    while ((begun += 1) <= guessesOverHttp) await guess();
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  expect([...shapes.values()]).toEqual([guessesOverHttp]);
  const kept = await gateway.app.admin.refusals.list({}, guessesOverHttp);
  expect(kept.length).toBeLessThanOrEqual(strangers);
  // Refusals without a key do not evict those of a real key, and its calls continue.
  expect((await gateway.get("/v1/models")).status).toBe(200);
  const views = await Promise.all(
    others.map(({ id }) => gateway.admin("GET", `/admin/v1/refusals?key_id=${id}`)),
  );
  for (const view of views) expect(await view.json()).toEqual({ data: [] });
}, 180_000);
