import { expect, test } from "bun:test";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import { callOf } from "../../test/support/pipeline-fixtures.ts";
import type { Call } from "../snapshot/call.ts";
import { RunningCalls } from "./running-calls.ts";

const keyId = "key_a";

function enter(running: RunningCalls, call: Call): Call {
  running.enter(call);
  return call;
}

test("a call ends with a 401 only when its key has ended", () => {
  let isLive = true;
  const running = new RunningCalls(() => isLive);
  const { signal } = enter(running, callOf());
  running.endStale();
  expect(signal.aborted).toBe(false);
  isLive = false;
  running.endStale();
  expect(signal.reason).toBeInstanceOf(GatewayError);
  expect(signal.reason).toMatchObject({ status: 401, code: "invalid_api_key" });
});

test("an ended call is explained by the end of its key", () => {
  const end = { rule: "account_disabled", at: 1_700_000_000_000 } as const;
  for (const [found, rule, words] of [
    [end, "account_disabled", "2023-11-14T22:13:20.000Z"],
    [undefined, "key_disabled", "was disabled."],
  ] as const) {
    let isLive = true;
    const running = new RunningCalls(
      () => isLive,
      () => found,
    );
    const { signal } = enter(running, callOf());
    isLive = false;
    running.endStale();
    const { explanation } = signal.reason instanceof GatewayError ? signal.reason : {};
    expect(explanation).toMatchObject({ rule, keyId });
    expect(explanation?.summary).toContain(words);
    expect(explanation?.summary).toContain("while it ran");
  }
});

test("a caller that leaves ends its call with its own signal's reason", () => {
  const running = new RunningCalls(() => true);
  const leaving = new AbortController();
  const { signal } = enter(running, callOf({ signal: leaving.signal }));
  leaving.abort("gone");
  expect([signal.aborted, signal.reason]).toEqual([true, "gone"]);
  const late = enter(running, callOf({ id: "req_2", signal: leaving.signal }));
  expect(late.signal.aborted).toBe(true);
});

test("a call does not begin if its key ended after authentication", () => {
  const running = new RunningCalls(() => false);
  expect(() => running.enter(callOf())).toThrow("revoked or disabled");
  expect(running.size).toBe(0);
});

test("a shutdown ends all calls with the given reason", () => {
  const running = new RunningCalls(() => true);
  const { signal } = enter(running, callOf());
  const why = new GatewayError("model_unavailable", { message: "The gateway is ending." });
  running.endAll(() => why);
  expect(signal.reason).toBe(why);
});

test("finished calls are forgotten and not ended again", () => {
  let isLive = true;
  const running = new RunningCalls(() => isLive);
  const first = enter(running, callOf());
  const second = enter(running, callOf({ id: "req_2" }));
  expect(running.size).toBe(2);
  running.leave(first.id);
  running.leave(first.id);
  expect(running.size).toBe(1);
  isLive = false;
  running.endStale();
  expect([first.signal.aborted, second.signal.aborted]).toEqual([false, true]);
  running.leave(second.id);
  running.leave("req_3");
  expect(running.size).toBe(0);
});
