import { expect, test } from "bun:test";
import type { Principal } from "../../domain/principal.ts";
import { requireRoom } from "./room.ts";

const room = { ofUser: 10, all: 64, what: "calls" };

function principalOf(userId: string, accountId?: string): Principal {
  const role = accountId === undefined ? "operator" : "account_holder";
  return { kind: "session", userId, name: userId, role, accountId, scopes: ["read"] };
}

/** Opens as many as it gets, at most `most`; returns how many. */
function openAll(holders: Principal[], principalAt: (index: number) => Principal, most = 1_000) {
  for (let index = 0; index < most; index += 1) {
    const principal = principalAt(index);
    try {
      requireRoom(
        holders.map((holder) => ({ principal: holder })),
        principal,
        room,
      );
    } catch (error) {
      expect(error).toMatchObject({ status: 429 });
      return index;
    }
    holders.push(principal);
  }
  return most;
}

test("a user holds a few, with all sessions and tokens", () => {
  const holders: Principal[] = [];
  const kinds = ["session", "token"] as const;
  const opened = openAll(holders, (index) => ({
    ...principalOf("ada"),
    kind: kinds[index % 2] ?? "token",
  }));
  expect(opened).toBe(10);
});

test("one account, however many users it has, leaves room for others", () => {
  const holders: Principal[] = [];
  expect(openAll(holders, (index) => principalOf(`a${index}`, "acct_a"))).toBe(24);
  expect(openAll(holders, (index) => principalOf(`b${index}`, "acct_b"))).toBe(12);
  expect(openAll(holders, (index) => principalOf(`c${index}`, "acct_c"))).toBe(6);
  // The first one gets more only when others leave.
  expect(openAll(holders, (index) => principalOf(`a${index}`, "acct_a"))).toBe(0);
});

test("however many accounts are there, operators find room", () => {
  const holders: Principal[] = [];
  expect(openAll(holders, (index) => principalOf(`u${index}`, `acct_${index}`))).toBe(48);
  expect(openAll(holders, () => principalOf("olga"))).toBe(10);
  expect(openAll(holders, (index) => principalOf(`o${index}`))).toBe(6);
});
