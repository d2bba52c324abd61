import { join } from "node:path";
import { z } from "zod";
import type { Fault } from "./faults.ts";

const startedSchema = z.object({ control: z.int(), ports: z.array(z.int()) });
const seenSchema = z.object({
  now: z.number(),
  failedAt: z.array(z.number()),
});

/**
 * The times of the requests that a double failed and of the connection attempts that it ignored, by
 * the wall clock.
 */
export type Seen = z.infer<typeof seenSchema>;

/** Upstream doubles, identified by index. */
export interface Doubles extends AsyncDisposable {
  readonly ports: readonly number[];
  break(index: number, fault: Fault): Promise<Seen>;
  repair(index: number): Promise<Seen>;
  seen(index: number): Promise<Seen>;
}

export async function startDoubles(count: number): Promise<Doubles> {
  const program = join(import.meta.dir, "main.ts");
  const child = Bun.spawn([process.execPath, program, String(count)], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await child.stdout.getReader().read();
  const started = startedSchema.parse(JSON.parse(new TextDecoder().decode(value)));
  const ask = async (path: string): Promise<Seen> => {
    const response = await fetch(`http://127.0.0.1:${started.control}/${path}`);
    return seenSchema.parse(await response.json());
  };
  return {
    ports: started.ports,
    break: (index, fault) => ask(`${index}/${fault}`),
    repair: (index) => ask(`${index}/repair`),
    seen: (index) => ask(String(index)),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
