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
  const [count = 0, of = 0, silent = 0] = ["replicas", "of", "silent"].map((name) =>
    Number(applied[name]),
  );
  const told = `${count} of ${of} ${of === 1 ? "process has" : "processes have"} applied it.`;
  if (count === of && silent === 0) return [told];
  const replicas = await listReplicas(client);
  return [
    told,
    ...(count < of ? [lateNote(of - count, replicas)] : []),
    ...(silent > 0 ? [silentNote(silent, replicas)] : []),
    "To stop a key there, refuse it in the proxy, or end that process. Until then it may accept the " +
      "keys it knew, at most for auth.snapshot_max_age. Look at `sluice replicas`, and repeat this " +
      "command to ask again.",
  ];
}

const withoutGateway =
  "Processes on this database apply it within a second, unless they are cut off from it. " +
  "`sluice replicas` of a running gateway shows those that are silent.";

const untold =
  "Warning: the gateway could not tell how many processes have applied it. Look at `sluice " +
  "replicas`, and repeat this command to ask again.";

/** Undefined if the caller may not see them, or if the database has just gone. */
async function listReplicas(
  client: Pick<AdminClient, "request">,
): Promise<readonly ReplyRecord[] | undefined> {
  try {
    return readRecords(await client.request("GET", "/replicas"), "data");
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}

function lateNote(count: number, replicas: readonly ReplyRecord[] | undefined): string {
  const live = (replicas ?? []).filter((replica) => replica["live"] === true);
  const newest = Math.max(...live.map(epochOf));
  const late = live.filter((replica) => epochOf(replica) < newest);
  return `Warning: not applied by ${namesOf(late, count)}.`;
}

function epochOf(replica: ReplyRecord): number {
  const { keys_epoch: epoch } = replica;
  return typeof epoch === "number" ? epoch : -1;
}

function silentNote(count: number, replicas: readonly ReplyRecord[] | undefined): string {
  const silent = (replicas ?? []).filter((replica) => replica["live"] === false);
  return `Warning: no sign of ${namesOf(silent, count, silenceOf)}.`;
}

function silenceOf(replica: ReplyRecord): string {
  return `, silent for ${formatDuration(Number(replica["silent_ms"]))}`;
}

/** Gateways on one machine differ by the address of their admin listener, which only the leader has. */
function placeOf(replica: ReplyRecord): string {
  const { admin_url: url } = replica;
  const host = String(cellOf(replica, "name"));
  return typeof url === "string" && url !== "" ? `${host} (${url})` : host;
}

/** The list was read after the receipt, so a process may have followed in between. */
function namesOf(
  replicas: readonly ReplyRecord[],
  count: number,
  more: (replica: ReplyRecord) => string = () => "",
): string {
  const counted = `${count} ${count === 1 ? "process" : "processes"}`;
  if (replicas.length === 0) return counted;
  const names = replicas.map(
    (replica) => `${cellOf(replica, "number")} of ${placeOf(replica)}${more(replica)}`,
  );
  return `${counted}: ${names.join(", ")}`;
}
