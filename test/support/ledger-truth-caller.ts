import { parseStream } from "./bodies.ts";
import type { PlannedCall } from "./ledger-truth-mix.ts";

export interface CallPlace {
  /** Without `/v1`. */
  readonly url: string;
  readonly key: string;
  readonly keyId: string;
}

/**
 * How a call ended for its caller. `left`: the caller left; `lost`: the connection ended before the
 * answer did; `turned-away`: the gateway could not take the call.
 */
export type Saw = "completed" | "failed" | "left" | "lost" | "turned-away";

/** A call as its caller saw it. */
export interface SeenCall extends PlannedCall {
  readonly keyId: string;
  readonly sentAt: number;
  /** `x-request-id`; undefined when no answer began. */
  readonly id: string | undefined;
  readonly saw: Saw;
  /** Of the answer, or of the error that ended a stream; 0 without either. */
  readonly status: number;
  /** Pieces of text that were read. */
  readonly pieces: number;
  /** The tokens in the answer. */
  readonly usage: { readonly input: number; readonly output: number } | undefined;
}

type Answer = Pick<SeenCall, "saw" | "status" | "pieces" | "usage">;

/** Makes the call as planned and returns its outcome. Never rejects. */
export async function makeCall(planned: PlannedCall, place: CallPlace): Promise<SeenCall> {
  const { keyId } = place;
  const common = { ...planned, keyId, sentAt: Date.now() };
  const leaving = new AbortController();
  const timer =
    planned.leaving === "before"
      ? setTimeout(() => leaving.abort(), planned.leavesAfterMs)
      : undefined;
  let id: string | undefined;
  try {
    const response = await send(planned, place, leaving.signal);
    id = response.headers.get("x-request-id") ?? undefined;
    const answer = await read(response, planned, leaving);
    return { ...common, id, ...answer };
  } catch {
    const saw = leaving.signal.aborted ? "left" : "lost";
    return { ...common, id, saw, status: 0, pieces: 0, usage: undefined };
  } finally {
    clearTimeout(timer);
    // A call whose caller left must reach the gateway before the key's next one does.
    if (leaving.signal.aborted) await Bun.sleep(3);
  }
}

function send(
  { path, body }: PlannedCall,
  { url, key }: CallPlace,
  signal: AbortSignal,
): Promise<Response> {
  return fetch(`${url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
}

async function read(
  response: Response,
  planned: PlannedCall,
  leaving: AbortController,
): Promise<Answer> {
  const { status } = response;
  if (!response.ok) return refusal(status, await response.text());
  if (planned.isStreamed) return streamed(await readText(response, planned, leaving), leaving);
  const body = (await response.json()) as WholeBody;
  return { saw: "completed", status, pieces: 0, usage: usageIn(body) };
}

/** Errors of a gateway that could not record the call, was ending, or had no time for it. */
const unnoted = /cannot record usage|shutting down|too much to do/;

function refusal(status: number, text: string): Answer {
  const saw = unnoted.test(text) ? "turned-away" : "failed";
  return { saw, status, pieces: 0, usage: undefined };
}

/** The part of the answer for which the caller stays. */
async function readText(
  response: Response,
  { leaving: when }: PlannedCall,
  leaving: AbortController,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    const reader = response.body?.getReader();
    for (;;) {
      const piece: Uint8Array | undefined = (await reader?.read())?.value;
      if (piece === undefined) break;
      text += decoder.decode(piece, { stream: true });
      if (when === "midway" && firstWord.test(text)) leaving.abort();
    }
  } catch {
    // The received text shows whether it is whole.
  }
  return text;
}

const firstWord = /"content":"[^"]/;

function streamed(text: string, leaving: AbortController): Answer {
  // The last frame may be incomplete.
  const { chunks, isDone } = parseStream(text.slice(0, text.lastIndexOf("\n\n") + 2));
  const pieces = chunks.filter((chunk) => chunk.choices?.[0]?.delta.content).length;
  const usageChunk = chunks.find((chunk) => chunk.usage);
  const answer = { status: 200, pieces, usage: usageIn(usageChunk ?? {}) };
  if (leaving.signal.aborted) return { ...answer, saw: "left" };
  if (isDone) return { ...answer, saw: "completed" };
  const code = chunks.at(-1)?.error?.code;
  if (code === undefined) return { ...answer, saw: "lost" };
  return { ...answer, saw: "failed", status: code === "model_unavailable" ? 503 : 500 };
}

interface WholeBody {
  readonly usage?: {
    readonly prompt_tokens: number;
    readonly completion_tokens?: number;
  } | null;
}

function usageIn({ usage }: WholeBody): SeenCall["usage"] {
  if (usage === undefined || usage === null) return undefined;
  return { input: usage.prompt_tokens, output: usage.completion_tokens ?? 0 };
}
