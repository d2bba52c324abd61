import { join } from "node:path";
import { z } from "zod";
import type { Fault } from "./faults.ts";

const startedSchema = z.object({ control: z.int(), ports: z.array(z.int()) });
const seenSchema = z.object({
  now: z.number(),
  failedAt: z.array(z.number()),
});

/**
 * What a double can tell: when requests came that it failed, and when connections were begun that it
 * ignored. Times are wall clock.
 */
export type Seen = z.infer<typeof seenSchema>;

/** Stand-in upstreams, each known by its index. */
export interface Doubles extends AsyncDisposable {
  readonly ports: readonly number[];
  break(index: number, fault: Fault): Promise<Seen>;
  mend(index: number): Promise<Seen>;
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
    mend: (index) => ask(`${index}/mend`),
    seen: (index) => ask(String(index)),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
