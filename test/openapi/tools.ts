import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** Validators and generators of clients, installed from the registries beside no repository. */
const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "sluice-openapi-1");

const nodePackages = [
  "@apidevtools/swagger-parser@13.0.0",
  "@redocly/cli@2.77.0",
  "openapi-fetch@0.17.0",
  "openapi-typescript@7.13.0",
  "typescript@5.9.3",
];
const pythonPackages = ["openapi-python-client==0.29.1", "openapi-spec-validator==0.9.0"];
const fuzzPackages = ["schemathesis==4.32.5", "hypothesis==6.170.17", "jsonschema-rs==0.60.3"];
const goGenerator = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2";

/** A set of tools; `missing` says why there is none. */
export interface Tools {
  readonly folder: string;
  readonly missing: string | undefined;
}

export function nodeTools(): Promise<Tools> {
  return install("node", ["npm"], async (folder) => {
    await Bun.write(join(folder, "package.json"), '{ "private": true, "type": "module" }');
    const options = ["--no-audit", "--no-fund", "--ignore-scripts"];
    await run(["npm", "install", ...options, ...nodePackages], { folder });
  });
}

export function pythonTools(): Promise<Tools> {
  return installPython("python", pythonPackages);
}

/** Generates requests from a description of an API. */
export function fuzzTools(): Promise<Tools> {
  return installPython("fuzz", fuzzPackages);
}

function installPython(name: string, packages: readonly string[]): Promise<Tools> {
  return install(name, ["python3"], async (folder) => {
    await run(["python3", "-m", "venv", folder], { folder });
    await run([join(folder, "bin/pip"), "install", "--quiet", ...packages], { folder });
  });
}

export function goTools(): Promise<Tools> {
  return install("go", ["go"], async (folder) => {
    await run(["go", "install", goGenerator], { folder, environment: { GOBIN: folder } });
  });
}

/** Runs a program to its end. Throws what it said if it fails. */
export async function run(
  command: readonly string[],
  place: { readonly folder: string; readonly environment?: Readonly<Record<string, string>> },
): Promise<string> {
  const child = Bun.spawn([...command], {
    cwd: place.folder,
    env: { ...process.env, ...place.environment },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, problems] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) === 0) return output;
  throw new Error(`${command.join(" ")}: ${problems}${output}`);
}

async function install(
  name: string,
  programs: readonly string[],
  work: (folder: string) => Promise<void>,
): Promise<Tools> {
  const folder = join(cache, name);
  const absent = programs.find((program) => Bun.which(program) === null);
  if (absent !== undefined) return { folder, missing: `${absent} is not installed` };
  const mark = Bun.file(join(folder, "complete"));
  if (await mark.exists()) return { folder, missing: undefined };
  mkdirSync(folder, { recursive: true });
  try {
    await work(folder);
    await mark.write("");
    return { folder, missing: undefined };
  } catch (error) {
    const [reason] = String(error).split("\n");
    return { folder, missing: `the ${name} tools could not be installed: ${reason}` };
  }
}
