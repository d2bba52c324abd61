import { expect, test } from "bun:test";
import { parse } from "yaml";
import { z } from "zod";
import {
  documentationFile,
  schemaFile,
  schemaText,
  withReference,
} from "../write-config-schema.ts";
import { readDocument } from "../../test/support/documents.ts";
import { demoConfigText } from "../../src/config/demo.ts";
import { publishedSchema } from "./published-schema.ts";
import { parseConfig } from "../../src/config/load.ts";
import { defaultPlans } from "../../src/config/sections/plans.ts";
import { referenceSections } from "./config-reference.ts";
import { configFileSchema } from "../../src/config/schema.ts";
import { upstreamKinds } from "../../src/upstreams/kinds.ts";

const documentation = await Bun.file(documentationFile).text();
const guide = readDocument("docs/configuration.md");

/** Text of every `yaml` block that is a whole file. */
const examples = [...guide.matchAll(/```yaml\n([\s\S]*?)```/g)]
  .map(([, text = ""]) => text)
  .filter((text) => text.includes("environments:"));

const env = { VLLM_API_KEY: "k", AZURE_API_KEY: "k", AWS_BEARER_TOKEN_BEDROCK: "k" };

test("the published JSON Schema is generated from the schema", async () => {
  expect(await Bun.file(schemaFile).text()).toBe(schemaText());
});

test("the reference in the documentation is generated from the schema", () => {
  expect(documentation).toBe(withReference(documentation));
});

test("the documentation's reference names every key of the schema, and no other", () => {
  const documented = [...documentation.matchAll(/^- `([a-z0-9_.<>[\]]+)` \(/gm)].map(
    ([, key]) => key,
  );
  const known = referenceSections().flatMap(({ rows }) => rows.map(({ key }) => key));
  expect(documented).toEqual(known);
  expect(new Set(known).size).toBe(known.length);
});

test("every key has a meaning, a type and a default or the word required", () => {
  for (const { rows } of referenceSections()) {
    for (const row of rows) {
      expect(row.about).toEndWith(".");
      expect(row.type).not.toBe("");
      expect(row.initial).toMatch(/^(?:(?:^|; `\w+`: )(?:required|none|`[^;]*`))+$/);
    }
  }
});

test("the reference marks where kinds differ in a key, and keys of a single kind", () => {
  const rows = new Map(
    referenceSections().flatMap((section) => section.rows.map((row) => [row.key, row] as const)),
  );
  expect(rows.get("upstreams.<name>.kind")?.type).toBe(
    upstreamKinds.map(({ name }) => `\`${name}\``).join(", "),
  );
  expect(rows.get("upstreams.<name>.timeouts.idle")?.initial).toBe(
    "`30s`; `anthropic`: `60s`; `bedrock`: `5m`",
  );
  expect(rows.get("upstreams.<name>.timeouts.total")?.initial).toBe("`10m`");
  expect(rows.get("upstreams.<name>.api_key")?.about).toContain(" Kind `bedrock`: ");
  expect(rows.get("upstreams.<name>.region")?.about).toStartWith("Kind `bedrock` only. ");
  const target = "models.<name>.targets[].bedrock";
  expect(rows.get(`${target}.family`)?.about).not.toContain("only.");
  expect(rows.get(`${target}.guardrail.version`)?.about).toStartWith("Kind `chat` only. ");
  expect(rows.get(`${target}.truncate`)?.about).toStartWith("Kind `embedding` only. ");
});

test("the reference begins with the keys of the file, in their order", () => {
  const keys = referenceSections().map(({ key }) => key);
  expect(keys).toEqual(Object.keys(configFileSchema(upstreamKinds).shape));
});

test("the reference has the limits of the default plans", () => {
  const about = referenceSections().find(({ key }) => key === "plans")?.about ?? "";
  for (const name of ["pilot", "standard", "pro"] as const) {
    const plan = defaultPlans[name];
    expect(about).toContain(`\`${name}\` (${plan.requests_per_minute}, ${plan.tokens_per_minute}`);
  }
});

test("there are examples for one server, vLLM, Ollama, Azure and Amazon Bedrock", () => {
  expect(examples).toHaveLength(5);
});

test.each(examples.map((text, index) => [index + 1, text] as const))(
  "example %d of the documentation is a valid file",
  (_, text) => {
    expect(parseConfig(text, { name: "example", env })).toMatchObject({ ok: true });
  },
);

test("the examples and the demo are valid under the published JSON Schema, mistakes are not", () => {
  const published = z.fromJSONSchema(publishedSchema());
  const demo = demoConfigText({
    simulator: {
      endpoint: "http://127.0.0.1:1",
      region: "us-east-1",
      accessKeyId: "ID",
      secretAccessKey: "S",
    },
    dataDir: "./data",
    listenData: "127.0.0.1:8080",
    listenAdmin: "127.0.0.1:8081",
  });
  // Editors see only the quoted placeholder, not the environment.
  for (const text of [
    ...examples.map((example) => example.replaceAll(/(?<!")\$\{\w+\}/g, '"$&"')),
    demo,
  ]) {
    const tree: unknown = parse(text);
    expect(published.safeParse(tree).success).toBe(true);
    expect(published.safeParse({ ...Object(tree), unknown: 1 }).success).toBe(false);
    expect(published.safeParse({ ...Object(tree), http: { json_depth: "${A}" } }).success).toBe(
      true,
    );
    expect(published.safeParse({ ...Object(tree), http: { json_depth: "a" } }).success).toBe(false);
  }
});
