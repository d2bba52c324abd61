import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import packageJson from "../../package.json" with { type: "json" };
import { commitOfCheckout } from "../../src/process/program.ts";
import { installTimeoutMs, run, testNeedingRegistry } from "../sdk/registry-test.ts";
import { serveWithoutNetwork } from "./package-trial.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const version = `${packageJson.version} (commit ${commitOfCheckout()})\n`;
let folder: string;
let packed: Packed;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "sluice-npm-"));
  const command = ["npm", "pack", "--silent", "--json", "--pack-destination", folder];
  [packed] = JSON.parse(await run(command, { cwd: root })) as [Packed];
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the npm package has the program, and nothing of its development", () => {
  const paths = packed.files.map(({ path }) => path);
  expect(
    paths.filter((path) => !/^(?:src|simulator|console\/dist)\//.test(path)).toSorted(),
  ).toEqual([
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "bin/sluice",
    "commit",
    "package.json",
    "sluice.schema.json",
  ]);
  expect(paths.filter((path) => /\.test\.|golden/.test(path))).toEqual([]);
});

testNeedingRegistry("npm")(
  "the npm package serves where it is installed, without install scripts and without a network",
  async () => {
    const app = join(folder, "app");
    mkdirSync(app);
    const install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"];
    await run([...install, join(folder, packed.filename)], { cwd: app });
    expect(await run(["npx", "sluice", "--version"], { cwd: app })).toBe(version);
    const program = [join(app, "node_modules/.bin/sluice")];
    await serveWithoutNetwork({ program, folder: join(folder, "day") });
  },
  installTimeoutMs,
);

testNeedingRegistry("npm")(
  "npx runs the npm package from its file",
  async () => {
    const npx = ["npx", "--yes", `./${packed.filename}`, "--version"];
    expect(await run(npx, { cwd: folder })).toBe(version);
  },
  installTimeoutMs,
);

interface Packed {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}
