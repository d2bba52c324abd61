import { describe, expect, test } from "bun:test";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { CredentialCache } from "./credential-cache.ts";

const second = 1000;
const minute = 60 * second;
const forever = new AbortController();

/** Loads that the test answers one by one; each asks for the next key: `K1`, `K2` ... */
class Source {
  readonly #waiting: PromiseWithResolvers<Credential>[] = [];
  loads = 0;

  readonly load = (): Promise<Credential> => {
    this.loads += 1;
    const pending = Promise.withResolvers<Credential>();
    this.#waiting.push(pending);
    return pending.promise;
  };

  give(accessKeyId: string, expiresAtMs?: number, index = 0): void {
    this.#take(index).resolve(credentials(accessKeyId, expiresAtMs));
  }

  fail(message: string): void {
    this.#take(0).reject(new UpstreamFailure({ kind: "bad-credential", message }));
  }

  #take(index: number): PromiseWithResolvers<Credential> {
    const [pending] = this.#waiting.splice(index, 1);
    if (pending === undefined) throw new Error("nobody asked for credentials");
    return pending;
  }
}

interface Credential {
  readonly accessKeyId: string;
  readonly expiresAtMs: number | undefined;
}

function credentials(accessKeyId: string, expiresAtMs?: number): Credential {
  return { accessKeyId, expiresAtMs };
}

function signedBy(keyId: string) {
  return ({ accessKeyId }: Credential): boolean => accessKeyId === keyId;
}

function reasonOf(promise: unknown): Promise<string> {
  return Promise.resolve(promise).then(
    () => "no failure",
    (error: unknown) => (error instanceof Error ? error.message : "no error"),
  );
}

function setUp() {
  const clock = new ManualClock();
  const source = new Source();
  const troubles: string[] = [];
  const timers: (() => void)[] = [];
  const cache = new CredentialCache({
    load: source.load,
    nowMs: () => clock.now(),
    clock: {
      monotonic: () => clock.monotonic(),
      schedule: (run) => {
        timers.push(run);
        return () => undefined;
      },
    },
    onLoadFailed: ({ message }) => troubles.push(message),
  });
  const keyId = async () => (await cache.get(forever)).accessKeyId;
  /** Waits for a load and its callers. */
  const settle = async () => {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  };
  return { clock, source, cache, troubles, timers, keyId, settle };
}

async function withKey(keyId: string, lifetimeMs?: number) {
  const parts = setUp();
  const first = parts.keyId();
  const { clock, source } = parts;
  source.give(keyId, lifetimeMs === undefined ? undefined : clock.now() + lifetimeMs);
  expect(await first).toBe(keyId);
  return parts;
}

describe("credentials with an end", () => {
  test("are fetched once for all waiting calls, and then served without a fetch", async () => {
    const { source, keyId } = setUp();
    const waiting = Promise.all(Array.from({ length: 100 }, keyId));
    source.give("K1", Date.UTC(2030, 0));
    expect(new Set(await waiting)).toEqual(new Set(["K1"]));
    expect(await keyId()).toBe("K1");
    expect(source.loads).toBe(1);
  });

  test("are replaced in the background in their last five minutes", async () => {
    const { clock, source, keyId, settle } = await withKey("K1", 60 * minute);
    clock.advance(55 * minute);
    expect(await keyId()).toBe("K1");
    expect(source.loads).toBe(1);
    clock.advance(1);
    expect(await keyId()).toBe("K1");
    expect(await keyId()).toBe("K1");
    expect(source.loads).toBe(2);
    source.give("K2", clock.now() + 60 * minute);
    await settle();
    expect(await keyId()).toBe("K2");
  });

  test("make callers wait only once they have expired", async () => {
    const { clock, source, keyId } = await withKey("K1", 10 * minute);
    clock.advance(10 * minute - 1);
    expect(await keyId()).toBe("K1");
    clock.advance(1);
    const waiting = keyId();
    source.give("K2", clock.now() + 10 * minute);
    expect(await waiting).toBe("K2");
    expect(source.loads).toBe(2);
  });

  test("are still used while no others can be fetched, which is retried after 30 seconds", async () => {
    const { clock, source, troubles, keyId, settle } = await withKey("K1", 10 * minute);
    clock.advance(6 * minute);
    await keyId();
    source.fail("the source is away");
    await settle();
    expect(troubles).toEqual(["the source is away"]);
    clock.advance(30 * second - 1);
    expect(await keyId()).toBe("K1");
    expect(source.loads).toBe(2);
    clock.advance(1);
    expect(await keyId()).toBe("K1");
    expect(source.loads).toBe(3);
  });

  test("that look expired on arrival are tried, because the clock may be wrong", async () => {
    const { clock, source, keyId } = await withKey("K1", -60 * minute);
    expect(await keyId()).toBe("K1");
    clock.advance(second);
    const waiting = keyId();
    source.give("K2", clock.now() + 10 * minute);
    expect(await waiting).toBe("K2");
    expect(source.loads).toBe(2);
  });
});

test("credentials without an end are read again after 15 minutes, in the background", async () => {
  const { clock, source, keyId, settle } = await withKey("K1");
  clock.advance(15 * minute - 1);
  await keyId();
  expect(source.loads).toBe(1);
  clock.advance(1);
  expect(await keyId()).toBe("K1");
  source.give("K2");
  await settle();
  expect(await keyId()).toBe("K2");
  clock.advance(15 * minute - 1);
  await keyId();
  expect(source.loads).toBe(2);
});

describe("without credentials", () => {
  test("every caller gets the reason, and the source is not called for a second", async () => {
    const { clock, source, keyId } = setUp();
    const waiting = Promise.all([reasonOf(keyId()), reasonOf(keyId())]);
    source.fail("nothing here");
    expect(await waiting).toEqual(["nothing here", "nothing here"]);
    clock.advance(second - 1);
    expect(await reasonOf(keyId())).toBe("nothing here");
    expect(source.loads).toBe(1);
    clock.advance(1);
    const retried = keyId();
    source.give("K1");
    expect(await retried).toBe("K1");
    expect(source.loads).toBe(2);
  });

  test("a failure is forgotten after a success", async () => {
    const { clock, source, cache, keyId } = setUp();
    const failed = reasonOf(keyId());
    source.fail("nothing here");
    await failed;
    clock.advance(second);
    const mended = keyId();
    source.give("K1");
    await mended;
    cache.refuse(signedBy("K1"));
    const replaced = keyId();
    source.give("K2");
    expect(await replaced).toBe("K2");
  });

  test("any error of a source becomes a failure of the upstream", async () => {
    const cache = new CredentialCache({
      load: () => Promise.reject(new TypeError("odd")),
      nowMs: () => 0,
      clock: new ManualClock(),
      onLoadFailed: () => undefined,
    });
    const failure: unknown = await Promise.resolve(cache.get(forever)).catch(
      (error: unknown) => error,
    );
    expect(failure).toBeInstanceOf(UpstreamFailure);
    expect(failure).toMatchObject({ details: { kind: "bad-credential" } });
  });

  test("a source that does not answer fails after a minute, and its late answer is dropped", async () => {
    const { clock, source, keyId, settle, troubles, timers } = setUp();
    const early = reasonOf(keyId());
    clock.advance(minute);
    timers[0]?.();
    expect(await early).toBe("credentials could not be loaded");
    expect(troubles).toEqual(["credentials could not be loaded"]);
    clock.advance(second);
    const late = keyId();
    expect(source.loads).toBe(2);
    source.give("K2", undefined, 1);
    expect(await late).toBe("K2");
    source.give("K1");
    await settle();
    expect(await keyId()).toBe("K2");
  });

  test("a caller that leaves stops waiting, while the fetch continues for the others", async () => {
    const { source, cache, keyId } = setUp();
    const controller = new AbortController();
    const leaving = reasonOf(cache.get(controller));
    const staying = keyId();
    controller.abort(new Error("left"));
    expect(await leaving).toBe("left");
    source.give("K1");
    expect(await staying).toBe("K1");
    expect(source.loads).toBe(1);
  });

  test("a caller that has left already starts no fetch", async () => {
    const { source, cache } = setUp();
    expect(await reasonOf(cache.get({ signal: AbortSignal.abort(new Error("left")) }))).toBe(
      "left",
    );
    expect(source.loads).toBe(0);
  });
});

describe("refused credentials", () => {
  test("are replaced by one fetch for any number of refusals", async () => {
    const { source, cache, keyId } = await withKey("K1", 60 * minute);
    for (let refusal = 0; refusal < 50; refusal += 1) cache.refuse(signedBy("K1"));
    const waiting = Promise.all(Array.from({ length: 50 }, keyId));
    cache.refuse(signedBy("K1"));
    source.give("K2");
    expect(new Set(await waiting)).toEqual(new Set(["K2"]));
    cache.refuse(signedBy("K1"));
    expect(await keyId()).toBe("K2");
    expect(source.loads).toBe(2);
  });

  test("are distinguished by their session token too", async () => {
    const { source, cache, keyId } = await withKey("K1");
    cache.refuse(signedBy("another"));
    expect(await keyId()).toBe("K1");
    expect(source.loads).toBe(1);
  });

  test.each(["K1", "K2"])(
    "whose replacement %s is refused too are not asked for again for ten seconds",
    async (replacement) => {
      const { clock, source, cache, keyId } = await withKey("K1");
      cache.refuse(signedBy("K1"));
      const again = keyId();
      source.give(replacement);
      expect(await again).toBe(replacement);
      cache.refuse(signedBy(replacement));
      clock.advance(10 * second - 1);
      cache.refuse(signedBy(replacement));
      expect(await keyId()).toBe(replacement);
      expect(source.loads).toBe(2);
      clock.advance(1);
      cache.refuse(signedBy(replacement));
      const third = keyId();
      source.give("K3");
      expect(await third).toBe("K3");
    },
  );

  test("are not served again while no others can be fetched", async () => {
    const { source, cache, keyId } = await withKey("K1", 60 * minute);
    cache.refuse(signedBy("K1"));
    const waiting = reasonOf(keyId());
    source.fail("nothing here");
    expect(await waiting).toBe("nothing here");
    expect(await reasonOf(keyId())).toBe("nothing here");
  });

  test("may be refused before any were fetched", () => {
    const { cache, source } = setUp();
    cache.refuse(signedBy("K1"));
    expect(source.loads).toBe(0);
  });
});

describe("whether there are credentials", () => {
  test("is told only once it is known, and then looked for again without any call", async () => {
    const { clock, source, cache, settle } = setUp();
    expect(cache.whyNone()).toBeUndefined();
    source.fail("no role");
    await settle();
    expect(cache.whyNone()).toBe("no role");
    expect(source.loads).toBe(1);
    clock.advance(30 * second);
    expect(cache.whyNone()).toBe("no role");
    expect(source.loads).toBe(2);
    source.give("K1");
    await settle();
    expect(cache.whyNone()).toBeUndefined();
  });

  test("is no question while those of before are valid", async () => {
    const { clock, source, cache, keyId, settle } = await withKey("K1", 10 * minute);
    clock.advance(6 * minute);
    expect(await keyId()).toBe("K1");
    source.fail("no role");
    await settle();
    expect(cache.whyNone()).toBeUndefined();
    clock.advance(5 * minute);
    expect(cache.whyNone()).toBe("no role");
  });
});
