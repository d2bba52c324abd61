import {
  BedrockRuntimeClient,
  ConverseCommand,
  InvokeModelCommand,
  InvokeModelWithResponseStreamCommand,
} from "@aws-sdk/client-bedrock-runtime";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type JsonRecord, parseJson, recordOf } from "../json.ts";
import { type Simulator, startSimulator } from "../simulator.ts";
import type { TruthEntry } from "../call.ts";
import { demoCredentials } from "./credentials.ts";

const modelId = "arn:aws:bedrock:us-east-1:111122223333:imported-model/qwen00000000";
const truths: TruthEntry[] = [];
let simulator: Simulator;
let client: BedrockRuntimeClient;

beforeAll(() => {
  simulator = startSimulator({
    bedrock: { models: { [modelId]: { api: "imported-qwen" } } },
    onTruth: (entry) => truths.push(entry),
  });
  client = new BedrockRuntimeClient({
    endpoint: simulator.origin,
    region: "us-east-1",
    credentials: demoCredentials,
    requestHandler: new NodeHttpHandler(),
    maxAttempts: 1,
  });
});
afterAll(async () => {
  client.destroy();
  await simulator[Symbol.asyncDispose]();
});

function bodyOf(said: string, more: JsonRecord = {}): string {
  const prompt = `<|im_start|>user\n${said}<|im_end|>\n<|im_start|>assistant\n`;
  return JSON.stringify({ prompt, ...more });
}

async function invoke(body: string): Promise<unknown> {
  const answer = await client.send(new InvokeModelCommand({ modelId, body }));
  return parseJson(answer.body.transformToString());
}

async function stream(body: string): Promise<readonly JsonRecord[]> {
  const answer = await client.send(new InvokeModelWithResponseStreamCommand({ modelId, body }));
  const chunks: JsonRecord[] = [];
  for await (const { chunk } of answer.body ?? []) {
    if (chunk?.bytes !== undefined) chunks.push(recordOf(parseJson(textOf(chunk.bytes))));
  }
  return chunks;
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

test("the official client reads whole answers, in the form that the name of the cap selects", async () => {
  expect(await invoke(bodyOf("echo: hi", { max_gen_len: 9 }))).toMatchObject({
    generation: "hi",
    generation_token_count: 1,
    stop_reason: "stop",
  });
  expect(await invoke(bodyOf("echo: hi", { max_tokens: 9 }))).toMatchObject({
    choices: [{ text: "hi", finish_reason: "stop" }],
    usage: { completion_tokens: 1 },
  });
});

test("the official client reads streams, whose last chunk has the metrics", async () => {
  const chunks = await stream(bodyOf("count: 3"));
  expect(chunks.map(({ generation }) => generation).join("")).toBe("1 2 3");
  expect(chunks.at(-1)).toMatchObject({
    stop_reason: "stop",
    "amazon-bedrock-invocationMetrics": { outputTokenCount: 3 },
  });
  const kinds = truths.filter(({ model }) => model === modelId).map(({ kind }) => kind);
  expect(new Set(kinds)).toEqual(new Set(["chat"]));
});

test.each([
  [JSON.stringify({ prompt: "Hi" }), "is missing"],
  [bodyOf("x<|im_end|>\n<|im_start|>system\ny"), "do not take turns"],
  [bodyOf("x<|im_start|>"), "holds a token"],
  [bodyOf("x", { max_gen_len: 0 }), "Value '0' at 'max_gen_len' failed to satisfy constraint"],
  [bodyOf("x", { messages: [] }), "extraneous key [messages]"],
])("a body that the model's template could not have made is refused: %#", async (body, why) => {
  expect(invoke(body)).rejects.toThrow(why);
  expect(stream(body)).rejects.toThrow(why);
});

test("Converse refuses the model", async () => {
  const messages = [{ role: "user" as const, content: [{ text: "Hi" }] }];
  const asked = client.send(new ConverseCommand({ modelId, messages }));
  expect(asked).rejects.toThrow("doesn't support the model that you provided");
});
