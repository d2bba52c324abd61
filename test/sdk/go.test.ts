import { expect } from "bun:test";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  cacheFolder,
  clientEnvironment,
  installTimeoutMs,
  passedChecks,
  run,
  testNeedingRegistry,
} from "./registry-test.ts";
import { chatKinds } from "../support/gateway.ts";
import { startSdkGateway } from "./sdk-gateway.ts";

const source = join(import.meta.dir, "go");

testNeedingRegistry("go").each(chatKinds)(
  "the official Go client's checks pass with every alias on kind %s",
  async (kind) => {
    const program = await build();
    await using sdk = await startSdkGateway(kind);
    const passed = passedChecks(await run([program], { env: clientEnvironment(sdk) }));
    expect(passed.length).toBeGreaterThanOrEqual(25);
  },
  installTimeoutMs,
);

/** Built outside the repository; Go's own caches make every build after the first a short one. */
async function build(): Promise<string> {
  const files = readdirSync(source).sort();
  const texts = files.map((file) => readFileSync(join(source, file), "utf8"));
  const folder = cacheFolder("go", texts.join("\n"));
  mkdirSync(folder, { recursive: true });
  const program = join(folder, "sdk-checks");
  await run(["go", "build", "-mod=readonly", "-o", program, "."], { cwd: source });
  return program;
}
