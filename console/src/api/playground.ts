/** Answers of chat completions and embeddings, as the playground reads them. */
import { call, valueOf } from "./client.ts";
import { type Answer, type ApiFailure, failureIn } from "./failure.ts";

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON, as the model wrote it. */
  readonly input: string;
}

export interface TokenUse {
  readonly prompt_tokens: number;
  readonly completion_tokens?: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number };
  /** At the end of streamed answers. */
  readonly cost_usd?: string;
}

/** An answer so far. Times are in milliseconds since the request. */
export interface ChatAnswer {
  readonly text: string;
  readonly thoughts: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finish?: string;
  readonly usage?: TokenUse;
  readonly requestId?: string | undefined;
  /** Undefined: it has no price, or there was no whole answer. */
  readonly costUsd?: string | undefined;
  readonly firstMs?: number;
  readonly totalMs?: number;
  readonly failure?: ApiFailure;
}

/** What a chunk adds, or the whole of an answer that is not streamed. */
interface Delta {
  readonly content?: string | null;
  readonly refusal?: string | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly {
    readonly index?: number;
    readonly id?: string;
    readonly function?: { readonly name?: string; readonly arguments?: string };
  }[];
}

interface ChatBody {
  readonly choices?: readonly {
    readonly delta?: Delta;
    readonly message?: Delta;
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: TokenUse | null;
  readonly error?: unknown;
}

export interface EmbeddingBody {
  readonly data: readonly { readonly embedding: readonly number[] }[];
  readonly usage: TokenUse;
  /** Added from the headers; undefined: it has no price. */
  readonly costUsd?: string | undefined;
}

interface Asked {
  readonly keyId: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
}

export async function embed(asked: Asked): Promise<Answer<EmbeddingBody>> {
  const response = await call("embeddings", asked);
  const answer = await valueOf<EmbeddingBody>(response, asked.signal);
  if (!response.ok || !answer.ok) return answer;
  return { ok: true, value: { ...answer.value, costUsd: costOf(response.value.headers) } };
}

/** Of a whole answer. */
function costOf(headers: Headers): string | undefined {
  return headers.get("x-sluice-cost-usd") ?? undefined;
}

const nothing: ChatAnswer = { text: "", thoughts: "", toolCalls: [] };

/** Tells `onAnswer` the answer so far, again with each piece; what an abort leaves is resolved. */
export async function chat(
  asked: Asked,
  onAnswer: (answer: ChatAnswer) => void,
): Promise<ChatAnswer> {
  const startedAt = performance.now();
  let answer = nothing;
  const end = (): ChatAnswer => ({ ...answer, totalMs: performance.now() - startedAt });
  try {
    const got = await call("chat/completions", asked);
    if (!got.ok) {
      return { ...end(), failure: got.failure, requestId: got.failure.requestId };
    }
    const { status, headers } = got.value;
    const requestId = headers.get("x-request-id") ?? undefined;
    answer = { ...answer, requestId, costUsd: costOf(headers) };
    for await (const body of bodiesOf(got.value)) {
      if (body.error !== undefined) {
        return { ...end(), failure: failureIn(body, { status, requestId }) };
      }
      answer = withBody(answer, body, performance.now() - startedAt);
      onAnswer(answer);
    }
  } catch (error) {
    if (asked.signal.aborted) return { ...end(), finish: "stopped" };
    const { requestId } = answer;
    const cut = { error: { message: `The answer was cut off: ${String(error)}` } };
    return { ...end(), failure: failureIn(cut, { status: 0, requestId }) };
  }
  return end();
}

/** The whole body, or each event of a stream. */
async function* bodiesOf(response: Response): AsyncGenerator<ChatBody> {
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (!isStream || response.body === null) {
    yield await response.json();
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const lines = (rest + read.value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data: {")) yield JSON.parse(line.slice("data: ".length));
    }
  }
}

function withBody(answer: ChatAnswer, body: ChatBody, atMs: number): ChatAnswer {
  const [choice] = body.choices ?? [];
  const added = choice?.delta ?? choice?.message;
  const usage = body.usage ?? answer.usage;
  const finish = choice?.finish_reason ?? answer.finish;
  return {
    ...answer,
    text: answer.text + (added?.content ?? added?.refusal ?? ""),
    thoughts: answer.thoughts + (added?.reasoning_content ?? ""),
    toolCalls: withCalls(answer.toolCalls, added?.tool_calls ?? []),
    firstMs: answer.firstMs ?? atMs,
    ...(usage !== undefined && { usage, costUsd: usage.cost_usd ?? answer.costUsd }),
    ...(finish !== undefined && { finish }),
  };
}

function withCalls(
  calls: readonly ToolCall[],
  added: NonNullable<Delta["tool_calls"]>,
): readonly ToolCall[] {
  const next = [...calls];
  for (const [place, { index = place, id, function: piece }] of added.entries()) {
    const before = next[index] ?? { id: "", name: "", input: "" };
    next[index] = {
      id: id ?? before.id,
      name: piece?.name ?? before.name,
      input: before.input + (piece?.arguments ?? ""),
    };
  }
  return next;
}
