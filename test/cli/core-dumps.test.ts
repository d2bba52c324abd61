import { expect, test } from "bun:test";
import { join } from "node:path";

const main = join(import.meta.dir, "../../src/main.ts");

test.skipIf(process.platform !== "linux")(
  "no process of the program leaves a core dump, whatever its limit was",
  async () => {
    // The simulator stays until it is told to end; its limit is read from outside.
    const command = `ulimit -S -c unlimited 2>/dev/null; exec "$@"`;
    const child = Bun.spawn(
      ["sh", "-c", command, "sh", process.execPath, main, "simulator", "--listen", "127.0.0.1:0"],
      { stdout: "pipe", stderr: "pipe" },
    );
    // Kept to the end: the program ends when nobody reads what it prints.
    const output = child.stdout.getReader();
    try {
      const { done } = await output.read();
      expect([done, done && (await child.stderr.text())]).toEqual([false, false]);
      const limits = await Bun.file(`/proc/${child.pid}/limits`).text();
      expect(limits).toMatch(/^Max core file size\s+0\s+0\s+bytes/m);
    } finally {
      child.kill();
      output.releaseLock();
      await child.exited;
    }
  },
);
