import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startSimulator, type Simulator } from "../../simulator/simulator.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { apiKey } from "./anthropic-gateway.ts";

/**
 * Conversations with thoughts at two accounts of a provider that binds thoughts to all that came
 * before them. The first one is out in the middle of a conversation.
 */
const model = "claude-fable-5-1";
const rounds = 12;
let api: Simulator;
let front: Bun.Server<undefined>;
let gateway: TestGateway;
let isDown = false;

beforeAll(async () => {
  api = startSimulator({ apiKeys: [apiKey] });
  front = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname, search } = new URL(request.url);
      if (isDown) return Response.json({ type: "error" }, { status: 503 });
      return fetch(`${api.origin}${pathname}${search}`, request);
    },
  });
  const upstream = (url: string): string =>
    `{ kind: anthropic, base_url: "${url}", api_key: "${apiKey}" }`;
  gateway = await startGateway({
    sections: {
      routing: "{ attempts: 3, first_backoff: 1ms }",
      upstreams: `
  one: ${upstream(front.url.origin)}
  two: ${upstream(api.origin)}`,
      models: `
  ${model}:
    kind: chat
    context_window: 1000000
    max_output_tokens: 128000
    targets:
      - { upstream: one, model: ${model}, priority: 1 }
      - { upstream: two, model: ${model}, priority: 2 }`,
    },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await front.stop(true);
  await api[Symbol.asyncDispose]();
});

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const names = ["weather", "trains"];

interface Answer {
  readonly body: object;
  readonly servedBy: string;
  readonly adjusted: string | null;
}

async function post(path: string, body: object): Promise<Answer> {
  const response = await gateway.post(path, { model, ...body });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  return {
    body: JSON.parse(text) as object,
    servedBy: response.headers.get("x-sluice-target")?.split(";")[0] ?? "",
    adjusted: response.headers.get("x-sluice-adjusted-parameters"),
  };
}

/** A conversation in one dialect; each `ask` is a round, with the results of the calls before. */
interface Dialog {
  readonly field: string;
  ask(): Promise<Answer>;
}

type Fields = Readonly<Record<string, unknown>>;

function messagesDialog(): Dialog {
  const messages: Fields[] = [{ role: "user", content: "Weather and trains in Rome?" }];
  const tools = names.map((name) => ({ name, input_schema: schema }));
  const thinking = { type: "adaptive", display: "summarized" };
  return {
    field: "messages",
    async ask() {
      const answer = await post("/v1/messages", { max_tokens: 8_000, tools, thinking, messages });
      const { content } = answer.body as { readonly content: readonly Fields[] };
      expect(content.some(({ type }) => type === "thinking")).toBe(true);
      const calls = content.filter(({ type }) => type === "tool_use");
      const results = calls.map(({ id }) => {
        return { type: "tool_result", tool_use_id: id, content: "next: weather" };
      });
      const next = calls.length > 0 ? results : "More";
      messages.push({ role: "assistant", content }, { role: "user", content: next });
      return answer;
    },
  };
}

function chatDialog(): Dialog {
  const messages: Fields[] = [{ role: "user", content: "Weather and trains in Rome?" }];
  const tools = names.map((name) => {
    return { type: "function", function: { name, parameters: schema } };
  });
  return {
    field: "messages",
    async ask() {
      const asked = { max_tokens: 8_000, reasoning_effort: "low", tools, messages };
      const answer = await post("/v1/chat/completions", asked);
      const { choices } = answer.body as { readonly choices: readonly { message: Fields }[] };
      const message = choices[0]?.message ?? {};
      expect(message["reasoning_details"]).toHaveLength(1);
      const calls = (message["tool_calls"] ?? []) as readonly Fields[];
      messages.push(message);
      for (const { id } of calls) {
        messages.push({ role: "tool", tool_call_id: id, content: "next: trains" });
      }
      if (calls.length === 0) messages.push({ role: "user", content: "More" });
      return answer;
    },
  };
}

function responsesDialog(): Dialog {
  const input: Fields[] = [{ role: "user", content: "Weather and trains in Rome?" }];
  const tools = names.map((name) => ({ type: "function", name, parameters: schema }));
  const include = ["reasoning.encrypted_content"];
  const reasoning = { effort: "low", summary: "auto" };
  return {
    field: "input",
    async ask() {
      const asked = { max_output_tokens: 8_000, store: false, include, reasoning, tools, input };
      const answer = await post("/v1/responses", asked);
      const { output } = answer.body as { readonly output: readonly Fields[] };
      const thought = output.find(({ type }) => type === "reasoning");
      expect(thought?.["encrypted_content"]).toMatch(/^s1\./);
      const calls = output.filter(({ type }) => type === "function_call");
      input.push(...output);
      for (const { call_id: id } of calls) {
        input.push({ type: "function_call_output", call_id: id, output: "next: trains" });
      }
      if (calls.length === 0) input.push({ role: "user", content: "More" });
      return answer;
    },
  };
}

test("a reference to a thought that is not stored takes the other thoughts with it", async () => {
  isDown = false;
  const tools = names.map((name) => ({ type: "function", name, parameters: schema }));
  const reasoning = { effort: "low", summary: "auto" };
  const input: Fields[] = [{ role: "user", content: "Weather and trains in Rome?" }];
  const ask = (): Promise<Answer> =>
    post("/v1/responses", { max_output_tokens: 8_000, reasoning, tools, input });
  for (let round = 0; round < 2; round += 1) {
    const { output } = (await ask()).body as { readonly output: readonly Fields[] };
    for (const item of output) {
      const isThought = item["type"] === "reasoning";
      input.push(isThought ? { type: "item_reference", id: item["id"] } : item);
      if (item["type"] !== "function_call") continue;
      input.push({
        type: "function_call_output",
        call_id: item["call_id"],
        output: "next: trains",
      });
    }
  }
  expect((await ask()).adjusted ?? "").not.toContain("thoughts");
  const first = input.findIndex(({ type }) => type === "item_reference");
  input[first] = { type: "item_reference", id: `rs_${"0".repeat(36)}` };
  expect((await ask()).adjusted).toContain("input=thoughts-dropped");
});

describe.each([
  ["messages", messagesDialog],
  ["chat", chatDialog],
  ["responses", responsesDialog],
] as const)("a conversation through %s", (_, open) => {
  test("keeps its thoughts at one origin", async () => {
    isDown = false;
    const dialog = open();
    for (let round = 0; round < rounds; round += 1) {
      const { servedBy, adjusted } = await dialog.ask();
      expect(servedBy).toBe("one");
      expect(adjusted ?? "").not.toContain("thoughts");
    }
  });

  test("goes on at another origin without them, and stays there", async () => {
    const dialog = open();
    const seen: string[] = [];
    for (let round = 0; round < rounds; round += 1) {
      isDown = round === 4;
      const { servedBy, adjusted } = await dialog.ask();
      const isDropped = adjusted?.includes(`${dialog.field}=thoughts-dropped`) === true;
      seen.push(`${servedBy}${isDropped ? " dropped" : ""}`);
      if (round === 5) await Bun.sleep(150);
    }
    const first = Array<string>(4).fill("one");
    expect(seen).toEqual([...first, ...Array<string>(rounds - 4).fill("two dropped")]);
  });
});
