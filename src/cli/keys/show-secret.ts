import { formatDuration } from "../duration.ts";
import {
  cellOf,
  formatValue,
  readPart,
  readRecords,
  readText,
  type ReplyRecord,
} from "../output/reply-fields.ts";
import { entities, titleOf } from "../verbs/entities.ts";
import type { VerbCall } from "../verbs/verb.ts";

const whenAccepted =
  "Gateways accept it within a second, unless they are cut off from the database.";

/** Prints only the new secret to standard output, so that it can be piped. */
export function showIssuedKey({ io }: VerbCall, answer: ReplyRecord): void {
  io.print(readText(answer, "api_key"));
  const key = readPart(answer, "key") ?? {};
  io.report(
    `Key ${cellOf(key, "id")} for application '${cellOf(key, "application")}' ` +
      `on plan ${cellOf(key, "plan")} in ${cellOf(key, "environment")}.`,
  );
  io.report(`Store it now: it is not shown again. ${whenAccepted}`);
  warnOfStatus(io, key);
}

export function showRotatedKey({ io }: VerbCall, answer: ReplyRecord): void {
  io.print(readText(answer, "api_key"));
  const key = readPart(answer, "key") ?? {};
  io.report(
    `${titleOf(entities.key, key)} has a new secret. Store it now: it is not shown again. ` +
      whenAccepted,
  );
  const ended = formatValue(answer["ended"]);
  if (ended !== "-") io.report(`Ended: ${ended}`);
  const until = answer["overlap_until"];
  if (typeof until === "string") {
    const left = formatDuration(Date.parse(until) - io.clock.now());
    io.report(`The previous secret works until ${formatValue(until)} UTC, in ${left}.`);
  }
  warnOfStatus(io, key);
}

/** Warns if gateways refuse the new secret. */
function warnOfStatus(io: VerbCall["io"], key: ReplyRecord): void {
  const { status } = key;
  if (typeof status !== "string" || status === "active") return;
  const reason = statusReasons[status] ?? `its status is ${cellOf(key, "status")}`;
  io.report(`Warning: the key does not work: ${reason}.`);
}

const statusReasons: Readonly<Record<string, string>> = {
  disabled: "it is disabled (`keys enable`)",
  application_disabled: "its application is disabled (`applications enable`)",
  account_disabled: "its account is disabled (`accounts enable`)",
  expired: "it has expired (`keys update --expires`)",
  revoked: "it is revoked",
  no_secret: "it has no live secret (`keys rotate`)",
};

/** The working secrets; `keys show` lists all. */
export function formatLiveSecrets(key: ReplyRecord): string {
  const live = readRecords(key, "secrets").filter(({ status }) => status === "live");
  return live.length === 0 ? "-" : live.map((secret) => readText(secret, "hint")).join(" ");
}
