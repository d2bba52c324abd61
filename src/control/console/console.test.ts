import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../domain/clock.ts";
import { consoleSections } from "./console.ts";
import { consoleFiles, consoleSources } from "./console-files.ts";

test("every page of the console has a path at which the server sends it", async () => {
  const source = await Bun.file(new URL("../../../console/src/pages.tsx", import.meta.url)).text();
  const paths = [...source.matchAll(/^ {4}path: "\/([\w-]*)/gm)].map(([, section = ""]) => section);
  expect(paths.length).toBeGreaterThan(2);
  const sections: readonly string[] = ["", ...consoleSections];
  expect(paths.filter((section) => !sections.includes(section))).toEqual([]);
});

test("a change of any source of the console is seen", () => {
  const sources = consoleSources();
  for (const path of ["build.ts", "index.html", "src/pages.tsx", "src/parts/chart.css"]) {
    expect(sources).toContain(path);
  }
});

test("the sources are built once for requests at the same time, and what is built is kept", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-console-files-"));
  try {
    const files = consoleFiles(folder, systemClock);
    const [one, other] = await Promise.all([files(), files()]);
    expect(one).toBe(other);
    const page = await one("system.html.gz");
    expect(Buffer.from(Bun.gunzipSync(page ?? new Uint8Array())).toString()).toContain("<html");
    expect(await one("nothing.gz")).toBeUndefined();
    const built = readdirSync(join(folder, "console"));
    expect(built).toHaveLength(1);
    // Another process finds it.
    expect(await (await consoleFiles(folder, systemClock)())("dark.html.br")).toBeDefined();
    expect(readdirSync(join(folder, "console"))).toEqual(built);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
