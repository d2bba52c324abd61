import { expect, test } from "bun:test";
import { demoApiKey, demoCredentials, faultModes } from "../../../simulator/simulator.ts";
import { CommandError, UsageError } from "../command.ts";
import { runSimulator, simulatorCommand } from "./simulator.ts";

interface Run {
  readonly lines: string[];
  readonly exitCode: Promise<number>;
  /** The address that the command printed. */
  readonly url: Promise<string>;
  readonly stop: () => void;
}

function run(...commandLine: string[]): Run {
  const lines: string[] = [];
  const stop = new AbortController();
  const { promise: url, resolve } = Promise.withResolvers<string>();
  const print = (line: string): void => {
    lines.push(line);
    const found = /listens on (\S+)/.exec(line)?.[1];
    if (found !== undefined) resolve(found);
  };
  const exitCode = runSimulator(commandLine, { print, signal: stop.signal });
  return { lines, exitCode, url, stop: () => stop.abort() };
}

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

test("the help lists every fault", () => {
  const help = simulatorCommand.help([]);
  for (const mode of Object.keys(faultModes)) expect(help).toContain(`  ${mode} `);
});

test("the help has Bedrock's demo credentials, and the command accepts others", async () => {
  expect(simulatorCommand.help([])).toContain(demoCredentials.secretAccessKey);
  const { url, stop } = run("--listen", "127.0.0.1:0", "--bedrock-api-key", "key-one");
  const { origin } = new URL(await url);
  const ask = async (key: string): Promise<number> => {
    const answer = await fetch(`${origin}/model/simulated-model/converse`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ messages: [{ role: "user", content: [{ text: "hi" }] }] }),
    });
    return answer.status;
  };
  expect(await ask("key-one")).toBe(200);
  expect(await ask(demoApiKey)).toBe(403);
  stop();
});

test("models whose life ended before the given date are refused", async () => {
  const address = ["--listen", "127.0.0.1:0", "--bedrock-api-key", "key-one"];
  const statusOf = async (...more: string[]): Promise<number> => {
    const { url, stop } = run(...address, ...more);
    const { origin } = new URL(await url);
    const answer = await fetch(`${origin}/model/us.meta.llama3-1-405b-instruct-v1:0/converse`, {
      method: "POST",
      headers: { authorization: "Bearer key-one" },
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
  ["--bedrock-credential=no-secret", "--bedrock-credential takes ID:SECRET"],
  ["--listen=nowhere", "--listen takes HOST:PORT"],
  ["--listen=127.0.0.1:99999", "--listen takes HOST:PORT"],
  ["--fault=unheard-of", "no such fault: unheard-of; see --help"],
  ["--fault=error-500*often", "no such fault: error-500*often; see --help"],
  ["--fault=error-500@101", "no such fault: error-500@101; see --help"],
  ["--tokens-per-second=fast", "--tokens-per-second takes a number"],
  ["--first-token-delay=-1", "--first-token-delay takes milliseconds"],
  ["--models-as-of=tomorrow", "--models-as-of takes YYYY-MM-DD, or now"],
  ["--models-as-of=2026-13-01", "--models-as-of takes YYYY-MM-DD, or now"],
  ["--listn=127.0.0.1:0", "unknown option --listn; did you mean --listen?"],
  ["9090", "simulator does not take '9090'"],
])("the command refuses %s as a usage error", async (argument, message) => {
  const { lines, exitCode } = run(argument);
  expect(await exitCode.catch((error: unknown) => error)).toEqual(new UsageError(message));
  expect(lines).toEqual([]);
});

test("the command fails with the reason if the address is in use", async () => {
  const first = run("--listen", "127.0.0.1:0");
  const { host } = new URL(await first.url);
  const failure = await run("--listen", host).exitCode.catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(CommandError);
  expect(String(failure)).toContain("in use");
  first.stop();
});
