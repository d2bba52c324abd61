import { expect, test } from "bun:test";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import { budgetOf } from "../contracts/limit-budget-contract.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { clientOf, emptied, limitsOver, steeredBy } from "../support/valkey-limits.ts";
import { describeWithValkey, valkeyOfTests } from "../support/valkey-server.ts";

const scopes = minuteScopes(
  "key:contract",
  { requestsPerMinute: 100_000, tokensPerMinute: 10_000_000 },
  { owner: "contract" },
);
/** For 100 calls that reserve 70 each. */
const budgets = [budgetOf(100 * 70)];

describeWithValkey(() => {
  const running = valkeyOfTests();

  test("of 1,000 calls at once at three processes exactly those that a budget is for fit", async () => {
    await emptied(running.server);
    const clock = new ManualClock({ monotonicMs: 1_000_000 });
    const stores = await Promise.all(
      Array.from({ length: 3 }, async () =>
        limitsOver(steeredBy(clock, await clientOf(running.server)), { clock }),
      ),
    );
    const processes = stores.map(({ process }) => process);
    for (const step of [0, 1, 2]) {
      clock.advance(2_000);
      for (const store of stores) {
        await store.tick();
        const note = { epoch: step, isWhole: true, spend: [], isComplete: true };
        store.updateSpend({ ...note, processes, silent: [] });
      }
    }
    const burst = (round: string) =>
      Promise.all(
        Array.from({ length: 1_000 }, async (_, index) => {
          const store = stores[index % 3];
          const callId = `${round} ${index}`;
          const asked = { callId, scopes, tokens: 1, budgets, reserveNano: 70 };
          return { callId, store, decision: await store?.acquire(asked) };
        }),
      );
    const admittedIn = (calls: Awaited<ReturnType<typeof burst>>) =>
      calls.filter(({ decision }) => decision?.isAdmitted === true);
    const admitted = admittedIn(await burst("first"));
    expect(admitted).toHaveLength(100);
    for (const { callId, store } of admitted) await store?.settle(callId, 1, 35);
    expect(admittedIn(await burst("second"))).toHaveLength(50);
  });
});
