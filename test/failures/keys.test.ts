import { metricsOf } from "../support/metrics-of.ts";
import { expect, test } from "bun:test";
import { errorOf } from "../support/bodies.ts";
import { startGateway } from "../support/gateway.ts";

const bearer = (text: string) => ({ headers: { authorization: `Bearer ${text}` } });

const twoEnvironments = `
  - { name: test, hosts: ["*"], models: ["*"] }
  - { name: other, hosts: [other.example.com], models: [chat-model] }`;

test("the first call after a revocation in this process is refused", async () => {
  await using gateway = await startGateway();
  const key = await gateway.createKey();
  expect((await gateway.get("/v1/models", bearer(key.text))).status).toBe(200);
  expect((await gateway.admin("DELETE", `/admin/v1/keys/${key.id}`)).status).toBe(200);
  expect((await gateway.get("/v1/models", bearer(key.text))).status).toBe(401);
  expect((await gateway.get("/v1/models")).status).toBe(200);
});

test("a key is valid in its own environment only, and each environment has its own models", async () => {
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

test("an unknown host is refused before the key is checked", async () => {
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

test("10,000 junk model names and paths add no metric series", async () => {
  await using gateway = await startGateway();
  const seriesOf = async (): Promise<number> => {
    const page = await metricsOf(gateway.adminUrl);
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
