import { chatOf } from "./bodies.ts";
import type { TestGateway } from "./gateway.ts";

/** Calls at a fixed pace, independent of their duration. */
export interface SteadyLoad {
  readonly key: string;
  readonly perSecond: number;
  readonly body: string;
  /** Most calls under way; more are skipped, so that a slow machine is not overloaded. */
  readonly mostAtOnce: number;
  readonly onCall?: () => void;
}

/** How one call ended. */
export interface LoadCall {
  readonly id: string | null;
  readonly status: number;
  readonly servedBy: string | null;
  /** Its position in the queue of the pool. */
  readonly waitedMs: number;
  /** From the answer; 0 for a failure. */
  readonly tokens: number;
}

const tickMs = 10;

/** Sends calls at the pace until the time is over; resolves when the last has ended. */
export async function sendSteadily(
  gateway: Pick<TestGateway, "post">,
  { key, perSecond, body, mostAtOnce, onCall }: SteadyLoad,
  isOver: () => boolean,
): Promise<LoadCall[]> {
  const calls: LoadCall[] = [];
  const running = new Set<Promise<void>>();
  const startedAt = performance.now();
  // Loads that begin together do not send at the same time.
  let due = Math.random();
  while (!isOver()) {
    const elapsedMs = performance.now() - startedAt;
    for (; due * 1_000 <= elapsedMs * perSecond; due += 1) {
      if (running.size >= mostAtOnce) continue;
      const sent = send(gateway, key, body).then((call) => {
        calls.push(call);
        onCall?.();
        running.delete(sent);
      });
      running.add(sent);
    }
    await Bun.sleep(tickMs);
  }
  await Promise.all(running);
  return calls;
}

async function send(
  gateway: Pick<TestGateway, "post">,
  key: string,
  body: string,
): Promise<LoadCall> {
  const headers = { authorization: `Bearer ${key}` };
  const response = await gateway.post("/v1/chat/completions", body, { headers });
  const { status } = response;
  const answer = status === 200 ? await chatOf(response) : undefined;
  if (answer === undefined) await response.arrayBuffer();
  return {
    id: response.headers.get("x-request-id"),
    status,
    servedBy: response.headers.get("x-sluice-served-by"),
    waitedMs: Number(response.headers.get("x-sluice-queue-wait-ms") ?? 0),
    tokens: answer?.usage?.total_tokens ?? 0,
  };
}
