import { expect, test } from "bun:test";
import { Random } from "../../simulator/answer/random.ts";
import { planCall, type MixPart, type PlannedCall } from "../support/ledger-truth-mix.ts";
import { ProcessBench, until } from "../support/ledger-truth-process.ts";
import { checkLedger, sumRows } from "../support/ledger-truth.ts";
import { isComplete, sizeOf } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";

const streams = isComplete ? 200 : 40;
const streamSeconds = sizeOf({ quick: 3, all: 10, measured: 20 });
const tokensPerSecond = 10;
const lateCallers = 4;

const part = (seconds: number): readonly MixPart[] => {
  const tokens = seconds * tokensPerSecond;
  return [{ name: "paced", share: 1, alias: "chat", isStreamed: true, tokens: [tokens, tokens] }];
};

test(
  `SIGTERM with ${streams} streams of ${streamSeconds} s cuts none, and the ledger has all of them`,
  async () => {
    await using bench = await ProcessBench.create({
      keys: streams + lateCallers,
      simulator: { tokensPerSecond },
      sections: { shutdown: "{ pre_stop: 1s, drain_timeout: 60s }" },
    });
    await using serving = await bench.serve();
    const open = bench.call(serving, { from: 0, count: streams }, callsOf(part(streamSeconds)));
    await until("the streams are open", () => bench.simulator.openCalls >= streams);
    serving.signal("SIGTERM");
    const askedAt = performance.now();
    await until("it is not ready", async () => {
      const response = await fetch(`${serving.adminUrl}/readyz`);
      await response.text();
      return response.status === 503;
    });
    const notReadyMs = Math.round(performance.now() - askedAt);
    const late = { from: streams, count: lateCallers };
    await bench.call(serving, late, callsOf(part(0.5), lateCallers));
    await open;
    const exitCode = await serving.exited;
    const endMs = Math.round(performance.now() - askedAt);

    const { rows, rollUps } = await bench.stored();
    const truth = bench.simulator.truth.entries;
    const ledger = checkLedger({ calls: bench.calls, rows, truth });
    const cut = bench.calls.filter(({ saw }) => saw !== "completed").length;
    const wrong = ledger.missing + ledger.extra + ledger.wrongEnds + ledger.wrongTokens;
    const name = `SIGTERM with ${streams} streams of ${streamSeconds} s`;
    const line = { check: 24, name: `${name}: streams cut`, value: cut, limit: 0 };
    report({ ...line, isMet: cut === 0 });
    const ready = { check: 24, name: `${name}: not ready after`, value: `${notReadyMs} ms` };
    report({ ...ready, limit: "<= 1000 ms", isMet: notReadyMs <= 1_000 });
    const end = { check: 24, name: `${name}: exit code`, value: `${exitCode} after ${endMs} ms` };
    report({ ...end, limit: "0 after <= 30 s", isMet: exitCode === 0 && endMs <= 30_000 });
    const whole = { check: 24, name: `${name}: rows wrong or missing`, value: wrong, limit: 0 };
    report({ ...whole, isMet: wrong === 0 });

    expect(ledger.problems).toEqual([]);
    expect(bench.calls).toHaveLength(streams + lateCallers);
    expect(rows).toHaveLength(streams + lateCallers);
    expect(ledger.outcomes).toEqual({ "completed: completed, upstream": streams + lateCallers });
    expect(rollUps).toEqual(sumRows(rows));
    expect(exitCode).toBe(0);
    expect(notReadyMs).toBeLessThan(1_000);
  },
  isComplete ? 120_000 : 60_000,
);

function callsOf(mix: readonly MixPart[], count = streams) {
  const random = new Random(count);
  let planned = 0;
  return (): PlannedCall | undefined => {
    if (planned === count) return undefined;
    planned += 1;
    return planCall(mix, random, `${count}-${planned}`);
  };
}
