/**
 * Prints lines and files of every room of `src/`, of `simulator/` and of `console/`, tests apart: `npm run lines`.
 * Fails if a sum is above its limit.
 */
import { readFileSync } from "node:fs";

const most = { src: 92_942, simulator: 8720, console: 11_648 };

interface Count {
  lines: number;
  files: number;
  /** Files below 30 lines: often pieces of an idea that another file holds. */
  small: number;
}

process.exitCode = main();

function main(): number {
  const rooms = new Map<string, Count>();
  const sums = { src: newCount(), simulator: newCount(), console: newCount() };
  for (const path of new Bun.Glob("{src,simulator,console}/**/*.{ts,tsx,css}").scanSync(".")) {
    if (path.endsWith(".test.ts")) continue;
    const [, top = "", room = "entry"] = /^(\w+)\/(?:([\w-]+)\/)?/.exec(path) ?? [];
    const lines = readFileSync(path, "utf8").split("\n").length - 1;
    if (!isCounted(top)) continue;
    add(sums[top], lines);
    if (top !== "src") continue;
    const count = rooms.get(room) ?? newCount();
    rooms.set(room, count);
    add(count, lines);
  }
  console.log(rowOf("room", ["lines", "files", "below 30", "limit"]));
  const byLines = [...rooms].toSorted(([, one], [, other]) => other.lines - one.lines);
  for (const [room, { lines, files, small }] of byLines) {
    console.log(rowOf(room, [lines, files, small, ""]));
  }
  let isOver = false;
  for (const [name, { lines, files, small }] of Object.entries(sums)) {
    const limit = isCounted(name) ? most[name] : 0;
    console.log(rowOf(name, [lines, files, small, limit]));
    if (lines <= limit) continue;
    isOver = true;
    console.log(
      `${name} has ${lines - limit} lines more than it may: delete what the change replaces, or raise ` +
        "`most` in scripts/lines.ts in the same commit, which says why",
    );
  }
  return isOver ? 1 : 0;
}

function isCounted(name: string): name is keyof typeof most {
  return Object.hasOwn(most, name);
}

function newCount(): Count {
  return { lines: 0, files: 0, small: 0 };
}

function add(count: Count, lines: number): void {
  count.lines += lines;
  count.files += 1;
  count.small += lines < 30 ? 1 : 0;
}

function rowOf(title: string, figures: readonly (string | number)[]): string {
  return title.padEnd(20) + figures.map((figure) => String(figure).padStart(9)).join("");
}
