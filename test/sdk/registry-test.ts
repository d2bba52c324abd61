import type { test } from "bun:test";
import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testWhere } from "../support/requirement.ts";
import type { SdkGateway } from "./sdk-gateway.ts";

/** Fetching and building a client may take as long. */
export const installTimeoutMs = 300_000;

/** A test whose client comes from a package registry: only a complete run takes that long. */
export function testNeedingRegistry(program: string): typeof test {
  return testWhere(false, `clients for ${program} are fetched in a complete run only`);
}

/** A folder outside the repository that survives until what it was made from changes. */
export function cacheFolder(name: string, content: string): string {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 16);
  return join(tmpdir(), `sluice-sdk-${name}-${hash}`);
}

/** Where a client's program finds the gateway, and the keys it calls it with. */
export function clientEnvironment({ kind, baseUrl, keys }: SdkGateway): Record<string, string> {
  return {
    SLUICE_BASE_URL: baseUrl,
    SLUICE_UPSTREAM_KIND: kind,
    SLUICE_KEY: keys.valid,
    SLUICE_REVOKED_KEY: keys.revoked,
    SLUICE_OTHER_KEY: keys.otherEnvironment,
    SLUICE_FEW_REQUESTS_KEY: keys.fewRequests,
    SLUICE_FEW_TOKENS_KEY: keys.fewTokens,
  };
}

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a command to its end and returns its output; throws with the output when it fails. */
export async function run(
  command: readonly string[],
  { cwd, env }: CommandOptions = {},
): Promise<string> {
  const child = Bun.spawn([...command], {
    ...(cwd !== undefined && { cwd }),
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [output, errors, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (exitCode === 0) return output;
  throw new Error(`${command.join(" ")} ended with ${exitCode}:\n${output}${errors}`);
}

/** Names of the checks that a client's program says to have passed, one `ok: name` a line. */
export function passedChecks(output: string): readonly string[] {
  return output
    .split("\n")
    .filter((line) => line.startsWith("ok: "))
    .map((line) => line.slice(4));
}
