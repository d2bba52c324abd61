import { expect, test } from "bun:test";
import { generateApiKey } from "../../src/domain/keys/api-key.ts";
import { errorOf } from "../support/bodies.ts";
import { startGateway } from "../support/gateway.ts";

const bearer = (text: string) => ({ headers: { authorization: `Bearer ${text}` } });

const twoEnvironments = `
  - { name: test, hosts: ["*"], models: ["*"] }
  - { name: other, hosts: [other.example.com], models: [chat-model] }`;

test("a key that this process revokes is refused by the very next call", async () => {
  await using gateway = await startGateway();
  const key = await gateway.createKey();
  expect((await gateway.get("/v1/models", bearer(key.text))).status).toBe(200);
  expect((await gateway.admin("DELETE", `/admin/v1/keys/${key.id}`)).status).toBe(200);
  expect((await gateway.get("/v1/models", bearer(key.text))).status).toBe(401);
  expect((await gateway.get("/v1/models")).status).toBe(200);
});

test("a key opens its own environment only, and each environment has its own models", async () => {
  await using gateway = await startGateway({ sections: { environments: twoEnvironments } });
  const other = await gateway.createKey({ environment: "other" });
  const atOther = { host: "other.example.com:8080" };
  const here = await gateway.get("/v1/models", bearer(other.text));
  expect([here.status, (await errorOf(here)).code]).toEqual([401, "invalid_api_key"]);
  const authorization = `Bearer ${other.text}`;
  const there = await gateway.get("/v1/models", { headers: { authorization, ...atOther } });
  const { data } = (await there.json()) as { data: { id: string }[] };
  expect(data.map(({ id }) => id)).toEqual(["chat-model"]);
  const wrong = await gateway.get("/v1/models", { headers: atOther });
  expect(wrong.status).toBe(401);
  const missing = await gateway.post(
    "/v1/embeddings",
    { model: "embedding-model", input: "hi" },
    { headers: { authorization, ...atOther } },
  );
  expect([missing.status, (await errorOf(missing)).code]).toEqual([400, "invalid_model"]);
});

test("a host that no environment has is told so, before any key is looked at", async () => {
  const environments = `
  - { name: test, hosts: [models.example.com], models: ["*"] }`;
  await using gateway = await startGateway({ sections: { environments } });
  const response = await gateway.get("/v1/models");
  expect(response.status).toBe(404);
  expect((await errorOf(response)).message).toContain("127.0.0.1");
  const right = await gateway.get("/v1/models", { headers: { host: "Models.Example.COM" } });
  expect(right.status).toBe(200);
  expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
});

test("1000 junk and unknown keys are refused alike, and none is a server error", async () => {
  await using gateway = await startGateway();
  const shapes = new Set<string>();
  for (let index = 0; index < 1_000; index += 1) {
    const { text } = generateApiKey((target) => crypto.getRandomValues(target));
    const sent = index % 2 === 0 ? text : text.slice(0, index % 65);
    const response = await gateway.get("/v1/models", bearer(sent));
    const error = await errorOf(response);
    const isNone = sent === "";
    const isRepeated = error.message?.includes("Your network address sends many") === true;
    const said = isNone && !isRepeated ? "didn't provide" : "Incorrect API key provided";
    expect(error.message).toContain(said);
    shapes.add(JSON.stringify([response.status, error.code, error.type, error.param]));
  }
  expect([...shapes]).toEqual(['[401,"invalid_api_key","invalid_request_error",null]']);
});

test("prompts, answers and keys are in no log line, metric or ledger row", async () => {
  await using gateway = await startGateway();
  const canary = "xylophone-canary-7319";
  const body = { model: "chat-model", messages: [{ role: "user", content: `echo: ${canary}` }] };
  const answer = await (await gateway.post("/v1/chat/completions", body)).text();
  expect(answer).toContain(canary);
  await (await gateway.post("/v1/chat/completions", { ...body, stream: true })).text();
  await (await gateway.post("/v1/chat/completions", { ...body, model: `${canary}-model` })).text();
  await (await gateway.post("/v1/chat/completions", `{"model": "${canary}"`)).text();
  await (await gateway.post("/v1/embeddings", { model: "embedding-model", input: canary })).text();
  await (await gateway.get(`/v1/models/${canary}`)).text();
  await (await gateway.get(`/${canary}`)).text();
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  const everywhere = [...gateway.log, metrics, JSON.stringify(await gateway.usage())].join("\n");
  expect(everywhere).toContain("chat-model");
  expect(everywhere).not.toContain(canary);
  expect(everywhere).not.toContain(gateway.key.slice(16));
});

test("10,000 junk model names and paths add no metric series", async () => {
  await using gateway = await startGateway();
  const seriesOf = async (): Promise<number> => {
    const page = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    return page.split("\n").filter((line) => line !== "" && !line.startsWith("#")).length;
  };
  const send = async (index: number): Promise<void> => {
    const isPath = index % 2 === 0;
    const body = { model: `junk-${index}`, input: "x" };
    const path = isPath ? `/junk/${index}` : "/v1/embeddings";
    await (await gateway.post(path, body)).text();
  };
  await Promise.all([0, 1].map(send));
  await seriesOf();
  const before = await seriesOf();
  for (let start = 2; start < 10_000; start += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, offset) => send(start + offset)));
  }
  expect(await seriesOf()).toBe(before);
});
