import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Another version of Sluice in a folder of its own, with the packages of this one. */
export class OtherProgram implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "sluice-program-"));

  constructor() {
    symlinkSync(join(root, "node_modules"), join(this.folder, "node_modules"));
  }

  get command(): readonly string[] {
    return [process.execPath, join(this.folder, "src/main.ts")];
  }

  /** Puts the sources of another one in the place of its own, as an update of a package does. */
  async replaceBy({ folder }: Pick<OtherProgram, "folder">): Promise<void> {
    // The callers and the provider are in this process, and must not wait for the disk.
    await rm(join(this.folder, "src"), { recursive: true, force: true });
    for (const part of parts) {
      await cp(join(folder, part), join(this.folder, part), { recursive: true });
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const parts = ["src", "package.json"];

/** This version, as it was installed. */
export async function copyOfThis(): Promise<OtherProgram> {
  const copy = new OtherProgram();
  await copy.replaceBy({ folder: root });
  return copy;
}
