import { expect } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import cl100kRanks from "gpt-tokenizer/bpeRanks/cl100k_base";
import { agentEnvironment, startAgentGateway } from "./agent-gateway.ts";
import {
  cacheFolder,
  clientEnvironment,
  installTimeoutMs,
  passedChecks,
  run,
  testNeedingRegistry,
} from "./registry-test.ts";
import { pythonPrograms, pythonWithClients } from "./python-clients.ts";
import { chatKinds, type ChatKind } from "../support/gateway.ts";
import { startSdkGateway } from "./sdk-gateway.ts";

const testPython = testNeedingRegistry("python3");

testPython.each(chatKinds)(
  "the official Python client's checks pass with every alias on kind %s",
  async (kind) => {
    const passed = passedChecks(await runClient("openai_client.py", kind));
    expect(passed.length).toBeGreaterThanOrEqual(25);
  },
  installTimeoutMs,
);

testPython.each(chatKinds)(
  "LangChain's Python client's checks pass with every alias on kind %s",
  async (kind) => {
    const passed = passedChecks(await runClient("langchain_client.py", kind));
    expect(passed.length).toBeGreaterThanOrEqual(12);
  },
  installTimeoutMs,
);

testPython.each(chatKinds)(
  "responses through Python's clients pass on kind %s",
  async (kind) => {
    const passed = passedChecks(await runClient("responses_client.py", kind));
    expect(passed.length).toBe(10);
  },
  installTimeoutMs,
);

testPython.each(chatKinds)(
  "messages through Anthropic's Python client pass on kind %s",
  async (kind) => {
    const passed = passedChecks(await runClient("anthropic_client.py", kind));
    expect(passed.length).toBe(7);
  },
  installTimeoutMs,
);

testPython(
  "agents' loops pass on models of Bedrock's",
  async () => {
    await using agents = await startAgentGateway();
    const passed = passedChecks(await runProgram("agents_client.py", agentEnvironment(agents)));
    expect(passed.length).toBeGreaterThanOrEqual(8);
  },
  installTimeoutMs,
);

async function runClient(name: string, kind: ChatKind): Promise<string> {
  await using sdk = await startSdkGateway(kind);
  return await runProgram(name, clientEnvironment(sdk));
}

async function runProgram(
  name: string,
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const python = await pythonWithClients();
  return run([python, join(pythonPrograms, name)], {
    env: {
      ...environment,
      SLUICE_TOKEN_TABLE: tokenTable(),
      PYTHONDONTWRITEBYTECODE: "1",
      // No copies of the table, and no traces to anybody.
      TIKTOKEN_CACHE_DIR: "",
      LANGSMITH_TRACING: "false",
    },
  });
}

/**
 * The table of cl100k_base in the form that Python's tokenizer reads. It would fetch its own from
 * the internet, which tests must not need.
 */
function tokenTable(): string {
  const path = join(cacheFolder("tokens", String(cl100kRanks.length)), "cl100k_base.tiktoken");
  if (existsSync(path)) return path;
  mkdirSync(join(path, ".."), { recursive: true });
  const lines = cl100kRanks.map((token, rank) => {
    const bytes = typeof token === "string" ? Buffer.from(token) : Buffer.from(token);
    return `${bytes.toString("base64")} ${rank}\n`;
  });
  writeFileSync(path, lines.join(""));
  return path;
}
