import { expect, test } from "bun:test";
import type { Principal } from "../../domain/principal.ts";
import type { Operation } from "./operation.ts";
import { readsInTurn } from "./read-turns.ts";
import type { OperationAnswer } from "./run-operation.ts";

const done: OperationAnswer = { status: 200, body: {}, isReplayed: false };

const settled = async (): Promise<void> => {
  for (let turns = 0; turns < 4; turns += 1) await new Promise(setImmediate);
};

/** Operations that end when the test says; `begun` has who asked, in order. */
function stage() {
  const begun: string[] = [];
  const running: PromiseWithResolvers<OperationAnswer>[] = [];
  const run = readsInTurn((_, { call }) => {
    begun.push(call.id);
    const answer = Promise.withResolvers<OperationAnswer>();
    running.push(answer);
    return answer.promise;
  });
  return {
    begun,
    ask: (
      id: string,
      accountId: string | undefined,
      { method = "GET", signal = new AbortController().signal } = {},
    ): Promise<OperationAnswer> => {
      const role = accountId === undefined ? "operator" : "account_holder";
      const scopes: Principal["scopes"] = ["read", "write"];
      const principal = { kind: "session", userId: id, name: id, role, accountId, scopes } as const;
      const call = { id, principal, signal, address: undefined };
      const operation = { id: "any", method } as Operation;
      return run(operation, { call, parameters: {}, query: {}, body: undefined });
    },
    /** Ends the oldest one that runs, and lets others begin. */
    endOne: (error?: Error): Promise<void> => {
      if (error === undefined) running.shift()?.resolve(done);
      else running.shift()?.reject(error);
      return settled();
    },
  };
}

test("of an account one read runs at a time; other accounts, operators and changes do not wait", async () => {
  const { begun, ask, endOne } = stage();
  const reads = [1, 2, 3].map((index) => ask(`a${index}`, "acct_a"));
  const others = [
    ask("b", "acct_b"),
    ask("change", "acct_a", { method: "POST" }),
    ask("o1", undefined),
    ask("o2", undefined),
  ];
  await settled();
  expect(begun.toSorted()).toEqual(["a1", "b", "change", "o1", "o2"]);
  while (begun.length < 7) await endOne();
  expect(begun.slice(5)).toEqual(["a2", "a3"]);
  await endOne();
  expect(await Promise.all([...reads, ...others])).toEqual(Array.from({ length: 7 }, () => done));
});

test("a read that fails, and a caller that leaves, hold up nobody", async () => {
  const { begun, ask, endOne } = stage();
  const first = ask("a1", "acct_a").catch((error: unknown) => error);
  const leaving = new AbortController();
  const second = ask("a2", "acct_a", { signal: leaving.signal }).catch((error: unknown) => error);
  const third = ask("a3", "acct_a");
  await settled();
  leaving.abort(new Error("left"));
  await endOne(new Error("broken"));
  expect(await first).toEqual(new Error("broken"));
  expect(await second).toEqual(new Error("left"));
  expect(begun).toEqual(["a1", "a3"]);
  await endOne();
  expect(await third).toEqual(done);
});
