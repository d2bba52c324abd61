import { afterAll, beforeAll, expect, test } from "bun:test";
import { chatOf, parseStream } from "../support/bodies.ts";
import type { TestGateway } from "../support/gateway.ts";
import {
  chunk,
  completion,
  gatewayOf,
  startProvider,
  streamed,
  whole,
  type Provider,
} from "./provider.ts";

/** What only a provider understands returns to it as it was, from the account that got it alone. */

type Fields = Readonly<Record<string, unknown>>;

const question = { role: "user", content: "Hi" };
const signature = "c2lnbmF0dXJl.with.dots==";
const extra = { google: { thought_signature: "Z29vZ2xl" } };
const toolCall = {
  id: "call_1",
  type: "function",
  function: { name: "look", arguments: "{}" },
  extra_content: extra,
};
const details = [
  { type: "reasoning.text", text: "Hm", signature, index: 0 },
  { type: "reasoning.encrypted", data: "ZGF0YQ==", id: "rs_1", index: 1 },
];
const message = { role: "assistant", content: null, tool_calls: [toolCall] };
const thoughtful = { ...message, reasoning_details: details };
let provider: Provider;
let gateway: TestGateway;
let otherKey: string;

beforeAll(async () => {
  provider = startProvider();
  gateway = await gatewayOf([provider], { upstream: "forward_fields: [reasoning_details]" });
  otherKey = (await gateway.createKey({ account: "another-account" })).text;
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

function ask(fields: object, key = gateway.key): Promise<Response> {
  const body = { model: "chat-model", messages: [question], ...fields };
  const headers = { authorization: `Bearer ${key}` };
  return gateway.post("/v1/chat/completions", body, { headers });
}

/** The assistant's message of the first answer, as a client keeps it. */
async function firstAnswer(isStreamed: boolean): Promise<Fields> {
  provider.answers(() =>
    isStreamed
      ? streamed([
          chunk({ role: "assistant", reasoning_details: details.slice(0, 1) }),
          chunk({ reasoning_details: details.slice(1) }),
          chunk({ tool_calls: [{ ...toolCall, index: 0 }] }, { finish_reason: "tool_calls" }),
        ])
      : Response.json(
          completion("", {
            choices: [{ index: 0, message: thoughtful, finish_reason: "tool_calls" }],
          }),
        ),
  );
  const response = await ask({ stream: isStreamed });
  if (!isStreamed) return (await chatOf(response)).choices[0]?.message as unknown as Fields;
  const { chunks } = parseStream(await response.text());
  const deltas = chunks.map(({ choices }) => choices[0]?.delta as unknown as Fields | undefined);
  const joined = (field: string): Fields[] =>
    deltas.flatMap((delta) => (delta?.[field] ?? []) as Fields[]);
  const [call] = joined("tool_calls");
  return {
    role: "assistant",
    content: null,
    reasoning_details: joined("reasoning_details"),
    tool_calls: [{ ...call, function: toolCall.function }],
  };
}

/** What the provider got of the assistant's message, and what the caller was told. */
async function sendBack(assistant: Fields, key?: string) {
  const [call] = assistant["tool_calls"] as { readonly id: string }[];
  const result = { role: "tool", tool_call_id: call?.id, content: "18" };
  provider.answers(() => whole("18 degrees"));
  const response = await ask({ messages: [question, assistant, result] }, key);
  expect(response.status).toBe(200);
  const [, sent, answered] = (provider.requests.at(-1)?.body["messages"] ?? []) as Fields[];
  return { sent, answered, adjusted: response.headers.get("x-sluice-adjusted-parameters") };
}

test.each([false, true])("thoughts and calls return as they were; streamed: %p", async (stream) => {
  const assistant = await firstAnswer(stream);
  const kept = JSON.stringify(assistant);
  expect(kept).toMatch(/"signature":"s1\.[\w-]{22}\.c2lnbmF0dXJl\.with\.dots=="/);
  expect(kept).toMatch(/"data":"s1\.[\w-]{22}\.ZGF0YQ=="/);
  expect(kept).toMatch(/"id":"call_1__[\w-]{8}"/);
  const { sent, answered, adjusted } = await sendBack(assistant);
  expect(sent?.["reasoning_details"]).toEqual(details);
  expect(sent?.["tool_calls"]).toEqual([toolCall]);
  expect(answered?.["tool_call_id"]).toBe("call_1");
  expect(adjusted).toBeNull();
});

test("nothing of it is another account's", async () => {
  const { sent, answered, adjusted } = await sendBack(await firstAnswer(false), otherKey);
  expect(sent).not.toHaveProperty("reasoning_details");
  const [call] = (sent?.["tool_calls"] ?? []) as Fields[];
  expect(call).not.toHaveProperty("extra_content");
  expect(call?.["function"]).toEqual(toolCall.function);
  expect(answered?.["tool_call_id"]).toBe(call?.["id"]);
  expect(adjusted).toBe("messages=thoughts-dropped");
});

test("a caller's own values are dropped, and a changed one takes the others with it", async () => {
  const assistant = await firstAnswer(false);
  const raw = await sendBack({ ...assistant, reasoning_details: details });
  expect([raw.sent?.["reasoning_details"], raw.adjusted]).toEqual([
    undefined,
    "messages=thoughts-dropped",
  ]);
  const [first, second] = assistant["reasoning_details"] as Fields[];
  const changed = { ...second, data: `${String(second?.["data"])}A` };
  const { sent, adjusted } = await sendBack({ ...assistant, reasoning_details: [first, changed] });
  expect(sent).not.toHaveProperty("reasoning_details");
  expect(adjusted).toBe("messages=thoughts-dropped");
});
