import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { cacheFolder, clientEnvironment, passedChecks, run } from "../sdk/registry-test.ts";
import { startSdkGateway } from "../sdk/sdk-gateway.ts";

const source = join(import.meta.dir, "node");

/**
 * A folder outside the repository with the pinned clients of `node/package.json` and the programs
 * beside it. The clients are installed once.
 */
export async function nodeClients(): Promise<string> {
  const files = readdirSync(source).toSorted();
  const folder = cacheFolder("node", readFileSync(join(source, "package.json"), "utf8"));
  mkdirSync(folder, { recursive: true });
  for (const file of files) copyFileSync(join(source, file), join(folder, file));
  const marker = join(folder, "complete");
  if (existsSync(marker)) return folder;
  await run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], { cwd: folder });
  writeFileSync(marker, "");
  return folder;
}

/** The checks that the programs passed against a gateway of its own. */
export async function passedBy(
  programs: readonly string[],
  kind: Parameters<typeof startSdkGateway>[0],
): Promise<readonly string[]> {
  const folder = await nodeClients();
  await using sdk = await startSdkGateway(kind);
  const env = clientEnvironment(sdk);
  const passed: string[] = [];
  for (const program of programs) {
    passed.push(...passedChecks(await run(["node", program], { cwd: folder, env })));
  }
  return passed;
}
