import { expect, test } from "bun:test";
import {
  floatsInBase64,
  gatewayOf,
  inputsOf,
  startProvider,
  vectorsAnswer,
  type ProviderRequest,
} from "./provider.ts";

const vector = [0.5, -0.25, 1];
const call = { model: "embedding-model", input: ["a", "b"] };

interface Answer {
  readonly data: readonly { readonly index: number; readonly embedding: unknown }[];
  readonly usage: { readonly prompt_tokens: number };
}

/** As OpenAI does: floats, or base64 if it is asked for. */
function honest(request: ProviderRequest): Response {
  const isBase64 = request.body["encoding_format"] === "base64";
  return vectorsAnswer(inputsOf(request).map(() => (isBase64 ? floatsInBase64(vector) : vector)));
}

async function embeddingsOf(response: Response): Promise<readonly unknown[]> {
  expect(response.status).toBe(200);
  const { data } = (await response.json()) as Answer;
  expect(data.map(({ index }) => index)).toEqual(data.map((_, place) => place));
  return data.map(({ embedding }) => embedding);
}

const formats = [
  ["floats for no format", {}, vector],
  ["floats for null", { encoding_format: null }, vector],
  ["floats for float", { encoding_format: "float" }, vector],
  ["base64 for base64", { encoding_format: "base64" }, floatsInBase64(vector)],
] as const;

test("base64 is asked of the server, and callers get what they asked for", async () => {
  await using provider = startProvider();
  await using gateway = await gatewayOf([provider]);
  for (const [, fields, expected] of formats) {
    provider.answers(honest);
    const response = await gateway.post("/v1/embeddings", { ...call, ...fields });
    expect(await embeddingsOf(response)).toEqual([expected, expected]);
    expect(provider.requests.map(({ body }) => body["encoding_format"])).toEqual(["base64"]);
    // Some servers ignore the encoding.
    provider.answers(() => vectorsAnswer([vector, vector]));
    const other = await gateway.post("/v1/embeddings", { ...call, ...fields });
    expect(await embeddingsOf(other)).toEqual([expected, expected]);
  }
});

const detail = { type: "extra_forbidden", msg: "Extra inputs are not permitted", input: "base64" };
const refusals = [
  [
    "OpenAI's error",
    400,
    { error: { message: "Unsupported value", param: "encoding_format", code: null } },
  ],
  ["a field in FastAPI's list", 422, { detail: [{ ...detail, loc: ["body", "encoding_format"] }] }],
  ["a message", 400, { object: "error", message: "base64 is not supported", code: 400 }],
] as const;

test.each(refusals)(
  "a server that refuses base64 with %s is asked without at once, and is remembered",
  async (_name, status, error) => {
    await using provider = startProvider((request) =>
      "encoding_format" in request.body ? Response.json(error, { status }) : honest(request),
    );
    await using gateway = await gatewayOf([provider]);
    for (const [, fields, expected] of formats) {
      const response = await gateway.post("/v1/embeddings", { ...call, ...fields });
      expect(await embeddingsOf(response)).toEqual([expected, expected]);
    }
    const asked = provider.requests.map(({ body }) => body["encoding_format"]);
    expect(asked).toEqual(["base64", undefined, undefined, undefined, undefined]);
    for (const row of await gateway.usage()) {
      expect(row).toMatchObject({ outcome: "completed", attempts: 1, inputTokens: 2 });
    }
  },
);

test("a caller's own mistake reaches it, however it is worded, and nothing is remembered", async () => {
  const error = { message: "input 'encoding_format base64' is too odd", param: "input" };
  await using provider = startProvider((request) =>
    inputsOf(request).includes("odd") ? Response.json({ error }, { status: 400 }) : honest(request),
  );
  await using gateway = await gatewayOf([provider]);
  const refused = await gateway.post("/v1/embeddings", { ...call, input: "odd" });
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({ error: { param: "input" } });
  provider.answers(honest);
  await embeddingsOf(await gateway.post("/v1/embeddings", call));
  expect(provider.requests.map(({ body }) => body["encoding_format"])).toEqual(["base64"]);
});

const settings = [
  ["as_sent", {}, undefined],
  ["as_sent", { encoding_format: null }, undefined],
  ["as_sent", { encoding_format: "float" }, "float"],
  ["as_sent", { encoding_format: "base64" }, "base64"],
  ["float", { encoding_format: "base64" }, "float"],
  ["base64", {}, "base64"],
] as const;

test("other settings of embedding_encoding send what they say, and nothing for null", async () => {
  await using provider = startProvider(honest);
  await using gateway = await gatewayOf([provider]);
  for (const [setting, fields, sent] of settings) {
    const upstream = `{ kind: openai, base_url: "${provider.url}", embedding_encoding: ${setting} }`;
    await gateway.reconfigure({ upstreams: `\n  provider-1: ${upstream}` });
    provider.answers(honest);
    await embeddingsOf(await gateway.post("/v1/embeddings", { ...call, ...fields }));
    expect(provider.requests.map(({ body }) => body["encoding_format"])).toEqual([sent]);
  }
});

test("a server without the field works when it is dropped", async () => {
  await using provider = startProvider(honest);
  await using gateway = await gatewayOf([provider], { upstream: "drop_fields: [encoding_format]" });
  const response = await gateway.post("/v1/embeddings", { ...call, encoding_format: "base64" });
  expect(await embeddingsOf(response)).toEqual([floatsInBase64(vector), floatsInBase64(vector)]);
  expect(Object.keys(provider.requests[0]?.body ?? {}).toSorted()).toEqual(["input", "model"]);
});
