import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
  type ConverseStreamOutput,
  type ToolUseBlockStart,
} from "@aws-sdk/client-bedrock-runtime";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  contextOf,
  streamOf,
  type ContextFixture,
  type FrameFixture,
} from "../../../test/support/bedrock-frames.ts";
import { partsOf } from "../../../test/bedrock/choice-parts.ts";
import type { ChatEvent } from "../../domain/chat/answer.ts";
import {
  converseDecoder,
  decodeConverse,
  decoderLimits,
} from "../../../test/support/answer-decoding.ts";
import goldenAnswers from "./golden-answers/answers.json";
import goldenStreams from "./golden-answers/streams.json";

/** Serves the same bytes to the provider's own client. */
let server: Bun.Server<undefined>;
let client: BedrockRuntimeClient;
let answer: { readonly contentType: string; readonly body: Uint8Array };

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response(answer.body, { headers: { "content-type": answer.contentType } }),
  });
  client = new BedrockRuntimeClient({
    endpoint: server.url.origin,
    region: "us-east-1",
    credentials: { accessKeyId: "id", secretAccessKey: "secret" },
    requestHandler: new NodeHttpHandler(),
    maxAttempts: 1,
  });
});
afterAll(async () => {
  client.destroy();
  await server.stop(true);
});

const request = { modelId: "m", messages: [{ role: "user" as const, content: [{ text: "x" }] }] };

/** The content of an answer, independent of both wire formats. */
interface Said {
  text: string;
  reasoning: string;
  calls: { id: string | undefined; name: string | undefined; input: string }[];
  inputTokens: number | undefined;
  outputTokens: number | undefined;
}

const nothing = (): Said => ({
  text: "",
  reasoning: "",
  calls: [],
  inputTokens: undefined,
  outputTokens: undefined,
});

async function readWithClient(bytes: Uint8Array): Promise<{ said: Said; failed: boolean }> {
  answer = { contentType: "application/vnd.amazon.eventstream", body: bytes };
  const said = nothing();
  const callsByBlock = new Map<number | undefined, Said["calls"][number]>();
  try {
    const { stream = [] } = await client.send(new ConverseStreamCommand(request));
    for await (const event of stream) addClientEvent(event, said, callsByBlock);
    return { said, failed: false };
  } catch {
    return { said, failed: true };
  }
}

function addClientEvent(
  { contentBlockStart, contentBlockDelta, metadata }: ConverseStreamOutput,
  said: Said,
  callsByBlock: Map<number | undefined, Said["calls"][number]>,
): void {
  const toolUse: ToolUseBlockStart | undefined = contentBlockStart?.start?.toolUse;
  if (toolUse !== undefined && toolUse.type === undefined) {
    const call = { id: toolUse.toolUseId, name: toolUse.name, input: "" };
    callsByBlock.set(contentBlockStart?.contentBlockIndex, call);
    said.calls.push(call);
  }
  const delta = contentBlockDelta?.delta;
  said.text += delta?.text ?? "";
  said.reasoning += delta?.reasoningContent?.text ?? "";
  const call = callsByBlock.get(contentBlockDelta?.contentBlockIndex);
  if (call !== undefined) call.input += delta?.toolUse?.input ?? "";
  said.inputTokens ??= metadata?.usage?.inputTokens;
  said.outputTokens ??= metadata?.usage?.outputTokens;
}

function readHere(bytes: Uint8Array): { said: Said; failed: boolean } {
  const reader = { context: contextOf(), onUnknownFinish: () => undefined };
  const decoder = converseDecoder(reader, decoderLimits);
  const events = [...decoder.push(bytes)];
  if (!decoder.isDone && decoder.failure === undefined) events.push(...decoder.end());
  const said = nothing();
  for (const event of events) addEvent(event, said);
  return { said, failed: decoder.failure !== undefined };
}

function addEvent(event: ChatEvent, said: Said): void {
  if (event.type === "text-delta") said.text += event.text;
  if (event.type === "reasoning-delta") said.reasoning += event.text;
  if (event.type === "tool-call-start") {
    said.calls.push({ id: event.id, name: event.name, input: "" });
  }
  const call = event.type === "tool-call-delta" ? said.calls[event.call] : undefined;
  if (event.type === "tool-call-delta" && call !== undefined) call.input += event.arguments;
  if (event.type !== "usage-report") return;
  said.inputTokens = event.usage.inputTokens;
  said.outputTokens = event.usage.outputTokens;
}

/** The client has no empty arguments, and counts the cache's tokens apart. */
function comparable(said: Said): Said {
  const calls = said.calls.map((call) => ({
    ...call,
    input: call.input === "" ? "{}" : call.input,
  }));
  return { ...said, calls };
}

interface GoldenStream {
  readonly name: string;
  readonly context?: ContextFixture;
  readonly frames: readonly FrameFixture[];
  readonly ending: string;
}

const isCached = (value: unknown): boolean =>
  JSON.stringify(value).includes("cacheReadInputTokens");
const streams = (goldenStreams as unknown as readonly GoldenStream[]).filter(
  ({ context, frames }) => context === undefined && !isCached(frames),
);

for (const { name, frames, ending } of streams) {
  const hasFailure = frames.some(([kind]) => kind === "exception" || kind === "error");
  // The client reads past the end, and accepts streams without a stop as complete.
  if (hasFailure === (ending === "done")) continue;

  test(`the provider's own client reads the same from the golden stream: ${name}`, async () => {
    const bytes = streamOf(frames);
    const theirs = await readWithClient(bytes);
    const here = readHere(bytes);
    expect(here.failed).toBe(theirs.failed);
    expect(comparable(here.said)).toEqual(comparable(theirs.said));
  });
}

for (const { name, body, failure, context } of goldenAnswers as readonly GoldenAnswer[]) {
  if (failure !== undefined || context !== undefined || isCached(body)) continue;

  test(`the provider's own client reads the same from the golden answer: ${name}`, async () => {
    const bytes = new TextEncoder().encode(JSON.stringify(body));
    answer = { contentType: "application/json", body: bytes };
    const theirs = await client.send(new ConverseCommand(request));
    const result = decodeConverse({ headers: new Headers(), body: bytes }, contextOf());
    const blocks = theirs.output?.message?.content ?? [];
    const texts = blocks.flatMap((block) => [
      block.text ?? "",
      ...(block.citationsContent?.content ?? []).map((piece) => piece.text ?? ""),
    ]);
    const calls = blocks.flatMap(({ toolUse }) =>
      toolUse === undefined || toolUse.type !== undefined ? [] : [toolUse],
    );
    const said = partsOf(result.choices[0] ?? { blocks: [] });
    expect(said.content ?? "").toBe(texts.join(""));
    expect(said.reasoning ?? "").toBe(
      blocks.map((block) => block.reasoningContent?.reasoningText?.text ?? "").join(""),
    );
    expect(said.toolCalls.map((call) => [call.id, call.name, call.arguments])).toEqual(
      calls.map(({ toolUseId, name: tool, input = {} }) => [
        toolUseId ?? "",
        tool ?? "",
        JSON.stringify(input),
      ]),
    );
    expect(result.usage?.inputTokens).toBe(theirs.usage?.inputTokens);
    expect(result.usage?.outputTokens).toBe(theirs.usage?.outputTokens);
  });
}

interface GoldenAnswer {
  readonly name: string;
  readonly context?: unknown;
  readonly body: unknown;
  readonly failure?: string;
}
