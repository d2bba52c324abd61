import { readFile } from "node:fs/promises";
import { exitCodes } from "../../process/exit-codes.ts";
import { CommandError, type Command, type CommandIo } from "../command.ts";
import { findAccountId } from "./find-entity.ts";
import {
  cellOf,
  formatValue,
  readPart,
  readRecord,
  type ReplyRecord,
} from "../output/reply-fields.ts";
import { createResourceCommand } from "../resource-command.ts";
import { pageOptions, showList } from "../output/show-reply.ts";
import { timeOptions, readTimeRange } from "../usage/time-range.ts";
import { defineVerb } from "../verb.ts";

const columns = [
  { title: "NO", of: "sequence" },
  { title: "AT", of: "at" },
  { title: "WHO", of: "actor.name" },
  { title: "FROM", of: "address" },
  { title: "ACTION", of: "action" },
  { title: "SUBJECT", of: "subject.id" },
  { title: "CHANGE", of: describeChange },
];

const listVerb = defineVerb({
  name: "list",
  summary: "list who changed what, newest first",
  options: {
    ...timeOptions,
    account: { type: "string", value: "ACCOUNT", about: "only what belongs to this account" },
    actor: { type: "string", value: "ID", about: "only of this user" },
    action: { type: "string", value: "ACTION", about: "only this, such as key.rotate" },
    subject: { type: "string", value: "ID", about: "only of this key, application, ..." },
    ...pageOptions,
  },
  examples: ["audit list --since 24h", "audit list --action key.rotate --json"],
  async run(call) {
    const { args, client, io } = call;
    args.none();
    const query = {
      ...readTimeRange(args, io),
      account_id: await findAccountId(client, args.text("account")),
      actor_id: args.text("actor"),
      action: args.text("action"),
      subject_id: args.text("subject"),
    };
    return showList(call, {
      path: "/audit",
      query,
      columns,
      whenEmpty: "There are no such entries.",
    });
  },
});

const verifyVerb = defineVerb({
  name: "verify",
  summary: "check that no entry was changed or removed; exit code 1 when one was",
  options: {
    expect: { type: "string", value: "DIGEST", about: "an entry must have this digest" },
    checkpoints: {
      type: "string",
      value: "FILE",
      about: "the chain must have the last checkpoint of this file",
    },
  },
  examples: [
    "audit verify",
    "audit verify --checkpoints audit-checkpoints.jsonl",
    "audit verify --offline --config sluice.yaml",
  ],
  async run({ args, client, io, isJson }) {
    args.none();
    const checkpoint = await readLastCheckpoint(args.text("checkpoints"));
    const query = { expect: args.text("expect"), checkpoint };
    const verdict = readRecord(await client.request("GET", "/audit/verify", { query }));
    const isIntact = verdict["is_intact"] === true;
    if (isJson) io.print(JSON.stringify(verdict));
    else {
      io.print(describeVerdict(verdict, isIntact));
      tellRemoved(readPart(verdict, "removed"), io);
      if (isIntact) io.report("Note the digest elsewhere, for --expect: it tells an older copy.");
    }
    return isIntact ? exitCodes.ok : exitCodes.failed;
  },
});

async function readLastCheckpoint(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    const lines = (await readFile(path, "utf8")).split("\n");
    const last = lines.findLast((line) => line.trim() !== "");
    if (last !== undefined) return last;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandError(`the checkpoints cannot be read: ${reason}`);
  }
  throw new CommandError(`${path} holds no checkpoint`);
}

/** Retention is a setting: who makes it shorter for a while removes entries in all order. */
function tellRemoved(removed: ReplyRecord | undefined, io: Pick<CommandIo, "report">): void {
  if (removed === undefined) return;
  const { kept_hours: kept, configured_hours: configured } = removed;
  const days = (hours: unknown): string => `${Number((Number(hours) / 24).toFixed(1))} days`;
  const line =
    `Retention removed the entries until ${cellOf(removed, "until")}, at ${cellOf(removed, "at")}, ` +
    `when entries were kept for ${days(kept)}`;
  const isShorter = Number(kept) < Number(configured);
  io.report(isShorter ? `${line}: less than the ${days(configured)} of now.` : `${line}.`);
}

function describeVerdict(verdict: ReplyRecord, isIntact: boolean): string {
  const counted = `${cellOf(verdict, "entries")} entries`;
  const digest = `last digest ${cellOf(verdict, "last_digest")}`;
  if (isIntact) return `The audit is intact: ${counted}, ${digest}`;
  const problem = verdict["problem"];
  const what = typeof problem === "string" ? problem : describeFields(readPart(verdict, "problem"));
  return `The audit is broken: ${what} (${counted} read, ${digest})`;
}

/** Only fields that changed are in both; of what was made or removed, one side is enough. */
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

/** A line of the table stays a line; `--json` has all of it. */
function shorten(text: string): string {
  return text.length <= 100 ? text : `${text.slice(0, 97)}...`;
}

export const auditCommand: Command = createResourceCommand({
  name: "audit",
  summary: "who changed what, and proof that nothing of it was altered",
  about: "Every change of the control plane is an entry; each has a digest over all before it.",
  verbs: [listVerb, verifyVerb],
});
