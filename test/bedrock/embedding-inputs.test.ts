import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, targetAt, type TestGateway } from "../support/gateway.ts";

/** One red pixel. */
const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const image = `data:image/png;base64,${png}`;
const gif = `data:image/gif;base64,${Buffer.from("GIF89a of no picture").toString("base64")}`;

const models = {
  "titan-v1": "amazon.titan-embed-text-v1",
  "titan-g1": "amazon.titan-embed-g1-text-02",
  "titan-v2": "amazon.titan-embed-text-v2:0",
  "titan-image": "amazon.titan-embed-image-v1",
  nova: "amazon.nova-2-multimodal-embeddings-v1:0",
  "cohere-v3": "cohere.embed-english-v3",
  "cohere-v4": "cohere.embed-v4:0",
};
type Alias = keyof typeof models;

/** As their provider has them: of text and of each image, or of tokens alone. */
const pricesOf: Readonly<Record<string, string>> = {
  "titan-image": ", price: { input: 0.8, image: 0.00006 }",
  "cohere-v4": ", price: { input: 0.12 }",
};

function aliasSection(alias: string, target: string): string {
  return `
  ${alias}: { kind: embedding, context_window: 8192, targets: [${target}] }`;
}

let gateway: TestGateway;
beforeAll(async () => {
  const aliases = Object.entries(models).map(([alias, model]) =>
    aliasSection(alias, `{ upstream: simulator, model: "${model}"${pricesOf[alias] ?? ""} }`),
  );
  gateway = await startGateway({ kind: "bedrock", sections: { models: aliases.join("") } });
});
afterAll(() => gateway[Symbol.asyncDispose]());

interface Answer {
  readonly data: readonly { readonly embedding: readonly number[] }[];
  readonly usage: { readonly prompt_tokens: number };
  readonly error?: { readonly message: string; readonly param: string; readonly code: string };
}

async function embed(alias: Alias, fields: object): Promise<{ status: number; body: Answer }> {
  const answer = await gateway.post("/v1/embeddings", { model: alias, ...fields });
  return { status: answer.status, body: (await answer.json()) as Answer };
}

test.each([
  ["titan-v1", 1536, 1536],
  ["titan-g1", 1536, undefined],
  ["titan-image", 1024, undefined],
  ["titan-image", 384, 384],
  ["nova", 3072, undefined],
  ["nova", 256, 256],
  ["cohere-v4", 1536, undefined],
] as const)("%s embeds texts with %d dimensions", async (alias, length, dimensions) => {
  const { status, body } = await embed(alias, {
    input: ["blue whales", "red herrings"],
    dimensions,
  });
  expect(status).toBe(200);
  expect(body.data.map(({ embedding }) => embedding.length)).toEqual([length, length]);
  expect(body.data[0]).not.toEqual(body.data[1]);
  expect(body.usage.prompt_tokens).toBeGreaterThan(2);
});

test.each([
  ["titan-v1", 1024, "only 1536"],
  ["titan-image", 512, "256, 384, 1024"],
  ["nova", 512, "256, 384, 1024, 3072"],
] as const)("%s refuses %d dimensions and says which it has", async (alias, dimensions, known) => {
  const { status, body } = await embed(alias, { input: "x", dimensions });
  expect(status).toBe(400);
  expect(body.error).toMatchObject({ param: "dimensions" });
  expect(body.error?.message).toContain(known);
});

const content = (...parts: readonly object[]): object => ({ content: parts });
const imagePart = { type: "image_url", image_url: { url: image } };
const textPart = { type: "text", text: "a red point" };

test.each([["titan-image"], ["nova"], ["cohere-v3"], ["cohere-v4"]] as const)(
  "%s embeds an image as a string and as a part alike",
  async (alias) => {
    const { status, body } = await embed(alias, { input: ["words", image, content(imagePart)] });
    expect(status).toBe(200);
    const [words, asText, asPart] = body.data.map(({ embedding }) => embedding);
    expect(asText).toEqual(asPart ?? []);
    expect(asText).not.toEqual(words ?? []);
  },
);

test.each([["titan-image"], ["cohere-v4"]] as const)(
  "%s makes one vector of a text and an image",
  async (alias) => {
    const { status, body } = await embed(alias, { input: [content(textPart, imagePart)] });
    expect(status).toBe(200);
    const { body: alone } = await embed(alias, { input: [image] });
    expect(body.data).toHaveLength(1);
    expect(body.data[0]).not.toEqual(alone.data[0]);
  },
);

test("parts that are texts alone are one text, a line each", async () => {
  const { body } = await embed("titan-v2", {
    input: [content(textPart, { ...textPart, text: "b" })],
  });
  const { body: joined } = await embed("titan-v2", { input: "a red point\nb" });
  expect(body.data).toEqual(joined.data);
});

test.each([
  ["titan-v1", [image], "only texts"],
  ["titan-v2", [content(textPart, imagePart)], "only texts"],
  ["titan-image", [content(imagePart, imagePart)], "one image"],
  ["titan-image", [gif], "PNG, JPEG"],
  ["nova", [content(textPart, imagePart)], "one text or one image"],
  ["cohere-v3", [content(textPart, imagePart)], "one image"],
  ["nova", ["data:image/png;base64,@@@"], "base64"],
  ["nova", ["data:image/png;base64,iVBORw0KGg"], "base64"],
  [
    "nova",
    [content({ type: "image_url", image_url: { url: "https://e.example/i.png" } })],
    "data URL",
  ],
  ["cohere-v4", [`data:image/bmp;base64,${btoa("BM of no picture")}`], "PNG, JPEG, WebP, GIF"],
  ["cohere-v4", [`data:image/png;base64,${png.slice(0, 40)}${"A".repeat(8_000_000)}`], "at most"],
  ["cohere-v4", [content({ type: "text", text: "" })], "empty"],
] as const)("%s refuses inputs %# with 400 that says why", async (alias, input, why) => {
  const { status, body } = await embed(alias, { input });
  expect(status).toBe(400);
  expect(body.error).toMatchObject({ param: "input" });
  expect(body.error?.message).toContain(why);
});

test.each([
  [[content()], "input[0].content"],
  [["a", content({ type: "video" })], "input[1].content[0].type"],
  [
    [content({ type: "image_url", image_url: { url: "ftp://x" } })],
    "input[0].content[0].image_url.url",
  ],
  [[content(textPart), [1, 2]], "input"],
  [[content(textPart), ""], "input"],
])("a list of parts that is none is refused at its place: %#", async (input, param) => {
  const { status, body } = await embed("cohere-v4", { input });
  expect(status).toBe(400);
  expect(body.error?.param).toBe(param);
});

test.each([
  ["cohere-v3", "search_query"],
  ["cohere-v4", "classification"],
  ["nova", "clustering"],
] as const)("%s takes input_type %s from the caller", async (alias, inputType) => {
  const { status } = await embed(alias, { input: "words", input_type: inputType });
  expect(status).toBe(200);
});

test("an input type that no model knows is refused by those that ask for one", async () => {
  const { status, body } = await embed("nova", { input: "words", input_type: "query" });
  expect(status).toBe(400);
  expect(body.error).toMatchObject({ param: "input_type" });
  expect(body.error?.message).toContain("search_query");
  const { status: unasked } = await embed("titan-v2", { input: "words", input_type: "query" });
  expect(unasked).toBe(200);
});

test("usage is what the provider tells: Nova in a header, Titan the text alone", async () => {
  const { body: nova } = await embed("nova", { input: [image] });
  expect(nova.usage.prompt_tokens).toBe(1610);
  const { body: titan } = await embed("titan-image", { input: [content(textPart, imagePart)] });
  expect(titan.usage.prompt_tokens).toBe(3);
});

test("the bytes of an image are not reserved as text", async () => {
  const large = `data:image/png;base64,${png.slice(0, 40)}${"A".repeat(1_000_000)}`;
  const limits = { requestsPerMinute: 100, tokensPerMinute: 60_000 };
  const { text: key } = await gateway.createKey({ limits });
  const send = (model: string, input: unknown): Promise<Response> =>
    gateway.post(
      "/v1/embeddings",
      { model, input },
      { headers: { authorization: `Bearer ${key}` } },
    );
  const answer = await send("cohere-v4", [large]);
  expect(answer.status).toBe(200);
  // Where no upstream reads images, the same text counts as text.
  const { status } = await send("titan-v2", [large]);
  expect(status).toBe(429);
});

test("an upstream of OpenAI's kind gets texts as they are and refuses parts", async () => {
  await using other = await startGateway({
    sections: {
      models: aliasSection("m", targetAt("openai", { model: "simulated-embedding", family: "" })),
    },
  });
  const send = (input: unknown): Promise<Response> =>
    other.post("/v1/embeddings", { model: "m", input, input_type: "passage" });
  expect((await send([image, "words"])).status).toBe(200);
  const refused = await send([content(textPart)]);
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({ error: { param: "input" } });
});

test("an image costs what the price of its model says, or its tokens", async () => {
  for (const [alias, perToken, perImage] of [
    ["titan-image", 800, 60_000],
    ["cohere-v4", 120, 0],
  ] as const) {
    const answer = await gateway.post("/v1/embeddings", {
      model: alias,
      input: [content(textPart, imagePart), image],
    });
    expect(answer.status).toBe(200);
    await answer.arrayBuffer();
    const id = answer.headers.get("x-request-id");
    const row = (await gateway.usage()).find((each) => each.id === id);
    expect(row?.costNano).toBe((row?.inputTokens ?? 0) * perToken + 2 * perImage);
    expect(row?.images).toBe(2);
  }
});
