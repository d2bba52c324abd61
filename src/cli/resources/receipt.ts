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
  const lacking = of - count + silent;
  const names = await namesOfLacking(client);
  return [
    told,
    `Warning: not applied by ${lacking} ${lacking === 1 ? "process" : "processes"}` +
      `${names.length === 0 ? "" : `: ${names.join(", ")}`}.`,
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

/**
 * The processes that are silent, or have not all changes. None if the caller may not see them, or if
 * the database has just gone; the list was read after the receipt, so one may have followed.
 */
async function namesOfLacking(client: Pick<AdminClient, "request">): Promise<readonly string[]> {
  const processes = await client.request("GET", "/processes").then(
    (answer) => readRecords(answer, "data"),
    (error: unknown) => {
      if (error instanceof CommandError) return [];
      throw error;
    },
  );
  const newest = Math.max(...processes.map(epochOf));
  const lacking = processes.filter((each) => each["live"] !== true || epochOf(each) < newest);
  return lacking.map(nameOf);
}

function epochOf({ keys_epoch: epoch }: ReplyRecord): number {
  return typeof epoch === "number" ? epoch : -1;
}

/** Gateways on one machine differ by the address of their admin listener, which only the leader has. */
function nameOf(process: ReplyRecord): string {
  const { admin_url: url, live, silent_ms: silentMs } = process;
  const place = typeof url === "string" && url !== "" ? ` (${url})` : "";
  const silence = live === true ? "" : `, silent for ${formatDuration(Number(silentMs))}`;
  return `${cellOf(process, "number")} of ${cellOf(process, "name")}${place}${silence}`;
}
