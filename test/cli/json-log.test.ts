import { expect, test } from "bun:test";
import { fileURLToPath } from "node:url";
import { runSluice } from "../support/sluice-process.ts";
import { createFolder, type SluiceFolder } from "./sluice-folder.ts";

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

function configure(folder: SluiceFolder): Promise<string> {
  return folder.write(
    "sluice.yaml",
    `data_dir: ${folder.path}/state
storage: { url: "sqlite:${folder.path}/state/sluice.db" }
listen: { data: "127.0.0.1:0", admin: "127.0.0.1:0" }
telemetry: { log_format: json }
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams: { server: { kind: openai, base_url: "http://127.0.0.1:9/v1" } }
models: { chat: { kind: chat, context_window: 9, targets: [{ upstream: server, model: m }] } }
`,
  );
}

const messagesIn = (text: string): string[] =>
  text
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { message: string }).message);

test("a log in JSON is nothing but JSON, and the one-time token is not in it", async () => {
  using folder = createFolder({ isOffline: false });
  const path = await configure(folder);
  const child = Bun.spawn([process.execPath, main, "serve", "--config", path], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env["PATH"] ?? "" },
  });
  const notice = "nobody can sign in to the control plane yet";
  let told = "";
  let isAsked = false;
  for await (const chunk of child.stderr) {
    told += Buffer.from(chunk).toString();
    if (isAsked || !told.includes(notice)) continue;
    isAsked = true;
    child.kill("SIGINT");
  }
  expect(await child.exited).toBe(0);
  expect(messagesIn(told)).toContain(notice);
  expect(told).toContain("users create you@example.com");
  expect(told).not.toMatch(/token \w{43}/);
  expect(await new Response(child.stdout).text()).toBe("");
});

test("so is the reason of a start that failed", async () => {
  using folder = createFolder({ isOffline: false });
  const path = await configure(folder);
  const place = ["--config", path, "--data-dir", `${path}/state`];
  const { exitCode, errors } = await runSluice(["serve", ...place]);
  expect([exitCode, messagesIn(errors)]).toEqual([1, ["cannot start"]]);
  expect(errors).toContain("cannot be used (ENOTDIR: not a directory)");
});
