import { expect, test } from "bun:test";
import { parseConfig } from "../../config/load.ts";
import { platformOf } from "./admin-plane.ts";

function baseUrlOf(listen: string, host: string): string | undefined {
  const text = `
listen: { data: "${listen}" }
environments: [{ name: production, hosts: ["${host}"], models: ["*"] }]
upstreams: { vllm: { kind: openai, base_url: http://127.0.0.1:8000/v1 } }
models: { a: { kind: chat, context_window: 1000, targets: [{ upstream: vllm, model: a }] } }`;
  const result = parseConfig(text, { name: "sluice.yaml", env: {} });
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return platformOf(result.config).environments[0]?.baseUrl;
}

test.each([
  ["127.0.0.1:8080", "models.example.com", "https://models.example.com/v1"],
  ["127.0.0.1:8080", "*", "http://127.0.0.1:8080/v1"],
  ["[::1]:8080", "*", "http://[::1]:8080/v1"],
  ["0.0.0.0:8080", "localhost", "http://localhost:8080/v1"],
  ["0.0.0.0:8080", "[::1]", "http://[::1]:8080/v1"],
  ["0.0.0.0:8080", "[2001:db8::1]", "https://[2001:db8::1]/v1"],
  ["0.0.0.0:8080", "*", undefined],
  ["[::]:8080", "*", undefined],
  ["127.0.0.1:8080", "0.0.0.0", undefined],
  ["127.0.0.1:0", "*", undefined],
])("clients of a gateway at %s, for the host %s, use %s", (listen, host, url) => {
  expect(baseUrlOf(listen, host)).toBe(url);
});
