import { expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installTimeoutMs, run, testNeedingRegistry } from "../sdk/registry-test.ts";
import { chatKinds, startGateway, targetAt, upstreamKinds } from "../support/gateway.ts";
import { nodeClients, passedBy } from "./node-clients.ts";

const testNode = testNeedingRegistry("node");

testNode.each(upstreamKinds)(
  "the AI SDK's and the Agents SDK's checks pass on kind %s",
  async (kind) => {
    const passed = await passedBy(["ai-sdk.mjs", "agents.mjs"], kind);
    expect(passed.length).toBe(10);
  },
  installTimeoutMs,
);

interface ScriptedStep {
  readonly text?: string;
  readonly tool?: string;
  readonly input?: string | object;
}

/** By the names of models, Codex offers functions, a free-text tool, or groups in an item. */
const codexModels = ["chat-model", "gpt-5.5", "gpt-5.6-sol"] as const;
const edits: Readonly<Record<(typeof codexModels)[number], ScriptedStep>> = {
  "chat-model": { tool: "exec_command", input: { cmd: "sed -i s/old/new/ note.txt" } },
  "gpt-5.5": {
    tool: "apply_patch",
    input:
      "*** Begin Patch\n*** Update File: note.txt\n@@\n-the old text\n+the new text\n" +
      "*** End Patch\n",
  },
  "gpt-5.6-sol": {
    tool: "exec",
    input: "await tools.exec_command({ cmd: 'sed -i s/old/new/ note.txt' }); text('done')",
  },
};
const command = (model: string, cmd: string): ScriptedStep =>
  model === "gpt-5.6-sol"
    ? { tool: "exec", input: `text(JSON.stringify(await tools.exec_command({ cmd: '${cmd}' })))` }
    : { tool: "exec_command", input: { cmd } };

const cases = chatKinds.flatMap((kind) => codexModels.map((model) => [kind, model] as const));

testNode.each(cases)(
  "Codex reads a file, edits it and runs a command on kind %s with model %s",
  async (kind, model) => {
    const clients = await nodeClients();
    const target = targetAt(kind, { model: "simulated-chat", family: "claude-4" });
    const models = `
  ${model}: { kind: chat, context_window: 400000, targets: [${target}] }`;
    await using gateway = await startGateway({ kind, sections: { models } });
    const folder = mkdtempSync(join(tmpdir(), "sluice-codex-"));
    try {
      const home = mkdtempSync(join(folder, "home-"));
      const work = mkdtempSync(join(folder, "work-"));
      writeFileSync(join(home, "config.toml"), codexConfig(gateway.url));
      writeFileSync(join(work, "note.txt"), "the old text\n");
      const steps = [
        { text: "I read the file.", ...command(model, "cat note.txt") },
        edits[model],
        command(model, "grep -c new note.txt > count.txt"),
        { text: "The note says new." },
      ].map((step) => (kind === "anthropic" ? inObject(step) : step));
      const prompt = `Change the note. steps: ${JSON.stringify(steps)} end of steps`;
      const codex = join(clients, "node_modules/.bin/codex");
      const output = await run(
        [codex, "exec", "--skip-git-repo-check", "--json", "-m", model, prompt],
        { cwd: work, env: { CODEX_HOME: home, SLUICE_KEY: gateway.key } },
      );
      expect(output).toContain("The note says new.");
      expect(readFileSync(join(work, "note.txt"), "utf8")).toBe("the new text\n");
      expect(readFileSync(join(work, "count.txt"), "utf8")).toBe("1\n");
      const rows = await gateway.usage();
      expect(rows.length).toBe(steps.length);
      expect(rows.every(({ outcome }) => outcome === "completed")).toBeTrue();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  installTimeoutMs,
);

/** Claude has no free-text tools: the text is a field. */
function inObject(step: ScriptedStep): ScriptedStep {
  return typeof step.input === "string" ? { ...step, input: { input: step.input } } : step;
}

/** As docs/clients.md has it; the test is in no sandbox of Codex's. */
function codexConfig(url: string): string {
  return `model_provider = "sluice"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.sluice]
name = "Sluice"
base_url = "${url}/v1"
env_key = "SLUICE_KEY"
wire_api = "responses"
`;
}
