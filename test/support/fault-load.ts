import type { TestGateway } from "./gateway.ts";

export interface FaultLoad {
  readonly model: string;
  readonly isStreamed: boolean;
  readonly perSecond: number;
  readonly seconds: number;
  /** Continues after that time until there are this many; default 0. */
  readonly leastCalls?: number;
}

/** One call as its caller saw it. Times are wall clock, as in the upstreams' truth log. */
export interface LoadedCall {
  readonly mark: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly status: number;
  /** Whether the answer has its end; a stream that breaks off has none. */
  readonly isWhole: boolean;
  /** The caller's error; empty for a whole answer. */
  readonly failure: string;
  /** Infinity when there was none. */
  readonly firstWordAt: number;
}

const tickMs = 5;
const callDeadlineMs = 60_000;

/** Further calls are skipped, so that a slow machine is not overloaded. */
export const mostAtOnce = 40;

/** Calls at a steady pace, if the machine is fast enough. Rejects when one hangs. */
export async function sendCalls(
  gateway: Pick<TestGateway, "post">,
  load: FaultLoad,
): Promise<readonly LoadedCall[]> {
  const calls: Promise<LoadedCall>[] = [];
  let underWay = 0;
  const send = async (mark: string): Promise<LoadedCall> => {
    underWay += 1;
    try {
      return await sendCall(gateway, load, mark);
    } finally {
      underWay -= 1;
    }
  };
  const { perSecond, seconds, leastCalls = 0 } = load;
  const startedAt = performance.now();
  for (let due = 0; ;) {
    const elapsedMs = performance.now() - startedAt;
    if (elapsedMs >= seconds * 1000 && calls.length >= leastCalls) return Promise.all(calls);
    for (; due < Math.floor((elapsedMs * perSecond) / 1000); due += 1) {
      if (underWay < mostAtOnce) calls.push(send(`load-${due}`));
    }
    await Bun.sleep(tickMs);
  }
}

export async function sendCall(
  gateway: Pick<TestGateway, "post">,
  { model, isStreamed }: Pick<FaultLoad, "model" | "isStreamed">,
  mark: string,
): Promise<LoadedCall> {
  const startedAt = Date.now();
  const body = {
    model,
    stream: isStreamed,
    messages: [
      { role: "system", content: `mark:${mark}` },
      { role: "user", content: "count: 8" },
    ],
  };
  const signal = AbortSignal.timeout(callDeadlineMs);
  const response = await gateway.post("/v1/chat/completions", body, { signal });
  const { text, firstWordAt } = await readAnswer(response);
  const isWhole = response.status === 200 && text.includes(isStreamed ? "[DONE]" : '"stop"');
  const { status } = response;
  const failure = isWhole ? "" : (/"message":"([^"]*)"/.exec(text)?.[1] ?? `status ${status}`);
  return { mark, startedAt, endedAt: Date.now(), status, isWhole, failure, firstWordAt };
}

/** The whole answer, and the time of its first word. */
export async function readAnswer(
  response: Response,
): Promise<{ readonly text: string; readonly firstWordAt: number }> {
  const decoder = new TextDecoder();
  const parts: string[] = [];
  let firstWordAt = Infinity;
  const body: AsyncIterable<Uint8Array> | null = response.body;
  for await (const bytes of body ?? []) {
    const part = decoder.decode(bytes, { stream: true });
    if (/"content":"[^"]/.test(part)) firstWordAt = Math.min(firstWordAt, Date.now());
    parts.push(part);
  }
  return { text: parts.join(""), firstWordAt };
}
