/**
 * Prints lines and files of every room of `src/`, of `simulator/` and of `console/`, tests apart, beside what the
 * layout of docs/architecture.md allows for: `npm run lines`. Fails if a sum is above its limit.
 */
import { readFileSync } from "node:fs";

/** In thousands of lines. A room above its budget says why where it is changed. */
const budgets: readonly { readonly rooms: readonly string[]; readonly thousands: number }[] = [
  { rooms: ["store"], thousands: 9.5 },
  { rooms: ["process"], thousands: 2.7 },
  { rooms: ["upstreams"], thousands: 10.5 },
  { rooms: ["control"], thousands: 8 },
  { rooms: ["cli"], thousands: 5.6 },
  { rooms: ["call"], thousands: 4.6 },
  { rooms: ["domain"], thousands: 4.3 },
  { rooms: ["config"], thousands: 4 },
  { rooms: ["admission", "routing"], thousands: 5.1 },
  { rooms: ["ledger", "idempotency"], thousands: 3 },
  { rooms: ["edge", "dialects", "upstream-client"], thousands: 7.8 },
  { rooms: ["telemetry", "keys", "snapshot", "settings", "entry"], thousands: 4 },
  { rooms: ["wires"], thousands: 2.5 },
];
const most = { src: 92_600, simulator: 8720, console: 11_625 };
/** Beside `src`. */
const packages = ["simulator", "console"] as const;

interface Count {
  lines: number;
  files: number;
  /** Files below 30 lines: often pieces of an idea that another file holds. */
  small: number;
}

process.exitCode = main();

function main(): number {
  const rooms = countRooms();
  const planned = new Set(budgets.flatMap((budget) => budget.rooms));
  const ofSource = [...rooms.keys()].filter((room) => !packages.some((name) => name === room));
  const others = ofSource.filter((room) => !planned.has(room));
  const rows = [
    ["room", "lines", "files", "below 30", "budget"],
    ...budgets.map((budget) => rowOf(budget.rooms, rooms, budget.thousands * 1000)),
    ...others.map((room) => rowOf([room], rooms, 0)),
    rowOf(ofSource, rooms, most.src),
    ...packages.map((name) => rowOf([name], rooms, most[name])),
  ];
  for (const [room = "", ...figures] of rows) {
    console.log(room.padEnd(44) + figures.map((figure) => figure.padStart(9)).join(""));
  }
  const over = rows.slice(-3).filter(([, lines, , , limit]) => Number(lines) > Number(limit));
  for (const [name] of over) console.log(`${name} has more lines than its limit`);
  return over.length === 0 ? 0 : 1;
}

function countRooms(): ReadonlyMap<string, Count> {
  const rooms = new Map<string, Count>();
  const files = "{src,simulator,console}/**/*.{ts,tsx,css}";
  for (const path of new Bun.Glob(files).scanSync(".")) {
    if (path.endsWith(".test.ts")) continue;
    const [, room = "entry"] =
      /^(?:src\/)?([\w-]+)\//.exec(path.replace(/^src\/[\w-]+\.ts$/, "")) ?? [];
    const count = rooms.get(room) ?? { lines: 0, files: 0, small: 0 };
    const lines = readFileSync(path, "utf8").split("\n").length - 1;
    rooms.set(room, {
      lines: count.lines + lines,
      files: count.files + 1,
      small: count.small + (lines < 30 ? 1 : 0),
    });
  }
  return rooms;
}

function rowOf(names: readonly string[], rooms: ReadonlyMap<string, Count>, budget: number) {
  const title = names.length > 5 ? "src" : names.join(", ");
  const counts = names.map((name) => rooms.get(name) ?? { lines: 0, files: 0, small: 0 });
  const sum = (field: keyof Count): string =>
    String(counts.reduce((total, count) => total + count[field], 0));
  return [title, sum("lines"), sum("files"), sum("small"), String(budget)];
}
