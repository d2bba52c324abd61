import { join } from "node:path";
import { endChild } from "./child.ts";

export interface StaticUpstream extends AsyncDisposable {
  readonly port: number;
  readonly pid: number;
}

/** Starts `upstream/main.ts` as a program and reads its port. */
export async function startUpstream(): Promise<StaticUpstream> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "../upstream/main.ts")], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await child.stdout.getReader().read();
  const port = Number(new TextDecoder().decode(value));
  return { port, pid: child.pid, [Symbol.asyncDispose]: () => endChild(child) };
}
