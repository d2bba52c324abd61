import { expect, test } from "bun:test";
import fc from "fast-check";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { virtualClock } from "../../test/support/virtual-clock.ts";
import { callerOf, callOf, modelOf, plainWork } from "../../test/support/pipeline-fixtures.ts";
import { budgetOf } from "../../test/contracts/limit-budget-contract.ts";
import { admit, countRequest } from "../admission/admit.ts";
import { Calendar } from "../domain/money/calendar.ts";
import { PublishedPrices } from "../domain/money/price.ts";
import { minuteScopes } from "../domain/limits/limit-scope.ts";
import { OwnLimits, type LimitsNote } from "./own-limits.ts";

const limits = { requestsPerMinute: 60, tokensPerMinute: 1_000 };
const scopes = minuteScopes("key:a", limits, { owner: "account" });

function limitsAt(clock: ManualClock): OwnLimits {
  return new OwnLimits({ clock, random: () => 0 });
}

let calls = 0;

function admits(one: OwnLimits, tokens = 1): string | undefined {
  const callId = `call ${(calls += 1)}`;
  return one.acquire({ callId, scopes, tokens }).isAdmitted ? callId : undefined;
}

function admitted(one: OwnLimits, wanted: number): number {
  return Array.from({ length: wanted }, () => admits(one)).filter((id) => id !== undefined).length;
}

/** Two processes with clocks of their own, whose notes arrive at once. */
function handOver(
  before: OwnLimits,
  clock: ManualClock,
): { after: OwnLimits; notes: LimitsNote[] } {
  const after = limitsAt(clock);
  const notes: LimitsNote[] = [];
  const given = before.give((note) => {
    notes.push(note);
    after.hear(note);
  });
  after.goOn(given, 0);
  return { after, notes };
}

test("a process keeps half of what is left, and its successor gets all once it has ended", () => {
  const clock = new ManualClock({ monotonicMs: 5_000 });
  const before = limitsAt(clock);
  expect(admitted(before, 20)).toBe(20);
  const { after } = handOver(before, clock);
  expect(admitted(before, 60)).toBe(20);
  expect(admitted(after, 60)).toBe(20);
  before.end();
  after.giversEnded();
  expect(admitted(after, 60)).toBe(0);
  clock.advance(61_000);
  expect(admitted(after, 70)).toBe(60);
});

test("calls that name end users use no more of the half that stays than others", async () => {
  const clock = new ManualClock({ monotonicMs: 5_000 });
  const before = limitsAt(clock);
  handOver(before, clock);
  const services = {
    limits: before,
    clock,
    prices: new PublishedPrices(),
    calendar: new Calendar(),
  };
  const caller = callerOf({ requestsPerMinute: 40, tokensPerMinute: 1_000 });
  let served = 0;
  for (let number = 0; number < 30; number += 1) {
    const call = callOf({ id: `req_${number}`, caller });
    try {
      const counted = await countRequest("call", call, services);
      const asked = {
        call: { ...call, counted },
        model: modelOf(),
        estimate: { inputTokens: 1, outputTokens: 1 },
        output: { cap: 1, choices: 1 },
        endUser: minuteScopes(`end-user:a:${number}`, limits, { owner: caller.key.accountId }),
        ...plainWork,
      };
      await admit(asked, services);
      served += 1;
    } catch (error) {
      expect(error).toMatchObject({ status: 429 });
    }
  }
  expect(served).toBe(20);
});

test("limits that come back are whole if the process before has ended meanwhile", () => {
  const clock = new ManualClock();
  const first = limitsAt(clock);
  const { after: second } = handOver(first, clock);
  handOver(second, clock);
  first.end();
  second.giversEnded();
  second.takeBack();
  clock.advance(61_000);
  expect(admitted(second, 70)).toBe(60);
});

test("what the process before has not used is free again once it has ended", () => {
  const clock = new ManualClock();
  const before = limitsAt(clock);
  const { after } = handOver(before, clock);
  expect([admitted(before, 5), admitted(after, 60)]).toEqual([5, 30]);
  before.end();
  after.giversEnded();
  expect(admitted(after, 60)).toBe(25);
});

test("a call of the process before is settled at its successor", () => {
  const clock = new ManualClock();
  const before = limitsAt(clock);
  const call = admits(before, 1_000) ?? "";
  const { after, notes } = handOver(before, clock);
  expect(admits(after)).toBeUndefined();
  before.settle(call, 400);
  expect(notes).toEqual([{ settle: [call, 400] }]);
  // Nothing was left when the limits were given, so the process before has kept nothing.
  expect(admits(before)).toBeUndefined();
  expect(admits(after, 600)).toBeDefined();
});

test("a call that the process before never settled keeps what is charged, and nothing more", () => {
  const clock = new ManualClock();
  const uncapped = { callId: "lost", scopes, tokens: 10, mostTokens: 900 };
  const before = limitsAt(clock);
  expect(before.acquire(uncapped).isAdmitted).toBe(true);
  const { after } = handOver(before, clock);
  const { after: last } = handOver(after, clock);
  // The first process was killed, and the second one tells the third.
  after.giversEnded();
  expect(last.snapshot().state.calls).toEqual([]);
});

test("calls under a budget go to the successor, which counts what those before have reserved", () => {
  const clock = new ManualClock();
  const before = limitsAt(clock);
  const budgets = [budgetOf(100)];
  const acquire = (one: OwnLimits, callId: string, reserveNano: number) =>
    one.acquire({ callId, scopes, tokens: 1, budgets, reserveNano });
  const note = { epoch: 1, isWhole: true, spend: [], isComplete: true, silent: [] };
  const processes = [before.process];
  before.updateSpend({ ...note, processes });
  expect(acquire(before, "running", 90).isAdmitted).toBe(true);
  const { after } = handOver(before, clock);
  after.updateSpend({ ...note, processes: [...processes, after.process] });
  expect(acquire(before, "late", 1)).toMatchObject({ budgets: [], isElsewhere: true });
  expect(acquire(before, "priced at nothing", 0).isAdmitted).toBe(true);
  expect(acquire(after, "large", 11)).toMatchObject({ budgets: [{ spentNano: 90 }] });
  before.settle("running", 1, 40);
  expect(acquire(after, "small", 10).isAdmitted).toBe(true);
  before.takeBack();
  expect(acquire(before, "again", 60).isAdmitted).toBe(true);
});

test("a request that was counted before stays counted", () => {
  const clock = new ManualClock();
  const before = limitsAt(clock);
  const decision = before.count(scopes);
  if (!decision.isAdmitted) throw new Error("it is refused");
  expect(admitted(before, 59)).toBe(59);
  const { after } = handOver(before, clock);
  before.uncount(decision.counted);
  expect([admitted(before, 1), admitted(after, 1)]).toEqual([0, 0]);
});

test("a request that exceeds only the part of a process is told to come again soon", () => {
  const clock = new ManualClock();
  const before = limitsAt(clock);
  const { after } = handOver(before, clock);
  const decision = after.acquire({ callId: "large", scopes, tokens: 900 });
  expect(decision).toMatchObject({ isAdmitted: false, retryAfterMs: 2_000 });
  expect(decision.state.limitTokens).toBe(1_000);
});

test("a process whose successor could not start has everything again", () => {
  const clock = new ManualClock();
  const before = limitsAt(clock);
  const early = admits(before, 500) ?? "";
  handOver(before, clock);
  const late = admits(before, 100) ?? "";
  before.settle(early, 300);
  before.takeBack();
  before.settle(late, 50);
  expect(admits(before, 651)).toBeUndefined();
  expect(admits(before, 650)).toBeDefined();
});

test("a process that ends without a word keeps its half for another minute", () => {
  const planned: { run: () => void; delayMs: number }[] = [];
  const times = new ManualClock();
  const clock = {
    now: () => times.now(),
    monotonic: () => times.monotonic(),
    schedule(run: () => void, delayMs: number) {
      planned.push({ run, delayMs });
      return () => undefined;
    },
  };
  const terms = { random: () => 0 };
  const { after } = handOver(limitsAt(times), times);
  // Killed too, and started again from what it had kept.
  const again = new OwnLimits({ clock, ...terms });
  again.goOn(after.snapshot(), 0);
  again.giversLost();
  expect(admitted(again, 60)).toBe(30);
  times.advance(61_000);
  expect(planned.map(({ delayMs }) => delayMs)).toEqual([61_000]);
  for (const { run } of planned) run();
  expect(admitted(again, 61)).toBe(60);
});

test("nothing waits for the processes before once this one has ended", () => {
  const { clock, advance } = virtualClock();
  const ended = new OwnLimits({ clock, random: () => 0 });
  const { after } = handOver(limitsAt(new ManualClock()), new ManualClock());
  ended.goOn(after.snapshot(), 0);
  ended.giversLost();
  ended.end();
  advance(61_000);
  expect(admitted(ended, 60)).toBe(30);
});

test("several that drain keep parts only as long as they run", () => {
  const clock = new ManualClock();
  const first = limitsAt(clock);
  const { after: second } = handOver(first, clock);
  const { after: third } = handOver(second, clock);
  expect(admitted(third, 60)).toBe(15);
  clock.advance(61_000);
  first.end();
  second.giversEnded();
  expect([admitted(second, 60), admitted(third, 60)]).toEqual([30, 30]);
  clock.advance(61_000);
  second.end();
  third.giversEnded();
  expect(admitted(third, 70)).toBe(60);
});

test("processes together never exceed a limit, whenever and however often one replaces another", () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("ask" as const), age: fc.nat(3) }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: fc.nat(40_000) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("replace" as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("end" as const) }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const clock = new ManualClock();
      // The oldest first; the last one is current.
      const chain = [limitsAt(clock)];
      const times: number[] = [];
      for (const next of steps) {
        const current = chain.at(-1);
        if (current === undefined) throw new Error("there is always one");
        if (next.kind === "pass") clock.advance(next.ms);
        else if (next.kind === "ask") {
          const count = admitted(chain.at(-1 - next.age) ?? current, 7);
          for (let each = 0; each < count; each += 1) times.push(clock.monotonic());
        } else if (next.kind === "replace") chain.push(handOver(current, clock).after);
        else if (chain.length > 1) {
          chain.shift()?.end();
          chain[0]?.giversEnded();
        }
      }
      for (const from of times) {
        const inMinute = times.filter((at) => at >= from && at < from + 60_000);
        expect(inMinute.length).toBeLessThanOrEqual(limits.requestsPerMinute);
      }
    }),
    { numRuns: 300 },
  );
});

test("limits in audit refuse in neither process, and both tell of what is used of the whole", () => {
  const clock = new ManualClock();
  const tried = minuteScopes("audit:key:a", limits, { owner: "account", isAudited: true });
  const told = (one: OwnLimits, tokens: number) => {
    const callId = `call ${(calls += 1)}`;
    const decision = one.acquire({ callId, scopes: tried, tokens });
    if (!decision.isAdmitted) throw new Error("it was refused");
    const { wouldRefuse } = decision;
    if (wouldRefuse === undefined) return undefined;
    const { state, share = state.limitTokens } = wouldRefuse;
    return [state.limitTokens, share - state.remainingTokens];
  };
  const before = limitsAt(clock);
  expect(told(before, 700)).toBeUndefined();
  expect(told(before, 700)).toEqual([1_000, 700]);
  const { after } = handOver(before, clock);
  expect(told(after, 1)).toEqual([1_000, 1_400]);
  // The one that has given its limits away begins anew, as it does with its part of others.
  expect(told(before, 1_000)).toBeUndefined();
  before.end();
  after.giversEnded();
  expect(told(after, 1)).toEqual([1_000, 2_401]);
  clock.advance(61_000);
  expect(told(after, 1_000)).toBeUndefined();
});
