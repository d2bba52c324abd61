import { afterAll, beforeAll, expect, test } from "bun:test";
import { embeddingsOf } from "../support/bodies.ts";
import type { TestGateway } from "../support/gateway.ts";
import { startGoldenGateway } from "./golden-gateway.ts";
import { normalise } from "./normalise.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGoldenGateway();
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

const path = "/v1/embeddings";

test("an embeddings answer has OpenAI's fields in OpenAI's order", async () => {
  const request = { model: "embedding-model", input: ["one", "two"], dimensions: 2 };
  const response = await gateway.post(path, { ...request, encoding_format: "base64" });
  expect(response.status).toBe(200);
  expect(normalise(await response.text())).toMatch(
    /^\{"object":"list","data":\[\{"object":"embedding","index":0,"embedding":"[A-Za-z0-9+/]{11}="\},\{"object":"embedding","index":1,"embedding":"[A-Za-z0-9+/]{11}="\}\],"model":"embedding-model","usage":\{"prompt_tokens":9,"total_tokens":9\}\}$/,
  );
});

test("without an encoding format vectors are lists of numbers", async () => {
  const response = await gateway.post(path, { model: "embedding-model", input: "one" });
  const { data, usage } = await embeddingsOf(response);
  expect(data).toHaveLength(1);
  expect(data[0]?.embedding).toHaveLength(1024);
  expect(data[0]?.embedding.every((value) => typeof value === "number")).toBe(true);
  expect(Object.keys(usage)).toEqual(["prompt_tokens", "total_tokens"]);
  expect(usage.total_tokens).toBe(usage.prompt_tokens);
});

test("base64 holds the same vector as little-endian 32-bit floats", async () => {
  const request = { model: "embedding-model", input: "one", dimensions: 3 };
  const plain = await embeddingsOf(await gateway.post(path, request));
  const packed = (await (
    await gateway.post(path, { ...request, encoding_format: "base64" })
  ).json()) as { data: { embedding: string }[] };
  const bytes = Buffer.from(packed.data[0]?.embedding ?? "", "base64");
  expect(bytes.byteLength).toBe(12);
  const unpacked = [0, 4, 8].map((offset) => bytes.readFloatLE(offset));
  expect(unpacked).toEqual((plain.data[0]?.embedding ?? []).map(Math.fround));
});

test("token ids are embedded like the text they stand for, one list or many", async () => {
  const one = await embeddingsOf(
    await gateway.post(path, { model: "embedding-model", input: [9906, 1917] }),
  );
  const many = await embeddingsOf(
    await gateway.post(path, { model: "embedding-model", input: [[9906, 1917], [9906]] }),
  );
  expect(one.data.map(({ index }) => index)).toEqual([0]);
  expect(many.data.map(({ index }) => index)).toEqual([0, 1]);
  expect(many.data[0]?.embedding).toEqual(one.data[0]?.embedding ?? []);
  expect(many.data[1]?.embedding).not.toEqual(one.data[0]?.embedding ?? []);
});

test("the model list names every model of the environment with OpenAI's fields and its limits", async () => {
  const response = await gateway.get("/v1/models");
  expect(response.status).toBe(200);
  const text = await response.text();
  const model = (id: string, created: number, limits: string): string =>
    `{"id":"${id}","object":"model","created":${created},"owned_by":"sluice",${limits}}`;
  const chat = (most: number): string => `"context_window":200000,"max_output_tokens":${most}`;
  expect(text).toBe(
    `{"object":"list","data":[${[
      model("chat-model", 1735689600, chat(64_000)),
      model("reasoning-model", 1735689600, chat(4096)),
      model("failing-model", 1735689600, chat(4096)),
      model("embedding-model", 1714435200, '"context_window":8192'),
    ].join(",")}]}`,
  );
});

test("one model is the same object as in the list", async () => {
  const response = await gateway.get("/v1/models/embedding-model");
  expect(await response.text()).toBe(
    '{"id":"embedding-model","object":"model","created":1714435200,"owned_by":"sluice","context_window":8192}',
  );
});

test("a model that is not there is a 404 with OpenAI's text, its slash percent-encoded or not", async () => {
  for (const tail of ["some/model:8b", "some%2Fmodel%3A8b"]) {
    const response = await gateway.get(`/v1/models/${tail}`);
    expect(response.status).toBe(404);
    expect(await response.text()).toBe(
      `{"error":{"message":"The model 'some/model:8b' does not exist",` +
        `"type":"invalid_request_error","param":"model","code":"model_not_found"}}`,
    );
  }
});
