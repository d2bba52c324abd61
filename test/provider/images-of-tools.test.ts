import { expect, test } from "bun:test";
import { errorOf } from "../support/bodies.ts";
import { startGateway } from "../support/gateway.ts";
import { bedrockGatewayOf, converse } from "./bedrock-provider.ts";
import { startProvider } from "./provider.ts";

const llama = "us.meta.llama4-scout-17b-instruct-v1:0";
/** Takes text beside results, and images from the user alone. */
const other = "{ upstream: aws, model: some-model, bedrock: { capabilities: CAPABILITIES } }";
const mixing = "{ images: true, tool_result_images: false }";

const tools = [{ type: "function", function: { name: "look" } }];
const call = (id: string) => ({
  id,
  type: "function",
  function: { name: "look", arguments: "{}" },
});
const calls = (...ids: readonly string[]) => ({ role: "assistant", tool_calls: ids.map(call) });
const text = (words: string) => ({ type: "text", text: words });
const image = (bytes: string) => ({
  type: "image_url",
  image_url: { url: `data:image/png;base64,${bytes}` },
});
const result = (id: string, ...content: readonly object[]) => ({
  role: "tool",
  tool_call_id: id,
  content,
});
const user = (content: string) => ({ role: "user", content });

const [one, two, three] = ["iVBORw0KGgoB", "iVBORw0KGgoC", "iVBORw0KGgoD"] as const;
/** A session of an agent with screenshots, in which it goes on after each. */
const session = {
  model: "chat-model",
  tools,
  messages: [
    user("Look."),
    calls("a", "b"),
    result("a", text("first"), image(one)),
    result("b", image(two)),
    { role: "assistant", content: "I see two." },
    user("Again."),
    calls("c"),
    result("c", image(three), text("last")),
    user("And now?"),
  ],
};

const sent = (bytes: string) => ({ image: { format: "png", source: { bytes } } });
const note = (count: number) => ({
  text: `[This image follows the tool results as tool image ${count}.]`,
});
const shown = (count: number, bytes: string) => [{ text: `[tool image ${count}:]` }, sent(bytes)];
const answered = (toolUseId: string, ...content: readonly object[]) => ({
  toolResult: { toolUseId, content },
});

test("images of tools follow all results of their turn, and the answer says so", async () => {
  await using provider = startProvider(() => converse({ text: "Three." }));
  await using gateway = await bedrockGatewayOf(provider, {
    sections: {
      models: `
  chat-model:
    kind: chat
    context_window: 32000
    targets: [${other.replace("CAPABILITIES", mixing)}]`,
    },
  });
  const response = await gateway.post("/v1/chat/completions", session);
  expect(response.status).toBe(200);
  expect(response.headers.get("x-sluice-adjusted-parameters")).toBe("messages=tool-images-moved");
  const turns = provider.requests[0]?.body["messages"] as { content: object }[];
  const [, , first, , , , second] = turns;
  expect(first?.content).toEqual([
    answered("a", { text: "first" }, note(1)),
    answered("b", note(2)),
    ...shown(1, one),
    ...shown(2, two),
  ]);
  expect(second?.content).toEqual([
    answered("c", note(3), { text: "last" }),
    ...shown(3, three),
    { text: "And now?" },
  ]);
});

test("a model that takes no text beside results gets the images in a turn of their own", async () => {
  await using provider = startProvider(() => converse({ text: "Three." }));
  await using gateway = await bedrockGatewayOf(provider, { model: llama });
  expect((await gateway.post("/v1/chat/completions", session)).status).toBe(200);
  const turns = provider.requests[0]?.body["messages"] as { role: string; content: object[] }[];
  expect(turns.map(({ role, content }) => [role, content.length])).toEqual([
    ["user", 1],
    ["assistant", 2],
    ["user", 2],
    ["assistant", 1],
    ["user", 4],
    ["assistant", 1],
    ["user", 1],
    ["assistant", 1],
    ["user", 1],
    ["assistant", 1],
    ["user", 3],
  ]);
  expect(turns[4]?.content).toEqual([...shown(1, one), ...shown(2, two)]);
  expect(turns[10]?.content).toEqual([...shown(3, three), { text: "And now?" }]);
});

test("images and files of tools are a valid request of Converse, whole and streamed", async () => {
  const alias = (name: string, identifier: string) => `
  ${name}:
    kind: chat
    context_window: 32000
    targets: [{ upstream: simulator, model: "${identifier}" }]`;
  await using gateway = await startGateway({
    kind: "bedrock",
    sections: {
      models: alias("llama", llama) + alias("claude", "us.anthropic.claude-sonnet-4-20250514-v1:0"),
    },
  });
  const file = { filename: "a.txt", file_data: "data:text/plain;base64,YQ==" };
  const last = [calls("d"), result("d", image(one), { type: "file", file })];
  for (const model of ["llama", "claude"]) {
    for (const stream of [false, true]) {
      const messages = [...session.messages, ...last];
      const body = { ...session, model, messages, stream };
      const response = await gateway.post("/v1/chat/completions", body);
      const answer = { status: response.status, text: await response.text() };
      expect(answer).toMatchObject({ status: 200 });
    }
  }
});

test("only a model without images refuses, and names the part", async () => {
  await using provider = startProvider(() => converse({ text: "Hi" }));
  await using gateway = await bedrockGatewayOf(provider, { model: "us.amazon.nova-micro-v1:0" });
  const response = await gateway.post("/v1/chat/completions", session);
  expect(response.status).toBe(400);
  expect(await errorOf(response)).toMatchObject({ param: "messages[2].content[1]" });
  expect(provider.requests).toEqual([]);
});

test("models that take images in results get them there", async () => {
  await using provider = startProvider(() => converse({ text: "Hi" }));
  await using gateway = await bedrockGatewayOf(provider);
  const response = await gateway.post("/v1/chat/completions", session);
  expect(response.headers.get("x-sluice-adjusted-parameters")).toBeNull();
  expect(provider.requests[0]?.body).toMatchObject({
    messages: [
      {},
      {},
      { content: [answered("a", { text: "first" }, sent(one)), {}] },
      {},
      {},
      {},
      {},
    ],
  });
});
