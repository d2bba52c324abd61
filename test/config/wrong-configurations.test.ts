import { expect, test } from "bun:test";
import { formatProblems, parseConfig } from "../../src/config/load.ts";

/** `=== what is wrong`, the file, `---`, and what `sluice check-config` says of it. */
const cases = (await Bun.file(new URL("wrong-configurations.txt", import.meta.url)).text())
  .split(/^=== /m)
  .slice(1)
  .map((each) => {
    const [, title = "", text = "", told = ""] =
      /^(.*)\n([\s\S]*?)---\n([\s\S]*?)\s*$/.exec(each) ?? [];
    return { title, text, told };
  });

test("there are many plausible mistakes, each with another name", () => {
  expect(cases.length).toBeGreaterThanOrEqual(60);
  expect(new Set(cases.map(({ title }) => title)).size).toBe(cases.length);
});

test.each(cases)("$title is told as recorded", ({ text, told }) => {
  const result = parseConfig(text, { name: "sluice.yaml", env: {} });
  expect(result.ok ? "good" : formatProblems("sluice.yaml", result.problems)).toBe(told);
});

test("the example of the documentation gets the messages that stand there", async () => {
  const page = await Bun.file(new URL("../../docs/configuration.md", import.meta.url)).text();
  const [, documented = ""] = /```text\n(sluice\.yaml: 2 problems\n[\s\S]*?)\n```/.exec(page) ?? [];
  const text = `environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams:
  local-vllm:
    kindd: openai
    base_url: "http://127.0.0.1:8000/v1"
models:
  alpha-sonnet-4:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets:
    - { model: m, upstream: local-vlm }
`;
  const result = parseConfig(text, { name: "sluice.yaml", env: {} });
  expect(result.ok ? "good" : formatProblems("sluice.yaml", result.problems)).toBe(documented);
});

test.each([
  ["api_key: os.environ/MY_KEY", "write ${MY_KEY} for the variable"],
  ["api_key: $MY_KEY", "write ${MY_KEY} for the variable"],
  ["region: moon-north-1", "is not a known region"],
  ["region: moon-north-1, endpoint: 'http://127.0.0.1:1'", undefined],
  ["api_key: a$MY_KEY", undefined],
  ["api_key: '${KEY}'", undefined],
])("an upstream with %s", (fields, told) => {
  const region = fields.startsWith("region") ? "" : "region: us-east-1, ";
  const text = `environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams: { aws: { kind: bedrock, ${region}${fields} } }
models: { chat: { kind: chat, context_window: 9, targets: [{ upstream: aws, model: m }] } }
`;
  const result = parseConfig(text, { name: "sluice.yaml", env: { KEY: "$LIKE_A_VARIABLE" } });
  if (told === undefined) expect(result.ok).toBe(true);
  else expect(result.ok ? "good" : formatProblems("", result.problems)).toContain(told);
});

test("no message quotes a value, which may be a secret", () => {
  const secret = "sk-a-secret-that-stands-in-the-wrong-place";
  for (const [index, { text }] of cases.entries()) {
    const lines = [...text.matchAll(/^ *[\w-]+: .*$/gm)].map(([line]) => line);
    const line = lines[index % lines.length];
    if (line === undefined) continue;
    const [key = ""] = line.split(": ");
    const wrong = text.replace(line, `${key}: ${secret}`);
    const result = parseConfig(wrong, { name: "sluice.yaml", env: {} });
    if (!result.ok) expect(formatProblems("", result.problems)).not.toContain(secret);
  }
});
