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
import { referenceEntries, type ReferenceEntry } from "./config-reference.ts";
import { configFileSchema } from "../../src/config/schema.ts";
import { upstreamKinds } from "../../src/upstreams/kinds.ts";

const documentation = await Bun.file(documentationFile).text();
const guide = readDocument("docs/configuration.md");

/** Text of every `yaml` block that is a whole file. */
const examples = [...guide.matchAll(/```yaml\n([\s\S]*?)```/g)]
  .map(([, text = ""]) => text)
  .filter((text) => text.includes("environments:"));

interface Known {
  readonly path: string;
  readonly entry: ReferenceEntry;
}

const known = keysBelow(referenceEntries(), "");

function keysBelow(entries: readonly ReferenceEntry[], prefix: string): readonly Known[] {
  return entries.flatMap((entry) => {
    const path = `${prefix}${entry.key}`;
    return [{ path, entry }, ...keysBelow(entry.entries, `${path}.`)];
  });
}

const env = { VLLM_API_KEY: "k" };

test("the published JSON Schema is generated from the schema", async () => {
  expect(await Bun.file(schemaFile).text()).toBe(schemaText());
});

test("the reference in the documentation is generated from the schema", () => {
  expect(documentation).toBe(withReference(documentation));
});

test("the documentation's reference names every key of the schema in its section", () => {
  const sections = documentation.split(/^## /m).slice(1);
  const missing = referenceEntries().flatMap((section, at) =>
    keysBelow(section.entries, "")
      .map(({ entry }) => entry.key)
      .filter((key) => !new RegExp(`\`${RegExp.escape(key)}[\`:]`).test(sections[at] ?? "")),
  );
  // The members of a repeated map are not named again.
  expect([...new Set(missing)]).toEqual(["over_tokens"]);
  expect(new Set(known.map(({ path }) => path)).size).toBe(known.length);
});

test("every key has a meaning and a type, and says if it is required", () => {
  for (const { path, entry } of known) {
    const isMap = entry.entries.length > 0;
    expect(`${path}: ${entry.about}`).toMatch(isMap ? /: $|\.$/ : /\.$/);
    expect(entry.type).not.toBe("");
    expect(entry.isRequired && entry.initial !== undefined).toBe(false);
  }
});

test("the reference marks where kinds differ in a key, and keys of a single kind", () => {
  const entries = new Map(known.map(({ path, entry }) => [path, entry]));
  const upstream = "upstreams.<name>";
  expect(entries.get(`${upstream}.kind`)?.type).toBe(
    upstreamKinds.map(({ name }) => name).join("|"),
  );
  const idle = { initial: "30s", initialOf: { anthropic: "60s", bedrock: "5m" } };
  expect(entries.get(`${upstream}.timeouts.idle`)).toMatchObject(idle);
  const total = { initial: "10m", initialOf: {}, range: "10ms–24h" };
  expect(entries.get(`${upstream}.timeouts.total`)).toMatchObject(total);
  expect(entries.get(`${upstream}.api_key`)?.about).toContain(" `bedrock`: ");
  expect(entries.get(`${upstream}.region`)?.kind).toBe("bedrock");
  const target = "models.<name>.targets[].bedrock";
  expect(entries.get(`${target}.family`)?.kind).toBeUndefined();
  expect(entries.get(`${target}.guardrail`)?.kind).toBe("chat");
  expect(entries.get(`${target}.truncate`)?.kind).toBe("embedding");
  expect(documentation).toContain("\n- Only with `kind: bedrock`:\n  - `region` (region): ");
});

test("the reference begins with the keys of the file, in their order", () => {
  const keys = [...documentation.matchAll(/^## `(\w+)`$/gm)].map(([, key]) => key);
  expect(keys).toEqual(Object.keys(configFileSchema(upstreamKinds).shape));
});

test("the reference has the limits of the default plans", () => {
  const about = referenceEntries().find(({ key }) => key === "plans.<name>")?.about ?? "";
  for (const name of ["pilot", "standard", "pro"] as const) {
    const plan = defaultPlans[name];
    expect(about).toContain(`\`${name}\` (${plan.requests_per_minute}, ${plan.tokens_per_minute}`);
  }
});

test("there are examples for one server, and for several", () => {
  expect(examples).toHaveLength(2);
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
