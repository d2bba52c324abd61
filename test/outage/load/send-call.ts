import { content } from "../../../bench/upstream/bodies.ts";
import { vectorLength, type Call, type Load } from "./load-plan.ts";

/** An answer that takes longer counts as missing. */
const callTimeoutMs = 20_000;

/** Sends one call and reads its answer to the end. */
export async function sendCall(load: Load): Promise<Call> {
  const startedAt = Date.now();
  const began = performance.now();
  const call: { firstEventMs?: number; servedBy: string; failure: string } = {
    servedBy: "",
    failure: "",
  };
  try {
    const response = await fetch(`${load.url}${pathOf(load)}`, {
      method: "POST",
      headers: { authorization: `Bearer ${load.key}`, "content-type": "application/json" },
      body: bodyOf(load),
      signal: AbortSignal.timeout(load.leavesAfterMs ?? callTimeoutMs),
    });
    call.servedBy = /^[^;]*/.exec(response.headers.get("x-sluice-target") ?? "")?.[0] ?? "";
    const isStream = load.kind === "stream" && response.status === 200;
    const onFirstEvent = (): void => {
      call.firstEventMs ??= performance.now() - began;
    };
    const text = isStream ? await readStream(response, onFirstEvent) : await response.text();
    call.failure = response.status === 200 ? check(load, text) : refusalOf(response.status, text);
  } catch (error) {
    call.failure = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  }
  const { servedBy, failure, firstEventMs } = call;
  return { startedAt, latencyMs: firstEventMs ?? performance.now() - began, servedBy, failure };
}

function pathOf({ kind }: Load): string {
  return kind === "embeddings" ? "/v1/embeddings" : "/v1/chat/completions";
}

/** The parts that are the same for all calls of a load. */
const bodies = new WeakMap<Load, string>();

function bodyOf(load: Load): string {
  const made = bodies.get(load) ?? makeBody(load);
  bodies.set(load, made);
  return made;
}

function makeBody({ kind, model, words = "hello", extraBytes = 0 }: Load): string {
  const text = `${words} ${"again ".repeat(Math.ceil(extraBytes / 6))}`.trim();
  if (kind === "embeddings") return JSON.stringify({ model, input: text });
  const messages = [{ role: "user", content: text }];
  return JSON.stringify({ model, messages, stream: kind === "stream", max_tokens: 64 });
}

async function readStream(response: Response, onFirstEvent: () => void): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  const body: AsyncIterable<Uint8Array> | null = response.body;
  for await (const bytes of body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (text.includes("data: ")) onFirstEvent();
  }
  return text;
}

/** The error of the answer; empty if it has none. */
function check({ kind }: Load, text: string): string {
  switch (kind) {
    case "whole":
      return checkWhole(text);
    case "stream":
      return checkStream(text);
    case "embeddings":
      return checkEmbeddings(text);
  }
}

interface Choice {
  readonly finish_reason: string | null;
  readonly message?: { readonly content: string };
  readonly delta?: { readonly content?: string };
}

function checkWhole(text: string): string {
  const { choices } = JSON.parse(text) as { choices: readonly Choice[] };
  const [choice] = choices;
  const isRight = choice?.message?.content === content && choice.finish_reason === "stop";
  return isRight ? "" : "200 with other content";
}

function checkStream(text: string): string {
  const events = text
    .split("\n\n")
    .filter((event) => event.startsWith("data: "))
    .map((event) => event.slice("data: ".length));
  if (text.includes('"error"')) return "error frame in the stream";
  if (events.pop() !== "[DONE]") return "stream without [DONE]";
  const choices = events.flatMap(
    (event) => (JSON.parse(event) as { choices: readonly Choice[] }).choices,
  );
  const words = choices.map(({ delta }) => delta?.content ?? "").join("");
  const isRight = /^( answer){2,}$/.test(words) && choices.at(-1)?.finish_reason === "stop";
  return isRight ? "" : "stream with other content";
}

function checkEmbeddings(text: string): string {
  const { data } = JSON.parse(text) as { data: readonly { embedding: unknown }[] };
  const vector = data[0]?.embedding;
  const isRight = data.length === 1 && Array.isArray(vector) && vector.length === vectorLength;
  return isRight ? "" : "200 with another vector";
}

/** Status and code, without what differs from call to call. */
function refusalOf(status: number, text: string): string {
  const code = /"code":\s*"([^"]*)"/.exec(text)?.[1] ?? "no code";
  return `${status} ${code}`;
}
