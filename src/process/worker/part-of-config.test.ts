import { expect, test } from "bun:test";
import type { Config } from "../../config/config.ts";
import { parseConfig } from "../../config/load.ts";
import { partOfConfig } from "./part-of-config.ts";

const required = `
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams: { one: { kind: openai, base_url: "http://127.0.0.1:1/v1" } }
models: { m: { kind: chat, context_window: 100, targets: [{ upstream: one, model: m }] } }
`;

function configOf(text: string): Config {
  const parsed = parseConfig(`${required}${text}`, { name: "sluice.yaml", env: {} });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.config;
}

test("the parts of all workers are together what is configured", () => {
  const config = configOf(
    "processes: 3\nlimits: { store: 'valkey://127.0.0.1' }\noverload: { max_calls: 20000 }",
  );
  const parts = [1, 2, 3].map((number) => partOfConfig(config, number));
  const sumOf = (read: (config: Config) => number): number =>
    parts.reduce((sum, part) => sum + read(part), 0);
  expect(sumOf(({ overload }) => overload.maxCalls)).toBe(20_000);
  expect(sumOf(({ idempotency }) => idempotency.memoryLimitBytes)).toBe(256 * 1024 * 1024);
  expect(sumOf(({ http }) => http.bodyMemoryBytes)).toBe(512 * 1024 * 1024);
  expect(sumOf(({ http }) => http.bodyMemoryQueue)).toBe(1_000);
});

test("the largest body and the largest answer fit into the part of each", () => {
  const limits = "body_limit: 64MiB, decompressed_limit: 128MiB";
  const answers = "answer_limit: 64MiB, memory_limit: 64MiB";
  const config = configOf(
    `processes: 8\nlimits: { store: "valkey://127.0.0.1" }\nhttp: { ${limits} }\nidempotency: { ${answers} }`,
  );
  const { http, idempotency } = partOfConfig(config, 8);
  const oneBodyBytes = 256 * 1024 * 1024;
  expect([http.bodyMemoryPerKeyBytes, http.bodyMemoryBytes]).toEqual([oneBodyBytes, oneBodyBytes]);
  expect(idempotency.memoryLimitBytes).toBe(64 * 1024 * 1024);
});

test("a single worker has all", () => {
  const config = configOf("processes: 1");
  expect(partOfConfig(config, 1)).toBe(config);
});
