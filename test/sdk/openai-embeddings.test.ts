import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { embeddingsOf } from "../support/bodies.ts";
import { upstreamKinds } from "../support/gateway.ts";
import { startSdkGateway, type SdkGateway } from "./sdk-gateway.ts";

describe.each(upstreamKinds)("with every alias on kind %s:", (kind) => {
  let sdk: SdkGateway;
  let client: OpenAI;
  beforeAll(async () => {
    sdk = await startSdkGateway(kind);
    client = new OpenAI({ baseURL: sdk.baseUrl, apiKey: sdk.keys.valid, maxRetries: 0 });
  });
  afterAll(async () => {
    await sdk[Symbol.asyncDispose]();
  });

  const model = "embedding-model";

  async function vectorsOf(input: OpenAI.EmbeddingCreateParams["input"], options: object = {}) {
    const { data } = await client.embeddings.create({ model, input, ...options });
    expect(data.map(({ index }) => index)).toEqual(data.map((_item, position) => position));
    return data.map(({ embedding }) => embedding);
  }

  describe("embeddings", () => {
    test("in the client's own encoding, base64, are vectors of numbers", async () => {
      const answer = await client.embeddings.create({ model, input: "Hello" });
      expect(answer.model).toBe(model);
      expect(answer.object).toBe("list");
      expect(answer.usage.prompt_tokens).toBeGreaterThan(0);
      expect(answer.data).toHaveLength(1);
      expect(answer.data[0]?.embedding).toHaveLength(1024);
    });

    test("are the same in either encoding, up to the precision of 32 bits", async () => {
      const [packed] = await vectorsOf("Hello");
      const [plain] = await vectorsOf("Hello", { encoding_format: "float" });
      expect(packed).toEqual((plain ?? []).map(Math.fround));
    });

    test("have as many dimensions as asked for", async () => {
      const [vector] = await vectorsOf("Hello", { dimensions: 256 });
      expect(vector).toHaveLength(256);
    });

    test("of several texts are in their order", async () => {
      const both = await vectorsOf(["one", "two"]);
      expect(both).toEqual([...(await vectorsOf("one")), ...(await vectorsOf("two"))]);
      expect(both[0]).not.toEqual(both[1]);
    });

    test("of token ids are of one text or of many", async () => {
      const [one] = await vectorsOf([9906, 1917]);
      const many = await vectorsOf([[9906, 1917], [9906]]);
      expect(many).toHaveLength(2);
      expect(many[0]).toEqual(one);
    });

    test("of token ids are those of the text where the upstream takes only text", async () => {
      // "Hello world" in cl100k_base, as LangChain's Python client sends it.
      const body = { model: "text-embedding-model", input: [[9906, 1917]] };
      const answer = await embeddingsOf(await sdk.gateway.post("/v1/embeddings", body));
      const [expected] = await vectorsOf("Hello world", { encoding_format: "float" });
      expect(answer.data[0]?.embedding).toEqual(expected ?? []);
    });

    test.each([[""], [[]], [["a", ""]], [[[]]]])("of %j are refused", async (input) => {
      const error: unknown = await client.embeddings
        .create({ model, input })
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(OpenAI.BadRequestError);
      expect(error).toMatchObject({ status: 400, type: "invalid_request_error", param: "input" });
    });

    test("of more texts than allowed are refused", async () => {
      const input = Array.from({ length: 2049 }, () => "a");
      const error: unknown = await client.embeddings
        .create({ model, input })
        .catch((reason: unknown) => reason);
      expect(error).toMatchObject({ status: 400, code: "array_above_max_length", param: "input" });
    });
  });

  describe("models", () => {
    test("are listed", async () => {
      const ids: string[] = [];
      for await (const each of client.models.list()) ids.push(each.id);
      expect(ids).toContain("chat-model");
      expect(ids).toContain("embedding-model");
      expect(new Set(ids).size).toBe(ids.length);
    });

    test("are retrieved by their name", async () => {
      const found = await client.models.retrieve("chat-model");
      expect(found).toMatchObject({ id: "chat-model", object: "model", owned_by: "sluice" });
      expect(Number.isInteger(found.created)).toBe(true);
    });
  });

  test("a model whose name has a slash and a colon is listed, retrieved and called", async () => {
    const id = "vendor/chat:8b";
    expect((await client.models.list()).data.map((each) => each.id)).toContain(id);
    expect((await client.models.retrieve(id)).id).toBe(id);
    // Callers without a client seldom encode the name.
    expect((await sdk.gateway.get(`/v1/models/${id}`)).status).toBe(200);
    const messages = [{ role: "user" as const, content: "echo: Hi" }];
    const answer = await client.chat.completions.create({ model: id, messages });
    expect(answer.model).toBe(id);
  });

  test.each(["", "/", "/v1", "/v1/", "/v1/v1"])(
    "a base URL that ends in '%s' works",
    async (end) => {
      const variant = new OpenAI({
        baseURL: `${sdk.gateway.url}${end}`,
        apiKey: sdk.keys.valid,
        maxRetries: 0,
      });
      expect((await variant.models.list()).data.length).toBeGreaterThan(0);
    },
  );
});
