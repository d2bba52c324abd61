import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { completion, jsonAnswer, ScriptedUpstream } from "./scripted-upstream.ts";

/** Fields by which servers choose models, addresses and credentials, or do more than was counted. */
const switches = {
  models: ["dear-model"],
  route: "fallback",
  provider: { order: ["other"] },
  api_base: "http://169.254.169.254/",
  base_url: "http://169.254.169.254/",
  api_key: "sk-other",
  extra_body: { api_base: "http://169.254.169.254/" },
  extra_headers: { authorization: "Bearer other" },
  fallbacks: ["dear-model"],
  best_of: 20,
  n_predict: 100_000,
  num_predict: 100_000,
  max_new_tokens: 100_000,
  options: { num_predict: 100_000 },
  use_beam_search: true,
  plugins: [{ id: "web" }],
};

/** Every field of OpenAI's public API, with a value other than its default. */
const publicFields = {
  temperature: 0.5,
  top_p: 0.5,
  n: 2,
  max_completion_tokens: 10,
  max_tokens: 10,
  stop: ["x"],
  presence_penalty: 1,
  frequency_penalty: 1,
  logit_bias: { "1": 1 },
  logprobs: true,
  top_logprobs: 2,
  seed: 7,
  response_format: { type: "json_object" },
  tools: [{ type: "function", function: { name: "look" } }],
  tool_choice: "auto",
  parallel_tool_calls: false,
  functions: [{ name: "look" }],
  function_call: "auto",
  reasoning_effort: "low",
  verbosity: "low",
  modalities: ["text"],
  audio: { voice: "alloy", format: "wav" },
  prediction: { type: "content", content: "x" },
  web_search_options: { search_context_size: "low" },
  moderation: { model: "m" },
  metadata: { a: "b" },
  store: true,
  service_tier: "flex",
  prompt_cache_retention: "24h",
  prompt_cache_options: { mode: "explicit" },
};

/** Those which leave as pseudonyms. */
const names = { user: "u", safety_identifier: "s", prompt_cache_key: "k" };
const pseudonym = expect.stringMatching(/^(?:eu|pc)_[0-9A-Za-z]{16}$/);

const answer = jsonAnswer(completion({ content: "Hi" }));
const vectors = jsonAnswer({
  object: "list",
  data: [{ object: "embedding", index: 0, embedding: [0.5] }],
  usage: { prompt_tokens: 1, total_tokens: 1 },
});

let plain: ScriptedUpstream;
let open: ScriptedUpstream;
beforeAll(async () => {
  plain = await ScriptedUpstream.start();
  open = await ScriptedUpstream.start("openai", {}, "forward_fields: [top_k, cache_control]");
});
afterAll(async () => {
  await plain[Symbol.asyncDispose]();
  await open[Symbol.asyncDispose]();
});

async function sentFor(upstream: ScriptedUpstream, request: object) {
  expect((await upstream.chat(answer, request)).status).toBe(200);
  return upstream.requests.at(-1) ?? {};
}

describe("of a chat request", () => {
  test("fields that are not OpenAI's are taken from the caller and stay here", async () => {
    const sent = await sentFor(plain, { ...switches, temperature: 0.5 });
    expect(Object.keys(sent).toSorted()).toEqual(["messages", "model", "temperature"]);
  });

  test("every field of OpenAI's public API reaches the upstream", async () => {
    const messages = [{ role: "user", content: "Hi, in JSON." }];
    const sent = await sentFor(plain, { messages, ...publicFields, ...names });
    expect(sent).toMatchObject({ messages, ...publicFields });
    for (const name of Object.keys(names)) expect(sent[name]).toEqual(pseudonym);
  });

  test("so it is within messages and their parts, where addresses could hide as well", async () => {
    const inside = "http://169.254.169.254/";
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
    const text = { type: "text", text: "What is it?" };
    const call = { id: "c", type: "function", function: { name: "look", arguments: "{}" } };
    const sent = await sentFor(plain, {
      messages: [
        {
          role: "user",
          content: [
            { ...text, image_url: { url: inside }, cache_control: {} },
            { ...image, image_url: { ...image.image_url, api_base: inside }, video_url: inside },
          ],
          provider: "other",
        },
        { role: "assistant", tool_calls: [call], reasoning_content: "Hm.", extra_body: {} },
        { role: "tool", tool_call_id: "c", content: "a cat", api_base: inside },
      ],
    });
    expect(sent["messages"]).toEqual([
      { role: "user", content: [text, image] },
      { role: "assistant", content: null, tool_calls: [call], reasoning_content: "Hm." },
      { role: "tool", tool_call_id: "c", content: "a cat" },
    ]);
  });

  test("what the operator names reaches the upstream wherever it stands, and nothing else", async () => {
    const marked = { type: "text", text: "Hi", cache_control: { type: "ephemeral" } };
    const sent = await sentFor(open, {
      ...switches,
      top_k: 40,
      messages: [{ role: "user", content: [marked] }],
    });
    expect(sent).toMatchObject({ top_k: 40, messages: [{ role: "user", content: [marked] }] });
    expect(Object.keys(sent).toSorted()).toEqual(["messages", "model", "top_k"]);
  });
});

test("a file by address is refused, whatever the server would make of it", async () => {
  for (const file_data of [
    "http://169.254.169.254/",
    " HTTPS://example.com/a.pdf",
    "file:///etc/a",
  ]) {
    const content = [{ type: "file", file: { filename: "a.pdf", file_data } }];
    const response = await plain.chat(answer, { messages: [{ role: "user", content }] });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain("send file_data as a data URL");
  }
  const file = { filename: "a.pdf", file_data: "data:application/pdf;base64,AAAA" };
  const messages = [{ role: "user", content: [{ type: "file", file }] }];
  expect((await sentFor(plain, { messages }))["messages"]).toEqual(messages);
});

test("of an embedding request the upstream gets OpenAI's fields and those that the operator names", async () => {
  const request = { input: "Hi", dimensions: 1, user: "u", top_k: 40, ...switches };
  for (const [upstream, added] of [
    [plain, {}],
    [open, { top_k: 40 }],
  ] as const) {
    expect((await upstream.embed(vectors, request)).status).toBe(200);
    expect(upstream.requests.at(-1)).toEqual({
      model: "scripted-model",
      input: "Hi",
      encoding_format: "base64",
      dimensions: 1,
      user: pseudonym,
      ...added,
    });
  }
});
