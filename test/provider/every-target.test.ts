import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { chatServers } from "../../simulator/simulator.ts";
import { profileNames as sluicesProfiles } from "../../src/upstreams/openai/profiles.ts";
import { quirkNames } from "../../src/wires/chat/quirks.ts";
import { embeddingsOf, errorOf } from "../support/bodies.ts";
import { apiNames, type EveryTarget, profileNames, startEveryTarget } from "./every-target.ts";

/** What a caller of chat gets of every API that a target can have, and of every server that has a profile. */

let every: EveryTarget;
let client: OpenAI;
beforeAll(async () => {
  every = await startEveryTarget();
  const { url, key } = every.gateway;
  client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
});
afterAll(() => every[Symbol.asyncDispose]());

const documented = "written from the documentation";

/** Whose report has each thing that the simulator's servers do. */
const sources: Readonly<Record<chatServers.Quirk, string>> = {
  ignores_stream: "ollama/ollama#9092",
  streams_only: "QuantumNous/new-api#1109",
  one_choice: documented,
  no_image_urls: "ollama/ollama#6753",
  thoughts_as_reasoning: "vllm-project/vllm#38488",
  needs_thoughts: "continuedev/continue#11285",
  needs_signatures: "vercel/ai#15550, earendil-works/pi#1406",
  max_tokens_only: "ollama/ollama#7125",
  no_developer: "earendil-works/pi#1048, ogx-ai/ogx#6069",
  no_token_ids: documented,
  ten_inputs: "garrytan/gbrain#1199",
  calls_whole: "ollama/ollama#5915",
  indexes_repeat: "ollama/ollama#15457, vercel/ai#14277",
  ids_empty: "microsoft/autogen#4878",
  stop_after_calls: "googleapis/python-genai#2868",
  role_repeats: documented,
  thoughts_in_tags: "decolua/9router#1749",
  usage_excludes_thoughts: "Wei-Shaw/sub2api#5771",
  usage_lacks_details: documented,
  filter_results: documented,
  keep_alives: "tmc/langchaingo#1171, openai/openai-go#227",
};

test("the simulator plays every profile, and knows every quirk by its name", () => {
  expect(profileNames.toSorted()).toEqual([...sluicesProfiles].toSorted());
  expect(Object.keys(chatServers.quirks).toSorted()).toEqual([...quirkNames].toSorted());
});

type Messages = OpenAI.ChatCompletionMessageParam[];

const tool = (name: string): OpenAI.ChatCompletionTool => ({
  type: "function",
  function: {
    name,
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
});
const tools = [tool("weather"), tool("clock")];

/** `reasoning_content` is not OpenAI's. */
const thoughtsOf = (said: object): unknown =>
  "reasoning_content" in said ? said.reasoning_content : undefined;

interface Answer {
  readonly text: string | null | undefined;
  readonly calls: readonly OpenAI.ChatCompletionMessageToolCall[];
  readonly thoughts: string;
  readonly finish: string | undefined;
  readonly message: OpenAI.ChatCompletionMessage | undefined;
  readonly usage: OpenAI.CompletionUsage | undefined;
}

type Options = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, "model" | "messages" | "stream">;

interface Fields extends Options {
  readonly stream: boolean;
}

async function ask(
  model: string,
  messages: Messages,
  { stream, ...fields }: Fields,
): Promise<Answer> {
  const body = { model, messages, ...fields };
  let thoughts = "";
  let whole: OpenAI.ChatCompletion;
  if (stream) {
    const events = client.chat.completions.stream({
      ...body,
      stream_options: { include_usage: true },
    });
    events.on("chunk", ({ choices }) => {
      const piece = thoughtsOf(choices[0]?.delta ?? {});
      if (typeof piece === "string") thoughts += piece;
    });
    whole = await events.finalChatCompletion();
  } else {
    whole = await client.chat.completions.create(body);
    const said = thoughtsOf(whole.choices[0]?.message ?? {});
    if (typeof said === "string") thoughts = said;
  }
  const [choice] = whole.choices;
  return {
    text: choice?.message.content,
    calls: choice?.message.tool_calls ?? [],
    thoughts,
    finish: choice?.finish_reason,
    message: choice?.message,
    usage: whole.usage,
  };
}

const user = (content: string) => ({ role: "user", content }) as const;
const hello = [user("echo: Hello there")];

const quirksOf = (name: string): readonly chatServers.Quirk[] =>
  chatServers.isProfile(name) ? chatServers.profiles[name].quirks : [];
const sourcesOf = (name: string): string =>
  quirksOf(name)
    .map((quirk) => `${quirk}: ${sources[quirk]}`)
    .join("; ");

const targets = [...apiNames, ...profileNames].map((name) => [name, sourcesOf(name)] as const);

describe.each(targets)("%s (%s)", (model) => {
  const openAis = !/messages|converse/.test(model);

  describe.each([false, true])("streamed: %p", (stream) => {
    test("a text, its end, and the usage that the provider counted", async () => {
      const { text, finish, usage } = await ask(model, hello, { stream });
      expect([text, finish]).toEqual(["Hello there", "stop"]);
      const truth = every.simulator.truth.entries.at(-1);
      const counted = [truth?.promptTokens, truth?.completionTokens];
      expect([usage?.prompt_tokens, usage?.completion_tokens]).toEqual(counted);
      const [row] = await every.gateway.usage();
      expect([row?.inputTokens, row?.outputTokens]).toEqual(counted);
      expect(row?.usageSource).toBe("upstream");
    });

    test("thoughts apart from the text, counted as output", async () => {
      const { text, thoughts, usage } = await ask(model, hello, {
        stream,
        reasoning_effort: "low",
      });
      expect(text).toBe("Hello there");
      const isHidden = model.startsWith("bedrock-openai-chat");
      expect(thoughts).toMatch(isHidden ? /^$/ : /Step 1: think/);
      expect(usage?.completion_tokens).toBe(every.simulator.truth.entries.at(-1)?.completionTokens);
      expect(usage?.completion_tokens).toBeGreaterThan(20);
    });

    test("two calls with ids of their own, and the answer to their results", async () => {
      const asked = [user("Tell me the weather and what the clock says.")];
      const { calls, finish, message } = await ask(model, asked, { stream, tools });
      expect(finish).toBe("tool_calls");
      const named = calls.map((call) => (call.type === "function" ? call.function.name : ""));
      expect(named).toEqual(["weather", "clock"]);
      const ids = new Set(calls.map(({ id }) => id));
      expect([ids.size, ids.has("")]).toEqual([2, false]);
      for (const call of calls) {
        const { arguments: input } = call.type === "function" ? call.function : { arguments: "" };
        expect(JSON.parse(input)).toHaveProperty("city");
      }
      if (message === undefined) throw new Error("there is no message");
      const results = calls.map(
        ({ id }) => ({ role: "tool", tool_call_id: id, content: "fine" }) as const,
      );
      const after = await ask(model, [...asked, message, ...results], { stream, tools });
      expect([after.finish, after.calls]).toEqual(["stop", []]);
      expect(every.simulator.truth.entries.at(-1)?.status).toBe(200);
    });

    test("a history that another model began", async () => {
      const called = {
        id: "call_1",
        type: "function",
        function: { name: "weather", arguments: "{}" },
      };
      const history = [
        { role: "developer", content: "Be brief." },
        user("Weather?"),
        { role: "assistant", content: null, tool_calls: [called] },
        { role: "tool", tool_call_id: "call_1", content: "fine" },
        user("echo: Hello there"),
      ] as Messages;
      const { text } = await ask(model, history, { stream, tools, tool_choice: "none" });
      expect(text).toBe("Hello there");
    });

    test("no more than the cap, told as its end", async () => {
      const cap = 20;
      const { finish, usage } = await ask(model, [user("count: 90")], {
        stream,
        max_completion_tokens: cap,
        reasoning_effort: openAis ? "none" : null,
      });
      expect(finish).toBe("length");
      expect(usage?.completion_tokens).toBeLessThanOrEqual(cap);
    });

    test("two choices", async () => {
      const response = await every.gateway.post("/v1/chat/completions", {
        model,
        messages: hello,
        n: 2,
        stream,
      });
      if (model === "openai-responses") {
        // Without a field for it; the quirk `one_choice` makes each choice a request of its own.
        expect((await errorOf(response)).param).toBe("n");
        return;
      }
      const text = await response.text();
      expect(text.match(/"finish_reason":"stop"/g)).toHaveLength(2);
      expect(text).toContain('"index":1');
    });
  });
});

describe.each(["local", "aws", ...profileNames])("embeddings of %s", (name) => {
  const post = (input: unknown, fields: object = {}) =>
    every.gateway.post("/v1/embeddings", { model: `${name}-vectors`, input, ...fields });

  test.each(["float", "base64"])("come as %s, in their order", async (encoding_format) => {
    const input = Array.from({ length: 25 }, (_, index) => `text ${index}`);
    const response = await post(input, { encoding_format });
    expect(response.status).toBe(200);
    const { data, usage } = await embeddingsOf(response);
    expect(data.map(({ index }) => index)).toEqual(input.map((_, index) => index));
    const [first, second] = data.map(({ embedding }) => embedding as number[] | string);
    expect(typeof first).toBe(encoding_format === "float" ? "object" : "string");
    expect(first).not.toEqual(second);
    expect(usage.prompt_tokens).toBeGreaterThan(25);
    const [row] = await every.gateway.usage();
    expect(row?.inputTokens).toBe(usage.prompt_tokens);
  });

  test("of token ids are of their text where the server takes texts alone", async () => {
    const response = await post([[1, 2, 3]]);
    expect([response.status, (await embeddingsOf(response)).data.length]).toEqual([200, 1]);
  });
});
