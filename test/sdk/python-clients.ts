import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheFolder, run } from "./registry-test.ts";

/** The folder of programs that use official clients. */
export const pythonPrograms = join(import.meta.dir, "python");
const requirements = join(pythonPrograms, "requirements.txt");
const folder = cacheFolder("python", readFileSync(requirements, "utf8"));

/** The Python of an environment that has the pinned packages; made once. */
export async function pythonWithClients(): Promise<string> {
  const python = join(folder, "bin", "python");
  const marker = join(folder, "complete");
  if (existsSync(marker)) return python;
  rmSync(folder, { recursive: true, force: true });
  await run(["python3", "-m", "venv", folder]);
  const pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"];
  await run([...pip, "--requirement", requirements]);
  writeFileSync(marker, "");
  return python;
}
