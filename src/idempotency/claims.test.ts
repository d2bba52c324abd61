import { beforeEach, describe, expect, test } from "bun:test";
import { ProcessClock, VirtualTime } from "../../test/simulation/virtual-time.ts";
import { MemoryReplyStore } from "../../test/support/memory-reply-store.ts";
import { callerOf, callOf, type CallValues } from "../../test/support/pipeline-fixtures.ts";
import { testPeppers } from "../../test/support/test-peppers.ts";
import { RunningCalls } from "../call/running-calls.ts";
import { StorageUnavailable } from "../store/errors.ts";
import type { CallClaims, ClaimAnswer, HeldClaim, WantedClaim } from "../store/store.ts";
import { nameCall } from "./request-names.ts";
import { Claims, type Claim, type Taken } from "./claims.ts";
import { openAnswer, sealAnswer } from "./seal.ts";

const answer = { headers: {}, text: "hello" };

/** A store that counts what it is asked, and can be away. */
class WatchedClaims implements CallClaims {
  readonly replies: MemoryReplyStore;
  asked = 0;
  confirmed: readonly HeldClaim[] = [];
  isAway = false;
  /** Answers are given when this resolves. */
  gate: Promise<void> = Promise.resolve();

  constructor(replies: MemoryReplyStore) {
    this.replies = replies;
  }

  async claim(wanted: WantedClaim): Promise<ClaimAnswer> {
    this.asked += 1;
    if (this.isAway) throw new StorageUnavailable("away");
    const answered = await this.replies.claim(wanted);
    await this.gate;
    return answered;
  }

  confirm(claims: readonly HeldClaim[]): Promise<void> {
    this.confirmed = claims;
    return this.replies.confirm(claims);
  }

  async release(claim: HeldClaim): Promise<void> {
    if (this.isAway) throw new StorageUnavailable("away");
    await this.replies.release(claim);
  }

  keep(...answered: Parameters<CallClaims["keep"]>): Promise<number> {
    return this.replies.keep(...answered);
  }
}

let time: VirtualTime;
let replies: MemoryReplyStore;
let calls: number;
beforeEach(() => {
  time = new VirtualTime();
  replies = new MemoryReplyStore({ clock: { now: () => time.now } });
  calls = 0;
});

/** A process: its claims, and how it sees the store. */
function start(waitingLimit = 100) {
  const clock = new ProcessClock(time, { monotonicMs: 0, wallMs: 0 });
  const store = new WatchedClaims(replies);
  const revoked = new Set<string>();
  const running = new RunningCalls((keyId) => !revoked.has(keyId), undefined, clock);
  const settings = {
    answerLimitBytes: 1_000,
    memoryLimitBytes: 1_000,
    storageLimitBytes: 1_000,
    keepMs: 86_400_000,
    waitingLimit,
  };
  const claims = new Claims({
    store,
    clock,
    settings: () => settings,
    running,
    kept: {
      hasRoom: true,
      open: ({ body }, names) => openAnswer(body ?? new Uint8Array(), names),
    },
  });
  const take = (key: string, more: CallValues = {}, body = "same"): Promise<Taken> => {
    calls += 1;
    const call = callOf({ id: `req_${calls}`, receivedAt: time.now, ...more });
    return claims.take(namesOf(key, body), call);
  };
  return { claims, clock, store, revoked, running, take };
}

function namesOf(key: string, body = "same") {
  const call = { keyId: "key_a", endpoint: "chat", capacity: "auto" } as const;
  return nameCall({ ...call, idempotencyKey: key, bodyDigest: body }, testPeppers());
}

/** Stores the answer of the call that has the claim. */
async function answerCall(claim: Claim): Promise<void> {
  const names = namesOf("a");
  const body = sealAnswer(answer, names, (target) => crypto.getRandomValues(target));
  const { id, requestDigest } = names;
  const reply = { id, requestDigest, accountId: "acc_1", body, keptAt: time.now };
  await replies.keep({ reply, holder: claim.holder, limitBytes: 1e6 });
  claim.saved();
}

function pass(durationMs: number): void {
  const untilMs = time.now + durationMs;
  time.schedule(() => undefined, durationMs);
  time.runUntil(() => false, { untilMs, steps: Infinity });
}

/** What a promise has come to; undefined: nothing yet. */
function watch(taking: Promise<Taken>): { taken?: Taken; error?: unknown } {
  const seen: { taken?: Taken; error?: unknown } = {};
  taking.then(
    (taken) => (seen.taken = taken),
    (error: unknown) => (seen.error = error),
  );
  return seen;
}

async function claimOf(taking: Promise<Taken>): Promise<Claim> {
  pass(0);
  const taken = await taking;
  if ("answer" in taken) throw new Error("the call has an answer");
  return taken.claim;
}

const inUse = { status: 409, code: "idempotency_key_in_use" };

test("repeats in any process wait for the call, ask less and less often, and get its answer", async () => {
  const [one, other] = [start(), start()];
  const claim = await claimOf(one.take("a"));
  const repeats = [one, other, other].map(({ take }) => watch(take("a")));
  pass(20_000);
  expect(repeats).toEqual([{}, {}, {}]);
  expect(other.store.asked).toBeLessThan(60);
  await answerCall(claim);
  pass(1_000);
  expect(repeats.map(({ taken }) => taken)).toEqual(repeats.map(() => ({ answer })));
});

test("a repeat gives up after 30 seconds, in any process, and the call goes on", async () => {
  const [one, other] = [start(), start()];
  const claim = await claimOf(one.take("a"));
  const repeats = [one, other].map(({ take }) => watch(take("a")));
  pass(29_999);
  expect(repeats).toEqual([{}, {}]);
  pass(1);
  for (const { error } of repeats) {
    expect(error).toMatchObject({ ...inUse, headers: { "retry-after": "1" } });
  }
  const late = watch(one.take("a"));
  await answerCall(claim);
  pass(100);
  expect(late.taken).toEqual({ answer });
});

test("when a call ends without an answer, one of those that wait makes it", async () => {
  const [one, other] = [start(), start()];
  (await claimOf(one.take("a"))).release();
  const claim = await claimOf(other.take("a"));
  const repeats = [one, other, other, one].map(({ take }) => watch(take("a")));
  pass(3_000);
  claim.release();
  pass(3_000);
  expect(repeats.filter(({ taken }) => taken !== undefined && "claim" in taken)).toHaveLength(1);
  expect(repeats.filter(({ error }) => error !== undefined)).toEqual([]);
});

test("another request is refused, whether the first runs here or elsewhere", async () => {
  const [one, other] = [start(), start()];
  await claimOf(one.take("a"));
  for (const { take } of [one, other]) {
    expect(take("a", {}, "different")).rejects.toMatchObject({ code: "idempotency_key_reused" });
  }
});

describe("the end of a process", () => {
  test("ends its claims for those who go on asking; a process that lives keeps them", async () => {
    const [dead, alive, other] = [start(), start(), start()];
    await claimOf(dead.take("a"));
    await claimOf(alive.take("b"));
    pass(60_000);
    dead.clock.stop();
    const [takesOver, waits] = [watch(other.take("a")), watch(other.take("b"))];
    pass(9_000);
    expect(takesOver).toEqual({});
    pass(5_000);
    expect(takesOver.taken).toHaveProperty("claim");
    pass(15_000);
    expect(waits).toEqual({});
    expect(alive.store.confirmed).toHaveLength(1);
  });

  test("is not what an outage of the store looks like", async () => {
    const [one, other] = [start(), start()];
    await claimOf(one.take("a"));
    const before = watch(other.take("a"));
    pass(8_000);
    one.store.isAway = true;
    other.store.isAway = true;
    pass(120_000);
    expect(before.error).toMatchObject({ status: 503 });
    one.store.isAway = false;
    other.store.isAway = false;
    const after = watch(other.take("a"));
    pass(29_000);
    expect(after).toEqual({});
  });
});

describe("whoever waits", () => {
  test("leaves with the caller, at its deadline, and when its key is revoked", async () => {
    const { take, claims, revoked, running } = start();
    await claimOf(take("a"));
    const leaving = new AbortController();
    const options = { capacity: "auto", deadlineAt: 500 } as const;
    const [left, late, ended] = [
      watch(take("a", { signal: leaving.signal })),
      watch(take("a", { options })),
      watch(take("a")),
    ];
    pass(100);
    leaving.abort(new Error("left"));
    pass(0);
    expect(left.error).toEqual(new Error("left"));
    pass(400);
    expect(late.error).toMatchObject({ code: "deadline_exceeded" });
    expect(ended).toEqual({});
    revoked.add(callerOf().key.id);
    running.endStale();
    pass(0);
    expect(ended.error).toMatchObject({ status: 401 });
    expect(running.size).toBe(0);
    await claims.close();
  });

  test("is one of a bounded number, of which an account may have half", async () => {
    const { take } = start(4);
    const claim = await claimOf(take("a"));
    const caller = { ...callerOf(), key: { ...callerOf().key, accountId: "acc_other" } };
    const own = [1, 2, 3].map(() => watch(take("a")));
    const others = [1, 2, 3].map(() => watch(take("a", { caller })));
    pass(0);
    expect([own[2]?.error, others[2]?.error]).toMatchObject([inUse, inUse]);
    await answerCall(claim);
    pass(1_000);
    for (const { taken } of [...own.slice(0, 2), ...others.slice(0, 2)]) {
      expect(taken).toEqual({ answer });
    }
    await claimOf(take("b"));
    const next = watch(take("b"));
    pass(0);
    expect(next).toEqual({});
  });
});

test("a caller that leaves while the store decides leaves no claim", async () => {
  const { take, store, claims } = start();
  const gate = Promise.withResolvers<void>();
  store.gate = gate.promise;
  const leaving = new AbortController();
  const taking = watch(take("a", { signal: leaving.signal }));
  pass(10);
  expect(replies.claims).toBe(1);
  leaving.abort(new Error("left"));
  pass(0);
  expect(taking.error).toEqual(new Error("left"));
  gate.resolve();
  await claims.close();
  expect(replies.claims).toBe(0);
});

test("nothing is confirmed once the claims are closed, though an answer waits for the store", async () => {
  const { take, store, claims } = start();
  await claimOf(take("a"));
  const gate = Promise.withResolvers<void>();
  store.confirm = () => gate.promise;
  pass(2_000);
  await claims.close();
  gate.resolve();
  await Bun.sleep(0);
  let again = 0;
  store.confirm = () => {
    again += 1;
    return Promise.resolve();
  };
  pass(10_000);
  expect(again).toBe(0);
});

test("without the store nobody makes a call, and a claim is kept until its answer is stored", async () => {
  const { take, store } = start();
  const claim = await claimOf(take("a"));
  store.isAway = true;
  expect(take("b")).rejects.toMatchObject({
    status: 503,
    code: "model_unavailable",
    headers: { "retry-after": "5" },
  });
  store.isAway = false;
  pass(2_000);
  expect(store.confirmed).toEqual([{ id: claim.id, holder: claim.holder }]);
  claim.saved();
  store.confirmed = [];
  pass(10_000);
  expect(store.confirmed).toEqual([]);
});
