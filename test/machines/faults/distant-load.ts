import { fileURLToPath } from "node:url";
import { z } from "zod";
import { sluiceProgram } from "../../support/sluice-process.ts";
import type { StackCall } from "../stack-load.ts";

const callsSchema = z.array(
  z.object({
    atMs: z.number(),
    status: z.number(),
    latencyMs: z.number(),
    requestId: z.string(),
  }),
);

const program = fileURLToPath(new URL("load-program.ts", import.meta.url));

export interface DistantLoadOptions {
  readonly prefix: readonly string[];
  readonly url: string;
  readonly key: string;
  readonly perSecond: number;
}

/** Starts calls of another place, such as a network namespace; the function returned ends them. */
export function startDistantLoad(options: DistantLoadOptions): () => Promise<readonly StackCall[]> {
  const { prefix, url, key, perSecond } = options;
  const [bun = ""] = sluiceProgram;
  const command = [...prefix, bun, program, url, key, String(perSecond)];
  const child = Bun.spawn(command, { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
  const output = new Response(child.stdout).text();
  return async () => {
    await child.stdin.end();
    return callsSchema.parse(JSON.parse(await output));
  };
}
