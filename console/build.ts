/**
 * Builds the console into a flat folder of compressed files: `bun console/build.ts [FOLDER]`. All
 * names but those of the pages have a hash, so that browsers keep them for ever.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";

const [folder = join(import.meta.dir, "dist")] = process.argv.slice(2);
const { outputs } = await Bun.build({
  entrypoints: [join(import.meta.dir, "index.html")],
  target: "browser",
  splitting: true,
  minify: true,
  publicPath: "/assets/",
  naming: { entry: "[name].[ext]", chunk: "[name]-[hash].[ext]", asset: "[name]-[hash].[ext]" },
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
});

const target = resolve(folder);
// Another process may build the same.
const work = `${target}.${process.pid}`;
mkdirSync(work, { recursive: true, mode: 0o700 });
for (const output of outputs) {
  const name = output.path.replace(/^.*\//, "");
  const bytes = Buffer.from(await output.arrayBuffer());
  if (name === "index.html") writePages(bytes.toString());
  else write(name, bytes);
}
// For browsers that ask before they have read a page.
write("icon.svg", readFileSync(join(import.meta.dir, "icon.svg")));
rmSync(target, { recursive: true, force: true });
renameSync(work, target);

/** A page for each theme: there is no script that could set it before the first paint. */
function writePages(html: string): void {
  for (const theme of ["system", "light", "dark"]) {
    const page = html.replace('data-theme="system"', `data-theme="${theme}"`);
    write(`${theme}.html`, Buffer.from(page));
  }
}

function write(name: string, bytes: Buffer): void {
  writeFileSync(join(work, `${name}.gz`), gzipSync(bytes, { level: 9 }));
  writeFileSync(join(work, `${name}.br`), brotliCompressSync(bytes));
}
