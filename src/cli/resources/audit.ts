import { readTextFile } from "../read-input.ts";
import { CommandError } from "../command.ts";
import { cellOf, formatValue, readPart, type ReplyRecord } from "../output/reply-fields.ts";
import { exitCodes } from "../../process/program.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";

export const audit: ResourceSpec = {
  name: "audit",
  about: "Every change is an entry. Each entry has a digest over all earlier ones.",
  verbs: [
    {
      name: "list",
      operation: "listAudit",
      columns: [
        "sequence",
        "at",
        "actor.name",
        "address",
        "action",
        "subject.id",
        { title: "CHANGE", of: describeChange },
      ],
      whenEmpty: "No entries found.",
      examples: ["audit list --since 24h", "audit list --action key.rotate --json"],
    },
    {
      name: "verify",
      operation: "verifyAudit",
      summary: "Check that no entry was changed or removed; exit code 1 if one was",
      texts: {
        expect: { value: "digest" },
        checkpoint: {
          value: "file",
          about: "The chain must have the last checkpoint of this file.",
          read: readLastCheckpoint,
        },
      },
      show: ({ io }, verdict) => io.print(describeVerdict(verdict)),
      notes: (_, verdict) => notesOn(verdict),
      exitCode: (verdict) => (isIntact(verdict) ? exitCodes.ok : exitCodes.failed),
      examples: [
        "audit verify",
        "audit verify --checkpoints audit-checkpoints.jsonl",
        "audit verify --offline --config sluice.yaml",
      ],
    },
  ],
};

function readLastCheckpoint(path: string): string {
  const last = readTextFile(path)
    .split("\n")
    .findLast((line) => line.trim() !== "");
  if (last === undefined) throw new CommandError(`${path} contains no checkpoint`);
  return last;
}

function isIntact(verdict: ReplyRecord): boolean {
  return verdict["is_intact"] === true;
}

function notesOn(verdict: ReplyRecord): readonly string[] {
  const first = readPart(verdict, "first");
  const digest = "Store the digest elsewhere, for --expect: it detects an older copy.";
  return [
    ...(first === undefined || first["sequence"] === 1
      ? []
      : [`The first kept entry is ${cellOf(first, "sequence")}, of ${cellOf(first, "at")}.`]),
    ...(isIntact(verdict) ? [digest] : []),
  ];
}

function describeVerdict(verdict: ReplyRecord): string {
  const counted = `${cellOf(verdict, "entries")} entries`;
  const digest = `last digest ${cellOf(verdict, "last_digest")}`;
  if (isIntact(verdict)) return `The audit is intact: ${counted}, ${digest}`;
  const what = describeFields(readPart(verdict, "problem"));
  return `The audit is broken: ${what} (${counted} read, ${digest})`;
}

/** A changed field is on both sides; created and removed objects have one side. */
function describeChange(entry: ReplyRecord): string {
  const before = readPart(entry, "before");
  const after = readPart(entry, "after");
  if (before === undefined || after === undefined) return shorten(describeFields(after ?? before));
  const parts = Object.keys(after).map(
    (name) => `${name}: ${formatValue(before[name])} -> ${formatValue(after[name])}`,
  );
  return shorten(parts.join(", "));
}

function describeFields(fields: ReplyRecord | undefined): string {
  const parts = Object.entries(fields ?? {}).filter(([, value]) => formatValue(value) !== "-");
  return parts.map(([name, value]) => `${name}: ${formatValue(value)}`).join(", ") || "-";
}

/** Keeps a row of the table on one line; `--json` has the whole text. */
function shorten(text: string): string {
  return text.length <= 100 ? text : `${text.slice(0, 97)}...`;
}
