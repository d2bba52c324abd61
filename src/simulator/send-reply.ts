import { nextTurn } from "../domain/waiting/next-turn.ts";
import { isFrame, type Reply, type Step } from "./frame.ts";
import type { OpenCall } from "./open-call.ts";
import type { Pace } from "./pace.ts";
import { wait } from "./wait.ts";

/** What sending a reply needs besides the reply. */
export interface Delivery {
  readonly call: OpenCall;
  readonly pace: Pace;
  /** Fires when the caller has left. */
  readonly signal: AbortSignal;
}

/** Sends a reply through the HTTP server. The call ends when the last byte is handed over. */
export async function sendReply(reply: Reply, delivery: Delivery): Promise<Response> {
  const { status, headers, steps } = reply;
  const { call, pace, signal } = delivery;
  const [only] = isArray(steps) && steps.length === 1 ? steps : [];
  if (only === undefined || !isFrame(only)) {
    if (!signal.aborted) call.update({ status });
    return new Response(streamSteps(steps, delivery), { status, headers });
  }
  await wait(pace.delayMs(only.tokens), signal);
  if (!signal.aborted) {
    call.update({ status });
    call.countSent(only);
  }
  call.end(signal.aborted);
  return new Response(only.data, { status, headers });
}

function isArray(steps: Iterable<Step>): steps is readonly Step[] {
  return Array.isArray(steps);
}

/** Later writes are flushed in batches: one by one a long stream would take too long. */
const singleWrites = 4096;
const writesPerFlush = 64;

/** Pulled by the connection: nothing is generated before there is room to send it. */
function streamSteps(
  steps: Iterable<Step>,
  { call, pace, signal }: Delivery,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = steps[Symbol.iterator]();
  let writes = 0;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const step = await nextFrame(iterator, pace, signal);
        if (step === undefined) {
          call.end(signal.aborted);
          if (!signal.aborted) controller.close();
          return;
        }
        writes += 1;
        // The server joins everything enqueued in one turn of the event loop into one write.
        if (writes <= singleWrites || writes % writesPerFlush === 0) await nextTurn();
        if (signal.aborted) {
          call.end(true);
          return;
        }
        call.countSent(step);
        controller.enqueue(typeof step.data === "string" ? encoder.encode(step.data) : step.data);
      },
      cancel() {
        iterator.return?.();
        call.end(true);
      },
    },
    { highWaterMark: 0 },
  );
}

/** The next frame once it is due; undefined at the end or if the caller leaves first. */
export async function nextFrame(iterator: Iterator<Step>, pace: Pace, signal: AbortSignal) {
  while (!signal.aborted) {
    const next = iterator.next();
    if (next.done === true) return undefined;
    const step = next.value;
    const delayMs = isFrame(step) ? pace.delayMs(step.tokens) : step.pauseMs;
    if (delayMs > 0) await wait(delayMs, signal);
    if (isFrame(step) && !signal.aborted) return step;
  }
  return undefined;
}
