import { afterAll, beforeAll, expect, test } from "bun:test";
import type { TestGateway } from "../support/gateway.ts";
import { requests, startGoldenGateway } from "./golden-gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGoldenGateway();
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

const chat = "/v1/chat/completions";

const limitHeaders = [
  "x-ratelimit-limit-requests",
  "x-ratelimit-limit-tokens",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-remaining-tokens",
  "x-ratelimit-reset-requests",
  "x-ratelimit-reset-tokens",
];

/** For how long the connection may be used again. */
const connectionHeaders = ["connection", "keep-alive"];

/** Of Sluice's own: which capacity served, and from where. */
const servedHeaders = ["x-sluice-served-by", "x-sluice-target"];

function namesOf(response: Response): readonly string[] {
  return [...response.headers.keys()].sort();
}

test("a whole answer is plain JSON with the request's id and what is left of the plan", async () => {
  const response = await gateway.post(chat, requests.text);
  expect(namesOf(response)).toEqual(
    [
      ...connectionHeaders,
      "content-length",
      "content-type",
      "date",
      "openai-processing-ms",
      "x-request-id",
      ...limitHeaders,
      ...servedHeaders,
    ].sort(),
  );
  expect(response.headers.get("content-type")).toBe("application/json");
  expectLimits(response);
});

test("a stream is told apart from what proxies may buffer, compress or store", async () => {
  const response = await gateway.post(chat, { ...requests.text, stream: true });
  expect(namesOf(response)).toEqual(
    [
      ...connectionHeaders,
      "cache-control",
      "content-type",
      "date",
      "openai-processing-ms",
      "transfer-encoding",
      "x-accel-buffering",
      "x-request-id",
      ...limitHeaders,
      ...servedHeaders,
    ].sort(),
  );
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(response.headers.get("cache-control")).toBe("no-cache");
  expect(response.headers.get("x-accel-buffering")).toBe("no");
  expectLimits(response);
  await response.text();
});

test("an embeddings answer has the same headers as a chat answer", async () => {
  const response = await gateway.post("/v1/embeddings", { model: "embedding-model", input: "a" });
  expect(response.headers.get("content-type")).toBe("application/json");
  expectLimits(response);
});

function expectLimits({ headers }: Response): void {
  for (const unit of ["requests", "tokens"]) {
    const limit = Number(headers.get(`x-ratelimit-limit-${unit}`));
    const remaining = headers.get(`x-ratelimit-remaining-${unit}`) ?? "";
    expect(remaining).toMatch(/^\d+$/);
    expect(Number(remaining)).toBeLessThan(limit);
    expect(headers.get(`x-ratelimit-reset-${unit}`)).toMatch(/^(\d+h)?(\d+m)?(\d+(\.\d+)?m?s)$/);
  }
}

test("nothing is compressed, whatever the caller accepts", async () => {
  for (const stream of [false, true]) {
    const headers = { "accept-encoding": "gzip, br, zstd" };
    const response = await gateway.post(chat, { ...requests.text, stream }, { headers });
    expect(response.headers.get("content-encoding")).toBeNull();
    await response.text();
  }
});

test("every response has an id of its own, errors and preflights included", async () => {
  const responses = await Promise.all([
    gateway.get("/v1/models"),
    gateway.get("/v1/models/none"),
    gateway.get("/nothing/here"),
    gateway.post("/v1/models", {}),
    gateway.post(chat, "not json"),
    gateway.post(chat, requests.text),
    gateway.post(chat, { ...requests.text, stream: true }),
    gateway.post(chat, { ...requests.text, model: "failing-model" }),
    fetch(`${gateway.url}/v1/models`),
    fetch(`${gateway.url}/v1/models`, { method: "OPTIONS" }),
    fetch(`${gateway.url}/nothing/here`, { method: "OPTIONS" }),
    fetch(`${gateway.url}/v1/models`, {
      method: "HEAD",
      headers: { authorization: `Bearer ${gateway.key}` },
    }),
    fetch(`${gateway.url}/healthz`),
  ]);
  const ids = responses.map((response) => response.headers.get("x-request-id") ?? "none");
  for (const id of ids) expect(id).toMatch(/^req_[0-9a-f]{32}$/);
  expect(new Set(ids).size).toBe(responses.length);
  expect(responses.map(({ status }) => status)).toEqual([
    200, 404, 404, 405, 400, 200, 200, 503, 401, 204, 404, 200, 200,
  ]);
  await Promise.all(responses.map((response) => response.text()));
});

test("an answer's id belongs to its request", async () => {
  const response = await gateway.post(chat, requests.text);
  const { id } = (await response.json()) as { id: string };
  expect(response.headers.get("x-request-id")).toBe(id.replace("chatcmpl-", "req_"));
});
