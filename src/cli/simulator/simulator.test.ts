import { expect, test } from "bun:test";
import {
  chatServers,
  demoApiKey,
  demoCredentials,
  faultModes,
} from "../../../simulator/simulator.ts";
import { runHere } from "../../../test/cli/run-here.ts";

interface Run {
  readonly lines: string[];
  readonly exitCode: Promise<number>;
  readonly errors: Promise<string>;
  /** The address that the command printed. */
  readonly url: Promise<string>;
  readonly stop: () => void;
}

function run(...commandLine: string[]): Run {
  const lines: string[] = [];
  const stop = new AbortController();
  const { promise: url, resolve } = Promise.withResolvers<string>();
  const onPrint = (line: string): void => {
    lines.push(line);
    const found = /listens on (\S+)/.exec(line)?.[1];
    if (found !== undefined) resolve(found);
  };
  const ended = runHere(["simulator", ...commandLine], { onPrint, signal: stop.signal });
  const exitCode = ended.then((result) => result.exitCode);
  const errors = ended.then((result) => result.errors);
  return { lines, exitCode, errors, url, stop: () => stop.abort() };
}

const helpText = async (): Promise<string> => (await runHere(["simulator", "--help"])).output;

test("the command serves at the address it prints until it is stopped", async () => {
  const { url, exitCode, stop } = run("--listen", "127.0.0.1:0", "--api-key", "sk-one");
  const headers = { authorization: "Bearer sk-one" };
  const address = await url;
  expect((await fetch(`${address}/models`, { headers })).status).toBe(200);
  expect((await fetch(`${address}/models`)).status).toBe(401);
  stop();
  expect(await exitCode).toBe(0);
  expect(await fetch(`${address}/models`).catch(() => "refused")).toBe("refused");
});

test.each([[[]], [["--api-key", "sk-it's"]]])(
  "the command prints a call that works as it is pasted, with %j",
  async (options) => {
    const { lines, url, stop } = run("--listen", "127.0.0.1:0", ...options);
    await url;
    const [, ...rest] = lines.join("\n").split("Try: ");
    const call = (rest[0] ?? "").split("\nBedrock")[0] ?? "";
    const child = Bun.spawn(["sh", "-c", `${call} --silent`], { stdout: "pipe", stderr: "pipe" });
    expect(await new Response(child.stdout).text()).toContain('"chat.completion"');
    stop();
  },
);

test("the command and its help name every wire, its address, and how a fault passes a gateway", async () => {
  const { lines, url, stop } = run("--listen", "127.0.0.1:0");
  const origin = (await url).replace(/\/v1$/, "");
  await Bun.sleep(0);
  stop();
  expect(lines.at(-1)).toStartWith(
    `Bedrock's wire and Anthropic's Messages API have the base URL ${origin};`,
  );
  const help = (await helpText()).replaceAll(/\s+/g, " ");
  expect(help).toContain(
    "Amazon Bedrock and Anthropic's Messages API (at the same address without /v1)",
  );
  expect(help).toContain("x-simulator-fault, which a gateway does not pass on");
});

test("a fault of the command line applies to its number of calls", async () => {
  const { url, stop } = run(
    "--listen",
    "127.0.0.1:0",
    "--fault",
    "error-500*2",
    "--fault",
    "html-502",
  );
  const address = await url;
  const statuses: number[] = [];
  for (let call = 0; call < 4; call++) statuses.push((await fetch(`${address}/models`)).status);
  expect(statuses).toEqual([500, 500, 502, 200]);
  stop();
});

test("an endless fault applies to its share of the calls", async () => {
  const { url, stop } = run("--listen", "127.0.0.1:0", "--fault", "overloaded-503*ever@25");
  const address = await url;
  const statuses: number[] = [];
  for (let call = 0; call < 12; call++) statuses.push((await fetch(`${address}/models`)).status);
  const turn = [200, 200, 200, 503];
  expect(statuses).toEqual([...turn, ...turn, ...turn]);
  stop();
});

test("the help lists every fault", async () => {
  const help = await helpText();
  for (const mode of Object.keys(faultModes)) expect(help).toContain(`  ${mode} `);
});

test("the help lists every server of the chat wire, and what each may do", async () => {
  const help = await helpText();
  for (const name of Object.keys({ ...chatServers.quirks, ...chatServers.traits })) {
    expect(help).toContain(`  ${name} `);
  }
  expect(help).toContain(Object.keys(chatServers.profiles).join(", "));
});

test("the command plays the server that it is told to, and does what is beside", async () => {
  const ask = async (address: string, body: object): Promise<Response> =>
    fetch(`${address}/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }], ...body }),
    });
  const { url, stop } = run(
    "--listen=127.0.0.1:0",
    "--profile=dashscope",
    "--quirk=ignores_stream",
    "--quirk=keep_alives",
  );
  const address = await url;
  const refused = await ask(address, {});
  expect([refused.status, await refused.text()]).toEqual([
    400,
    expect.stringContaining("non-streaming calls") as string,
  ]);
  const whole = await ask(address, { stream: true });
  expect(await whole.json()).toHaveProperty("object", "chat.completion");
  stop();
});

test("the help has Bedrock's demo credentials", async () => {
  expect(await helpText()).toContain(demoCredentials.secretAccessKey);
});

test("models whose life ended before the given date are refused", async () => {
  const statusOf = async (...more: string[]): Promise<number> => {
    const { url, stop } = run("--listen", "127.0.0.1:0", ...more);
    const { origin } = new URL(await url);
    const answer = await fetch(`${origin}/model/us.meta.llama3-1-405b-instruct-v1:0/converse`, {
      method: "POST",
      headers: { authorization: `Bearer ${demoApiKey}` },
      body: JSON.stringify({ messages: [{ role: "user", content: [{ text: "hi" }] }] }),
    });
    stop();
    return answer.status;
  };
  expect(await statusOf()).toBe(200);
  expect(await statusOf("--models-as-of", "2026-07-06")).toBe(200);
  expect(await statusOf("--models-as-of", "2026-07-07")).toBe(404);
  expect(await statusOf("--models-as-of", "now")).toBe(404);
});

test.each([
  ["--listen=nowhere", "It takes HOST:PORT"],
  ["--listen=127.0.0.1:99999", "It takes HOST:PORT"],
  ["--fault=unheard-of", "'unheard-of' is invalid. There is no such fault"],
  ["--fault=error-500*often", "'error-500*often' is invalid. There is no such fault"],
  ["--fault=error-500@101", "There is no such fault"],
  ["--profile=gemma", "It takes one of: azure, gemini, vllm"],
  ["--quirk=keep-alives", "There is no such quirk; --help lists them"],
  ["--tokens-per-second=fast", "It takes a number"],
  ["--first-token-delay=-1", "It takes a number"],
  ["--models-as-of=tomorrow", "It takes YYYY-MM-DD, or now"],
  ["--models-as-of=2026-13-01", "It takes YYYY-MM-DD, or now"],
  ["--listn=127.0.0.1:0", "unknown option '--listn=127.0.0.1:0'"],
  ["9090", "too many arguments"],
])("the command refuses %s as a usage error", async (argument, message) => {
  const { lines, exitCode, errors } = run(argument);
  expect([await exitCode, lines]).toEqual([2, []]);
  expect(await errors).toContain(message);
});

test("the command fails with the reason if the address is in use", async () => {
  const first = run("--listen", "127.0.0.1:0");
  const { host } = new URL(await first.url);
  const failed = run("--listen", host);
  expect(await failed.exitCode).toBe(1);
  expect(await failed.errors).toContain("in use");
  first.stop();
});
