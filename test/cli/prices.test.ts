import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { parseYaml } from "../../src/config/text/yaml-tree.ts";
import { startServing, type ServingProcess } from "../support/sluice-process.ts";
import { until } from "../support/until.ts";
import { runHere } from "./run-here.ts";
import { createFolder, type JsonRecord, type SluiceFolder } from "./sluice-folder.ts";

let folder: SluiceFolder;
let gateway: ServingProcess;
let path: string;

const file = (prices: readonly object[]): string =>
  JSON.stringify({
    telemetry: { log_level: "info" },
    environments: [{ name: "production", hosts: ["*"], models: ["*"] }],
    upstreams: {
      aws: { kind: "bedrock", region: "eu-central-1", api_key: "a-key" },
      vllm: { kind: "openai", base_url: "http://127.0.0.1:1/v1" },
    },
    models: {
      "alpha-sonnet-4": {
        kind: "chat",
        context_window: 200_000,
        max_output_tokens: 128_000,
        targets: [
          { upstream: "aws", model: "eu.anthropic.claude-sonnet-4-6" },
          { upstream: "vllm", model: "llama", priority: 2 },
        ],
      },
    },
    prices,
  });
const sonnet = { provider: "bedrock", model: "anthropic.claude-sonnet-4-6", scope: "eu" };

function start(): Promise<ServingProcess> {
  const anyPort = ["--data", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
  return startServing(["--config", path, "--data-dir", folder.path, ...anyPort]);
}

const versions = async (): Promise<readonly JsonRecord[]> =>
  (await folder.json("prices", "list"))["versions"] as JsonRecord[];

beforeAll(async () => {
  folder = createFolder({ isOffline: false });
  path = await folder.write("sluice.yaml", file([]));
  gateway = await start();
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

test("the list has a line for each target, and says what is not priced", async () => {
  const { output, errors } = await folder.run("prices");
  expect(output).toMatch(
    /\naws\/eu\.anthropic\.claude-sonnet-4-6 +alpha-sonnet-4 +3\.3 +0\.33 +4\.125 +6\.6 +16\.5 +high +- +litellm/,
  );
  expect(output).toMatch(/\nvllm\/llama +alpha-sonnet-4 +not priced +not priced/);
  expect(errors).toMatch(/^Version 1, since \d{4}-/);
  expect((await folder.run("prices", "diff")).output).toBe("There is no earlier version.\n");
});

test("a file with a wrong price is refused whole, and a good one publishes a version", async () => {
  await folder.write("sluice.yaml", file([{ ...sonnet, input: "3,00" }]));
  gateway.signal("SIGHUP");
  await until(() => gateway.text().includes("configuration rejected"));
  expect(gateway.text()).toContain("prices[0].input: must be USD from 0 to 10000");
  expect(await versions()).toHaveLength(1);
  await folder.write("sluice.yaml", file([{ ...sonnet, input: 3.63, output: 16.5 }]));
  gateway.signal("SIGHUP");
  await until(async () => (await versions()).length === 2);
  const { output } = await folder.run("prices", "diff");
  expect(output).toMatch(/^TARGET +PRICE +VERSION 1 +VERSION 2 +CHANGE\n/);
  expect(output).toMatch(/aws\/eu\.anthropic\.claude-sonnet-4-6 +input +3\.3 +3\.63 +\+10 %\n/);
  expect(output).toMatch(/ +cache_read +0\.33 +- +-\n/);
  expect(await folder.json("prices", "diff", "--from", "1", "--to", "2")).toMatchObject({
    from: 1,
    to: 2,
    changes: [
      { target: "aws/eu.anthropic.claude-sonnet-4-6", price: "input", from: "3.3" },
      {},
      {},
      {},
    ],
  });
});

test("a restart publishes nothing, and the offline command line reads the same prices", async () => {
  await gateway[Symbol.asyncDispose]();
  const offline = await folder.json("prices", "list", "--offline", "--config", path);
  expect(offline["version"]).toBe(2);
  gateway = await start();
  expect(await versions()).toHaveLength(2);
});

test("LiteLLM's list becomes a section for the targets of a configuration", async () => {
  const list = {
    ...Object.fromEntries(
      [1, 2, 3, 4, 5, 6].map((number) => [`gemini-${number}`, { litellm_provider: "vertex_ai" }]),
    ),
    "eu.anthropic.claude-sonnet-4-6": {
      litellm_provider: "bedrock_converse",
      mode: "chat",
      input_cost_per_token: 4e-6,
      output_cost_per_token: 2e-5,
    },
    "gpt-4o": {
      litellm_provider: "openai",
      mode: "chat",
      input_cost_per_token: 2.5e-6,
      output_cost_per_token: 1e-5,
    },
  };
  const prices = await folder.write("list.json", JSON.stringify(list));
  const { exitCode, output, errors } = await runHere([
    "prices",
    "import",
    "litellm",
    prices,
    "--config",
    path,
  ]);
  expect(exitCode).toBe(0);
  expect(errors).toContain("vllm/llama: not in the list\n");
  expect(errors).toContain("1 prices of 2 in the list");
  expect(errors).toContain(
    "left out: 6 of other providers: gemini-1, gemini-2, gemini-3, gemini-4, gemini-5 and 1 more\n",
  );
  expect(output).toMatch(
    /^# Converted from list\.json on \d{4}-\d\d-\d\d, SHA-256 [0-9a-f]{64}\.\n/,
  );
  const section = parseYaml(output);
  expect(section.ok && section.tree.value).toMatchObject({
    prices: [{ ...sonnet, input: "4", output: "20" }],
  });
  const target = join(folder.path, "prices.yaml");
  const all = await runHere(["prices", "import", "litellm", prices, "-o", target]);
  expect(all).toMatchObject({ exitCode: 0, output: "" });
  expect(await Bun.file(target).text()).toContain("model: gpt-4o");
  const broken = await runHere(["prices", "import", "litellm", path]);
  expect(broken.errors).toContain(`${path} has no prices in LiteLLM's format`);
  expect(broken.exitCode).toBe(1);
});

test("check-config names the targets without a price, which is no error", async () => {
  const { exitCode, errors } = await runHere(["check-config", path]);
  expect(exitCode).toBe(0);
  expect(errors).toContain("notice: not priced: vllm/llama; their calls have no cost");
});
