import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installTimeoutMs, run, testNeedingRegistry } from "../sdk/registry-test.ts";
import { startSimulator } from "../../simulator/simulator.ts";
import { type ChatKind, startGateway, type TestGateway, chatKinds } from "../support/gateway.ts";
import { user } from "../messages/messages.ts";
import { nodeClients, passedBy } from "./node-clients.ts";

const testNode = testNeedingRegistry("node");

testNode.each(chatKinds)(
  "the checks of Anthropic's SDK and of the AI SDK's provider pass on kind %s",
  async (kind) => {
    const passed = await passedBy(["anthropic-sdk.mjs", "ai-anthropic.mjs"], kind);
    expect(passed.length).toBe(13);
  },
  installTimeoutMs,
);

testNode.each(chatKinds)(
  "Claude Code reads a file, edits it and runs a command on kind %s",
  async (kind) => {
    await using gateway = await startCodingGateway(kind, "sound");
    const { text, rows } = await code(gateway);
    expect(text).toBe("the new text\n");
    expect(rows.length).toBe(4);
    expect(rows.every(({ outcome }) => outcome === "completed")).toBeTrue();
  },
  installTimeoutMs,
);

testNode(
  "Claude Code shows thoughts and sends them back, with a key of the smallest plan",
  async () => {
    const target = "us.anthropic.claude-sonnet-4-20250514-v1:0";
    await using gateway = await startCodingGateway("bedrock", target);
    const { text: key } = await gateway.createKey({ plan: "pilot" });
    const { text, rows } = await code(gateway, key);
    expect(text).toBe("the new text\n");
    expect(rows.at(-1)?.status).toBe(200);
    expect(rows.some(({ cachedInputTokens }) => cachedInputTokens > 0)).toBe(true);
  },
  installTimeoutMs,
);

testNode(
  "Claude Code works with Claude behind Anthropic's own API, and reads its cache",
  async () => {
    await using simulator = startSimulator();
    const upstream = { kind: "anthropic", base_url: simulator.origin, api_key: "sk-simulated" };
    await using gateway = await startGateway({
      sections: { ...codingSections([{ model: "claude-opus-5-5" }]), ...upstreamsOf(upstream) },
    });
    const { text, rows } = await code(gateway);
    expect(text).toBe("the new text\n");
    expect(rows.every(({ outcome }) => outcome === "completed")).toBeTrue();
    expect(rows.some(({ cachedInputTokens }) => cachedInputTokens > 0)).toBeTrue();
  },
  installTimeoutMs,
);

testNode(
  "Claude Code goes on when the first target fails between two steps",
  async () => {
    await using gateway = await startCodingGateway("openai", "sound", "fault-flap");
    const { text } = await code(gateway);
    expect(text).toBe("the new text\n");
  },
  installTimeoutMs,
);

testNode(
  "Claude Code asks again when a stream breaks in the middle",
  async () => {
    await using gateway = await startCodingGateway("openai", "sound");
    const broken = ["error-event-mid-stream", "cut-mid-chunk"] as const;
    gateway.simulator.setFaultPlan(broken.flatMap((mode) => [{ mode: "ok" }, { mode }] as const));
    const { text, rows } = await code(gateway);
    expect(text).toBe("the new text\n");
    expect(rows.filter(({ outcome }) => outcome === "failed").length).toBe(2);
  },
  installTimeoutMs,
);

test("two hundred turns with large results of tools are read and answered", async () => {
  const http = "{ body_limit: 32MiB, decompressed_limit: 32MiB, json_values: 2000000 }";
  const models = `
  chat-model:
    kind: chat
    context_window: 20000000
    targets: [{ upstream: simulator, model: sound }]`;
  await using gateway = await startGateway({ sections: { http, models } });
  const turns = Array.from({ length: 200 }, (_, index) => {
    const id = `toolu_${index}`;
    const content = "a line of a large result\n".repeat(4_000);
    return [
      { role: "assistant", content: [{ type: "tool_use", id, name: "Read", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] },
    ];
  });
  const response = await gateway.post("/v1/messages", {
    model: "chat-model",
    max_tokens: 100,
    tools: [{ name: "Read", input_schema: { type: "object" } }],
    messages: [user("Begin."), ...turns.flat(), user("echo: Done.")],
  });
  expect([response.status, await response.json()]).toMatchObject([
    200,
    { content: [{ text: "Done." }] },
  ]);
});

/** A model behind every name of Claude's; `first` is tried before `target`. */
function startCodingGateway(kind: ChatKind, target: string, first?: string): Promise<TestGateway> {
  const models = [...(first === undefined ? [] : [first]), target];
  const targets = models.map((model, index) => ({ model, priority: index + 1 }));
  return startGateway({ kind, sections: codingSections(targets) });
}

function codingSections(targets: readonly { model: string; priority?: number }[]) {
  const model = {
    kind: "chat",
    context_window: 1_000_000,
    max_output_tokens: 64_000,
    targets: targets.map((target) => ({ upstream: "simulator", ...target })),
  };
  return {
    models: JSON.stringify({ "coding-model": model }),
    plans: `
  enterprise: { custom: true, provisioned: true, idempotency: true }
  pilot: { requests_per_minute: 60, tokens_per_minute: 100000 }`,
    environments: `
  - { name: test, hosts: ["*"], models: ["*"], aliases: { claude-*: coding-model } }`,
  };
}

function upstreamsOf(simulator: object) {
  return { upstreams: JSON.stringify({ simulator }) };
}

/** Has Claude Code follow a plan in an empty folder; returns its file and the rows of the ledger. */
async function code(gateway: TestGateway, key = gateway.key) {
  const clients = await nodeClients();
  const folder = mkdtempSync(join(tmpdir(), "sluice-claude-"));
  const file = join(folder, "note.txt");
  try {
    writeFileSync(file, "the old text\n");
    const steps = [
      { text: "I read the file.", tool: "Read", input: { file_path: file } },
      { tool: "Edit", input: { file_path: file, old_string: "old", new_string: "new" } },
      { tool: "Bash", input: { command: "grep -c new note.txt > count.txt", description: "d" } },
      { text: "The note says new." },
    ];
    const prompt = `Change the note. steps: ${JSON.stringify(steps)} end of steps`;
    const claude = join(clients, "node_modules/.bin/claude");
    const output = await run([claude, "-p", prompt, "--dangerously-skip-permissions"], {
      cwd: folder,
      env: {
        HOME: folder,
        IS_SANDBOX: "1",
        ANTHROPIC_BASE_URL: gateway.url,
        ANTHROPIC_AUTH_TOKEN: key,
        ANTHROPIC_API_KEY: "",
        ANTHROPIC_MODEL: "claude-opus-5-5",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      },
    });
    expect(output).toContain("The note says new.");
    expect(readFileSync(join(folder, "count.txt"), "utf8")).toBe("1\n");
    return { text: readFileSync(file, "utf8"), rows: await gateway.usage() };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
