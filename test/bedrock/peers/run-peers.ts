import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Peer } from "./compare.ts";
import type { Recorded } from "./record-sluice.ts";
import type { PeerRequest } from "./requests.ts";

const aiSdk = ["@ai-sdk/amazon-bedrock@5.0.101"];
const litellm = ["litellm==1.106.0", "boto3==1.44.5", "mcp==2.3.0"];

const here = import.meta.dir;

/**
 * Installs the peers in a folder, unless they are there, and says what each sends. Needs npm, Node.js
 * and Python 3 with venv, and the registries of both.
 */
export async function runPeers(
  requests: readonly PeerRequest[],
  folder: string,
): Promise<Readonly<Record<Peer, Readonly<Record<string, Recorded>>>>> {
  const python = join(folder, "python");
  const node = join(folder, "node");
  mkdirSync(node, { recursive: true });
  await run(["npm", "install", "--no-audit", "--no-fund", "--prefix", node, ...aiSdk]);
  await run(["python3", "-m", "venv", python]);
  await run([join(python, "bin", "pip"), "install", "--quiet", ...litellm]);
  // The SDK is found from where the script is.
  const script = join(node, "ai-sdk-sends.mjs");
  await Bun.write(script, Bun.file(join(here, "ai-sdk-sends.mjs")));
  const input = JSON.stringify(requests);
  return {
    "ai-sdk": JSON.parse(await run(["node", script], input)),
    litellm: JSON.parse(
      await run([join(python, "bin", "python"), join(here, "litellm_sends.py")], input),
    ),
  };
}

async function run(command: readonly string[], input = ""): Promise<string> {
  const child = Bun.spawn([...command], {
    stdin: new TextEncoder().encode(input),
    stdout: "pipe",
    stderr: "pipe",
    // LiteLLM would fetch its table of prices from the network.
    env: { ...process.env, LITELLM_LOCAL_MODEL_COST_MAP: "True" },
  });
  const [output, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")} failed:\n${errors}`);
  return output;
}
