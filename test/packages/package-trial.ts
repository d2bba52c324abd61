import assert from "node:assert/strict";
import { join } from "node:path";
import { apiKeyPattern } from "../../src/domain/keys/api-key.ts";
import { run } from "../sdk/registry-test.ts";
import { type FinishedCommand, runSluice, startServing } from "../support/sluice-process.ts";

/** An installed Sluice: how to start it, and a folder for what it writes. */
export interface Installed {
  readonly program: readonly string[];
  readonly folder: string;
}

/**
 * What an operator does on the first day: starts a gateway in front of the simulator, creates a
 * key, makes a streamed call, restarts the gateway and stops it. `replace` puts a new program in
 * the place of the one that runs.
 */
export async function serveForADay(
  { program, folder }: Installed,
  replace: () => void,
): Promise<void> {
  await using simulator = await startSimulator(program);
  const configPath = join(folder, "sluice.yaml");
  await Bun.write(configPath, configText(folder, simulator.url));
  await using gateway = await startServing(["--config", configPath], {}, program);
  const sluice = async (...line: readonly string[]): Promise<string> => {
    const finished = await runSluice([...line, "--config", configPath], {}, program);
    assert.equal(finished.exitCode, 0, textOf(finished));
    return textOf(finished);
  };
  await sluice("accounts", "create", "search-team");
  const owner = ["--account", "search-team", "--environment", "production"];
  await sluice("applications", "create", "search", ...owner);
  const created = await sluice("keys", "create", "--application", "search", "--plan", "standard");
  const key = apiKeyPattern.exec(created)?.[0] ?? "";
  assert.match(await streamedAnswer(gateway.dataUrl, key), /data: \[DONE\]\n\n$/);
  assert.match(await sluice("keys", "list"), /search/);

  await openConsole(gateway.adminUrl);

  const { processPid } = gateway;
  replace();
  assert.equal(await sluice("restart"), "restarted\n");
  assert.notEqual(gateway.processPid, processPid);
  assert.match(await streamedAnswer(gateway.dataUrl, key), /data: \[DONE\]\n\n$/);

  gateway.signal("SIGTERM");
  assert.equal(await gateway.exited, 0);
}

/** The same day where the machine has no network but its loopback, and nothing tries to leave it. */
export async function serveWithoutNetwork({ program, folder }: Installed): Promise<void> {
  const day = [process.execPath, import.meta.path, folder, ...program];
  const enter = ["unshare", "--net", "--map-root-user", "sh", "-c"];
  const counts = "cat /proc/self/net/snmp /proc/self/net/snmp6";
  const counted = await run([...enter, `ip link set lo up && "$@" && ${counts}`, "sh", ...day]);
  // The kernel counts each packet that it had no way to send, and each datagram, as of DNS.
  const none = { OutNoRoutes: 0, Ip6OutNoRoutes: 0, OutDatagrams: 0, Udp6OutDatagrams: 0 };
  assert.deepEqual(countersIn(counted, Object.keys(none)), none);
}

/** Of the kernel's two forms: a line of names above one of numbers, or a name and its number. */
function countersIn(text: string, names: readonly string[]): Readonly<Record<string, number>> {
  const lines = text.split("\n").map((line) => line.trim().split(/\s+/));
  const counters = lines.flatMap((line, index): readonly (readonly [string, number])[] => {
    const [kind = "", value] = line;
    if (!kind.endsWith(":")) return [[kind, Number(value)]];
    if (lines[index + 1]?.[0] !== kind) return [];
    return line.map((name, at) => [name, Number(lines[index + 1]?.[at])] as const);
  });
  return Object.fromEntries(counters.filter(([name]) => names.includes(name)));
}

export function post(url: string, key: string, body: object): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function streamedAnswer(url: string, key: string): Promise<string> {
  const messages = [{ role: "user", content: "Hello!" }];
  const body = { model: "alpha-sonnet-4", stream: true, messages };
  const response = await post(`${url}/v1/chat/completions`, key, body);
  assert.equal(response.status, 200);
  return response.text();
}

/** The page, and the script that it loads. */
async function openConsole(adminUrl: string): Promise<void> {
  const page = await (await fetch(adminUrl)).text();
  const [, script = ""] = /src="(\/assets\/[^"]+\.js)"/.exec(page) ?? [];
  const response = await fetch(adminUrl + script);
  assert.equal(response.status, 200);
  assert.ok((await response.text()).length > 100_000);
}

interface RunningSimulator extends AsyncDisposable {
  readonly url: string;
}

async function startSimulator(program: readonly string[]): Promise<RunningSimulator> {
  const child = Bun.spawn([...program, "simulator", "--listen", "127.0.0.1:0"], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const listening = Promise.withResolvers<string>();
  const reading = (async () => {
    let text = "";
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const url = /listens on (\S+)/.exec(text)?.[1];
      if (url !== undefined) listening.resolve(url);
    }
    listening.reject(new Error(`the simulator ended early:\n${text}`));
  })();
  return {
    url: await listening.promise,
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
      await reading;
    },
  };
}

function configText(folder: string, simulatorUrl: string): string {
  return `
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
storage: { url: "sqlite:${folder}/data/sluice.db" }
data_dir: ${folder}/data
shutdown: { pre_stop: 0s }
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams: { simulator: { kind: openai, base_url: "${simulatorUrl}" } }
models:
  alpha-sonnet-4:
    kind: chat
    context_window: 200000
    targets: [{ upstream: simulator, model: m }]
`;
}

function textOf({ output, errors }: FinishedCommand): string {
  return output + errors;
}

if (import.meta.main) {
  const [folder = "", ...program] = process.argv.slice(2);
  await serveForADay({ program, folder }, () => undefined);
}
