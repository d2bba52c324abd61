import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { readDocument } from "../test/support/documents.ts";
import { importsOf } from "./structure/imports-of.ts";

/** Pages for contributors, which name files; paths may leave `src/` out. */
const pages = [
  "CONTRIBUTING.md",
  "docs/architecture.md",
  "docs/adding-a-dialect.md",
  "docs/upstreams/adding-a-kind.md",
];
const root = new URL("..", import.meta.url);
const architecture = "docs/architecture.md";

/** The rooms that each room imports, types included. */
const importedBy = readImports();

test("the picture has every room, and imports go down in it", () => {
  const [, picture = ""] = /```text\n([\s\S]*?)```/.exec(readDocument(architecture)) ?? [];
  const lines = picture.split("\n").map((line) => (line.split("│")[1] ?? "").split(/\s+/));
  const lineOf = new Map(lines.flatMap((rooms, at) => rooms.map((room) => [room, at] as const)));
  lineOf.delete("");
  expect([...lineOf.keys()].toSorted()).toEqual([...importedBy.keys()].toSorted());
  const upwards = [...importedBy].flatMap(([room, imported]) =>
    [...imported]
      .filter((other) => (lineOf.get(other) ?? 0) <= (lineOf.get(room) ?? 0))
      .map((other) => `${room} imports ${other}`),
  );
  expect(upwards).toEqual([]);
});

test("the list of rooms has every room", () => {
  const list = readDocument(architecture).matchAll(/^- `([\w.-]+)`:/gm);
  const documented = [...list].map(([, room = ""]) => room);
  expect(documented.toSorted()).toEqual([...importedBy.keys()].toSorted());
});

test.each(pages)("every file and folder that %s names exists", (page) => {
  const named = [...readDocument(page).matchAll(/`([\w.-]+\/[\w./-]+)`/g)]
    .map(([, path = ""]) => path)
    .filter((path) => path.endsWith("/") || /\.(?:ts|tsx|json|md|yaml|txt)$/.test(path));
  const missing = named.filter(
    (path) => !["", "src/"].some((folder) => existsSync(new URL(folder + path, root))),
  );
  expect(missing).toEqual([]);
});

function readImports(): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  for (const path of new Bun.Glob("{src,simulator,console}/**/*.{ts,tsx}").scanSync(
    root.pathname,
  )) {
    if (/\.(?:test|d)\.ts$/.test(path)) continue;
    const room = roomOf(path);
    const imported = found.get(room) ?? new Set();
    found.set(room, imported);
    for (const { target, isModule } of importsOf(path, readFileSync(new URL(path, root), "utf8"))) {
      const isRoom = !isModule && /^(?:src|simulator|console)\//.test(target);
      if (isRoom && roomOf(target) !== room) imported.add(roomOf(target));
    }
  }
  return found;
}

function roomOf(path: string): string {
  return /^(?:src\/)?([^/]+)/.exec(path)?.[1] ?? path;
}
