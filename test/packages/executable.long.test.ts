import { afterAll, beforeAll, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import packageJson from "../../package.json" with { type: "json" };
import { apiKeyPattern } from "../../src/domain/keys/api-key.ts";
import { commitOfCheckout } from "../../src/process/program.ts";
import { run } from "../sdk/registry-test.ts";
import { type FinishedCommand, runSluice, startServing } from "../support/sluice-process.ts";
import { testWhere } from "../support/requirement.ts";
import { post, serveForADay, serveWithoutNetwork } from "./package-trial.ts";

const script = fileURLToPath(new URL("../../scripts/build.ts", import.meta.url));
const platform = process.arch === "arm64" ? "linux-arm64" : "linux-x64";
let folder: string;
let executable: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "sluice-executable-"));
  const build = Bun.spawn([process.execPath, script, "--out", join(folder, "dist"), platform], {
    // Anywhere: the positions in its sources must not depend on it.
    cwd: folder,
    stdout: "ignore",
    stderr: "inherit",
  });
  expect(await build.exited).toBe(0);
  executable = join(folder, "dist", `sluice-${platform}`);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const sluice = (...line: readonly string[]): Promise<FinishedCommand> =>
  runSluice(line, {}, [executable]);

test("has its checksum and its bill of materials beside it", async () => {
  const dist = join(folder, "dist");
  const files = [`sluice-${platform}`, "sluice.cdx.json"];
  expect(readdirSync(dist).toSorted()).toEqual(["SHA256SUMS", ...files]);
  const checked = await run(["sha256sum", "--strict", "--check", "SHA256SUMS"], { cwd: dist });
  expect(checked).toBe(files.map((file) => `${file}: OK\n`).join(""));
});

const isPermitted = Bun.spawnSync(["unshare", "--net", "--map-root-user", "true"]).success;
const testAlone = testWhere(isPermitted, "a network of its own is not permitted");
testAlone("serves on a machine without a network, and tries to reach none", async () => {
  await serveWithoutNetwork({ program: [executable], folder: join(folder, "alone") });
});

test("is one file, which serves and restarts into the one that replaced it", async () => {
  await serveForADay({ program: [executable], folder: join(folder, "day") }, () => {
    copyFileSync(executable, `${executable}.new`);
    renameSync(`${executable}.new`, executable);
  });
});

test("has the thread that decodes tokens", async () => {
  const place = ["--data-dir", join(folder, "demo")];
  const anyPort = ["--data", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
  await using demo = await startServing([...place, ...anyPort], {}, [executable]);
  const plan = ["--application", "demo", "--plan", "standard"];
  const created = await sluice("keys", "create", ...plan, ...place);
  const key = apiKeyPattern.exec(created.output)?.[0] ?? "";
  const body = { model: "embed-text-v2", input: [9906, 1917] };
  const response = await post(`${demo.dataUrl}/v1/embeddings`, key, body);
  expect(await response.json()).toMatchObject({ object: "list", usage: { total_tokens: 2 } });
});

test("names itself in its advice", async () => {
  const { errors } = await sluice("keys", "list", "--data-dir", join(folder, "none"));
  expect(errors).toContain("Start it with `sluice serve`");
  expect(await sluice("--version")).toMatchObject({
    output: `${packageJson.version} (commit ${commitOfCheckout()})\n`,
  });
});

test("tells the place of an exception in its sources", async () => {
  const preload = join(folder, "preload.ts");
  await Bun.write(preload, `process.umask = () => { throw new TypeError("failed here"); };`);
  const env = { BUN_OPTIONS: `--preload ${preload}` };
  const { errors } = await runSluice(["--version"], env, [executable]);
  expect(errors).toContain("failed here");
  expect(errors).toMatch(/\bat (?:<anonymous> \()?src\/main\.ts:\d+:\d+/);
});
