/**
 * Builds single-file executables: `npm run build`, or `npm run build -- --out FOLDER PLATFORM...`.
 * Beside them are the bill of materials and the checksums of all these files.
 * `--commit` names the commit where there is no checkout.
 * Bun gets the runtime of another processor from the npm registry, and keeps it.
 */
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { commitOfCheckout } from "../src/process/program.ts";
import { billOfMaterials } from "./sbom.ts";

const root = resolve(import.meta.dir, "..");
const targets = { "linux-x64": "bun-linux-x64", "linux-arm64": "bun-linux-arm64" } as const;
type Platform = keyof typeof targets;

process.exitCode = await main();

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: {
      out: { type: "string", default: join(root, "dist") },
      commit: { type: "string", default: commitOfCheckout() ?? "unknown" },
    },
    allowPositionals: true,
  });
  const platforms = positionals.length === 0 ? Object.keys(targets) : positionals;
  const folder = resolve(values.out);
  // Source maps are relative to the working directory.
  process.chdir(root);
  const failed: string[] = [];
  const built: string[] = [];
  for (const platform of platforms) {
    if (!isPlatform(platform)) {
      console.error(`build: ${platform} is none of ${Object.keys(targets).join(", ")}`);
      return 2;
    }
    try {
      built.push(await build(platform, { folder, commit: values.commit }));
    } catch (error) {
      failed.push(platform);
      console.error(`build: ${platform}: ${Bun.inspect(error)}`);
    }
  }
  if (failed.length > 0) {
    console.error(`build: not built: ${failed.join(", ")}`);
    return 1;
  }
  const bill = join(folder, "sluice.cdx.json");
  writeFileSync(bill, `${billOfMaterials()}\n`);
  const sums = join(folder, "SHA256SUMS");
  writeFileSync(sums, (await Promise.all([...built, bill].map(checksumLine))).join(""));
  console.log([...built, bill, sums].join("\n"));
  return 0;
}

/** As `sha256sum --check` reads it. */
async function checksumLine(path: string): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  for await (const chunk of Bun.file(path).stream()) hash.update(chunk);
  return `${hash.digest("hex")}  ${basename(path)}\n`;
}

interface Build {
  readonly folder: string;
  readonly commit: string;
}

/** Resolves to the path of the executable. */
async function build(platform: Platform, { folder, commit }: Build): Promise<string> {
  const name = `sluice-${platform}`;
  // The executable contains the source maps, which Bun also writes beside it. The same name each
  // time, because it gets into the executable, and the same commit gives the same file.
  const work = join(folder, `.build-${platform}`);
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  try {
    const built = join(work, name);
    await Bun.build({
      entrypoints: [
        ...["src/main.ts", ...threads()].map((path) => join(root, path)),
        await embedConsole(work),
      ],
      root,
      target: "bun",
      define: { SLUICE_COMMIT: JSON.stringify(commit) },
      // Loads only what a command needs, as from the sources.
      splitting: true,
      // Code runs in one folder, from which a module finds its thread by the thread's own name.
      naming: { entry: "[name].ts", asset: "[name].[ext]" },
      sourcemap: "linked",
      // A bunfig.toml of the working directory could name code to run.
      compile: { target: targets[platform], outfile: built, autoloadBunfig: false },
    });
    const path = join(folder, name);
    renameSync(built, path);
    return path;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Builds the files of the web console. Returns a module whose build puts them into the executable. */
async function embedConsole(work: string): Promise<string> {
  const folder = join(work, "console");
  const child = Bun.spawn([process.execPath, join(root, "console/build.ts"), folder]);
  if ((await child.exited) !== 0) throw new Error("the console was not built");
  const imports = readdirSync(folder).map(
    (file) => `import ${JSON.stringify(`./console/${file}`)} with { type: "file" };\n`,
  );
  const module = join(work, "embedded-console.ts");
  writeFileSync(module, imports.join(""));
  return module;
}

/** Files that run in threads of their own, which no import names. */
function threads(): readonly string[] {
  return [...new Bun.Glob("src/**/*-thread.ts").scanSync(root)];
}

function isPlatform(text: string): text is Platform {
  return Object.hasOwn(targets, text);
}
