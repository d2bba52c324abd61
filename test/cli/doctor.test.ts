import { afterAll, beforeAll, expect, test } from "bun:test";
import { startServing } from "../support/sluice-process.ts";
import { until } from "../support/ledger-truth-process.ts";
import { runHere } from "./run-here.ts";
import { createFolder, type SluiceFolder } from "./sluice-folder.ts";

const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: "m" };
const words = [
  { ...chunk, choices: [{ index: 0, delta: { content: "pong" }, finish_reason: null }] },
  { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
];
const answer = `${words.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")}data: [DONE]\n\n`;

let folder: SluiceFolder;
let hourAhead = 0;
let dataPort = 0;
const asked: string[] = [];
const provider = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const { model } = (await request.json()) as { model: string };
    asked.push(model);
    const date = new Date(Date.now() + hourAhead * 3_600_000).toUTCString();
    const headers = { date, "content-type": "text/event-stream" };
    if (model === "good") return new Response(answer, { headers });
    const status = model === "forbidden" ? 401 : 404;
    const error = { message: `no ${model} for you`, type: "e", param: null, code: null };
    return Response.json({ error }, { status, headers: { date } });
  },
});
beforeAll(() => {
  folder = createFolder({ isOffline: false });
});
afterAll(async () => {
  folder[Symbol.dispose]();
  await provider.stop(true);
});

function configOf(...targets: readonly string[]): Promise<string> {
  const models = targets.map((model) => {
    const upstream = model === "absent" ? "away" : "server";
    return `  ${model}-chat: { kind: chat, context_window: 8000, max_output_tokens: 100, targets: [{ upstream: ${upstream}, model: ${model} }] }`;
  });
  return folder.write(
    "sluice.yaml",
    `data_dir: ${folder.path}/state
listen: { data: "127.0.0.1:${dataPort}", admin: "127.0.0.1:0" }
storage: { url: "sqlite:${folder.path}/state/sluice.db" }
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams:
  server: { kind: openai, base_url: "http://127.0.0.1:${provider.port}/v1", api_key: k }
  away: { kind: openai, base_url: "http://127.0.0.1:9/v1" }
models:
${models.join("\n")}
`,
  );
}

const flat = (text: string): string => text.replaceAll(/\s+/g, " ");

test("a good configuration without a gateway has nothing wrong, and each target was asked", async () => {
  const path = await configOf("good");
  const { exitCode, output } = await runHere(["doctor", "--config", path]);
  expect([exitCode, output.includes("FAILED")]).toEqual([0, false]);
  const told = flat(output);
  expect(told).toContain("ok configuration");
  expect(told).toContain("/state can be created");
  expect(told).toContain("note gateway none is running with this configuration");
  expect(told).toContain("ok clock agrees with the targets");
  expect(told).toContain("ok target good-chat at server/good answers");
  expect(output).toEndWith("\nNothing is wrong.\n");
  const lines = output.split("\n").filter((line) => !line.includes(folder.path));
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
});

test("each target that does not answer is told with what to do", async () => {
  const path = await configOf("good", "forbidden", "unknown", "absent");
  const { exitCode, output } = await runHere(["doctor", "--config", path, "--json"]);
  expect(exitCode).toBe(1);
  const { ok, findings } = JSON.parse(output) as {
    ok: boolean;
    findings: { state: string; subject: string; text: string; advice?: string }[];
  };
  expect(ok).toBe(false);
  const targets = findings.filter(({ subject }) => subject === "target");
  expect(targets.map(({ state }) => state)).toEqual(["ok", "failed", "failed", "failed"]);
  const [, forbidden, unknown, absent] = targets;
  expect(forbidden?.text).toContain("401");
  expect(forbidden?.advice).toContain("credential");
  expect(unknown?.text).toContain("404");
  expect(unknown?.advice).toContain("model");
  expect(absent?.text).toContain("absent-chat at away/absent");
  expect(absent?.advice).toContain("HTTPS_PROXY");
});

test("a clock that is an hour off is wrong, and nothing is asked with --no-targets", async () => {
  const path = await configOf("good");
  hourAhead = 1;
  const told = flat((await runHere(["doctor", "--config", path])).output);
  hourAhead = 0;
  expect(told).toMatch(
    /FAILED clock 3\d\d\d s behind the targets To do: synchronise the clock with NTP/,
  );
  asked.length = 0;
  const silent = await runHere(["doctor", "--config", path, "--no-targets"]);
  expect([silent.exitCode, asked]).toEqual([0, []]);
  expect(silent.output).not.toMatch(/^\w+ +target /m);
});

test("a wrong configuration is told problem by problem, and a missing one too", async () => {
  const path = await folder.write("wrong.yaml", "modles: {}\nworkers: many\n");
  const { exitCode, output } = await runHere(["doctor", "--config", path]);
  expect(exitCode).toBe(1);
  expect(flat(output)).toContain("did you mean 'models'?");
  expect(flat(output)).toContain("check-config");
  const missing = await runHere(["doctor", "--config", `${folder.path}/none.yaml`]);
  expect(missing.exitCode).toBe(1);
  expect(flat(missing.output)).toContain("ENOENT");
  expect((await runHere(["doctor", "now"])).exitCode).toBe(2);
});

test("a port that another program has is told before a start", async () => {
  dataPort = provider.port ?? 0;
  const path = await configOf("good");
  dataPort = 0;
  const { exitCode, output } = await runHere(["doctor", "--no-targets", "--config", path]);
  expect(exitCode).toBe(1);
  expect(flat(output)).toMatch(
    /FAILED listen cannot listen at http:\S+: .* To do: stop the other program/,
  );
});

test("a data directory that cannot be written is told, and what to do", async () => {
  const path = await configOf("good");
  const place = ["--config", path, "--data-dir", `${path}/state`];
  const { exitCode, output } = await runHere(["doctor", "--no-targets", ...place]);
  expect(exitCode).toBe(1);
  expect(flat(output)).toContain("sluice.yaml is not a directory");
  expect(flat(output)).toContain("data_dir");
});

test("a running gateway is told to run, and one that was killed to have ended", async () => {
  using demo = createFolder({ isOffline: false });
  const anyPort = ["--data", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
  const gateway = await startServing(["--data-dir", demo.path, ...anyPort]);
  await until("it is introduced", () => gateway.text().includes("process.stdout.write"));
  const well = await demo.run("doctor");
  expect(well.exitCode).toBe(0);
  expect(flat(well.output)).toContain("ok gateway process 1 is ready");
  gateway.kill();
  await gateway[Symbol.asyncDispose]();
  const ended = await demo.run("doctor");
  expect(ended.exitCode).toBe(1);
  expect(flat(ended.output)).toContain("is not running");
});

test("without a file and without a running demo, something is wrong", async () => {
  using nothing = createFolder({ isOffline: false });
  const { exitCode, output } = await nothing.run("doctor");
  expect(exitCode).toBe(1);
  const told = flat(output);
  expect(told).toContain(
    "FAILED configuration there is no sluice.yaml, nor /etc/sluice/sluice.yaml",
  );
  expect(told).toContain(`no demo runs in ${nothing.path}`);
  expect(told).toContain("To do: name the file of the gateway with --config");
});

test("a database or a pepper that a start refuses is told, with what to do", async () => {
  const path = await configOf("good");
  const state = `${folder.path}/state`;
  await folder.write("state/installation", "inst_of_before\n");
  const missing = await runHere(["doctor", "--no-targets", "--config", path]);
  expect(missing.exitCode).toBe(1);
  expect(flat(missing.output)).toContain(
    `FAILED database the database ${state}/sluice.db is missing`,
  );
  expect(flat(missing.output)).toContain("use a new database and an empty data_dir");
  await folder.write("state/pepper", "too short\n");
  const short = await runHere(["doctor", "--no-targets", "--config", path]);
  expect(flat(short.output)).toContain(
    "holds no pepper of 32 characters or more To do: correct this",
  );
});
