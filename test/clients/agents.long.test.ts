import { expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installTimeoutMs, run, testNeedingRegistry } from "../sdk/registry-test.ts";
import { chatKinds, startGateway, targetAt, type TestGateway } from "../support/gateway.ts";
import { nodeClients } from "./node-clients.ts";

const testNode = testNeedingRegistry("node");
const model = "chat-model";

/** A coding agent with the set-up of docs/clients.md. */
interface Agent {
  /** Its tools for reading, editing and running a command. */
  readonly steps: (file: string) => readonly { readonly tool: string; readonly input: object }[];
  readonly command: readonly string[];
  /** What it reads in its folder. */
  readonly files?: (gateway: TestGateway) => Readonly<Record<string, string>>;
  readonly env?: (gateway: TestGateway) => Readonly<Record<string, string>>;
}

const command = "grep -c new note.txt > count.txt";

function openCode(npm: string): Agent {
  return {
    steps: (file) => [
      { tool: "read", input: { filePath: file } },
      { tool: "edit", input: { filePath: file, oldString: "old", newString: "new" } },
      { tool: "bash", input: { command, description: "count" } },
    ],
    command: ["opencode", "run"],
    files: ({ url, key }) => {
      const options = { baseURL: `${url}/v1`, apiKey: key };
      const limit = { context: 200_000, output: 32_000 };
      const sluice = { npm, options, models: { [model]: { limit } } };
      const config = { provider: { sluice }, model: `sluice/${model}` };
      return { "opencode.json": JSON.stringify(config) };
    },
  };
}

const copilotSteps: Agent["steps"] = (file) => [
  { tool: "view", input: { path: file } },
  { tool: "edit", input: { path: file, old_str: "old", new_str: "new" } },
  { tool: "bash", input: { command, description: "count", mode: "sync" } },
];

function copilot(more: Readonly<Record<string, string>>): Agent {
  return {
    steps: copilotSteps,
    command: ["copilot", "--allow-all-tools", "-p"],
    env: ({ url, key }) => ({
      COPILOT_OFFLINE: "true",
      COPILOT_PROVIDER_BASE_URL: more["COPILOT_PROVIDER_TYPE"] === "anthropic" ? url : `${url}/v1`,
      COPILOT_PROVIDER_API_KEY: key,
      COPILOT_MODEL: model,
      ...more,
    }),
  };
}

const agents: Readonly<Record<string, Agent>> = {
  "OpenCode by chat": openCode("@ai-sdk/openai-compatible"),
  "OpenCode by responses": openCode("@ai-sdk/openai"),
  "OpenCode by messages": openCode("@ai-sdk/anthropic"),
  "Copilot CLI by chat": copilot({}),
  "Copilot CLI by responses": copilot({ COPILOT_PROVIDER_WIRE_API: "responses" }),
  "Copilot CLI by messages": copilot({ COPILOT_PROVIDER_TYPE: "anthropic" }),
  Continue: {
    steps: (file) => [
      { tool: "Read", input: { filepath: file } },
      { tool: "Edit", input: { file_path: file, old_string: "old", new_string: "new" } },
      { tool: "Bash", input: { command } },
    ],
    command: ["cn", "--config", "config.yaml", "--auto", "-p"],
    files: ({ url, key }) => ({
      "config.yaml": `name: sluice
version: 1.0.0
schema: v1
models:
  - { name: ${model}, provider: openai, model: ${model}, apiBase: "${url}/v1", apiKey: ${key} }
`,
    }),
  },
};

/** Each agent on one kind: all kinds get the conversation that the wires read. */
const cases = Object.keys(agents).map(
  (name, index) => [name, chatKinds[index % chatKinds.length] ?? "openai"] as const,
);

testNode.each(cases)(
  "%s reads a file, edits it and runs a command on kind %s",
  async (name, kind) => {
    const agent = agents[name];
    if (agent === undefined) throw new Error(`no agent ${name}`);
    const clients = await nodeClients();
    const target = targetAt(kind, { model: "simulated-chat", family: "claude-4" });
    const models = `
  ${model}: { kind: chat, context_window: 200000, max_output_tokens: 64000, targets: [${target}] }`;
    await using gateway = await startGateway({ kind, sections: { models } });
    const folder = mkdtempSync(join(tmpdir(), "sluice-agent-"));
    try {
      const file = join(folder, "note.txt");
      writeFileSync(file, "the old text\n");
      for (const [path, text] of Object.entries(agent.files?.(gateway) ?? {})) {
        writeFileSync(join(folder, path), text);
      }
      const steps = [...agent.steps(file), { text: "The note says new." }];
      const [program = "", ...words] = agent.command;
      const prompt = `Change the note. steps: ${JSON.stringify(steps)} end of steps`;
      const output = await run([join(clients, "node_modules/.bin", program), ...words, prompt], {
        cwd: folder,
        // OpenCode looks for its file where the shell is.
        env: { HOME: folder, PWD: folder, ...agent.env?.(gateway) },
      });
      expect(output).toContain("The note says new.");
      expect(readFileSync(file, "utf8")).toBe("the new text\n");
      expect(readFileSync(join(folder, "count.txt"), "utf8")).toBe("1\n");
      const rows = await gateway.usage();
      expect(rows.length).toBeGreaterThanOrEqual(steps.length);
      expect(rows.every(({ outcome }) => outcome === "completed")).toBeTrue();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  installTimeoutMs,
);
