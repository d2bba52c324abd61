import { expect, test } from "bun:test";
import { demoApiKey, startSimulator } from "../../simulator/simulator.ts";
import { configWarnings } from "../../src/config/problems/warnings.ts";
import { formatProblems, parseConfig } from "../../src/config/load.ts";
import { readDocument } from "../support/documents.ts";
import { startGateway } from "../support/gateway.ts";

/** The examples of the pages on kind `bedrock`, with the simulator in place of the provider. */

const page = ["bedrock", "bedrock-mapping", "bedrock-models"]
  .map((name) => readDocument(`docs/upstreams/${name}.md`))
  .join("\n");
const examples = [...page.matchAll(/^ *```yaml\n([\s\S]*?)^ *```/gm)].map(([, text = ""]) => {
  const indent = /^ */.exec(text)?.[0] ?? "";
  return text.replaceAll(new RegExp(`^${indent}`, "gm"), "");
});

type Sections = Readonly<Record<"upstreams" | "models", string>>;

const indented = (text: string): string => text.replaceAll(/^(?=.)/gm, "  ");
const usualUpstream = "  bedrock-us: { kind: bedrock, region: us-east-1 }\n";
const environments = ["production", "staging"].map(
  (name) => `{ name: ${name}, hosts: ["${name}"], models: ["*"] }`,
);

/** Whole sections: an example has upstreams alone, a list of targets, or both sections. */
function sectionsOf(example: string): Sections {
  const [, upstreams = usualUpstream] = /^upstreams:\n((?: .*\n)+)/m.exec(example) ?? [];
  const [, models] = /^models:\n((?: .*\n)+)/m.exec(example) ?? [];
  const [, targets] = /^targets:\n((?: .*\n)+)/m.exec(example) ?? [];
  const name = /^ {2}([\w-]+):/m.exec(upstreams)?.[1] ?? "";
  const usual = `    targets: [{ upstream: ${name}, model: us.anthropic.claude-sonnet-4-6 }]\n`;
  const list = targets === undefined ? usual : `    targets:\n${indented(indented(targets))}`;
  const made = `  chat-model:\n    kind: chat\n    context_window: 200000\n${list}`;
  return { upstreams, models: models ?? made };
}

test("there are as many examples as the pages have blocks", () => {
  expect(examples.length).toBe([...page.matchAll(/```yaml/g)].length);
  expect(examples.length).toBeGreaterThan(6);
});

test.each(examples)("%s is a configuration without problems and warnings", (example) => {
  const { upstreams, models } = sectionsOf(example);
  const text = `environments: [${environments.join(", ")}]\nupstreams:\n${upstreams}models:\n${models}`;
  const env = { AWS_BEARER_TOKEN_BEDROCK: demoApiKey, EXTERNAL_ID: "id" };
  const result = parseConfig(text, { name: "file", env });
  expect(result.ok ? "" : formatProblems("file", result.problems)).toBe("");
  if (result.ok) expect(configWarnings(result.config, Date.parse("2026-11-29"))).toEqual([]);
});

/** All but the roles: the simulator has no token service, and `test/bedrock/assumed-role` tries them. */
test.each(examples.filter((example) => !example.includes("assume_role")))(
  "%s answers at the simulator",
  async (example) => {
    await using simulator = startSimulator();
    const sections = sectionsOf(example);
    const lines = `endpoint: "${simulator.origin}", api_key: "${demoApiKey}"`;
    const upstreams = sections.upstreams
      .replaceAll(/^ +(?:endpoint|api_key): .*\n/gm, "")
      .replaceAll(/\{ kind: bedrock, region:/g, `{ kind: bedrock, ${lines}, region:`)
      .replaceAll(/regions: \[([^\]]+)\]/g, (list: string, regions: string) => {
        const each = regions.split(", ").map((region) => `${region}: "${simulator.origin}"`);
        return `${list}, api_key: "${demoApiKey}", endpoints: { ${each.join(", ")} }`;
      })
      .replaceAll(/^( +)kind: bedrock\n/gm, (_, indent: string) =>
        `kind: bedrock, ${lines}`
          .split(", ")
          .map((line) => `${indent}${line}\n`)
          .join(""),
      );
    await using gateway = await startGateway({
      sections: {
        environments: `[{ name: test, hosts: ["*"], models: ["*"] }, ${environments.join(", ")}]`,
        upstreams: `\n${upstreams}`,
        models: `\n${sections.models.replaceAll(/^ +staging: .*\n/gm, "")}`,
      },
    });
    for (const [, model] of sections.models.matchAll(/^ {2}([\w.-]+):/gm)) {
      const isVectors = model?.startsWith("embed") === true;
      const response = isVectors
        ? await gateway.post("/v1/embeddings", { model, input: "Hello" })
        : await gateway.post("/v1/chat/completions", {
            model,
            messages: [{ role: "user", content: "echo: Hello there" }],
          });
      const text = await response.text();
      expect([response.status, text]).toEqual([
        200,
        expect.stringContaining(isVectors ? '"embedding"' : "Hello there") as string,
      ]);
    }
  },
);
