import type { EndSignal } from "./end-signal.ts";
import type { Clock } from "../clock.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** Resolves after the time, or at once when the signal fires. Never rejects. */
export function wait(
  durationMs: number,
  signal: EndSignal,
  clock: Pick<Clock, "schedule">,
): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.schedule(end, durationMs);
    signal.addEventListener("abort", end, { once: true });
  });
}

/** Settles like the promise, or rejects when the signal fires; the work itself continues. */
export function abortable<Value>(promise: Promise<Value>, signal: EndSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Times in monotonic milliseconds. */
interface DeadlineCall {
  readonly receivedAt: number;
  /** What the caller set in a header, if anything. */
  readonly options: { readonly deadlineAt: number | undefined };
}

/**
 * Calls `end` with the error once the deadline of a call has passed; returns how to cancel it,
 * undefined without a deadline.
 */
export function atDeadline(
  { receivedAt, options: { deadlineAt } }: DeadlineCall,
  clock: Pick<Clock, "schedule" | "monotonic">,
  end: (error: GatewayError) => void,
): (() => void) | undefined {
  if (deadlineAt === undefined) return undefined;
  const leftMs = Math.max(0, deadlineAt - clock.monotonic());
  return clock.schedule(() => end(deadlineExceeded(deadlineAt - receivedAt)), leftMs);
}

function deadlineExceeded(timeoutMs: number): GatewayError {
  const ms = Math.round(timeoutMs);
  return new GatewayError("deadline_exceeded", {
    message: `The answer did not end within the ${ms} ms that 'x-sluice-timeout-ms' gave.`,
    // The same request would likely take as long again.
    headers: { "x-should-retry": "false" },
  });
}

/** Whether a promise settles within a time. Never rejects. */
export function hasSettledWithin(
  promise: Promise<unknown>,
  timeMs: number,
  clock: Pick<Clock, "schedule">,
): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(() => resolve(false), timeMs);
    const end = (): void => {
      cancel();
      resolve(true);
    };
    promise.then(end, end);
  });
}

let turn: Promise<void> | undefined;

/**
 * Resolves in the next turn: between parts of long work, so that others are served meanwhile. Shared by
 * all that wait in one turn, as each call does for its body.
 */
export function nextTurn(): Promise<void> {
  return (turn ??= new Promise((resolve) => {
    setImmediate(() => {
      turn = undefined;
      resolve();
    });
  }));
}

/** Data up to this size is processed in one turn, which takes about a millisecond. */
export const oneTurnBytes = 64 * 1024;

/** Continues with a value, at once if it is there: no turn is lost. */
export function whenKnown<Value, Result>(
  value: Value | Promise<Value>,
  goOn: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> {
  return value instanceof Promise ? value.then(goOn) : goOn(value);
}

/** The error of a call whose signal fired: `caller_left`, unless the reason is a `GatewayError`. */
export function whyEnded({ reason }: { readonly reason: unknown }): GatewayError {
  if (reason instanceof GatewayError) return reason;
  return new GatewayError("caller_left", { message: "The caller closed the connection." });
}
