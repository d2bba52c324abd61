import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** Aliases by what they have: schemas of answers, forced tools, whole answers only. */
const models = {
  native: "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
  forced: "us.anthropic.claude-sonnet-4-20250514-v1:0",
  whole: "mistral.mistral-large-2402-v1:0",
  unforced: "meta.llama3-1-405b-instruct-v1:0",
} as const;

let gateway: TestGateway;

beforeAll(async () => {
  const aliases = Object.entries(models).map(
    ([alias, model]) => `
  ${alias}:
    kind: chat
    context_window: 32000
    max_output_tokens: 2000
    targets: [{ upstream: simulator, model: "${model}" }]`,
  );
  gateway = await startGateway({ kind: "bedrock", sections: { models: aliases.join("") } });
});
afterAll(async () => gateway[Symbol.asyncDispose]());

interface Message {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { name: string } }[];
}
interface Choice {
  readonly message: Message;
  readonly finish_reason: string;
}

async function ask(body: object): Promise<Choice> {
  const response = await gateway.post("/v1/chat/completions", body);
  const answer = (await response.json()) as { choices: [Choice]; error?: unknown };
  expect(answer.error).toBeUndefined();
  return answer.choices[0];
}

/** The joined content and the names of the tools of a streamed answer. */
async function stream(body: object) {
  const response = await gateway.post("/v1/chat/completions", { ...body, stream: true });
  const text = await response.text();
  const frames = text.split("\n\n").filter((frame) => frame.startsWith("data: {"));
  const deltas = frames.map((frame) => {
    const { choices } = JSON.parse(frame.slice(6)) as {
      choices: {
        delta: { content?: string; tool_calls?: { function: { name?: string } }[] };
        finish_reason: string | null;
      }[];
    };
    return choices[0];
  });
  return {
    pieces: deltas.map((choice) => choice?.delta.content ?? "").filter((piece) => piece !== ""),
    tools: deltas.flatMap(
      (choice) => choice?.delta.tool_calls?.flatMap((call) => call.function.name ?? []) ?? [],
    ),
    finish: deltas.findLast((choice) => choice?.finish_reason)?.finish_reason,
    isWhole: text.endsWith("data: [DONE]\n\n"),
  };
}

const rating = {
  type: "object",
  properties: {
    stars: { type: "integer", minimum: 1, maximum: 5 },
    words: { type: "array", items: { type: "string", maxLength: 12 }, minItems: 2 },
  },
  required: ["stars", "words"],
  additionalProperties: false,
};
const format = (schema: object) => ({
  type: "json_schema",
  json_schema: { name: "rating", schema, strict: true },
});
const forecast = {
  type: "function",
  function: { name: "forecast", parameters: { type: "object", properties: {} } },
};
const user = (content: string) => ({ role: "user", content });

describe("an answer by a schema", () => {
  test.each(["native", "forced", "whole"])("has its shape at %s", async (model) => {
    const body = { model, messages: [user("Rate it.")], response_format: format(rating) };
    const { message, finish_reason } = await ask(body);
    expect(finish_reason).toBe("stop");
    expect(Object.keys(JSON.parse(message.content ?? "") as object)).toEqual(["stars", "words"]);
    const { pieces } = await stream(body);
    expect(pieces.length).toBeGreaterThan(0);
    expect(JSON.parse(pieces.join(""))).toEqual(JSON.parse(message.content ?? ""));
  });

  test("may refer to itself", async () => {
    const tree = {
      $ref: "#/$defs/node",
      $defs: {
        node: {
          type: "object",
          properties: {
            name: { type: "string" },
            parts: { type: "array", items: { $ref: "#/$defs/node" } },
          },
          required: ["name", "parts"],
          additionalProperties: false,
        },
      },
    };
    const messages = [user("Draw a tree.")];
    const { message } = await ask({ model: "native", messages, response_format: format(tree) });
    expect(Object.keys(JSON.parse(message.content ?? "") as object)).toEqual(["name", "parts"]);
  });

  test("may have a strict tool beside it", async () => {
    const tool = { type: "function", function: { name: "rate", strict: true, parameters: rating } };
    const messages = [user("Please rate it.")];
    const { message, finish_reason } = await ask({ model: "native", messages, tools: [tool] });
    expect(finish_reason).toBe("tool_calls");
    expect(message.tool_calls?.map((call) => call.function.name)).toEqual(["rate"]);
  });
});

describe("a schema and tools in one request", () => {
  const asked = {
    messages: [user("The forecast for Rome?")],
    tools: [forecast],
    response_format: format(rating),
  };

  test.each(["native", "forced", "whole"])(
    "are a loop of calls and an answer at %s",
    async (model) => {
      const first = await ask({ ...asked, model });
      expect(first.finish_reason).toBe("tool_calls");
      expect(first.message.tool_calls?.map((call) => call.function.name)).toEqual(["forecast"]);
      const [call] = first.message.tool_calls ?? [];
      const result = { role: "tool", tool_call_id: call?.id, content: "Sunny" };
      const messages = [...asked.messages, first.message, result];
      const second = await ask({ ...asked, model, messages });
      expect(second.finish_reason).toBe("stop");
      expect(second.message.tool_calls).toBeUndefined();
      expect(Object.keys(JSON.parse(second.message.content ?? "") as object)).toEqual([
        "stars",
        "words",
      ]);
    },
  );

  test.each(["native", "forced", "whole"])(
    "stream calls, and then the answer, at %s",
    async (model) => {
      const calls = await stream({ ...asked, model });
      expect(calls).toEqual({
        pieces: [],
        tools: ["forecast"],
        finish: "tool_calls",
        isWhole: true,
      });
      const answer = await stream({ ...asked, model, messages: [user("Rate it.")] });
      expect({ ...answer, pieces: [] }).toEqual({
        pieces: [],
        tools: [],
        finish: "stop",
        isWhole: true,
      });
      expect(Object.keys(JSON.parse(answer.pieces.join("")) as object)).toEqual(["stars", "words"]);
    },
  );

  test("are refused with a reason where no tool can be forced", async () => {
    const response = await gateway.post("/v1/chat/completions", { ...asked, model: "unforced" });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { code: "unsupported_parameter", param: "response_format" },
    });
  });
});
