import { afterEach, beforeEach, expect, test } from "bun:test";
import { z } from "zod";
import { AdminFixture, holderOf, requestOf } from "../../../test/support/admin-fixture.ts";
import { applicationSchema, issuedKeySchema, keySchema, rotatedKeySchema } from "../contract.ts";
import { receiptFields } from "../contract/processes.ts";
import { adminOperations } from "../operations.ts";
import { Passwords } from "../sign-in/guard/passwords.ts";
import { createRunOperation } from "./run-operation.ts";

const minuteMs = 60_000;
const receiptSchema = z.object(receiptFields);

let admin: AdminFixture;
let applicationId: string;
let keyId: string;
beforeEach(async () => {
  admin = new AdminFixture();
  applicationId = (await admin.application("owner")).id;
  keyId = (await admin.issue(applicationId)).key.id;
});
afterEach(() => admin[Symbol.asyncDispose]());

async function countSecrets(): Promise<number> {
  return (await admin.run(keySchema, "getKey", { id: keyId })).secrets.length;
}

test("ten equal concurrent rotations run once, and all ten get the answer", async () => {
  const request = { id: keyId, key: "the same" };
  const results = await Promise.all(
    Array.from({ length: 10 }, () => admin.result("rotateKey", request)),
  );
  expect(await countSecrets()).toBe(2);
  expect(new Set(results.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  expect(results.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 201));
  expect(results.filter(({ isReplayed }) => !isReplayed)).toHaveLength(1);
  expect((await admin.audit()).filter(({ action }) => action === "key.rotate")).toHaveLength(1);
});

test("two processes on one database run an equal request once", async () => {
  const others = [1, 2, 3].map(() => createRunOperation(admin.services));
  const request = requestOf({ id: keyId, key: "shared" });
  const operation = admin.operation("rotateKey");
  const results = await Promise.all(others.map((run) => run(operation, request)));
  expect(await countSecrets()).toBe(2);
  expect(new Set(results.map(({ body }) => JSON.stringify(body))).size).toBe(1);
});

test("a lost answer is replayed, also by a process started since", async () => {
  const request = { id: keyId, key: "lost", body: { overlap_seconds: 60 } };
  const first = await admin.result("rotateKey", request);
  admin.clock.advance(9 * minuteMs);
  const again = await admin.result("rotateKey", request);
  expect(again).toEqual({ ...first, isReplayed: true });
  const restarted = createRunOperation(admin.services);
  const replayed = await restarted(admin.operation("rotateKey"), requestOf(request));
  expect(replayed.body).toEqual(first.body);
  expect(await countSecrets()).toBe(2);
});

test("each answer under a key tells how many gateways have applied the change by then", async () => {
  const receiptOf = async (operationId: string, body?: object): Promise<unknown> => {
    const request = { id: keyId, key: operationId, ...(body !== undefined && { body }) };
    return receiptSchema.parse((await admin.result(operationId, request)).body).applied;
  };
  for (const [operationId, body] of [
    ["updateKey", { revision: 1, disabled: true }],
    ["rotateKey", { compromised: true }],
    ["revokeKey", undefined],
  ] as const) {
    admin.keysApplied = { processes: 2, of: 3, silent: 1 };
    expect(await receiptOf(operationId, body)).toEqual(admin.keysApplied);
    admin.keysApplied = { processes: 3, of: 3, silent: 0 };
    expect(await receiptOf(operationId, body)).toEqual(admin.keysApplied);
    admin.keysApplied = undefined;
    expect(await receiptOf(operationId, body)).toBeUndefined();
  }
});

test("an answer with a secret is not replayed after ten minutes, nor the change repeated", async () => {
  const request = { id: keyId, key: "late" };
  await admin.result("rotateKey", request);
  admin.clock.advance(10 * minuteMs);
  const refusal = await admin.refusal("rotateKey", request);
  expect([refusal.status, refusal.code]).toEqual([409, "reply_not_shown_again"]);
  expect(await countSecrets()).toBe(2);
});

test("an answer without a secret is replayed for a day, then the request is new", async () => {
  const body = { account_id: (await admin.account("other")).id, environment: "staging", name: "a" };
  const request = { body, key: "day" };
  const first = await admin.run(applicationSchema, "createApplication", request);
  admin.clock.advance(24 * 60 * minuteMs - 1);
  expect(await admin.run(applicationSchema, "createApplication", request)).toEqual(first);
  admin.clock.advance(1);
  expect((await admin.refusal("createApplication", request)).code).toBe("already_exists");
});

test("the same key with another request is refused, for a difference in any part", async () => {
  await admin.result("rotateKey", { id: keyId, key: "k", body: { overlap_seconds: 60 } });
  const otherKey = (await admin.issue(applicationId)).key.id;
  const requests = [
    { operation: "rotateKey", id: keyId, body: { overlap_seconds: 61 } },
    { operation: "rotateKey", id: otherKey, body: { overlap_seconds: 60 } },
    { operation: "revokeKey", id: keyId, body: undefined },
  ];
  for (const { operation, id, body } of requests) {
    const refusal = await admin.refusal(operation, { id, body, key: "k" });
    expect([refusal.status, refusal.code]).toEqual([422, "idempotency_key_reused"]);
  }
});

test("another request under the key of a running one is refused too", async () => {
  const one = admin.result("rotateKey", { id: keyId, key: "k" });
  const other = admin.refusal("rotateKey", { id: keyId, key: "k", body: { compromised: true } });
  expect((await other).code).toBe("idempotency_key_reused");
  await one;
});

test("keys are separate by principal, and by the rights of a principal", async () => {
  const { accountId } = await admin.application("owner");
  const body = { application_id: applicationId, plan: "standard" };
  const holder = holderOf(accountId);
  const asOperator = await admin.run(issuedKeySchema, "createKey", { body, key: "k" });
  const asHolder = await admin.run(issuedKeySchema, "createKey", { body, key: "k", as: holder });
  expect(asHolder.key.id).not.toBe(asOperator.key.id);
  const moved = { ...holder, accountId: "acct_elsewhere" };
  expect((await admin.refusal("createKey", { body, key: "k", as: moved })).status).toBe(404);
});

test("a refused request may be retried under its key", async () => {
  const request = { body: { name: "late" }, key: "k" };
  await admin.account("late");
  expect((await admin.refusal("createAccount", request)).code).toBe("already_exists");
  const accounts = await admin.stores.control.read((view) =>
    view.accounts.list({ name: "late" }, { limit: 1 }),
  );
  await admin.result("deleteAccount", { id: accounts.items[0]?.id ?? "" });
  expect((await admin.result("createAccount", request)).isReplayed).toBe(false);
});

test("no column of the database contains an answered secret or its idempotency key", async () => {
  const key = "an idempotency key to look for";
  const body = { application_id: applicationId, plan: "standard" };
  const issued = await admin.run(issuedKeySchema, "createKey", { body, key });
  const rotated = await admin.run(rotatedKeySchema, "rotateKey", { id: issued.key.id, key: "r" });
  const dump = await admin.dump();
  for (const text of [issued.api_key, rotated.api_key]) {
    expect(dump).not.toContain(text.slice(16, 50));
  }
  expect(dump).not.toContain(key);
  expect(dump).toContain(issued.key.id);
});

test("an idempotency key that could not be a header is refused", async () => {
  for (const key of ["", "é", "line\nbreak", "x".repeat(201)]) {
    const refusal = await admin.refusal("rotateKey", { id: keyId, key });
    expect(refusal.param).toBe("Idempotency-Key");
  }
  expect(await countSecrets()).toBe(1);
});

test("reads ignore the key", async () => {
  for (const _time of [1, 2]) {
    expect((await admin.result("getKey", { id: keyId, key: "k" })).isReplayed).toBe(false);
  }
});

/** An erasure that pauses once its account is stopped. */
function pausingErasure(accountId: string) {
  const [stopped, pause] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const onKeysChanged = async (): Promise<undefined> => {
    stopped.resolve();
    await pause.promise;
  };
  const services = { ...admin.services, onKeysChanged };
  const operation = adminOperations({ ...services, passwords: new Passwords() }).find(
    ({ id }) => id === "eraseAccount",
  );
  if (operation === undefined) throw new Error("no such operation");
  const run = createRunOperation(services);
  const request = { id: accountId, body: { confirm: "doomed" }, key: "erase" };
  const ask = (signal = new AbortController().signal): ReturnType<typeof run> =>
    run(operation, requestOf({ ...request, signal }));
  return { ask, stopped: stopped.promise, goOn: pause.resolve };
}

test("a repeat runs the request anew if the first caller leaves", async () => {
  const { ask, stopped, goOn } = pausingErasure((await admin.account("doomed")).id);
  const first = new AbortController();
  const begun = Promise.allSettled([ask(first.signal)]);
  const repeat = ask();
  await stopped;
  const reason = new Error("the first caller left");
  first.abort(reason);
  goOn();
  expect(await repeat).toMatchObject({ status: 200, isReplayed: false });
  expect(await begun).toEqual([{ status: "rejected", reason }]);
});

test("work is aborted when its caller leaves, and starts again for the next one", async () => {
  const { ask, stopped, goOn } = pausingErasure((await admin.account("doomed")).id);
  const [first, second] = [new AbortController(), new AbortController()];
  const ended = Promise.allSettled([first, second].map(({ signal }) => ask(signal)));
  await stopped;
  first.abort(new Error("the first left"));
  second.abort(new Error("the second left"));
  const late = ask();
  goOn();
  expect(await ended).toEqual([
    { status: "rejected", reason: new Error("the first left") },
    { status: "rejected", reason: new Error("the second left") },
  ]);
  expect(await late).toMatchObject({ status: 200, isReplayed: false });
});
