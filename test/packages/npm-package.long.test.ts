import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import packageJson from "../../package.json" with { type: "json" };
import { commitOfCheckout } from "../../src/process/program.ts";
import { installTimeoutMs, run, testNeedingRegistry } from "../sdk/registry-test.ts";
import { serveForADay } from "./package-trial.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
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
  "the npm package serves where it is installed",
  async () => {
    const app = join(folder, "app");
    mkdirSync(app);
    const install = ["npm", "install", "--no-audit", "--no-fund", join(folder, packed.filename)];
    await run(install, { cwd: app });
    const version = await run(["npx", "sluice", "--version"], { cwd: app });
    expect(version).toBe(`${packageJson.version} (commit ${commitOfCheckout()})\n`);
    const program = [join(app, "node_modules/.bin/sluice")];
    await serveForADay({ program, folder: join(folder, "day") }, () => undefined);
  },
  installTimeoutMs,
);

interface Packed {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}
