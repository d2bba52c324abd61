import type { TestGateway } from "./gateway.ts";

export interface FaultLoad {
  readonly model: string;
  readonly isStreamed: boolean;
  readonly perSecond: number;
  readonly seconds: number;
}

/** One call as its caller saw it. Times are wall clock, as in the upstreams' truth log. */
export interface LoadedCall {
  readonly mark: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly status: number;
  /** An answer with its end; a stream that breaks off has none. */
  readonly isWhole: boolean;
  /** Infinity when there was none. */
  readonly firstWordAt: number;
}

const tickMs = 5;
const callDeadlineMs = 30_000;

/** Calls at a steady pace, however long each takes. Rejects when one hangs. */
export async function sendCalls(
  gateway: Pick<TestGateway, "post">,
  load: FaultLoad,
): Promise<readonly LoadedCall[]> {
  const calls: Promise<LoadedCall>[] = [];
  const startedAt = performance.now();
  for (;;) {
    const elapsedMs = performance.now() - startedAt;
    const due = Math.floor((Math.min(elapsedMs / 1000, load.seconds) || 0) * load.perSecond);
    while (calls.length < due) calls.push(sendCall(gateway, load, `load-${calls.length}`));
    if (elapsedMs >= load.seconds * 1000) return Promise.all(calls);
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
  return { mark, startedAt, endedAt: Date.now(), status: response.status, isWhole, firstWordAt };
}

/** The whole answer, and when the first word of it was there. */
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
