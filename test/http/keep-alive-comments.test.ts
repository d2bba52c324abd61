import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Stream } from "openai/streaming";
import type { ChatCompletionChunk } from "openai/resources";
import { chunk, rawStream, ScriptedUpstream } from "../golden/scripted-upstream.ts";
import { RawConnection } from "./raw-connection.ts";

let upstream: ScriptedUpstream;
let body: string;
beforeAll(async () => {
  upstream = await ScriptedUpstream.start("openai", {
    streams: "{ hold_headers: 50ms, keep_alive_interval: 1s }",
  });
  body = await bodyWithSilences();
});
afterAll(async () => {
  await upstream[Symbol.asyncDispose]();
});

const comment = ": keep-alive";
const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

/** A stream that is silent before its first event, between events, and within one of them. */
async function bodyWithSilences(): Promise<string> {
  const ends = { begin: gate(), goOn: gate(), finish: gate() };
  const second = data(chunk({ content: "lo" }));
  const answer = rawStream(
    ends.begin.promise,
    data(chunk({ role: "assistant", content: "Hel" })),
    ends.goOn.promise,
    second.slice(0, 60),
    ends.finish.promise,
    second.slice(60) + data(chunk({}, "stop")) + "data: [DONE]\n\n",
  );
  upstream.answerWith(answer);
  using connection = await RawConnection.open(upstream.gateway.port);
  const messages = [{ role: "user", content: "Hello" }];
  const request = JSON.stringify({ model: "chat-model", stream: true, messages });
  connection.write(
    "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n" +
      `Authorization: Bearer ${upstream.gateway.key}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${request.length}\r\n\r\n${request}`,
  );
  await connection.until(comment);
  ends.begin.resolve();
  const begun = await connection.until('"content":"Hel"');
  await connection.until(comment, commentsIn(begun) + 1);
  ends.goOn.resolve();
  // The first of them may have been due before the half event came.
  await connection.until(comment, commentsIn(begun) + 3);
  ends.finish.resolve();
  return (await connection.answer("POST"))?.body ?? "";
}

const gate = (): PromiseWithResolvers<void> => Promise.withResolvers<void>();
const commentsIn = (text: string): number => text.split(comment).length - 1;

test("each keep-alive is a block of its own: one comment line and an empty line", () => {
  const blocks = body.split("\n\n");
  expect(blocks.pop()).toBe("");
  expect(blocks[0]).toBe(comment);
  expect(blocks.filter((block) => block === comment).length).toBeGreaterThanOrEqual(3);
  for (const block of blocks) {
    if (block !== comment) expect(block).toMatch(/^data: (\{.*\}|\[DONE\])$/);
  }
});

test("a parser that splits on empty lines and takes blocks of data loses no event", () => {
  const chunks = body
    .split("\n\n")
    .filter((block) => block.startsWith("data: {"))
    .map((block) => JSON.parse(block.slice(6)) as ChatCompletionChunk);
  expect(textOf(chunks)).toBe("Hello");
  expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("stop");
});

test("OpenAI's client reads the same events", async () => {
  const response = new Response(body);
  const stream = Stream.fromSSEResponse<ChatCompletionChunk>(response, new AbortController());
  const chunks: ChatCompletionChunk[] = [];
  for await (const each of stream) chunks.push(each);
  expect(textOf(chunks)).toBe("Hello");
});

test("the AI SDK reads the same text", async () => {
  const headers = { "content-type": "text/event-stream" };
  const fetchRecorded = Object.assign(() => Promise.resolve(new Response(body, { headers })), {
    preconnect: () => undefined,
  });
  const provider = createOpenAICompatible({
    name: "sluice",
    baseURL: "http://localhost/v1",
    fetch: fetchRecorded,
  });
  const { text } = streamText({ model: provider("chat-model"), prompt: "Hello" });
  expect(await text).toBe("Hello");
});

function textOf(chunks: readonly ChatCompletionChunk[]): string {
  return chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
}
