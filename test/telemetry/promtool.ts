import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What `promtool` prints about files or its input; undefined when it finds nothing wrong. */
export async function promtool(
  command: readonly string[],
  files: Readonly<Record<string, string>>,
  input = "",
): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-promtool-"));
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const child = Bun.spawn(["promtool", ...command], {
      cwd: folder,
      stdin: new Blob([input]),
      stderr: "pipe",
    });
    const [output, errors, exitCode] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return exitCode === 0 ? undefined : `${output}${errors}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
