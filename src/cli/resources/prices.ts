import { exitCodes } from "../../process/program.ts";
import { CommandError } from "../command.ts";
import { formatRecords } from "../output/show-reply.ts";
import {
  cellOf,
  readPart,
  readRecord,
  readRecords,
  type ReplyRecord,
} from "../output/reply-fields.ts";
import type { VerbCall } from "../verbs/verb.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";

export const prices: ResourceSpec = {
  name: "prices",
  about:
    "What calls cost, in USD per 1M tokens. Prices come from targets and the section `prices` of the " +
    "configuration, else from the list that Sluice ships, whose confidence says how well its sources " +
    "agree. They are published as numbered versions; each call keeps the version that applied when it " +
    "arrived. Calls at a target that is not priced have no cost. `--json` has the prices of long " +
    "prompts and of service tiers, too.",
  verbs: [
    {
      name: "list",
      isDefault: true,
      operation: "listPrices",
      summary: "List what each target costs",
      columns: [
        "target",
        "models",
        { title: "INPUT", of: (row) => rateOf(row, "input") },
        { title: "CACHE READ", of: (row) => rateOf(row, "cache_read") },
        { title: "WRITE", of: (row) => rateOf(row, "cache_write") },
        { title: "WRITE 1H", of: (row) => rateOf(row, "cache_write_1h") },
        { title: "OUTPUT", of: (row) => rateOf(row, "output") },
        "confidence",
        "since",
        "source",
      ],
      notes: (_, answer) => notesOn(answer),
      examples: ["prices list", "prices list --version 3", "prices list --json"],
    },
    {
      name: "diff",
      operation: "listPrices",
      summary: "Show what differs between two versions of the prices",
      only: [],
      options: [
        ["--from <version>", "The earlier version. Default: the one before the other."],
        ["--to <version>", "The later version. Default: the one in use."],
      ],
      run: showDiff,
      examples: ["prices diff", "prices diff --from 3 --to 5"],
    },
    {
      name: "reprice",
      operation: "repriceUsage",
      summary: "Price stored calls again, by the prices of now or of another price table",
      examples: [
        "prices reprice --since 2026-11-01T00:00:00Z --dry-run",
        "prices reprice --since 30d --closed-periods",
      ],
    },
  ],
};

function rateOf(row: ReplyRecord, name: string): string | number {
  return readPart(row, "price") === undefined ? "not priced" : cellOf(row, `price.${name}`);
}

function notesOn(answer: ReplyRecord): readonly string[] {
  const { version } = answer;
  const shown = readRecords(answer, "versions").find((each) => each["version"] === version);
  if (shown === undefined) return ["No prices were published."];
  return [`Version ${cellOf(shown, "version")}, since ${cellOf(shown, "valid_from")}.`];
}

async function showDiff({ client, io, options, isJson }: VerbCall): Promise<number> {
  const read = async (version: number): Promise<ReplyRecord> =>
    readRecord(await client.request("GET", "/prices", { query: { version: String(version) } }));
  const inUse = await read(0);
  const to = versionOf(options["to"]) ?? Number(inUse["version"] ?? 0);
  const from = versionOf(options["from"]) ?? to - 1;
  if (from < 1) {
    io.print("There is no earlier version.");
    return exitCodes.ok;
  }
  const changes = differencesOf(await read(from), await read(to));
  if (isJson) io.print(JSON.stringify({ from, to, changes }));
  else if (changes.length === 0) io.print(`Versions ${from} and ${to} have the same prices.`);
  else {
    const columns = [
      { title: "TARGET", of: "target" },
      { title: "PRICE", of: "price" },
      { title: `VERSION ${from}`, of: "from" },
      { title: `VERSION ${to}`, of: "to" },
      { title: "CHANGE", of: "change" },
    ];
    const rows = changes.map((each) => ({ ...each, change: percentOf(each.from, each.to) }));
    io.print(formatRecords(columns, rows));
  }
  return exitCodes.ok;
}

function versionOf(text: unknown): number | undefined {
  if (typeof text !== "string") return undefined;
  if (/^[1-9][0-9]{0,8}$/.test(text)) return Number(text);
  throw new CommandError(`'${text}' is no version: use a number from \`prices list\``);
}

interface Change {
  readonly target: string;
  /** Such as `input` or `tiers.priority.output`. */
  readonly price: string;
  /** Texts of USD; null: none. */
  readonly from: string | null;
  readonly to: string | null;
}

function differencesOf(from: ReplyRecord, to: ReplyRecord): readonly Change[] {
  const [before, after] = [ratesByTarget(from), ratesByTarget(to)];
  return [...new Set([...before.keys(), ...after.keys()])].toSorted().flatMap((target) => {
    const [one, other] = [before.get(target) ?? noRates, after.get(target) ?? noRates];
    const names = [...new Set([...one.keys(), ...other.keys()])];
    return names.flatMap((price) => {
      const change = { target, price, from: one.get(price) ?? null, to: other.get(price) ?? null };
      return change.from === change.to ? [] : [change];
    });
  });
}

const noRates: ReadonlyMap<string, string> = new Map();

function ratesByTarget(answer: ReplyRecord): ReadonlyMap<string, ReadonlyMap<string, string>> {
  return new Map(
    readRecords(answer, "data").map((row) => [
      String(row["target"]),
      new Map(flatRates(readPart(row, "price") ?? {}, "")),
    ]),
  );
}

function flatRates(part: ReplyRecord, prefix: string): readonly (readonly [string, string])[] {
  return Object.entries(part).flatMap(([name, value]) => {
    if (typeof value === "string" || typeof value === "number") {
      return [[`${prefix}${name}`, String(value)] as const];
    }
    const nested = readPart(part, name);
    return nested === undefined ? [] : flatRates(nested, `${prefix}${name}.`);
  });
}

/** `+10 %`; empty if one of them is no price. */
function percentOf(from: string | null, to: string | null): string {
  if (from === null || to === null || Number(from) === 0) return "";
  const percent = Math.round((Number(to) / Number(from) - 1) * 1000) / 10;
  return `${percent > 0 ? "+" : ""}${percent} %`;
}
