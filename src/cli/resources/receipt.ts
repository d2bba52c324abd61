import type { AdminClient } from "../client/admin-client.ts";
import { CommandError } from "../command.ts";
import { formatDuration } from "../duration.ts";
import { cellOf, readPart, readRecords, type ReplyRecord } from "../output/reply-fields.ts";

/** How many processes have a change of keys, which ones do not, and what to do about them. */
export async function receiptNotes(
  client: Pick<AdminClient, "isOffline" | "request">,
  answer: ReplyRecord,
): Promise<readonly string[]> {
  const applied = readPart(answer, "applied");
  if (applied === undefined) return [client.isOffline ? withoutGateway : untold];
  const [count = 0, of = 0, silent = 0] = ["processes", "of", "silent"].map((name) =>
    Number(applied[name]),
  );
  const told = `${count} of ${of} ${of === 1 ? "process has" : "processes have"} applied it.`;
  if (count === of && silent === 0) return [told];
  const processes = await listProcesses(client);
  return [
    told,
    ...(count < of ? [lateNote(of - count, processes)] : []),
    ...(silent > 0 ? [silentNote(silent, processes)] : []),
    "To stop a key there, refuse it in the proxy, or end that process. Until then it may accept the " +
      "keys it knew, at most for auth.snapshot_max_age. Look at `sluice processes`, and repeat this " +
      "command to ask again.",
  ];
}

const withoutGateway =
  "Processes on this database apply it within a second, unless they are cut off from it. " +
  "`sluice processes` of a running gateway shows those that are silent.";

const untold =
  "Warning: the gateway could not tell how many processes have applied it. Look at `sluice " +
  "processes`, and repeat this command to ask again.";

/** Undefined if the caller may not see them, or if the database has just gone. */
async function listProcesses(
  client: Pick<AdminClient, "request">,
): Promise<readonly ReplyRecord[] | undefined> {
  try {
    return readRecords(await client.request("GET", "/processes"), "data");
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}

function lateNote(count: number, processes: readonly ReplyRecord[] | undefined): string {
  const live = (processes ?? []).filter((row) => row["live"] === true);
  const newest = Math.max(...live.map(epochOf));
  const late = live.filter((row) => epochOf(row) < newest);
  return `Warning: not applied by ${namesOf(late, count)}.`;
}

function epochOf(row: ReplyRecord): number {
  const { keys_epoch: epoch } = row;
  return typeof epoch === "number" ? epoch : -1;
}

function silentNote(count: number, processes: readonly ReplyRecord[] | undefined): string {
  const silent = (processes ?? []).filter((row) => row["live"] === false);
  return `Warning: no sign of ${namesOf(silent, count, silenceOf)}.`;
}

function silenceOf(row: ReplyRecord): string {
  return `, silent for ${formatDuration(Number(row["silent_ms"]))}`;
}

/** Gateways on one machine differ by the address of their admin listener, which only the leader has. */
function placeOf(row: ReplyRecord): string {
  const { admin_url: url } = row;
  const host = String(cellOf(row, "name"));
  return typeof url === "string" && url !== "" ? `${host} (${url})` : host;
}

/** The list was read after the receipt, so a process may have followed in between. */
function namesOf(
  processes: readonly ReplyRecord[],
  count: number,
  more: (row: ReplyRecord) => string = () => "",
): string {
  const counted = `${count} ${count === 1 ? "process" : "processes"}`;
  if (processes.length === 0) return counted;
  const names = processes.map((row) => `${cellOf(row, "number")} of ${placeOf(row)}${more(row)}`);
  return `${counted}: ${names.join(", ")}`;
}
