import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../src/domain/json-fields.ts";
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

/** A server that signs calls, as Google's do, and refuses a conversation without the signature. */

type Body = Readonly<Record<string, unknown>>;
type Item = Readonly<Record<string, unknown>>;

const signature = { google: { thought_signature: "Z29vZ2xl" } };
const calls = [
  {
    id: "call_1",
    type: "function",
    function: { name: "look", arguments: '{"a":1}' },
    extra_content: signature,
  },
  // Of parallel calls only the first one is signed.
  { id: "call_2", type: "function", function: { name: "look", arguments: "{}" } },
];
let provider: Provider;
let gateway: TestGateway;
let otherKey: string;

beforeAll(async () => {
  provider = startProvider();
  gateway = await gatewayOf([provider]);
  otherKey = (await gateway.createKey({ account: "another-account" })).text;
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

async function post(path: string, body: object, key = gateway.key): Promise<Response> {
  const headers = { authorization: `Bearer ${key}` };
  const response = await gateway.post(path, { model: "chat-model", ...body }, { headers });
  expect(response.status).toBe(200);
  return response;
}

function providerCalls(isStreamed: boolean): void {
  const message = { role: "assistant", content: null, tool_calls: calls };
  provider.answers(() =>
    isStreamed
      ? streamed([
          ...calls.map((call, index) => chunk({ tool_calls: [{ ...call, index }] })),
          chunk({}, { finish_reason: "tool_calls" }),
        ])
      : Response.json(
          completion("", { choices: [{ index: 0, message, finish_reason: "tool_calls" }] }),
        ),
  );
}

/** What the events of a stream say, by their type. */
async function eventsOf(response: Response): Promise<readonly Body[]> {
  const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data: {"));
  return lines.map((line) => JSON.parse(line.slice("data: ".length)) as Body);
}

/** The calls of the assistant's message that the provider got last, and the ids of the results. */
function sentCalls() {
  const messages = (provider.requests.at(-1)?.body["messages"] ?? []) as Item[];
  return {
    calls: messages.find(({ role }) => role === "assistant")?.["tool_calls"],
    results: messages.filter(({ role }) => role === "tool").map((item) => item["tool_call_id"]),
  };
}

const unsigned = calls.map((call) => ({ ...call, extra_content: undefined }));

describe.each([false, true])("streamed: %p, the signature of a call returns", (stream) => {
  const user = { role: "user", content: "Hi" };

  async function messagesAnswer(): Promise<readonly Item[]> {
    providerCalls(stream);
    const response = await post("/v1/messages", { max_tokens: 99, messages: [user], stream });
    if (!stream) return ((await response.json()) as Body)["content"] as Item[];
    const blocks: Item[] = [];
    for (const event of await eventsOf(response)) {
      const index = Number(event["index"]);
      if (event["type"] === "content_block_start") blocks[index] = event["content_block"] as Item;
      const json = (event["delta"] as Item | undefined)?.["partial_json"];
      if (typeof json === "string" && json !== "") {
        blocks[index] = { ...blocks[index], input: JSON.parse(json) };
      }
    }
    return blocks;
  }

  async function messagesReply(content: readonly Item[], key?: string): Promise<void> {
    const results = content
      .filter(({ type }) => type === "tool_use")
      .map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "done" }));
    const turns = [user, { role: "assistant", content }, { role: "user", content: results }];
    provider.answers(() => whole("18"));
    await post("/v1/messages", { max_tokens: 99, messages: turns }, key);
  }

  test("through Messages", async () => {
    const content = await messagesAnswer();
    expect(content.map(({ type }) => type)).toEqual(["redacted_thinking", "tool_use", "tool_use"]);
    await messagesReply(content);
    expect(sentCalls()).toEqual({ calls, results: ["call_1", "call_2"] });
  });

  test("but not to another account, and not if it was changed", async () => {
    const content = await messagesAnswer();
    await messagesReply(content, otherKey);
    expect(withoutIds(sentCalls().calls)).toEqual(withoutIds(unsigned));
    const [thought, ...rest] = content;
    await messagesReply([{ ...thought, data: `${String(thought?.["data"])}x` }, ...rest]);
    expect(withoutIds(sentCalls().calls)).toEqual(withoutIds(unsigned));
  });

  test("through Responses", async () => {
    providerCalls(stream);
    const include = ["reasoning.encrypted_content"];
    const asked = { input: [user], include, store: false, stream };
    const response = await post("/v1/responses", asked);
    const output: readonly Item[] = stream
      ? (await eventsOf(response))
          .filter(({ type }) => type === "response.output_item.done")
          .map(({ item }) => item as Item)
      : (((await response.json()) as Body)["output"] as Item[]);
    expect(output.map(({ type }) => type)).toEqual(["reasoning", "function_call", "function_call"]);
    const results = output
      .filter(({ type }) => type === "function_call")
      .map((item) => ({
        type: "function_call_output",
        call_id: item["call_id"],
        output: "done",
      }));
    provider.answers(() => whole("18"));
    await post("/v1/responses", { input: [user, ...output, ...results], store: false });
    expect(sentCalls()).toEqual({ calls, results: ["call_1", "call_2"] });
  });
});

function withoutIds(list: unknown): readonly JsonObject[] {
  return (list as JsonObject[]).map((call) => ({ ...call, id: undefined }));
}
